"""What a zip file says of its members: read by hand, for zip libraries differ in what they overlook.

Of the format (APPNOTE.TXT, PKWARE) only what tools that build wheels write: one disk, no comments, no zip64,
nothing before or behind. So there is one way to read such a file, and all who read it see the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from engine.wheels.reasons import BUILD_ADVICE, quote, refuse, refuse_any

MAX_WHEEL_BYTES = 10 * 1024 * 1024
MAX_FILES = 2000
MAX_PATH_LENGTH = 200
STORED, DEFLATED = 0, 8
SIZES_FOLLOW = 0x8
"""The flag that says that a member's sizes stand behind its content."""

_END = struct.Struct("<4s4H2LH")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_MAX_DIRECTORY_BYTES = MAX_FILES * (_ENTRY.size + 2 * MAX_PATH_LENGTH)
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_HARMLESS = 0x2 | 0x4 | SIZES_FOLLOW | 0x800
"""The compressor's effort, and that names are UTF-8."""
_ZIP64_FIELD, _UNICODE_NAME_FIELD = 0x0001, 0x7075
_HARMLESS_FIELDS = {0x000A, 0x5455, 0x5855, 0x7855, 0x7875}
"""Times and owners, as NTFS, Unix and old Unix tell them: nobody reads another file by them."""
_MAX_EXTRA_BYTES = 128
"""All that tools write of those together has less."""
_IN_ZIP64 = 0xFFFFFFFF
_NEWEST_VERSION = 45
"""Of the format that a member may need: 2.0 for deflate; tools that know zip64 say 4.5 of all that they write."""
_ZIP64 = f"the form for files of 4 GiB (zip64), which no wheel of a bot needs; {BUILD_ADVICE}"
_OTHER_KINDS = (
    (0, b"\x1f\x8b", "a .tar.gz, a source distribution"),
    (0, b"BZh", "a .tar.bz2, a source distribution"),
    (0, b"\xfd7zXZ", "a .tar.xz, a source distribution"),
    (257, b"ustar", "a tar file"),
    (0, b"7z\xbc\xaf", "a 7z file"),
    (0, b"Rar!", "a rar file"),
)


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of the directory; nothing of it is true yet."""

    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed_bytes: int
    unpacked_bytes: int
    mode: int
    """As `os.stat` gives it; 0 if it was made on a system without."""
    offset: int
    """Where in the file its own header begins."""

    @property
    def name(self) -> str:
        """Its path; bytes that are no UTF-8 become surrogates."""
        return self.raw_name.decode("utf-8", "surrogateescape")

    @property
    def is_folder(self) -> bool:
        """Whether it is the entry of a folder."""
        return self.raw_name.endswith(b"/")


@dataclass(frozen=True, slots=True)
class Directory:
    """All members, in the order in which they are listed."""

    members: tuple[Member, ...]
    offset: int
    """Where in the file it begins, so where the members end."""


def read_directory(data: bytes) -> Directory:
    """The directory at a zip's end. Raises WheelError for one that no honest tool writes."""
    _check_kind(data)
    begin, end, count = _frame(data)
    members, reasons = [], []
    place = begin
    for _ in range(count):
        if place + _ENTRY.size > end or data[place : place + 4] != b"PK\x01\x02":
            refuse(f"the zip file's directory is damaged; {BUILD_ADVICE}")
        member, place, found = _read_entry(data, place)
        members.append(member)
        reasons += found
    if place != end:
        refuse(
            f"the zip file's directory has not as many entries as it says, or is cut; {BUILD_ADVICE}"
        )
    refuse_any(reasons)
    return Directory(tuple(members), begin)


def too_large(most_bytes: int) -> str:
    """What is said of a wheel of more than `most_bytes`, wherever that is noticed."""
    return (
        f"the wheel has more than {most_bytes / (1 << 20):g} MiB ({most_bytes:,} bytes), the most that is "
        "allowed: leave out what the bot does not need"
    )


def _check_kind(data: bytes) -> None:
    """Raises WheelError for what is too large, or no zip at all."""
    if not data:
        refuse(f"the file is empty; {BUILD_ADVICE}")
    if len(data) > MAX_WHEEL_BYTES:
        refuse(too_large(MAX_WHEEL_BYTES))
    for place, magic, kind in _OTHER_KINDS:
        if data.startswith(magic, place):
            refuse(f"this is {kind}, and no wheel; {BUILD_ADVICE}")
    if data[:4] not in {b"PK\x03\x04", b"PK\x05\x06"}:
        refuse(f"this is no wheel: a wheel is a zip file; {BUILD_ADVICE}")


