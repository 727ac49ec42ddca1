"""The zip file of a wheel. Read by hand: zipfile believes sizes, and takes what stands before and behind."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator

from engine.errors import WheelError
from engine.wheels.paths import MAX_PATH_LENGTH, is_folder, path_reasons
from engine.wheels.reasons import BUILD_ADVICE, refuse_any

MAX_WHEEL_BYTES = 10 * 1024 * 1024
MAX_UNPACKED_BYTES = 20 * 1024 * 1024
MAX_FILES = 2000
MAX_RATIO = 200
_IN_THE_EXTRA_FIELD = 0xFFFFFFFF
_MAX_DIRECTORY_BYTES = MAX_FILES * (46 + 2 * MAX_PATH_LENGTH)


def read_files(data: bytes) -> dict[str, bytes]:
    """Every file of the zip. Raises WheelError for whatever no honest wheel contains."""
    _check_frame(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
        raise WheelError([f"this is a damaged zip file ({error}); {BUILD_ADVICE}"]) from None
    refuse_any(_frame_reasons(data, members))
    refuse_any(path_reasons(members))
    files = [member for member in members if not is_folder(member)]
    return {member.filename: _read_member(data, member) for member in files}


def _check_frame(data: bytes) -> None:
    """Look at the zip's end before anything of it is believed. Raises WheelError."""
    if len(data) > MAX_WHEEL_BYTES:
        raise WheelError(
            [f"the wheel has {len(data)} bytes; at most {MAX_WHEEL_BYTES} are allowed"]
        )
    if data[:2] == b"\x1f\x8b":
        raise WheelError([f"this is a .tar.gz, a source distribution; {BUILD_ADVICE}"])
    if data[:4] not in {b"PK\x03\x04", b"PK\x05\x06"}:
        raise WheelError([f"this is no wheel: a wheel is a zip file; {BUILD_ADVICE}"])
    if data[-22:-18] != b"PK\x05\x06" or data[-42:-38] == b"PK\x06\x07":
        raise WheelError(
            [f"the zip file is cut, or has a comment or other bytes at its end; {BUILD_ADVICE}"]
        )
    size, offset = struct.unpack("<LL", data[-10:-2])
    if size > _MAX_DIRECTORY_BYTES:
        raise WheelError([f"the wheel has more than {MAX_FILES} files"])
    if offset + size + 22 != len(data):
        raise WheelError([f"the zip file's directory is not where it says; {BUILD_ADVICE}"])


def _frame_reasons(data: bytes, members: list[zipfile.ZipInfo]) -> Iterator[str]:
    if len(members) > MAX_FILES:
        yield f"the wheel has {len(members)} files; at most {MAX_FILES} are allowed"
    unpacked = sum(member.file_size for member in members)
    if unpacked > MAX_UNPACKED_BYTES:
        yield f"unpacked it has {unpacked} bytes; at most {MAX_UNPACKED_BYTES} are allowed"
    elif unpacked > MAX_RATIO * len(data):
        yield f"it unpacks to more than {MAX_RATIO} times its size: leave such files out"
    for member in members:
        if member.flag_bits & 0x1:
            yield f"{member.filename!r} is encrypted; {BUILD_ADVICE}"
        if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            yield f"{member.filename!r} is compressed in a way that wheels are not; {BUILD_ADVICE}"


def _read_member(data: bytes, member: zipfile.ZipInfo) -> bytes:
    """A member's content, no byte more than its header promises. Raises WheelError for a header that lies."""
    lie = WheelError([f"{member.filename}: its header does not tell the truth; {BUILD_ADVICE}"])
    header = data[member.header_offset : member.header_offset + 30]
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise lie
    flags, method = struct.unpack("<HH", header[6:10])
    crc, compressed, size, name_length, extra_length = struct.unpack("<LLLHH", header[14:30])
    if _IN_THE_EXTRA_FIELD in (compressed, size):
        raise WheelError(
            [
                f"{member.filename}: it is stored in the form for files of 4 GiB (zip64); {BUILD_ADVICE}"
            ]
        )
    begin = member.header_offset + 30 + name_length + extra_length
    name = data[member.header_offset + 30 : member.header_offset + 30 + name_length]
    promised = (member.CRC, member.compress_size, member.file_size)
    sizes_follow_the_content = flags & 0x8 and (crc, compressed, size) == (0, 0, 0)
    if not (
        name == member.filename.encode()
        and method == member.compress_type
        and (sizes_follow_the_content or (crc, compressed, size) == promised)
        and begin + member.compress_size <= len(data)
    ):
        raise lie
    raw = data[begin : begin + member.compress_size]
    content = raw if method == zipfile.ZIP_STORED else _inflate(raw, member.file_size)
    if content is None or len(content) != member.file_size or zlib.crc32(content) != member.CRC:
        raise lie
    return content


def _inflate(raw: bytes, size: int) -> bytes | None:
    """What `raw` unpacks to if that is whole and not longer than `size`; else None."""
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = stream.decompress(raw, size + 1)
    except zlib.error:
        return None
    return content if stream.eof and not stream.unused_data else None
