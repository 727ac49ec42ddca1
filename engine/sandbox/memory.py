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
import secrets
import shutil
import stat
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
from engine.sandbox.processes import has_ended, own_mark, pid_namespace
from engine.sandbox.runtime import NOT_FOR_BOTS, Runtime, find_runtime, runtime_libraries
from engine.wheels import mark_of

PLACES = ("/dev/shm", f"/run/user/{os.getuid() if sys.platform != 'win32' else 0}", "/run", "/tmp")  # noqa: S108 - looked at, and used only if they are tmpfs
"""Where a file system in memory is looked for, after the folder that ``ARENA_MEMORY`` names."""
LEAST_BYTES = 256 * 1024 * 1024
"""A smaller one is of no use: the interpreter, its library and numpy take about 130 MiB."""
WHEELS_BYTES = 256 * 1024 * 1024
"""Unpacked wheels that one process keeps in memory; at most a quarter of what there is."""
_SCRATCH, _WHEELS = "making-", "wheels-"
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
        if complaint_of(place) is None:
            with contextlib.suppress(OSError):
                return _own_folder(place)
    return None


def memory_complaint() -> str | None:
    """Why the place that ``ARENA_MEMORY`` names cannot be used; None if it can, or none is named."""
    chosen = os.environ.get("ARENA_MEMORY")
    complaint = complaint_of(Path(chosen)) if chosen else None
    return complaint and f"ARENA_MEMORY names {chosen}, which cannot be used: {complaint}"


def complaint_of(place: Path) -> str | None:
    """Why copies cannot lie there; None if it is a tmpfs that is large enough, lets programs run, and lets us in."""
    try:
        path = place.resolve(strict=True)
        kind, options = _mount_of(path)
        size, mode = os.statvfs(path), path.stat().st_mode
    except OSError as error:
        return (error.strerror or str(error)).lower()
    total = size.f_blocks * size.f_frsize
    if kind != "tmpfs":
        return f"it lies in a file system of type {kind}, not tmpfs"
    if "noexec" in options.split(","):
        return "it is mounted noexec"
    if total < LEAST_BYTES:
        return f"it has {total >> 20} MiB, and {LEAST_BYTES >> 20} are needed"
    if not stat.S_ISDIR(mode):
        return "it is no folder"
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return "anybody may rename what lies in it: give it the mode 1777"
    if not os.access(path, os.W_OK | os.X_OK):
        return "nothing may be written there"
    return None


def _mount_of(path: Path) -> tuple[str, str]:
    """The type of file system that it lies in, and the options of its mount. Raises OSError."""
    fields = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    above = [field for field in fields if path.is_relative_to(field[1])]
    if not above:
        return "unknown", ""
    _, _, kind, options, *_ = max(enumerate(above), key=lambda row: (len(row[1][1]), row[0]))[1]
    return kind, options


def _own_folder(place: Path) -> Path:
    """A folder that no other user can look into. Where one took its name, it gets another, which cannot be guessed."""
    name = f"domino-arena-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        (place / name).mkdir(mode=0o700)
    for folder in (place / name, *sorted(place.glob(f"{name}-*"))):
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
            folder.chmod(0o700)
            return folder
    return Path(tempfile.mkdtemp(dir=place, prefix=f"{name}-"))


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
        self._key = secrets.token_bytes(32)
        room = os.statvfs(folder)
        self._most = min(WHEELS_BYTES, room.f_blocks * room.f_frsize // 4)

    def hold(self, unpacked: Path) -> Path:
        """The copy of an unpacked wheel. Raises InfrastructureError if there is none, or no room."""
        with self._lock:
            target = self.place_of(unpacked.name)
            original = mark_of(unpacked)
            held = self._copies.pop(unpacked.name, None)
            if held is None or held.original != original or held.mark != mark_of(target):
                held = self._copy(unpacked, target, original)
            self._copies[unpacked.name] = held
            return target

    def place_of(self, name: str) -> Path:
        """Where the copy of a wheel lies: bots could ask for what they can name, and guess no name like this."""
        hidden = hashlib.blake2b(name.encode(), key=self._key, digest_size=32).hexdigest()
        return self.folder / hidden

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
            shutil.rmtree(self.place_of(oldest), ignore_errors=True)
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
    _sweep(place.glob(f"{_WHEELS}{pid_namespace()}-*"))
    folder = place / f"{_WHEELS}{own_mark()}"
    folder.mkdir(exist_ok=True)
    wheels = _Wheels(folder)
    atexit.register(wheels.remove)
    return wheels


def _sweep(folders: Iterable[Path]) -> None:
    """Remove what processes of this pid namespace left that have ended."""
    for folder in folders:
        if has_ended(folder.name.removeprefix(_WHEELS)):
            shutil.rmtree(folder, ignore_errors=True)


__all__ = ["memory_folder", "shown_files", "wheel_in_memory"]
