"""Reading and writing files that a user named, with errors that say what to change."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from engine.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_BINARY = getattr(os, "O_BINARY", 0)
"""Windows opens texts otherwise."""


def read_file(file: Path) -> bytes:
    """The bytes of `file`. Raises UsageError if it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {reason_of(error)}") from error


def read_regular_file(file: Path, most_bytes: int) -> bytes:
    """The bytes of `file`, but no more than one beyond `most_bytes`, so that the reader sees it is too long.

    Raises UsageError if it cannot be read, or is none: a device or a pipe may have no end.
    """
    try:
        if not file.is_dir() and file.exists() and not file.is_file():
            raise UsageError(f"cannot read {file}: it is a device or a pipe; name a file")
        # Should it become a pipe just now, opening it waits for nobody.
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
        with os.fdopen(descriptor, "rb") as opened:
            return opened.read(most_bytes + 1)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {reason_of(error)}") from error


def write_file(file: Path, data: bytes) -> None:
    """Write `data` to `file`, making its folders. Raises UsageError if it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {reason_of(error)}") from error


def try_folder(folder: Path) -> None:
    """Make the folder and write into it, to know beforehand that it will do. Raises UsageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"cannot write into {folder}: {reason_of(error)}") from error


def reason_of(error: OSError) -> str:
    """Why the system refused, without the path again: ``no such file or directory``."""
    text = error.strerror or type(error).__name__
    return text[0].lower() + text[1:]
