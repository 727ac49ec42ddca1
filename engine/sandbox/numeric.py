"""numpy for the bots that use it: loaded before they are near, so that importing it costs them nothing.

It takes a fifth of a second to import and maps 130 MiB, most of it code and room that is never touched.
So only bots whose files name it get a process that has it, with a limit for memory that leaves them what
others have. Like `engine.sandbox.zygote`, which loads it, this module knows nothing of the referee.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

NUMPY = "numpy"
MODULES = (
    NUMPY, "numpy.fft", "numpy.lib.stride_tricks", "numpy.linalg", "numpy.polynomial", "numpy.random", "numpy.typing",
)  # fmt: skip
"""What is loaded beforehand; other parts of it a bot may import in its own time."""
ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""One thread: bots cannot start more, and a match has one core."""
_NAMED_IN = {"METADATA", "pyproject.toml"}
_MOST_FILES = 4000
"""More than a wheel may have; of an author's folder no more are looked at."""


def load() -> None:
    """Import numpy, and let it take the room that it calculates in, which forks then have too.

    Its global generator has the state of this process in every fork; each fork gets another.
    """
    for name in MODULES:
        importlib.import_module(name)
    import numpy as np

    square = np.ones((2, 2))
    np.linalg.inv(square @ square + np.eye(2))
    os.register_at_fork(after_in_child=np.random.seed)


def names_numpy(folder: Path) -> bool:
    """Whether a bot's files name numpy: in what it requires, or anywhere in its source.

    A bot that names it and does not use it has no harm of that.
    """
    return any(NUMPY.encode() in _content(path) for path in _told_files(folder))


@lru_cache(maxsize=1024)
def wheel_names_numpy(folder: Path) -> bool:
    """As `names_numpy`, of an unpacked wheel, which never changes."""
    return names_numpy(folder)


def _told_files(folder: Path) -> Iterator[Path]:
    """The files that tell what a bot imports and requires."""
    seen = 0
    for place, folders, names in os.walk(folder):
        if "pyvenv.cfg" in names:  # an author's tools
            folders.clear()
            continue
        folders[:] = [name for name in folders if name[0] != "." and name != "__pycache__"]
        for name in names:
            if name.endswith(".py") or name in _NAMED_IN:
                seen += 1
                if seen > _MOST_FILES:
                    return
                yield Path(place, name)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # whoever cannot read it cannot import it either
