"""Wheels as folders: each named by its hash, made in one step, compared before it is used."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from engine.agents import BotSource
from engine.wheels.archive import read_files
from engine.wheels.metadata import WheelInfo, judge, read_wheel

_SCRATCH = ".unpacking-"


def unpack_wheel(data: bytes, cache: Path) -> Path:
    """The folder of `cache` that holds the wheel's files, named by its hash, made if it is not there.

    Made in one step, so that others find it whole or not at all; one that is there but was damaged is
    made anew. Raises WheelError for what `read_wheel` refuses.
    """
    files = read_files(data)
    judge(data, files)
    folder = cache / hashlib.sha256(data).hexdigest()
    if folder.is_dir() and holds(folder, files):
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    _sweep(cache)
    with tempfile.TemporaryDirectory(dir=cache, prefix=_SCRATCH) as scratch:
        fresh = Path(scratch) / "fresh"
        _write_files(fresh, files)
        _put_in_place(fresh, folder, files, Path(scratch) / "damaged")
    return folder


def source_of(info: WheelInfo, folder: Path) -> BotSource:
    """The bot of a wheel that lies unpacked in `folder`."""
    return BotSource(
        bot=info.bot,
        version=info.version,
        wheel=f"sha256:{info.sha256}",
        folder=str(folder),
        entry_point=info.entry_point,
    )


def wheel_source(data: bytes, cache: Path) -> BotSource:
    """Check, unpack, and say where the bot lies. Raises WheelError."""
    return source_of(read_wheel(data), unpack_wheel(data, cache))


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _sweep(cache: Path) -> None:
    """Remove what a process left that was killed while it unpacked; nobody unpacks for an hour."""
    for path in cache.glob(f"{_SCRATCH}*"):
        with contextlib.suppress(FileNotFoundError):  # another worker sweeps too
            if path.stat().st_mtime < time.time() - 3600:
                shutil.rmtree(path, ignore_errors=True)


def _put_in_place(fresh: Path, folder: Path, files: Mapping[str, bytes], damaged: Path) -> None:
    try:
        fresh.rename(folder)
    except OSError:
        if folder.is_dir() and holds(folder, files):
            return  # another worker was faster
        folder.rename(damaged)
        fresh.rename(folder)


def holds(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Whether the folder holds these files and no others."""
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    return found == files.keys() and all(
        not (folder / name).is_symlink() and (folder / name).read_bytes() == content
        for name, content in files.items()
    )