def _frame(data: bytes) -> tuple[int, int, int]:
    """Where the directory begins and ends, and how many entries it has. Raises WheelError."""
    end = len(data) - _END.size
    if end < 0 or data[end : end + 4] != b"PK\x05\x06" or data[-2:] != b"\0\0":
        refuse(f"the zip file is cut, or has a comment or other bytes at its end; {BUILD_ADVICE}")
    _, disk, first_disk, count_here, count, size, offset, _ = _END.unpack_from(data, end)
    if data[end - 20 : end - 16] == b"PK\x06\x07" or _IN_ZIP64 in (size, offset):
        refuse(f"the zip file has {_ZIP64}")
    if disk or first_disk or count_here != count:
        refuse(f"the zip file is one part of several; {BUILD_ADVICE}")
    if count > MAX_FILES:
        refuse(
            f"the wheel has {count} files; at most {MAX_FILES} are allowed: "
            "put what belongs together into one"
        )
    if size > _MAX_DIRECTORY_BYTES:
        refuse(f"the zip file's directory has {size} bytes, more than names need; {BUILD_ADVICE}")
    if offset + size != end:
        refuse(f"the zip file's directory is not where it says; {BUILD_ADVICE}")
    return offset, end, count


def _read_entry(data: bytes, place: int) -> tuple[Member, int, list[str]]:
    """A member, where the next entry begins, and what is wrong with this one."""
    (
        _, _, version, flags, method, _, _, crc, packed, unpacked,
        name_length, extra_length, comment_length, disk, _, attributes, offset,
    ) = _ENTRY.unpack_from(data, place)  # fmt: skip
    name_end = place + _ENTRY.size + name_length
    extra_end = name_end + extra_length
    member = Member(
        data[place + _ENTRY.size : name_end],
        flags, method, crc, packed, unpacked, attributes >> 16, offset,
    )  # fmt: skip
    reasons = [
        *form_reasons(member.name, version, flags, method, (packed, unpacked, offset)),
        *extra_reasons(member.name, data[name_end:extra_end]),
    ]
    if comment_length:
        reasons.append(f"{quote(member.name)} has a comment in the zip file; {BUILD_ADVICE}")
    if disk:
        reasons.append(f"{quote(member.name)} is said to lie in another file; {BUILD_ADVICE}")
    return member, extra_end + comment_length, reasons


def form_reasons(
    name: str, version: int, flags: int, method: int, numbers: tuple[int, ...]
) -> Iterator[str]:
    """What of a header, be it the directory's or the member's own, is in no form of wheels."""
    if flags & _ENCRYPTED:
        yield f"{quote(name)} is encrypted; {BUILD_ADVICE}"
    elif version > _NEWEST_VERSION or flags & ~_HARMLESS or method not in {STORED, DEFLATED}:
        yield f"{quote(name)} is compressed in a way that wheels are not; {BUILD_ADVICE}"
    if _IN_ZIP64 in numbers:
        yield f"{quote(name)} is stored in {_ZIP64}"


def extra_reasons(name: str, extra: bytes) -> Iterator[str]:
    """What a header's extra fields say that would make others read another file than we do."""
    if len(extra) > _MAX_EXTRA_BYTES:
        yield f"{quote(name)} has {len(extra)} bytes of extra fields in the zip file; {BUILD_ADVICE}"
        return
    while extra:
        kind, length = struct.unpack_from("<HH", extra) if len(extra) >= 4 else (0, len(extra))
        if 4 + length > len(extra):
            yield f"{quote(name)} has a damaged header in the zip file; {BUILD_ADVICE}"
        elif kind == _ZIP64_FIELD:
            yield f"{quote(name)} is stored in {_ZIP64}"
        elif kind == _UNICODE_NAME_FIELD:
            yield f"{quote(name)} has a second name in the zip file; {BUILD_ADVICE}"
        elif kind not in _HARMLESS_FIELDS:
            yield f"{quote(name)} has an extra field of the kind 0x{kind:04x} in the zip file; {BUILD_ADVICE}"
        extra = extra[4 + length :]
