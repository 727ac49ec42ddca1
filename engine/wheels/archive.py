"""The files of a wheel: each read from where its directory says, and no byte is left that belongs to none."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping

from engine.wheels.directory import (
    MAX_FILES,
    MAX_WHEEL_BYTES,
    SIZES_FOLLOW,
    STORED,
    Member,
    extra_reasons,
    form_reasons,
    read_directory,
)
from engine.wheels.paths import path_reasons
from engine.wheels.reasons import BUILD_ADVICE, quote, refuse, refuse_any

MAX_UNPACKED_BYTES = 20 * 1024 * 1024
MAX_RATIO = 200

_HEADER = struct.Struct("<4s5H3L2H")
_COMPILED = (
    b"\x7fELF",
    b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe",  # Mach-O
    b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf", b"\xbe\xba\xfe\xca", b"\xbf\xba\xfe\xca",  # universal Mach-O, Java
    b"!<arch>\n", b"!<thin>\n",  # libraries of objects
    b"\0asm", b"BC\xc0\xde", b"dex\n",  # WebAssembly, LLVM, Android
)  # fmt: skip
"""How files begin that some machine runs."""
_PYTHON_MAGIC = range(3000, 4000)
"""Of compiled Python 3, whose number is 3000 and more, and each version's a little higher (importlib's source)."""


def read_files(data: bytes) -> dict[str, bytes]:
    """Every file of the zip by its path. Raises WheelError for whatever no honest wheel contains.

    Needs no more memory than `data` and `MAX_UNPACKED_BYTES`, whatever the zip says of itself.
    """
    directory = read_directory(data)
    refuse_any(_size_reasons(len(data), directory.members))
    refuse_any(path_reasons(directory.members))
    contents = _read_contents(data, directory.members, directory.offset)
    files = {
        member.name: contents[member.offset] for member in directory.members if not member.is_folder
    }
    refuse_any(_compiled_reasons(files))
    return files


def _size_reasons(packed: int, members: Iterable[Member]) -> Iterator[str]:
    unpacked = sum(member.unpacked_bytes for member in members)
    if unpacked > MAX_UNPACKED_BYTES:
        yield (
            f"unpacked it has {unpacked} bytes; at most {MAX_UNPACKED_BYTES} are allowed: "
            "leave out what the bot does not need"
        )
    elif unpacked > MAX_RATIO * packed:
        yield f"it unpacks to more than {MAX_RATIO} times its size: leave such files out"


def _read_contents(data: bytes, members: Iterable[Member], end: int) -> dict[int, bytes]:
    """By its offset what each member holds; together they fill the file up to `end`. Raises WheelError."""
    contents = {}
    place = 0
    for member in sorted(members, key=lambda member: member.offset):
        if member.offset < place:
            refuse(f"{quote(member.name)} overlaps another file of the zip; {BUILD_ADVICE}")
        if member.offset > place:
            refuse(
                f"before {quote(member.name)} the zip has bytes that belong to no file; {BUILD_ADVICE}"
            )
        contents[place], place = _read_member(data, member)
    if place != end:
        refuse(
            f"behind its last file the zip has bytes that belong to none, or too few; {BUILD_ADVICE}"
        )
    return contents


def _read_member(data: bytes, member: Member) -> tuple[bytes, int]:
    """A member's content, no byte more than the directory promises, and where it ends.

    Raises WheelError for a header that lies.
    """
    lie = f"{quote(member.name)}: its header does not tell the truth; {BUILD_ADVICE}"
    if member.offset + _HEADER.size > len(data) or not data.startswith(
        b"PK\x03\x04", member.offset
    ):
        refuse(lie)
    _, version, flags, method, _, _, crc, packed, unpacked, name_length, extra_length = (
        _HEADER.unpack_from(data, member.offset)
    )
    name_begin = member.offset + _HEADER.size
    name_end = name_begin + name_length
    begin = name_end + extra_length
    refuse_any(form_reasons(member.name, version, flags, method, (packed, unpacked)))
    refuse_any(extra_reasons(member.name, data[name_end:begin]))
    promised = (member.crc, member.packed_bytes, member.unpacked_bytes)
    follow = bool(flags & SIZES_FOLLOW)
    end = begin + member.packed_bytes
    if not (
        data[name_begin:name_end] == member.raw_name
        and method == member.method
        and follow == bool(member.flags & SIZES_FOLLOW)
        and ((crc, packed, unpacked) == promised or (follow and not (crc or packed or unpacked)))
        and end <= len(data)
    ):
        refuse(lie)
    raw = data[begin:end]
    content = raw if method == STORED else _inflate(raw, member.unpacked_bytes)
    if (
        content is None
        or len(content) != member.unpacked_bytes
        or zlib.crc32(content) != member.crc
    ):
        refuse(lie)
    if follow:
        end = _descriptor_end(data, end, promised)
        if not end:
            refuse(lie)
    return content, end


def _inflate(raw: bytes, size: int) -> bytes | None:
    """What `raw` unpacks to if that is whole and not longer than `size`; else None."""
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = stream.decompress(raw, size + 1)
    except zlib.error:
        return None
    return content if stream.eof and not stream.unused_data else None


def _descriptor_end(data: bytes, place: int, promised: tuple[int, int, int]) -> int:
    """Where the sizes that follow a content end, with or without their signature; 0 if they are others."""
    sizes = struct.pack("<3L", *promised)
    for descriptor in (b"PK\x07\x08" + sizes, sizes):
        if data.startswith(descriptor, place):
            return place + len(descriptor)
    return 0


def _compiled_reasons(files: Mapping[str, bytes]) -> Iterator[str]:
    """Compiled code under a name that does not tell."""
    for name, content in files.items():
        if content.startswith(_COMPILED) or _is_windows_program(content):
            yield f"{quote(name)} is compiled code: bots are pure Python"
        elif _is_compiled_python(content):
            yield f"{quote(name)} is compiled Python: ship the source only"


def _is_windows_program(content: bytes) -> bool:
    if not content.startswith(b"MZ"):
        return False
    place = int.from_bytes(content[60:64], "little")
    return content[place : place + 4] == b"PE\0\0" or b"PE\0\0" in content[:1024]


def _is_compiled_python(content: bytes) -> bool:
    """Its magic number, a line break, and flags that are few (PEP 552); before 3.7 a time stood there."""
    return (
        len(content) >= 12
        and content[2:4] == b"\r\n"
        and int.from_bytes(content[:2], "little") in _PYTHON_MAGIC
        and b"\0" in content[4:12]
    )


__all__ = ["MAX_FILES", "MAX_RATIO", "MAX_UNPACKED_BYTES", "MAX_WHEEL_BYTES", "read_files"]
