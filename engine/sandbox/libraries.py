"""The shared libraries that an interpreter and its modules have in use: asked of it, not guessed from its folders.

Conda keeps them beside the interpreter, Nix each in a folder of its own, a distribution in the system's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

_SYSTEM_FOLDERS = ("/usr/lib64", "/lib64", "/usr/lib")
_LIST = """
import ctypes, importlib, sys
for name in {names!r}:
    try:
        importlib.import_module(name)
    except Exception:
        pass
try:
    ctypes.CDLL("libgcc_s.so.1")
except OSError:
    pass
with open("/proc/self/maps") as maps:
    print("\\n".join({{line.split(maxsplit=5)[5].strip() for line in maps if "/" in line}}))
"""


@cache
def libraries_in_use(
    interpreter: str,
    import_path: Sequence[str],
    modules: Sequence[str],
    environment: Sequence[tuple[str, str]],
) -> tuple[Path, ...]:
    """All files that are mapped once the interpreter has imported what it can of `modules`, and links to them.

    Raises subprocess.CalledProcessError if it does not run.
    """
    program = f"import sys; sys.path[:] = {list(import_path)!r}" + _LIST.format(names=list(modules))
    done = subprocess.run(
        [interpreter, "-s", "-P", "-S", "-B", "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
    )
    files = {Path(line) for line in done.stdout.splitlines()}
    return tuple(sorted({*files, *_links_to(files)}))


def _links_to(files: set[Path]) -> Iterable[Path]:
    """The loader knows a library by the name of a link to it, which lies beside it."""
    folders = {*(file.parent for file in files), *map(Path, _SYSTEM_FOLDERS)}
    return (
        link
        for folder in folders
        if folder.is_dir()
        for link in folder.iterdir()
        if link.is_symlink() and link.resolve() in files
    )


def mapped_here() -> set[Path]:
    """The files that are mapped into this process."""
    lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    return {Path(line.split(maxsplit=5)[5]) for line in lines if "/" in line}
