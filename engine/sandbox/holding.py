"""Folders that several processes use: each holds what it uses while it lives, and who comes next sweeps the rest.

A hold is a shared lock on the folder itself, which the kernel lets go when the last process that has it ends,
however it ends; in whatever container it lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

YOUNG_SECONDS = 3600
"""A folder that was made so lately is not swept: who made it may be about to hold it."""
_held: dict[str, int] = {}
"""By path the open folder; forks of this process hold it too."""


def hold(folder: Path) -> bool:
    """Keep it from being swept as long as this process lives; False if it is not there, or not any more."""
    if str(folder) in _held:
        return folder.is_dir()
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    fcntl.flock(opened, fcntl.LOCK_SH)  # waits for who sweeps it now
    if not folder.is_dir() or not os.path.samestat(folder.stat(), os.fstat(opened)):
        os.close(opened)
        return False
    _held[str(folder)] = opened
    return True


def sweep(folders: Iterable[Path]) -> None:
    """Remove those that nobody holds and that are not young."""
    for folder in folders:
        with contextlib.suppress(OSError):  # another sweeps it, or it is not ours
            _sweep_one(folder)


def _sweep_one(folder: Path) -> None:
    if folder.stat().st_mtime > time.time() - YOUNG_SECONDS:
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Away at once under its name, so that nobody finds half of it.
        aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix="making-"))
        folder.rename(aside / "swept")
        shutil.rmtree(aside, ignore_errors=True)
    finally:
        os.close(opened)
