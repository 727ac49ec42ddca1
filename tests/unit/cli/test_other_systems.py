"""Authors on macOS and Windows: `arena` tells what a bot gets, and that no bot can be held."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, sys
sys.platform = {platform!r}
for module in ("fcntl", "termios", "resource", "grp", "pwd"):
    sys.modules[module] = None  # as where there is none
for name in ("O_TMPFILE", "O_DIRECTORY", "memfd_create", "pidfd_open", "sched_getaffinity", "getuid", "geteuid"):
    if hasattr(os, name):
        delattr(os, name)
import mmap
for name in [name for name in dir(mmap) if name.startswith("MADV_")]:
    delattr(mmap, name)
from engine.sandbox.probe import probe_sandbox
from engine.sandbox.limits import limits_here
print(limits_here().memory_bytes >> 20, probe_sandbox().reasons[0])
"""


def test_limits_are_told_where_there_is_no_linux():
    for platform in ("darwin", "win32"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(platform=platform)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == f"256 the sandbox needs Linux, and this is {platform}\n", done.stderr
