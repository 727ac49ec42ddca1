"""What bots see of the machine's files is a copy in memory, so that the kernel's caches tell nothing.

On a disk a page that has been read is there faster the next time, and so is a name that has been looked
up, even one that does not exist: a bot could leave such marks in one rotation and find them in the next.
A file system in memory (tmpfs) has no page that is not there, and remembers no name in vain. Its copies
are made by the worker, before a bot is near; bots can write nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.errors import InfrastructureError
from engine.sandbox.holding import hold, sweep
from engine.sandbox.runtime import NOT_FOR_BOTS, Runtime, find_runtime, runtime_libraries
from engine.wheels import mark_of

PLACES = ("/dev/shm", f"/run/user/{os.getuid() if sys.platform != 'win32' else 0}", "/run", "/tmp")  # noqa: S108 - looked at, and used only if they are tmpfs
"""Where a file system in memory is looked for, after the folder that ``ARENA_MEMORY`` names."""
LEAST_BYTES = 256 * 1024 * 1024
"""A smaller one is of no use: the interpreter, its library and numpy take about 130 MiB."""
WHEELS_BYTES = 256 * 1024 * 1024
"""Unpacked wheels that one process keeps in memory; at most a quarter of what there is."""
_SCRATCH = "making-"
_KEPT_WHEELS = 8
"""So many that were used last are kept in any case: those of the match that is played."""

_LEFT_OUT = {
    "test", "tests", "idlelib", "idle_test", "lib2to3", "ensurepip", "tkinter", "turtledemo", "pydoc_data",
    "site-packages", "dist-packages", "__phello__",
}  # fmt: skip
_LEFT_OUT_STARTS = ("config-", *NOT_FOR_BOTS)
"""Of the standard library: what is for developers or a screen, and would be 200 MB."""


def shown_files(runtime: Runtime) -> tuple[tuple[str, str], ...]:
    """As `Runtime.shown`, but of a copy in memory; the originals where there is no such place."""
    place = memory_folder()
    if place is None:
        return runtime.shown
    root = _copied_runtime(place)
    return tuple((f"{root}{inside}", inside) for _, inside in runtime.shown)


@cache
def memory_folder() -> Path | None:
    """Our own folder in a file system in memory from which programs may run; None if there is none."""
    chosen = os.environ.get("ARENA_MEMORY")
    for place in map(Path, (chosen,) if chosen else PLACES):
        if not _is_memory(place):
            continue
        folder = place / f"domino-arena-{os.getuid()}"
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o755, exist_ok=True)
            found = folder.lstat()
            if found.st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink():
                folder.chmod(0o755)
                return folder
    return None


def _is_memory(place: Path) -> bool:
    """Whether it lies in a tmpfs that is large enough and lets programs run."""
    try:
        path = place.resolve(strict=True)
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        size = os.statvfs(path)
    except OSError:
        return False
    fields = [line.split() for line in mounts]
    above = [field for field in fields if path.is_relative_to(field[1])]
    if not above:
        return False
    _, _, kind, options, *_ = max(enumerate(above), key=lambda row: (len(row[1][1]), row[0]))[1]
    is_large = size.f_blocks * size.f_frsize >= LEAST_BYTES
    return kind == "tmpfs" and "noexec" not in options.split(",") and is_large


@cache
def _copied_runtime(place: Path) -> Path:
    """A tree that holds, under their paths inside, all files of the runtime that a bot can need."""
    runtime = find_runtime()
    root = place / f"runtime-{_mark_of(runtime)}"
    if hold(root):
        return root
    _sweep_scratch(place)
    sweep(place.glob("runtime-*"))
    try:
        with tempfile.TemporaryDirectory(dir=place, prefix=_SCRATCH) as scratch:
            tree = Path(scratch) / "tree"
            for outside, inside in _runtime_files(runtime):
                _copy(outside, Path(f"{tree}{inside}"))
            for _, inside in runtime.shown:
                if not Path(f"{tree}{inside}").exists():
                    Path(f"{tree}{inside}").mkdir(parents=True)
            try:
                tree.rename(root)
            except OSError:
                if not root.is_dir():
                    raise
                # another worker was faster
    except OSError as error:
        raise InfrastructureError(
            f"the runtime of bots cannot be copied to {place}: {error}"
        ) from error
    if not hold(root):
        raise InfrastructureError(f"the runtime of bots was removed from {place}")
    return root


def _sweep_scratch(place: Path) -> None:
    """Remove what processes left that were killed while they copied the runtime; nobody copies for an hour."""
    for folder in place.glob(f"{_SCRATCH}*"):
        with contextlib.suppress(FileNotFoundError):  # another worker sweeps too
            if folder.stat().st_mtime < time.time() - 3600:
                shutil.rmtree(folder, ignore_errors=True)


def _mark_of(runtime: Runtime) -> str:
    """Another one as soon as the interpreter, its library, a package or a shared library is changed."""
    mark = hashlib.sha256(sys.version.encode())
    for path in (*(outside for outside, _ in runtime.shown), *runtime.import_path, __file__):
        with contextlib.suppress(OSError):
            found = Path(path).stat()
            mark.update(repr((path, found.st_size, found.st_mtime_ns, found.st_ino)).encode())
    return mark.hexdigest()[:32]


def _runtime_files(runtime: Runtime) -> Iterator[tuple[Path, str]]:
    """Each file or link that bots can need, outside, and its path inside."""
    library = [Path(path) for path in runtime.import_path[2:]]
    for folder in library:
        for path in _files_below(folder):
            yield path, str(path)
    for outside, inside in runtime.shown:
        path = Path(outside)
        if path.is_file():
            yield path, inside
        elif outside != inside:  # a package
            for file in _files_below(path):
                yield file, f"{inside}/{file.relative_to(path)}"
    folders = [Path(outside) for outside, inside in runtime.shown if outside == inside]
    for path in runtime_libraries(runtime):
        if any(path.is_relative_to(folder) for folder in folders if folder.is_dir()):
            yield path, str(path)


def _files_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _LEFT_OUT or path.name.startswith(_LEFT_OUT_STARTS):
            continue
        if path.is_dir():
            yield from _files_below(path)
        elif ".opt-" not in path.name:
            yield path


def _copy(outside: Path, inside: Path) -> None:
    inside.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(outside, inside, follow_symlinks=False)


# Unpacked wheels


@dataclass(frozen=True, slots=True)
class _Copy:
    original: str
    """The mark of the folder that was copied: one that was changed or made anew is copied anew."""
    mark: str
    """That of the copy: one of which somebody deleted a part is made anew."""
    size: int


def _copy_folder(unpacked: Path, target: Path) -> int:
    """Copy it, and say how many bytes it has; nothing is left of a copy that fails."""
    shutil.rmtree(target, ignore_errors=True)
    try:
        shutil.copytree(unpacked, target, symlinks=True)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return sum(path.lstat().st_size for path in target.rglob("*"))


class _Wheels:
    """The unpacked wheels that this process has copied, the last used last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._copies: dict[str, _Copy] = {}
        room = os.statvfs(folder)
        self._most = min(WHEELS_BYTES, room.f_blocks * room.f_frsize // 4)

    def hold(self, unpacked: Path) -> Path:
        """The copy of an unpacked wheel. Raises InfrastructureError if there is none, or no room."""
        with self._lock:
            target = self.folder / unpacked.name
            original = mark_of(unpacked)
            held = self._copies.pop(unpacked.name, None)
            if held is None or held.original != original or held.mark != mark_of(target):
                held = self._copy(unpacked, target, original)
            self._copies[unpacked.name] = held
            return target

    def _copy(self, unpacked: Path, target: Path, original: str) -> _Copy:
        self._make_room(self._most)
        try:
            try:
                size = _copy_folder(unpacked, target)
            except (
                OSError,
                shutil.Error,
            ):  # no room, perhaps: of copytree's many errors none tells
                if not self._make_room(0):
                    raise
                size = _copy_folder(unpacked, target)
        except (OSError, shutil.Error) as error:
            raise InfrastructureError(
                f"a bot's files cannot be copied to memory: {error}"
            ) from error
        copy = _Copy(original, mark_of(target), size)
        if not original or mark_of(unpacked) != original:
            raise InfrastructureError("a bot's files were changed while they were copied to memory")
        return copy

    def _make_room(self, most: int) -> bool:
        """Remove those used longest ago while all take more than `most` bytes; whether any was."""
        removed = False
        while (
            len(self._copies) >= _KEPT_WHEELS
            and sum(copy.size for copy in self._copies.values()) > most
        ):
            oldest = next(iter(self._copies))
            del self._copies[oldest]
            shutil.rmtree(self.folder / oldest, ignore_errors=True)
            removed = True
        return removed

    def remove(self) -> None:
        """Forget all, if it is this process's own."""
        if self._pid == os.getpid():
            shutil.rmtree(self.folder, ignore_errors=True)


_wheels: dict[int, _Wheels] = {}
"""Of this process, by its pid: a fork makes its own."""
_wheels_lock = threading.Lock()


def wheel_in_memory(unpacked: Path) -> Path:
    """A copy in memory of an unpacked wheel; itself where there is no memory to copy it to."""
    place = memory_folder()
    if place is None:
        return unpacked
    with _wheels_lock:
        wheels = _wheels.get(os.getpid())
        if wheels is None:
            _wheels.clear()
            _wheels[os.getpid()] = wheels = _own_wheels(place)
    return wheels.hold(unpacked)


def _own_wheels(place: Path) -> _Wheels:
    _sweep(place.glob(f"wheels-{_pid_namespace()}-*"))
    folder = place / f"wheels-{_pid_namespace()}-{os.getpid()}-{_start_time(os.getpid())}"
    folder.mkdir(exist_ok=True)
    wheels = _Wheels(folder)
    atexit.register(wheels.remove)
    return wheels


def _sweep(folders: Iterable[Path]) -> None:
    """Remove what processes left that have ended."""
    for folder in folders:
        _, _, pid, began = folder.name.split("-")
        if _start_time(int(pid)) != began:
            shutil.rmtree(folder, ignore_errors=True)


def _pid_namespace() -> int:
    """Whose pids we count in: another container may share the memory, but not the pids."""
    return Path("/proc/self/ns/pid").stat().st_ino


def _start_time(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


__all__ = ["memory_folder", "shown_files", "wheel_in_memory"]
