"""Makes wheels byte by byte, honest ones and such as no tool would write."""

from __future__ import annotations

import csv
import io
import struct
import zlib
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from engine.wheels.record import record_hash

BOT = b"from engine.sdk import hookimpl\n"
DIST = "my_bot-1.0.dist-info"
METADATA = "Metadata-Version: 2.1\nName: my-bot\nVersion: 1.0\nSummary: Plays\n"
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
ENTRY = "[domino_arena.bots]\nmy-bot = my_bot\n"
REGULAR, LINK, FIFO, CHARACTER, BLOCK, SOCKET, FOLDER = (
    0o100000, 0o120000, 0o010000, 0o020000, 0o060000, 0o140000, 0o040000,
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A member of a zip file; `local` and `central` say which fields of its two headers lie, and how."""

    name: str | bytes
    content: bytes = b"x = 1\n"
    method: int = 8
    mode: int = REGULAR | 0o644
    flags: int = 0
    local: dict[str, Any] = field(default_factory=dict)
    central: dict[str, Any] = field(default_factory=dict)
    comment: bytes = b""
    before: bytes = b""
    """Bytes in front of its header that belong to nothing."""
    descriptor: bytes | None = None
    """What stands behind its content; `sizes_of` makes a true one."""
    raw: bytes | None = None
    """Its packed content, if it is not simply that."""

    @property
    def raw_name(self) -> bytes:
        return self.name if isinstance(self.name, bytes) else self.name.encode()

    @property
    def packed(self) -> bytes:
        if self.raw is not None:
            return self.raw
        return deflate(self.content) if self.method == 8 else self.content

    def fields(self) -> dict[str, Any]:
        """What its headers would say if both told the truth."""
        return {
            "version": 20, "flags": self.flags, "method": self.method, "crc": zlib.crc32(self.content),
            "packed": len(self.packed), "unpacked": len(self.content), "name": self.raw_name, "extra": b"",
        }  # fmt: skip


def deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


def sizes_of(entry: Entry, *, signed: bool = True) -> bytes:
    """The descriptor that tells the truth about it."""
    sizes = struct.pack("<3L", zlib.crc32(entry.content), len(entry.packed), len(entry.content))
    return (b"PK\x07\x08" if signed else b"") + sizes


def local_header(entry: Entry) -> bytes:
    f = entry.fields() | entry.local
    return struct.pack(
        "<4s5H3L2H", b"PK\x03\x04", f["version"], f["flags"], f["method"], 0, 33,
        f["crc"], f["packed"], f["unpacked"], len(f["name"]), len(f["extra"]),
    ) + f["name"] + f["extra"]  # fmt: skip


def central_header(entry: Entry, offset: int) -> bytes:
    f = {"offset": offset, "disk": 0, "mode": entry.mode} | entry.fields() | entry.central
    return struct.pack(
        "<4s6H3L5H2L", b"PK\x01\x02", 0x0314, f["version"], f["flags"], f["method"], 0, 33,
        f["crc"], f["packed"], f["unpacked"], len(f["name"]), len(f["extra"]), len(entry.comment),
        f["disk"], 0, f["mode"] << 16, f["offset"],
    ) + f["name"] + f["extra"] + entry.comment  # fmt: skip


def zip_of(
    entries: list[Entry], *, before: bytes = b"", behind: bytes = b"", end: dict[str, int] | None = None, tail: bytes = b""
) -> bytes:  # fmt: skip
    """The entries as a zip: `before` them, `behind` the last of them, `tail` after all; `end` lies in the last header."""
    parts, directory, place = [before], [], len(before)
    for entry in entries:
        place += len(entry.before)
        directory.append(central_header(entry, place))
        member = local_header(entry) + entry.packed + (entry.descriptor or b"")
        parts += [entry.before, member]
        place += len(member)
    listing = b"".join(directory)
    f = {
        "disk": 0, "first": 0, "here": len(entries), "count": len(entries),
        "size": len(listing), "offset": place + len(behind), "comment": 0,
    } | (end or {})  # fmt: skip
    last = struct.pack("<4s4H2LH", b"PK\x05\x06", *f.values())
    return b"".join([*parts, behind, listing, last, tail])


def record_of(entries: list[Entry], dist: str = DIST) -> bytes:
    """A RECORD that fits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for entry in entries:
        name = entry.raw_name.decode("utf-8", "replace")
        if not name.endswith("/"):
            writer.writerow([name, record_hash(entry.content), len(entry.content)])
    writer.writerow([f"{dist}/RECORD", "", ""])
    return text.getvalue().encode()


def entries(
    *more: Entry,
    bot: Entry | None = Entry("my_bot.py", BOT),
    metadata: str | bytes | None = METADATA,
    wheel: str | bytes | None = WHEEL,
    entry: str | bytes | None = ENTRY,
    record: bytes | None = None,
    dist: str = DIST,
) -> list[Entry]:
    """The entries of a good wheel, with more of them, and some changed or (None) left out; RECORD fits."""
    found = [bot, *more] if bot is not None else list(more)
    for name, text in (("METADATA", metadata), ("WHEEL", wheel), ("entry_points.txt", entry)):
        if text is not None:
            content = text if isinstance(text, bytes) else text.encode()
            method = 0 if len(content) > 10_000 else 8
            found.append(Entry(f"{dist}/{name}", content, method=method))
    signed = record_of(found, dist) if record is None else record
    return [*found, Entry(f"{dist}/RECORD", signed, method=0)]


def wheel(*more: Entry, **changes: Any) -> bytes:
    """A good wheel, but for these changes."""
    return zip_of(entries(*more, **changes))


def with_file(name: str | bytes, content: bytes = b"x = 1\n", **changes: Any) -> bytes:
    return wheel(Entry(name, content, **changes))


def with_bot(**changes: Any) -> bytes:
    """A wheel whose module's entry is changed."""
    return wheel(bot=Entry("my_bot.py", BOT, **changes))


def requiring(*requirements: str, python: str = "") -> bytes:
    """A wheel with dependencies."""
    lines = "".join(f"Requires-Dist: {text}\n" for text in requirements)
    return wheel(metadata=METADATA + lines + (f"Requires-Python: {python}\n" if python else ""))


def declaring(line: str, *more: Entry) -> bytes:
    """A wheel with this line in the group of bots."""
    return wheel(*more, entry=f"[domino_arena.bots]\n{line}\n")


def bomb(size: int, **changes: Any) -> Entry:
    """Zeros, packed about a thousand times smaller, made without holding them."""
    packed, crc = _packed_zeros(size)
    told = {"crc": crc, "unpacked": size} | changes
    return Entry("zeros.bin", b"", raw=packed, local=told, central=told)


@cache
def _packed_zeros(size: int) -> tuple[bytes, int]:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block, crc, packed = bytes(1 << 20), 0, []
    for _ in range(size >> 20):
        crc = zlib.crc32(block, crc)
        packed.append(packer.compress(block))
    packed.append(packer.flush())
    return b"".join(packed), crc


def overlapping(count: int) -> bytes:
    """Each member holds all later ones, headers and all, by a stored block in its own stream (Fifield 2019)."""
    plain = bytes(1 << 20)
    packed, tail, directory = deflate(plain), b"", []
    for number in reversed(range(count)):
        name = f"f{number:04}".encode()
        told = {"crc": zlib.crc32(plain), "packed": len(packed), "unpacked": len(plain)}
        entry = Entry(name, b"", central=told, local=told)
        header = local_header(entry)
        tail = header + packed
        directory.insert(0, (entry, len(tail)))
        plain = header + plain
        packed = struct.pack("<BHH", 0, len(header), 0xFFFF ^ len(header)) + tail
    listing = b"".join(central_header(entry, len(tail) - length) for entry, length in directory)
    end = (0, 0, count, count, len(listing), len(tail), 0)
    return tail + listing + struct.pack("<4s4H2LH", b"PK\x05\x06", *end)


def flipped(data: bytes, needle: bytes, by: int = 0) -> bytes:
    """The file with one bit of the byte behind `needle` turned around."""
    place = data.index(needle) + len(needle) + by
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
