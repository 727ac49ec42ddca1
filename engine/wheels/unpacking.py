"""Wheels as folders: each named by its hash, made in one step, compared before it is used."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.agents import BotSource
from engine.errors import InfrastructureError
from engine.wheels.archive import read_files
from engine.wheels.metadata import WheelInfo, judge

_SCRATCH = ".unpacking-"
_SCRATCH_SECONDS = 3600
"""Nobody unpacks for so long."""
_NEVER_READ_SECONDS = 10 * 365 * 24 * 3600
"""A file's time of last access lies so far ahead."""


def unpack_wheel(data: bytes, cache: Path) -> Path:
    """The folder of `cache` that holds the wheel's files, named by its hash, made if it is not there.

    Made in one step, so that others find it whole or not at all, whenever a process that makes one is killed; one that
    is there but was damaged is made anew. Raises WheelError for what `read_wheel` refuses, and
    InfrastructureError if there is no room, or the disk fails.
    """
    return Path(wheel_source(data, cache).folder)


def wheel_source(data: bytes, cache: Path) -> BotSource:
    """Check, unpack as `unpack_wheel` does, and say where the bot lies. Raises WheelError, InfrastructureError."""
    files = read_files(data)
    info = judge(data, files)
    folder = cache / info.sha256
    try:
        if not holds(folder, files):
            _make(folder, files)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InfrastructureError(f"a wheel cannot be unpacked: {reason}") from error
    return source_of(info, folder)


def source_of(info: WheelInfo, folder: Path) -> BotSource:
    """The bot of a wheel that lies unpacked in `folder`."""
    return BotSource(
        bot=info.bot,
        version=info.version,
        wheel=f"sha256:{info.sha256}",
        folder=str(folder),
        entry_point=info.entry_point,
    )


def mark_of(folder: Path) -> str:
    """A mark of all that lies in a folder, which is another one as soon as anything of it is changed.

    Of names, kinds, sizes, inodes and times, so without reading the files; empty if there is no folder.
    """
    try:
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode):
            return ""
        # A folder that is renamed keeps all but its time of change.
        told = [(found.st_mode, found.st_ino, found.st_mtime_ns), *_told_below(str(folder))]
    except OSError:
        return ""
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _told_below(folder: str) -> Iterator[tuple[object, ...]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            found = entry.stat(follow_symlinks=False)
            yield (
                entry.name, found.st_mode, found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns,
            )  # fmt: skip
            if entry.is_dir(follow_symlinks=False):
                yield from _told_below(entry.path)
                yield ()


def holds(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Whether the folder holds these files, no others, and no folders but theirs."""
    wanted = {parent for name in files for parent in Path(name).parents}
    found_files, found_folders = set(), {Path()}
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return False
        for path in folder.rglob("*"):
            kind = path.lstat().st_mode
            if stat.S_ISDIR(kind):
                found_folders.add(path.relative_to(folder))
            elif stat.S_ISREG(kind):
                found_files.add(path.relative_to(folder).as_posix())
            else:
                return False
        return (
            found_files == files.keys()
            and found_folders == wanted | {Path()}
            and all((folder / name).read_bytes() == content for name, content in files.items())
        )
    except OSError:  # it goes away, or cannot be read
        return False


def _make(folder: Path, files: Mapping[str, bytes]) -> None:
    cache = folder.parent
    cache.mkdir(parents=True, exist_ok=True)
    _sweep(cache)
    with tempfile.TemporaryDirectory(
        dir=cache, prefix=_SCRATCH, ignore_cleanup_errors=True
    ) as scratch:
        fresh = Path(scratch) / "fresh"
        _write_files(fresh, files)
        with _alone_in(cache):
            if holds(folder, files):
                return  # another worker was faster
            with contextlib.suppress(FileNotFoundError):
                folder.rename(Path(scratch) / "damaged")
            fresh.rename(folder)


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
        # The kernel notes an access where the last one noted is older than a day or the last change. One that is
        # to come is neither: so whoever reads a file leaves no mark on it (mount(8), relatime).
        os.utime(path, (time.time() + _NEVER_READ_SECONDS, path.stat().st_mtime))


@contextlib.contextmanager
def _alone_in(cache: Path) -> Iterator[None]:
    """Let no other process put anything in place; the kernel lets go of it when this process ends."""
    try:
        import fcntl
    except ImportError:  # Windows, where each command has a folder of its own
        yield
        return
    descriptor = os.open(cache, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sweep(cache: Path) -> None:
    """Remove what a process left that was killed while it unpacked."""
    for path in cache.glob(f"{_SCRATCH}*"):
        with contextlib.suppress(FileNotFoundError):  # another worker sweeps too
            if path.lstat().st_mtime < time.time() - _SCRATCH_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
