"""What the wheel reader holds by itself: attacks that succeed as soon as one of its checks is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from engine.errors import WheelError
from engine.wheels import archive, metadata, unpack_wheel, unpacking
from engine.wheels.archive import MAX_UNPACKED_BYTES, read_files
from tests.hostile.wheel_makers import BOT, Entry, bomb, entries, wheel, with_file, zip_of


def leaves_its_folder(folder: Path) -> bool:
    """Writes a file beside its own folder."""
    cache = folder / "leaves"
    try:
        unpack_wheel(with_file("../../planted.py"), cache)
    except WheelError:
        return False
    return (cache / "planted.py").exists()


def fills_the_memory(folder: Path) -> bool:
    """Unpacks to much more than it is allowed."""
    del folder
    honest = bomb(40 << 20)
    try:
        return len(read_files(wheel(honest))["zeros.bin"]) > MAX_UNPACKED_BYTES
    except WheelError:
        return False


def is_changed_on_the_way(folder: Path) -> bool:
    """Has other files than its author signed."""
    changed = zip_of([Entry("my_bot.py", b"import os\n"), *entries()[1:]])
    try:
        return (unpack_wheel(changed, folder / "way") / "my_bot.py").read_bytes() != BOT
    except WheelError:
        return False


def is_changed_in_the_cache(folder: Path) -> bool:
    """Is played from a folder that somebody changed."""
    unpacked = unpack_wheel(wheel(), folder / "cache")
    (unpacked / "my_bot.py").write_bytes(b"import os\n")
    return (unpack_wheel(wheel(), folder / "cache") / "my_bot.py").read_bytes() != BOT


def hides_a_second_content(folder: Path) -> bool:
    """Has bytes that another program would read as another wheel."""
    del folder
    try:
        return bool(read_files(zip_of(entries(), behind=zip_of([Entry("evil.py")]))))
    except WheelError:
        return False


@contextmanager
def _without_bounds() -> Iterator[None]:
    with mock.patch.object(archive, "MAX_UNPACKED_BYTES", 1 << 40), mock.patch.object(archive, "MAX_RATIO", 1 << 20):  # fmt: skip
        yield


def _without_paths() -> object:
    return mock.patch.object(archive, "path_reasons", return_value=())


def _without_record() -> object:
    return mock.patch.object(metadata, "record_reasons", return_value=())


def _without_comparison() -> object:
    return mock.patch.object(unpacking, "holds", lambda folder, _files: folder.exists())


@contextmanager
def _without_order() -> Iterator[None]:
    def read(data, members, _end):
        return {member.offset: archive._read_member(data, member)[0] for member in members}

    with mock.patch.object(archive, "_read_contents", read):
        yield


WHEEL_WALLS: dict[str, tuple[str, Callable[[Path], bool], Callable[[], object]]] = {
    "the paths in wheels": ("wheels", leaves_its_folder, _without_paths),
    "the bounds of wheels": ("wheels", fills_the_memory, _without_bounds),
    "the RECORD of wheels": ("wheels", is_changed_on_the_way, _without_record),
    "wheels read in one way": ("wheels", hides_a_second_content, _without_order),
    "the comparison of what is unpacked": ("wheels", is_changed_in_the_cache, _without_comparison),
}
"""By what checks: the kind of its attack, the attack, and what takes the check away."""
