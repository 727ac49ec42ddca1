"""Wheels that attack, or are none: each is refused with words that its author can act on, and nothing of it stays."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import marshal
import struct
import sys
import tarfile
import tracemalloc
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.checking import check_wheel
from engine.errors import WheelError
from engine.wheels import RESERVED_NAMES, read_wheel
from engine.wheels.archive import (
    MAX_FILES,
    MAX_RATIO,
    MAX_UNPACKED_BYTES,
    MAX_WHEEL_BYTES,
    read_files,
)
from engine.wheels.record import record_hash
from tests.hostile.wheel_makers import (
    BLOCK,
    BOT,
    CHARACTER,
    DIST,
    ENTRY,
    FIFO,
    FOLDER,
    LINK,
    METADATA,
    REGULAR,
    SOCKET,
    WHEEL,
    Entry,
    bomb,
    declaring,
    deflate,
    entries,
    flipped,
    overlapping,
    record_of,
    requiring,
    sizes_of,
    wheel,
    with_bot,
    with_file,
    zip_of,
)
from tests.hostile.wheel_walls import WHEEL_WALLS

SHADOW = "would stand in for another module"
LIE = "does not tell the truth"


def tar_of(name: str, mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        member = tarfile.TarInfo(name)
        member.size = len(BOT)
        archive.addfile(member, io.BytesIO(BOT))
    return buffer.getvalue()


def python_zip(files: dict[str, bytes], **options) -> bytes:
    """As Python's own library makes one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def zip64_streamed() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for entry in entries():
            with archive.open(zipfile.ZipInfo(str(entry.name)), "w", force_zip64=True) as member:
                member.write(entry.content)
    return buffer.getvalue()


def with_zip64_end() -> bytes:
    """A zip64 end of directory, with its locator, before the usual one."""
    data = wheel()
    end = data[-22:]
    count, size, offset = struct.unpack("<HLL", end[10:20])
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, offset)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(data) - 22, 1)
    return data[:-22] + record + locator + end


def in_a_folder(folder: str) -> bytes:
    return zip_of([Entry(f"{folder}/{e.name}", e.content) for e in entries()])


def compiled_python() -> bytes:
    """A module as this Python keeps it in its cache."""
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(compile("x = 1", "x", "exec"))


def recorded(change) -> bytes:
    """A wheel whose RECORD's rows are changed."""
    rows = record_of(entries()[:-1]).decode().splitlines()
    return wheel(record="\n".join([*change(rows), ""]).encode())


def hashed(algorithm: str, content: bytes = BOT) -> bytes:
    """A wheel whose RECORD gives the module's hash by that algorithm."""
    known = algorithm if algorithm in hashlib.algorithms_guaranteed else "sha256"
    digest = record_hash(content, known).replace(known, algorithm, 1)
    return recorded(lambda rows: [f"my_bot.py,{digest},{len(BOT)}", *rows[1:]])


def two_at_one_place() -> bytes:
    """Two names for one member."""
    found = entries(Entry("twin.py", BOT))
    length = len(zip_of(found[:1])) - 22 - 46 - len("my_bot.py")
    twin = Entry("twin.py", BOT, central={"offset": 0})
    assert length > 0
    return zip_of([found[0], twin, *found[2:]])


def lying(where: str, what: str, value) -> bytes:
    """A wheel one of whose module's headers lies."""
    return with_bot(**{where: {what: value}})


def both(**fields) -> dict:
    return {"local": fields, "central": fields}


ROWS = {
    "what is no wheel at all": {
        "nothing": (lambda: b"", "the file is empty"),
        "text": (lambda: b"import random\n", "a wheel is a zip file"),
        "zeros": (lambda: bytes(1000), "a wheel is a zip file"),
        "a source distribution": (lambda: tar_of("my_bot-1.0/my_bot.py", "w:gz"), "a .tar.gz, a source"),
        "bzip2": (lambda: tar_of("my_bot-1.0/my_bot.py", "w:bz2"), "a .tar.bz2"),
        "xz": (lambda: tar_of("my_bot-1.0/my_bot.py", "w:xz"), "a .tar.xz"),
        "tar": (lambda: tar_of("my_bot-1.0/my_bot.py", "w"), "a tar file"),
        "a wheel in gzip": (lambda: gzip.compress(wheel()), "a .tar.gz"),
        "7z": (lambda: b"7z\xbc\xaf\x27\x1c" + bytes(100), "a 7z file"),
        "an ELF program": (lambda: b"\x7fELF" + bytes(100), "a wheel is a zip file"),
        "an empty zip": (lambda: zip_of([]), "no .dist-info folder"),
        "a zip's first bytes": (lambda: b"PK\x03\x04", "is cut"),
        "a zip's last header": (lambda: b"PK\x05\x06", "is cut"),
        "one byte": (lambda: b"P", "a wheel is a zip file"),
        "more than is allowed": (lambda: b"PK\x03\x04" + bytes(MAX_WHEEL_BYTES), "leave out what"),
        "the zipped source": (lambda: python_zip({"pyproject.toml": b"", "my_bot.py": b""}), "the source of a"),
        "a zipped sdist": (lambda: python_zip({"my_bot-1.0/PKG-INFO": b"", "my_bot-1.0/my_bot.py": b""}), "everything lies in the folder 'my_bot-1.0'"),
        "a zipped module": (lambda: python_zip({"my_bot.py": BOT}), "no .dist-info folder"),
        "a zipped package": (lambda: python_zip({"my_bot/__init__.py": BOT}), "no .dist-info folder"),
        "an egg": (lambda: python_zip({"my_bot.py": BOT, "EGG-INFO/PKG-INFO": b""}), "no .dist-info folder"),
        "a wheel in a folder": (lambda: in_a_folder("my_bot-1.0"), "everything lies in the folder"),
        "a wheel in two folders": (lambda: in_a_folder("dist/my_bot"), "everything lies in the folder"),
        "a wheel in a wheel": (lambda: python_zip({"my_bot-1.0-py3-none-any.whl": wheel()}), "no .dist-info folder"),
        "zipped by Finder": (lambda: with_file("__MACOSX/._my_bot.py"), "zipped by Finder"),
        "Finder's marks": (lambda: with_file("my_bot_data/.DS_Store"), "zipped by Finder"),
        "Finder's folder within": (lambda: with_file("my/__MACOSX/x"), "zipped by Finder"),
    },
    "paths": {
        "a device": (lambda: with_file("aux.py"), "the name of a device"),
        "a device with two endings": (lambda: with_file("pkg/Con.tar.gz"), "the name of a device"),
        "a device for a folder": (lambda: with_file("com1/x.py"), "the name of a device"),
        "absolute": (lambda: with_file("/etc/cron.d/x"), "must not be absolute"),
        "two slashes": (lambda: with_file("//host/share/x.py"), "must not be absolute"),
        "only a slash": (lambda: with_file("/"), "empty parts"),
        "up": (lambda: with_file("../x.py"), "must not contain .."),
        "up within": (lambda: with_file("my/../../x.py"), "must not contain .."),
        "up at the end": (lambda: with_file("my/.."), "must not contain .."),
        "up and stays in": (lambda: with_file("my/../x.py"), "must not contain .."),
        "here": (lambda: with_file("./x.py"), "must not contain .."),
        "only a dot": (lambda: with_file("."), "must not contain .."),
        "an empty part": (lambda: with_file("my//x.py"), "empty parts"),
        "no name": (lambda: with_file(""), "empty parts"),
        "backslashes": (lambda: with_file("my\\x.py"), "written with /"),
        "up by backslashes": (lambda: with_file("..\\..\\x.py"), "written with /"),
        "a drive": (lambda: with_file("C:/x.py"), "without :"),
        "a drive's folder": (lambda: with_file("c:x.py"), "without :"),
        "a stream of NTFS": (lambda: with_file("my_bot.py:x"), "without :"),
        "an accent": (lambda: with_file("my_bot_é.py"), "printable ASCII"),
        "a fullwidth name": (lambda: with_file("ｊson.py"), "printable ASCII"),
        "right to left": (lambda: with_file("my\u202eyp.so"), "printable ASCII"),
        "no UTF-8": (lambda: with_file(b"my\xff.py"), "printable ASCII"),
        "an overlong slash": (lambda: with_file(b"..\xc0\xaf..\xc0\xafx"), "printable ASCII"),
        "an escape": (lambda: with_file("my\x1b[2J.py"), "printable ASCII"),
        "a line's end": (lambda: with_file("my\n.py"), "printable ASCII"),
        "DEL": (lambda: with_file("my\x7f.py"), "printable ASCII"),
        "NUL within": (lambda: with_file(b"my_bot2.py\0.txt"), "printable ASCII"),
        "NUL first": (lambda: with_file(b"\0x.py"), "printable ASCII"),
        "NUL alone": (lambda: with_file(b"\0"), "printable ASCII"),
        "long": (lambda: with_file("x" * 300 + ".py"), "at most 200 characters"),
        "very long": (lambda: with_file("x" * 65000), "at most 200 characters"),
        "deep": (lambda: with_file("a/" * 150 + "x.py"), "at most 200 characters"),
        "a space at the end": (lambda: with_file("my_bot.py "), "must not begin with a space"),
        "a dot at the end": (lambda: with_file("my_bot.py."), "or end with one or a dot"),
        "a folder outside": (lambda: with_file("../../x/", b""), "must not contain .."),
        "an absolute folder": (lambda: with_file("/etc/", b""), "must not be absolute"),
    },
    "names that clash": {
        "in case": (lambda: with_file("MY_BOT.py"), "but for upper and lower case"),
        "in one letter's case": (lambda: with_file("my_Bot.py"), "but for upper and lower case"),
        "in a folder's case": (lambda: wheel(Entry("Pkg/a.py"), Entry("pkg/b.py")), "but for upper and lower case"),
        "in the dist-info's case": (lambda: with_file(f"{DIST}/metadata"), "but for upper and lower case"),
        "in nothing": (lambda: wheel(Entry("a.py", b"1"), Entry("a.py", b"2")), "2 times"),
        "three times": (lambda: wheel(*[Entry("a.py", b"1")] * 3), "3 times"),
        "a second METADATA": (lambda: with_file(f"{DIST}/METADATA", b"Name: x"), "2 times"),
        "the bot itself": (lambda: with_file("my_bot.py", b"evil"), "2 times"),
        "a file that is a folder": (lambda: with_file("my_bot.py/x.py"), "both a file and a folder"),
        "a folder's entry": (lambda: with_file("my_bot.py/", b""), "both a file and a folder"),
        "one that is deeper": (lambda: wheel(Entry("a/b"), Entry("a/b/c/d")), "both a file and a folder"),
        "in case too": (lambda: wheel(Entry("a/b"), Entry("A/B/c")), "but for upper and lower case"),
        "folders twice": (lambda: wheel(*[Entry("a/", b"", mode=FOLDER)] * 2), "2 times"),
    },
    "kinds of files": {
        "a symbolic link": (lambda: with_bot(mode=LINK | 0o777), "symbolic link or special"),
        "a link to a secret": (lambda: with_file("secret.txt", b"/etc/passwd", mode=LINK | 0o777), "symbolic link"),
        "a link to a folder": (lambda: with_file("root", b"/", mode=LINK | 0o777, method=0), "symbolic link"),
        "a link as folder": (lambda: with_file("root/", b"/", mode=LINK | 0o777), "folder and is none"),
        "a FIFO": (lambda: with_file("pipe", b"", mode=FIFO | 0o644), "special file"),
        "a device": (lambda: with_file("null", b"", mode=CHARACTER | 0o666), "special file"),
        "a disk": (lambda: with_file("sda", b"", mode=BLOCK | 0o666), "special file"),
        "a socket": (lambda: with_file("s", b"", mode=SOCKET | 0o666), "special file"),
        "a folder without its slash": (lambda: with_file("d", b"", mode=FOLDER | 0o755), "special file"),
        "no kind at all": (lambda: with_file("odd", b"", mode=0o170000), "special file"),
        "a folder with content": (lambda: with_file("my/", b"x = 1"), "folder and is none"),
    },
    "what runs by itself": {
        "a .data folder": (lambda: with_file("my_bot-1.0.data/scripts/python3"), ".data folder"),
        "headers": (lambda: with_file("my_bot-1.0.data/headers/x.h"), ".data folder"),
        "purelib": (lambda: with_file("my_bot-1.0.data/purelib/json.py"), ".data folder"),
        "data of another": (lambda: with_file("other-2.data/data/etc/x"), ".data folder"),
        "data in capitals": (lambda: with_file("my_bot-1.0.DATA/data/x"), ".data folder"),
        "a .pth": (lambda: with_file("my.pth"), "at every start of Python"),
        "a .pth within": (lambda: with_file("pkg/sub/my.pth"), "at every start of Python"),
        "a .PTH": (lambda: with_file("MY.PTH"), "at every start of Python"),
        "only .pth": (lambda: with_file(".pth"), "at every start of Python"),
        "a hidden .pth": (lambda: with_file(".x.pth"), "at every start of Python"),
        "a .pth of an editable install": (lambda: with_file("__editable__.my_bot-1.0.pth"), "at every start"),
        "sitecustomize": (lambda: with_file("sitecustomize.py"), "at every start of Python"),
        "usercustomize": (lambda: with_file("usercustomize.py"), "at every start of Python"),
        "a package sitecustomize": (lambda: with_file("sitecustomize/__init__.py"), "at every start"),
        "a namespace usercustomize": (lambda: with_file("usercustomize/x.txt"), "at every start"),
        "SiteCustomize": (lambda: with_file("SiteCustomize.py"), "at every start of Python"),
        "sitecustomize within": (lambda: with_file("pkg/sitecustomize.py"), "at every start of Python"),
    },
    "compiled": {
        ".so": (lambda: with_file("fast.so"), "bots are pure Python"),
        "an extension": (lambda: with_file("fast.cpython-311-x86_64-linux-gnu.so"), "pure Python"),
        "abi3": (lambda: with_file("pkg/fast.abi3.so"), "pure Python"),
        "a numbered library": (lambda: with_file("pkg.libs/libx.so.1.2"), "pure Python"),
        "only .so": (lambda: with_file("pkg/.so"), "pure Python"),
        ".SO": (lambda: with_file("FAST.SO"), "pure Python"),
        ".pyd": (lambda: with_file("fast.pyd"), "pure Python"),
        ".dll": (lambda: with_file("pkg/Fast.DLL"), "pure Python"),
        ".dylib": (lambda: with_file("libfast.dylib"), "pure Python"),
        "an ELF library by another name": (lambda: with_file("pkg/table.bin", b"\x7fELF\2\1\1" + bytes(64)), "pure Python"),
        "a Mach-O one": (lambda: with_file("pkg/table.txt", b"\xcf\xfa\xed\xfe" + bytes(64)), "pure Python"),
        "a DLL": (lambda: with_file("pkg/table.dat", b"MZ" + bytes(100) + b"PE\0\0"), "pure Python"),
        "a DLL with a long head": (lambda: with_file("pkg/table.dat", b"MZ" + bytes(58) + struct.pack("<L", 5000) + bytes(4936) + b"PE\0\0"), "pure Python"),
        "a universal Mach-O one": (lambda: with_file("pkg/table.bin", b"\xca\xfe\xba\xbe" + bytes(64)), "pure Python"),
        "a universal one of 64 bits": (lambda: with_file("pkg/table.bin", b"\xca\xfe\xba\xbf" + bytes(64)), "pure Python"),
        "a Java class": (lambda: with_file("pkg/Table.txt", b"\xca\xfe\xba\xbe\0\0\0\x41" + bytes(64)), "pure Python"),
        "a library of objects": (lambda: with_file("pkg/table.bin", b"!<arch>\n" + bytes(64)), "pure Python"),
        "WebAssembly": (lambda: with_file("pkg/table.bin", b"\0asm\1\0\0\0"), "pure Python"),
        "compiled Python by another name": (lambda: with_file("pkg/table.bin", compiled_python()), "ship the source"),
        "compiled Python of another version": (lambda: with_file("pkg/table.bin", b"\x42\x0d\r\n" + bytes(12)), "ship the source"),
        ".pyc": (lambda: with_file("my_bot.pyc"), "ship the source"),
        ".pyo": (lambda: with_file("pkg/x.pyo"), "ship the source"),
        ".PYC": (lambda: with_file("pkg/X.PYC"), "ship the source"),
        "only .pyc": (lambda: with_file("pkg/.pyc"), "ship the source"),
        "a cache": (lambda: with_file("__pycache__/my_bot.cpython-311.pyc"), "ship the source"),
        "a cache's text": (lambda: with_file("pkg/__pycache__/x.txt"), "ship the source"),
    },
    "names that are taken": {
        "json": (lambda: with_file("json.py"), SHADOW),
        "a package random": (lambda: with_file("random/__init__.py"), SHADOW),
        "a namespace os": (lambda: with_file("os/path.py"), SHADOW),
        "data in a folder re": (lambda: with_file("re/table.txt"), SHADOW),
        "a private one": (lambda: with_file("_socket.py"), SHADOW),
        "the folder itself as a package": (lambda: with_file("__init__.py"), SHADOW),
        "pip": (lambda: with_file("pip/__init__.py"), SHADOW),
        "setuptools": (lambda: with_file("setuptools/__init__.py"), SHADOW),
        "pkg_resources": (lambda: with_file("pkg_resources.py"), SHADOW),
        "JSON": (lambda: with_file("JSON.py"), SHADOW),
        "json.PY": (lambda: with_file("json.PY"), SHADOW),
        "a stub": (lambda: with_file("typing.pyi"), SHADOW),
        "antigravity": (lambda: with_file("antigravity.py"), SHADOW),
        "__main__": (lambda: with_file("__main__.py"), SHADOW),
        "engine": (lambda: with_file("engine/sdk/__init__.py"), SHADOW),
        "a part of engine": (lambda: with_file("engine/sdk.py"), SHADOW),
        "Engine": (lambda: with_file("Engine.py"), SHADOW),
        "bots": (lambda: with_file("bots/x.py"), SHADOW),
        "tournament": (lambda: with_file("tournament/settings.py"), SHADOW),
        "tests": (lambda: with_file("tests/test_x.py"), SHADOW),
        "pluggy": (lambda: with_file("pluggy/__init__.py"), SHADOW),
        "a namespace pluggy": (lambda: with_file("pluggy/hooks.txt"), SHADOW),
        "MsgSpec": (lambda: with_file("MsgSpec.py"), SHADOW),
        "packaging": (lambda: with_file("packaging/version.py"), SHADOW),
        "numpy": (lambda: with_file("numpy/random.py"), SHADOW),
        "NumPy": (lambda: with_file("NumPy.py"), SHADOW),
    },
    "too much": {
        "2001 files": (lambda: wheel(*[Entry(f"d/f{i}", b"") for i in range(MAX_FILES)]), "files; at most 2000"),
        "a directory of long names": (lambda: zip_of([Entry(f"{i}" + "n" * 60_000, b"", method=0) for i in range(20)]), "more than names need"),
        "65000 files": (lambda: zip_of([Entry("f", b"", method=0)] * 65000), "65000 files"),
        "folders without end": (lambda: wheel(*[Entry(f"d{i}/x/y", b"") for i in range(300)]), "in 601 folders"),
        "entries of folders": (lambda: wheel(*[Entry(f"d{i}/", b"", mode=FOLDER) for i in range(501)]), "in 502 folders"),
        "21 MiB": (lambda: with_file("noise.bin", bytes(21 << 20)), f"at most {MAX_UNPACKED_BYTES}"),
        "many that are 21 MiB together": (lambda: wheel(*[Entry(f"z{i}", bytes(1 << 20)) for i in range(21)]), f"at most {MAX_UNPACKED_BYTES}"),
        "15 MiB of zeros": (lambda: with_file("zeros.bin", bytes(15 << 20)), "200 times its size"),
        "one MiB of zeros": (lambda: with_file("zeros.bin", bytes(1 << 20)), "200 times its size"),
        "a bomb of 300 MB in 300 KB": (lambda: wheel(bomb(300 << 20)), f"at most {MAX_UNPACKED_BYTES}"),
        "one that says it is small": (lambda: wheel(bomb(300 << 20, unpacked=1000)), LIE),
        "one that says it is empty": (lambda: wheel(bomb(300 << 20, unpacked=0, crc=0)), LIE),
        "one that says 19 MiB": (lambda: wheel(bomb(300 << 20, unpacked=19 << 20)), LIE),
        "4 GiB": (lambda: lying("central", "unpacked", 0xFFFFFFFE), f"at most {MAX_UNPACKED_BYTES}"),
        "a bomb of quoted headers": (lambda: overlapping(60), f"at most {MAX_UNPACKED_BYTES}"),
        "a small one of these": (lambda: overlapping(2), "200 times its size"),
        "a long METADATA": (lambda: wheel(metadata=METADATA + "\n" + "long " * 300_000), "METADATA has 150"),
        "a long WHEEL": (lambda: wheel(wheel=WHEEL + "X: y\n" * 300_000), "WHEEL has 150"),
        "fields without end": (lambda: wheel(metadata=METADATA + "Classifier: x\n" * 2000), "at most 2000 are allowed"),
        "tags without end": (lambda: wheel(wheel=WHEEL + "Tag: py3-none-any\n" * 2000), "at most 2000 are allowed"),
        "a long RECORD": (lambda: wheel(record=b"x,y,z\n" * 300_000), "RECORD has 1800000 bytes"),
        "long entry points": (lambda: wheel(entry=ENTRY + "# x\n" * 300_000), "entry_points.txt has 120"),
    },
    "headers that lie": {
        "it is shorter": (lambda: lying("central", "unpacked", 5), LIE),
        "it is longer": (lambda: lying("central", "unpacked", 5000), LIE),
        "both say so": (lambda: with_bot(**both(unpacked=5)), LIE),
        "both say longer": (lambda: with_bot(**both(unpacked=5000)), LIE),
        "both say empty": (lambda: with_bot(**both(unpacked=0)), LIE),
        "its part is shorter": (lambda: lying("central", "packed", 5), LIE),
        "its part is longer": (lambda: with_bot(**both(packed=60)), LIE),
        "its own is shorter": (lambda: lying("local", "unpacked", 5), LIE),
        "its own is none": (lambda: lying("local", "packed", 0), LIE),
        "another checksum": (lambda: with_bot(**both(crc=12345)), LIE),
        "two checksums": (lambda: lying("local", "crc", 12345), LIE),
        "another name": (lambda: lying("local", "name", b"my_bat.py"), LIE),
        "a name outside": (lambda: lying("local", "name", b"../../x"), LIE),
        "another method": (lambda: lying("local", "method", 0), LIE),
        "stored, it says": (lambda: with_bot(**both(method=0)), LIE),
        "packed, it says": (lambda: with_bot(method=0, **both(method=8)), LIE),
        "sizes that follow, or not": (lambda: lying("local", "flags", 8), LIE),
        "sizes that do not follow": (lambda: with_bot(flags=8), LIE),
        "other sizes that follow": (lambda: with_bot(flags=8, descriptor=b"PK\x07\x08" + bytes(12)), LIE),
        "a stream that is cut": (lambda: with_bot(raw=deflate(BOT)[:-2]), LIE),
        "a stream with more behind": (lambda: with_bot(raw=deflate(BOT) + b"more"), LIE),
        "no stream": (lambda: with_bot(raw=b"\xff" * 20), LIE),
        "a bit that was turned": (lambda: flipped(wheel(bot=Entry("my_bot.py", BOT, method=0)), b"my_bot.py", 3), LIE),
        "it lies nowhere": (lambda: lying("central", "offset", 0x7FFFFFFF), "belong to no file"),
        "it lies elsewhere": (lambda: lying("central", "offset", 3), "belong to no file"),
        "it lies in the directory": (lambda: lying("central", "offset", len(wheel()) - 100), "belong to no file"),
        "two at one place": (two_at_one_place, "overlaps"),
        "one within another": (lambda: wheel(Entry("a.txt", zip_of([Entry("b.txt")]), method=0), Entry("b.txt", central={"offset": 80})), "overlaps"),
    },
    "forms of zip": {
        "behind other bytes": (lambda: b"PK\x03\x04" + wheel(), "not where it says"),
        "behind a program": (lambda: b"#!/usr/bin/python3\n" + wheel(), "a wheel is a zip file"),
        "behind bytes that are counted": (lambda: zip_of(entries(), before=b"PK\x03\x04hidden"), "belong to no file"),
        "bytes between": (lambda: zip_of([*entries()[:1], Entry("a.py", before=b"hidden"), *entries(Entry("a.py"))[2:]]), "belong to no file"),
        "a member that is not listed": (lambda: zip_of(entries(), behind=zip_of([Entry("evil.py")])[:-74]), "behind its last file"),
        "bytes before the directory": (lambda: zip_of(entries(), behind=b"hidden"), "behind its last file"),
        "bytes at the end": (lambda: wheel() + b"hidden", "comment or other bytes at its end"),
        "a comment": (lambda: zip_of(entries(), end={"comment": 5}, tail=b"hello"), "comment or other"),
        "a comment that is missing": (lambda: zip_of(entries(), end={"comment": 5}), "comment or other"),
        "a comment that is a zip's end": (lambda: zip_of(entries(), end={"comment": 22}, tail=zip_of([])), "not where it says"),
        "two zips": (lambda: wheel() + wheel(), "not where it says"),
        "a member's comment": (lambda: with_bot(comment=b"PK\x05\x06"), "has a comment"),
        "cut": (lambda: wheel()[:-30], "is cut"),
        "half": (lambda: wheel()[: len(wheel()) // 2], "is cut"),
        "without its last byte": (lambda: wheel()[:-1], "is cut"),
        "a directory that is cut": (lambda: zip_of(entries(), end={"size": 100}), "not where it says"),
        "fewer than are there": (lambda: zip_of(entries(), end={"here": 2, "count": 2}), "not as many entries"),
        "more than are there": (lambda: zip_of(entries(), end={"here": 9, "count": 9}), "directory is damaged"),
        "none of them": (lambda: zip_of(entries(), end={"here": 0, "count": 0}), "not as many entries"),
        "two counts": (lambda: zip_of(entries(), end={"here": 2}), "one part of several"),
        "another disk": (lambda: zip_of(entries(), end={"disk": 1}), "one part of several"),
        "a member on another disk": (lambda: lying("central", "disk", 1), "lie in another file"),
        "zip64 streamed": (zip64_streamed, "zip64"),
        "zip64 at its end": (with_zip64_end, "zip64"),
        "zip64 in the last header": (lambda: zip_of(entries(), end={"size": 0xFFFFFFFF}), "zip64"),
        "zip64 sizes": (lambda: with_bot(central={"unpacked": 0xFFFFFFFF, "extra": struct.pack("<2HQ", 1, 8, 32)}), "zip64"),
        "a zip64 offset": (lambda: lying("central", "offset", 0xFFFFFFFF), "zip64"),
        "a zip64 field": (lambda: lying("local", "extra", struct.pack("<2H2Q", 1, 16, 1, 1)), "zip64"),
        "a version to come": (lambda: lying("central", "version", 64), "in a way that wheels are not"),
        "a version to come of its own": (lambda: lying("local", "version", 64), "in a way that wheels are not"),
        "an unknown field": (lambda: lying("central", "extra", struct.pack("<2H", 0xCAFE, 0)), "an extra field of the kind 0xcafe"),
        "an unknown field of its own": (lambda: lying("local", "extra", struct.pack("<2H4s", 0x9901, 4, b"AE00")), "an extra field of the kind 0x9901"),
        "many dates": (lambda: lying("local", "extra", struct.pack("<2HBL", 0x5455, 5, 1, 0) * 20), "180 bytes of extra fields"),
        "a large field": (lambda: lying("central", "extra", struct.pack("<2H", 0x5455, 60_000) + bytes(60_000)), "60004 bytes of extra fields"),
        "half a field": (lambda: lying("central", "extra", b"UT"), "a damaged header"),
        "a second name": (lambda: lying("central", "extra", struct.pack("<2HBL", 0x7075, 12, 1, 0) + b"json.py"), "a second name"),
        "an extra field beyond its end": (lambda: lying("central", "extra", b"\0\0\0\1"), "a damaged header"),
        "encrypted": (lambda: with_bot(flags=1), "is encrypted"),
        "strongly encrypted": (lambda: with_bot(flags=0x41), "is encrypted"),
        "an encrypted directory": (lambda: with_bot(flags=0x2001), "is encrypted"),
        "encrypted in one header": (lambda: lying("local", "flags", 1), "is encrypted"),
        "a patch": (lambda: with_bot(flags=0x20), "compressed in a way"),
        "bzip2": (lambda: python_zip({str(e.name): e.content for e in entries()}, compression=zipfile.ZIP_BZIP2), "compressed in a way"),
        "LZMA": (lambda: python_zip({str(e.name): e.content for e in entries()}, compression=zipfile.ZIP_LZMA), "compressed in a way"),
        "deflate64": (lambda: with_bot(**both(method=9)), "compressed in a way"),
        "a method of no name": (lambda: with_bot(**both(method=0xFFFF)), "compressed in a way"),
    },
    "RECORD": {
        "missing": (lambda: zip_of(entries()[:-1]), "lacks RECORD"),
        "empty": (lambda: wheel(record=b""), "my_bot.py is not listed in RECORD"),
        "a file that it does not list": (lambda: zip_of([*entries(), Entry("added.py")]), "added.py is not listed"),
        "a file that is gone": (lambda: zip_of(entries(Entry("gone.py"))[:1] + entries(Entry("gone.py"))[2:]), "'gone.py' is listed in RECORD and missing"),
        "a changed file": (lambda: zip_of([Entry("my_bot.py", b"evil"), *entries()[1:]]), "my_bot.py differs"),
        "a changed METADATA": (lambda: zip_of([*entries()[:1], Entry(f"{DIST}/METADATA", METADATA.encode() + b"X: y\n"), *entries()[2:]]), "METADATA differs"),
        "twice the same": (lambda: recorded(lambda rows: [rows[0], *rows]), "line 2 lists 'my_bot.py' again"),
        "twice, once falsely": (lambda: recorded(lambda rows: ["my_bot.py,sha256=x,1", *rows]), "line 2 lists"),
        "a path spelled otherwise": (lambda: recorded(lambda rows: [f"./{rows[0]}", *rows[1:]]), "my_bot.py is not listed"),
        "a file outside": (lambda: recorded(lambda rows: ["../../x,sha256=x,1", *rows]), "'../../x' is listed in RECORD and missing"),
        "no hash": (lambda: recorded(lambda rows: ["my_bot.py,,", *rows[1:]]), "sha256 or better"),
        "md5": (lambda: hashed("md5"), "sha256 or better"),
        "sha1": (lambda: hashed("sha1"), "sha256 or better"),
        "no algorithm": (lambda: hashed("nonsense"), "sha256 or better"),
        "SHA256": (lambda: hashed("SHA256"), "sha256 or better"),
        "a false better one": (lambda: hashed("sha512", b"other"), "differs from what RECORD says"),
        "padded": (lambda: recorded(lambda rows: [rows[0].replace(",32", "=,32"), *rows[1:]]), "differs"),
        "another size": (lambda: recorded(lambda rows: [rows[0].replace(",32", ",31"), *rows[1:]]), "32 bytes, and not"),
        "no size": (lambda: recorded(lambda rows: [rows[0].replace(",32", ","), *rows[1:]]), "32 bytes, and not"),
        "a hash of itself": (lambda: recorded(lambda rows: [*rows[:-1], f"{DIST}/RECORD,{record_hash(b'')},"]), "of itself, which none can"),
        "a size of itself": (lambda: recorded(lambda rows: [*rows[:-1], f"{DIST}/RECORD,,7"]), "of itself, which none can"),
        "two columns": (lambda: recorded(lambda rows: ["my_bot.py,x", *rows]), "line 1 is not path,hash,size"),
        "four columns": (lambda: recorded(lambda rows: [*rows, "a,b,c,d"]), "is not path,hash,size"),
        "an open quote": (lambda: wheel(record=b'a,"b\n'), "RECORD cannot be read"),
        "a field without end": (lambda: wheel(record=b"x" * 200_000), "RECORD cannot be read"),
        "no UTF-8": (lambda: wheel(record=b"\xff,,\n"), "RECORD is not UTF-8"),
    },
    "METADATA and WHEEL": {
        "no METADATA": (lambda: wheel(metadata=None), "lacks METADATA"),
        "no WHEEL": (lambda: wheel(wheel=None), "lacks WHEEL"),
        "nothing but RECORD": (lambda: wheel(metadata=None, wheel=None), "lacks METADATA and WHEEL"),
        "two dist-infos": (lambda: with_file("other-1.0.dist-info/METADATA"), "one .dist-info folder"),
        "two versions": (lambda: with_file("my_bot-2.0.dist-info/METADATA"), "one .dist-info folder"),
        "two in other case": (lambda: with_file("other-1.0.DIST-INFO/METADATA"), "one .dist-info folder"),
        "a dist-info within": (lambda: in_a_folder("pkg"), "everything lies in the folder"),
        "no UTF-8": (lambda: wheel(metadata=METADATA.encode() + b"Author: J\xf6rg\n"), "METADATA is not UTF-8 (byte 72)"),
        "UTF-16": (lambda: wheel(metadata=METADATA.encode("utf-16")), "METADATA is not UTF-8"),
        "WHEEL no UTF-8": (lambda: wheel(wheel=WHEEL.encode() + b"X: \xff\n"), "WHEEL is not UTF-8"),
        "empty": (lambda: wheel(metadata=""), "one Name and one Version"),
        "no name": (lambda: wheel(metadata="Version: 1.0\n"), "one Name and one Version"),
        "no version": (lambda: wheel(metadata="Name: my-bot\n"), "one Name and one Version"),
        "two names": (lambda: wheel(metadata=METADATA + "Name: other\n"), "one Name and one Version"),
        "two versions said": (lambda: wheel(metadata=METADATA + "Version: 2.0\n"), "one Name and one Version"),
        "a name of spaces": (lambda: wheel(metadata=METADATA.replace("my-bot", "my bot")), "one Name and"),
        "a name that is a path": (lambda: wheel(metadata=METADATA.replace("my-bot", "../my")), "one Name and"),
        "a name of HTML": (lambda: wheel(metadata=METADATA.replace("my-bot", "<b>")), "one Name and"),
        "fields below an empty line": (lambda: wheel(metadata="\n" + METADATA), "one Name and one Version"),
        "a version of words": (lambda: wheel(metadata=METADATA.replace("1.0", "new")), "such as 1.0.0"),
        "a version of 5000 digits": (lambda: wheel(metadata=METADATA.replace("1.0", "1" * 5000)), "such as 1.0.0"),
        "a version of 70": (lambda: wheel(metadata=METADATA.replace("1.0", "1+" + "a" * 70)), "such as 1.0.0"),
        "another's name": (lambda: wheel(metadata=METADATA.replace("my-", "x-")), "does not fit its METADATA"),
        "another version": (lambda: wheel(metadata=METADATA.replace("1.0", "1.1")), "does not fit its METADATA"),
        "a dist-info of no version": (lambda: wheel(dist="my_bot.dist-info"), "does not fit its METADATA"),
        "a dist-info of no name": (lambda: wheel(dist=".dist-info"), "does not fit its METADATA"),
        "a later format": (lambda: wheel(wheel=WHEEL.replace("1.0", "2.0")), "must be 1.x"),
        "no format": (lambda: wheel(wheel=WHEEL.partition("\n")[2]), "must be 1.x"),
        "for Linux": (lambda: wheel(wheel=WHEEL.replace("py3-none-any", "cp311-cp311-linux_x86_64")), "a bot is pure Python"),
        "for manylinux": (lambda: wheel(wheel=WHEEL.replace("py3-none-any", "py3-none-manylinux2014_x86_64")), "a bot is pure Python"),
        "for abi3": (lambda: wheel(wheel=WHEEL.replace("py3-none-any", "cp311-abi3-any")), "a bot is pure Python"),
        "for Python 2": (lambda: wheel(wheel=WHEEL.replace("py3", "py2")), "a bot is pure Python"),
        "for two machines": (lambda: wheel(wheel=WHEEL + "Tag: cp311-cp311-win_amd64\n"), "'cp311-cp311-win_amd64'"),
        "for any and one": (lambda: wheel(wheel=WHEEL.replace("any", "any.linux_x86_64")), "a bot is pure Python"),
        "no tag": (lambda: wheel(wheel="Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"), "its tags are missing"),
        "a tag without end": (lambda: wheel(wheel=WHEEL + f"Tag: {'py3.' * 9000}-none-any\n"), "a bot is pure Python"),
        "not pure": (lambda: wheel(wheel=WHEEL.replace("true", "false")), "Root-Is-Purelib: true"),
        "pure or not": (lambda: wheel(wheel=WHEEL + "Root-Is-Purelib: false\n"), "Root-Is-Purelib: true"),
        "pure unsaid": (lambda: wheel(wheel="Wheel-Version: 1.0\nTag: py3-none-any\n"), "Root-Is-Purelib: true"),
    },
    "entry points": {
        "no file": (lambda: wheel(entry=None), "it declares no bot"),
        "an empty file": (lambda: wheel(entry=""), "declares: none"),
        "none in our group": (lambda: wheel(entry="[console_scripts]\nx = my_bot:x\n"), "declares: none"),
        "an empty group": (lambda: wheel(entry="[domino_arena.bots]\n"), "declares: none"),
        "our group in other case": (lambda: wheel(entry=ENTRY.replace("domino", "Domino")), "declares: none"),
        "two bots": (lambda: wheel(entry=f"{ENTRY}other = my_bot\n"), "declares: my-bot, other"),
        "fifty": (lambda: wheel(entry=ENTRY + "".join(f"b{i} = my_bot\n" for i in range(50))), "exactly one bot"),
        "one bot twice": (lambda: wheel(entry=f"{ENTRY}my-bot = other\n"), "line 3 says a second time"),
        "the group twice": (lambda: wheel(entry=ENTRY + ENTRY), "line 3 says a second time"),
        "no group": (lambda: wheel(entry="my-bot = my_bot"), "cannot be read"),
        "no value": (lambda: declaring("my-bot"), "cannot be read"),
        "a colon": (lambda: declaring("my-bot: my_bot"), "cannot be read"),
        "an empty value": (lambda: declaring("my-bot ="), "must be written module"),
        "no UTF-8": (lambda: wheel(entry=b"[domino_arena.bots]\nmy-bot = \xff\n"), "is not UTF-8"),
        "control characters": (lambda: declaring("my-bot = my_bot\x1b[2J"), "line 2 has control characters"),
        "a group of NUL": (lambda: wheel(entry="[\0]\nmy-bot = my_bot\n[domino_arena.bots]\n"), "line 1 has control"),
        "a line without end": (lambda: declaring("my-bot" + " " * 900_000 + "x"), "more than 500"),
        "a name in capitals": (lambda: declaring("My-Bot = my_bot"), "must be 2 to 32"),
        "a long name": (lambda: declaring(f"{'b' * 33} = my_bot"), "must be 2 to 32"),
        "a short name": (lambda: declaring("b = my_bot"), "must be 2 to 32"),
        "a name of HTML": (lambda: declaring("<script> = my_bot"), "must be 2 to 32"),
        "a name that is a path": (lambda: declaring("../x = my_bot"), "must be 2 to 32"),
        "a name in Cyrillic": (lambda: declaring("аlpha = my_bot"), "must be 2 to 32"),
        "extras": (lambda: declaring("my-bot = my_bot [x]"), "must be written module"),
        "a call": (lambda: declaring("my-bot = my_bot:make()"), "must be written module"),
        "a program": (lambda: declaring("my-bot = __import__('os').system('id')"), "must be written module"),
        "a keyword for a module": (lambda: declaring("my-bot = class", Entry("class.py")), "a keyword of Python"),
        "a keyword on the way": (lambda: declaring("my-bot = pkg.class.x", Entry("pkg/class/x.py")), "a keyword of Python"),
        "a keyword for an attribute": (lambda: declaring("my-bot = my_bot:plugin.None"), "a keyword of Python"),
        "sections without end": (lambda: wheel(entry="".join(f"[{n}]\n" for n in range(100_000)) + ENTRY), "at most 1000 are allowed"),
        "two attributes": (lambda: declaring("my-bot = my_bot:a:b"), "must be written module"),
        "a relative module": (lambda: declaring("my-bot = .my_bot"), "must be written module"),
        "a path": (lambda: declaring("my-bot = my_bot.py/x"), "must be written module"),
        "a module beyond ASCII": (lambda: declaring("my-bot = my_bоt"), "must be written module"),
        "several lines": (lambda: declaring("my-bot = my_bot\n  os"), "must be written module"),
        "the stdlib": (lambda: declaring("my-bot = subprocess:Popen"), "subprocess, which is not in the wheel"),
        "os.path": (lambda: declaring("my-bot = os.path"), "os.path, which is not in the wheel"),
        "builtins": (lambda: declaring("my-bot = builtins:exec"), "builtins, which is not in the wheel"),
        "the engine": (lambda: declaring("my-bot = engine.sdk:Strategy"), "which is not in the wheel"),
        "a reference bot": (lambda: declaring("my-bot = bots.greedy"), "which is not in the wheel"),
        "a module that is missing": (lambda: declaring("my-bot = my_bit"), "my_bit, which is not in"),
        "one in other case": (lambda: declaring("my-bot = My_Bot"), "My_Bot, which is not in the wheel"),
        "a folder": (lambda: declaring("my-bot = pkg", Entry("pkg/x.txt")), "pkg, which is not in the wheel"),
        "a module of a module": (lambda: declaring("my-bot = my_bot.sub"), "which is not in the wheel"),
    },
    "what it needs": {
        "torch": (lambda: requiring("torch"), "copy what you need"),
        "a range of it": (lambda: requiring("torch>=2,<3"), "depends on 'torch>=2,<3', which is not"),
        "in brackets": (lambda: requiring("torch (>=2)"), "copy what you need"),
        "two": (lambda: requiring("pluggy", "requests"), "depends on 'requests'"),
        "on Linux": (lambda: requiring("torch; sys_platform == 'linux'"), "copy what you need"),
        "on every Python": (lambda: requiring("torch; python_version >= '3'"), "copy what you need"),
        "without an extra": (lambda: requiring("torch; extra == ''"), "copy what you need"),
        "by a marker of no sense": (lambda: requiring("torch; os_name ~= 'x'"), "copy what you need"),
        "by an unknown marker": (lambda: requiring("torch; 'x' in extras"), "torch"),
        "from an address": (lambda: requiring("pluggy @ https://example.org/p.whl"), "which is not there"),
        "from a file": (lambda: requiring("msgspec @ file:///etc/passwd"), "which is not there"),
        "extras of ours": (lambda: requiring("domino-arena[server]"), "is provided without extras"),
        "another SDK": (lambda: requiring("domino-arena>=99"), "widen the range"),
        "an older SDK": (lambda: requiring(f"domino-arena<{engine.__version__}"), "widen the range"),
        "exactly another": (lambda: requiring("msgspec===0.0.1"), "widen the range"),
        "none that exists": (lambda: requiring("pluggy<0"), "widen the range"),
        "what cannot be read": (lambda: requiring("???"), "cannot be read: write it like"),
        "a broken range": (lambda: requiring("pluggy>=one"), "cannot be read"),
        "brackets without end": (lambda: requiring(f"pluggy; {'(' * 450}os_name == 'x'{')' * 450}"), "cannot be read"),
        "a version of 5000 digits": (lambda: requiring(f"pluggy>={'1' * 5000}"), "cannot be read"),
        "a marker of 5000 digits": (lambda: requiring(f"torch; python_version > '{'1' * 5000}'"), "cannot be read"),
        "HTML": (lambda: requiring("<script>alert(1)</script>"), "cannot be read"),
        "a thousand": (lambda: requiring(*["pluggy"] * 1000), "1000 dependencies; at most 100"),
        "an older Python": (lambda: requiring(python="<3"), "it requires Python '<3'"),
        "a later one": (lambda: requiring(python=">=4"), "widen requires-python"),
        "just one": (lambda: requiring(python="==3.6.*"), "widen requires-python"),
        "not this": (lambda: requiring(python=f"!={sys.version_info[0]}.{sys.version_info[1]}.*"), "widen requires-python"),
        "an odd Python": (lambda: requiring(python="three"), "Requires-Python 'three' cannot be read"),
        "a Python of 5000 digits": (lambda: requiring(python=f">={'1' * 5000}"), "cannot be read"),
        "two Pythons": (lambda: wheel(metadata=f"{METADATA}Requires-Python: >=3\nRequires-Python: <3\n"), "cannot be read"),
    },
}  # fmt: skip
"""By the kind of attack its instances: what makes the wheel, and words of the reason that its author is told."""
INSTANCES = [
    pytest.param(make, words, id=f"{kind}: {name}")
    for kind, rows in ROWS.items()
    for name, (make, words) in rows.items()
]


def unplayable(*_args, **_named):
    """An agent factory for wheels that must never be played."""
    raise AssertionError("a wheel that must be refused was played")


@pytest.mark.parametrize(("make", "words"), INSTANCES)
def test_hostile_wheel_is_refused_with_what_to_change_and_nothing_of_it_stays(
    make, words, tmp_path
):
    report = check_wheel(make(), tmp_path / "cache", factory=unplayable)
    assert report.verdict == "rejected"
    assert any(words in reason for reason in report.reasons), report.reasons
    assert all(len(reason) < 1000 and reason.isprintable() for reason in report.reasons)
    assert len(report.reasons) <= 21
    assert report.games == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "make",
    [make for name, (make, _) in ROWS["too much"].items() if name != "more than is allowed"],
    ids=[name for name in ROWS["too much"] if name != "more than is allowed"],
)
def test_bomb_takes_no_more_memory_than_a_wheel_may(make):
    data = make()
    tracemalloc.start()
    try:
        with pytest.raises(WheelError):
            read_wheel(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * MAX_UNPACKED_BYTES


def test_every_module_that_a_bot_could_import_from_elsewhere_is_a_name_that_is_taken():
    from engine.sandbox.runtime import find_runtime

    provided = {
        inside.rpartition("/")[2] for _, inside in find_runtime().shown if "/arena/" in inside
    }
    packages = {name.removesuffix(".zip") for name in provided if not name.endswith(".libs")}
    assert packages - RESERVED_NAMES == set()
    assert "engine" in RESERVED_NAMES


@pytest.mark.parametrize(
    ("attack", "take_away"), [row[1:] for row in WHEEL_WALLS.values()], ids=WHEEL_WALLS
)
def test_attack_succeeds_as_soon_as_the_check_against_it_is_missing(tmp_path, attack, take_away):
    for place in ("with", "without"):
        (tmp_path / place).mkdir()
    assert not attack(tmp_path / "with")
    with take_away():
        assert attack(tmp_path / "without")


HONEST = {
    "as it is": wheel,
    "not compressed": lambda: zip_of([Entry(e.name, e.content, method=0) for e in entries()]),
    "an empty file that is packed": lambda: with_file("pkg/__init__.py", b""),
    "sizes that follow": lambda: with_bot(flags=8, descriptor=sizes_of(Entry("my_bot.py", BOT))),
    "sizes without signature": lambda: with_bot(
        flags=8,
        descriptor=sizes_of(Entry("my_bot.py", BOT), signed=False),
        local={"crc": 0, "packed": 0, "unpacked": 0},
    ),
    "names that are UTF-8": lambda: with_bot(flags=0x800),
    "a date in an extra field": lambda: with_bot(
        local={"extra": struct.pack("<2HBL", 0x5455, 5, 1, 0)},
        central={"extra": struct.pack("<2HBL", 0x5455, 5, 1, 0)},
    ),
    "made on Windows": lambda: with_bot(mode=0),
    "entries of folders": lambda: wheel(
        Entry("pkg/", b"", method=0, mode=FOLDER | 0o755), Entry("pkg/x.txt")
    ),
    "members in another order": lambda: zip_of(list(reversed(entries()))),
    "two Pythons in one tag": lambda: wheel(wheel=WHEEL.replace("py3-", "py2.py3-")),
    "a long description": lambda: wheel(metadata=METADATA + "\n" + "Requires-Dist: torch\n" * 99),
    "a range that fits": lambda: requiring("pluggy>=1,<99", "msgspec", "domino_arena>=0.0.1"),
    "what only others need": lambda: requiring("torch; extra == 'gpu'", "x; sys_platform == 'zx'"),
    "this Python": lambda: requiring(python=">=3.11"),
    "a comment in the entry points": lambda: wheel(entry=f"# mine\n{ENTRY}"),
    "another's hash": lambda: hashed("sha384"),
    "RECORD in any order": lambda: recorded(lambda rows: rows[::-1]),
    "owners and times of all kinds": lambda: with_bot(
        local={
            "extra": struct.pack("<2H32s", 0x000A, 32, b"") + struct.pack("<2H11s", 0x7875, 11, b"")
        },
        central={"extra": struct.pack("<2H", 0x7855, 0) + struct.pack("<2H8s", 0x5855, 8, b"")},
    ),
    "a text with an odd beginning": lambda: with_file(
        "pkg/a.txt", b"B\r\r\nThree of clubs, four of hearts"
    ),
    "a licence in a field": lambda: wheel(metadata=METADATA + "License: MIT\n" + " words\n" * 700),
    "RECORD that leaves itself out": lambda: recorded(lambda rows: rows[:-1]),
    "a name that begins as a device's": lambda: with_file("pkg/console.py"),
    "a text that begins with MZ": lambda: with_file("pkg/mz.txt", b"MZ is no program"),
}


@pytest.mark.parametrize("make", HONEST.values(), ids=HONEST)
def test_honest_wheel_is_read(make):
    assert read_wheel(make()).bot == "my-bot"


def test_what_a_wheel_says_of_itself_is_one_short_printable_line():
    said = "Plays\0 \x1b[2J\u202e" + "well " * 200
    summary = read_wheel(wheel(metadata=METADATA.replace("Plays", said))).summary
    assert summary.isprintable()
    assert summary.startswith("Plays [2J well")
    assert len(summary) == 300


# Whatever bytes come: read or refused, and what was read keeps what is promised


def read_or_refuse(data: bytes) -> None:
    """Any other error than WheelError passes through."""
    refusal = None
    try:
        files = read_files(data)
        info = read_wheel(data)
    except WheelError as error:
        refusal = error
    if refusal is not None:
        assert refusal.reasons
        assert all(reason.isprintable() and len(reason) < 1000 for reason in refusal.reasons)
        return
    assert len(files) <= MAX_FILES
    assert sum(map(len, files.values())) <= min(MAX_UNPACKED_BYTES, MAX_RATIO * len(data))
    for path in files:
        assert path.isascii()
        assert path.isprintable()
        assert not {"", ".", ".."} & set(path.split("/"))
        assert not set("\\:") & set(path)
    assert len({path.lower() for path in files}) == len(files)
    assert {path.split("/")[0].lower().removesuffix(".py") for path in files}.isdisjoint(
        RESERVED_NAMES
    )
    module = info.entry_point.partition(":")[0].replace(".", "/")
    assert {f"{module}.py", f"{module}/__init__.py"} & files.keys()
    assert len(info.version) <= 64
    assert info.summary.isprintable()
    # Python's own library finds the same in it.
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        found = {m.filename: archive.read(m) for m in archive.infolist() if not m.is_dir()}
    assert found == files


GOOD = wheel(Entry("pkg/__init__.py", b"x = 1\n" * 50), Entry("pkg/x.txt", b"", method=0))
DIRECTORY = GOOD.index(b"PK\x01\x02")
DAMAGES = {
    "set": lambda data, place, value: data[:place] + bytes([value]) + data[place + 1 :],
    "cut": lambda data, place, _: data[:place] + data[place + 1 :],
    "insert": lambda data, place, value: data[:place] + bytes([value]) + data[place:],
    "turn a bit": lambda data, place, value: (
        data[:place] + bytes([data[place] ^ 1 << value % 8]) + data[place + 1 :]
        if place < len(data)
        else data
    ),
    "copy": lambda data, place, value: data[: place + value] + data[place:],
}
DAMAGE = st.tuples(
    st.sampled_from(sorted(DAMAGES)),
    st.one_of(st.integers(0, len(GOOD)), st.integers(DIRECTORY, len(GOOD))),
    st.one_of(st.sampled_from([0, 1, 255]), st.integers(0, 255)),
)
NUMBERS = st.one_of(st.sampled_from([0, 1, 8, 0x20, 0x800, 0xFFFF]), st.integers(0, 0xFFFF))
LONG_NUMBERS = st.one_of(NUMBERS, st.sampled_from([0x7FFFFFFF, 0xFFFFFFFF]))
NAMES = st.one_of(
    st.sampled_from([b"a.py", b"my_bot.py", b"pkg/", b"../a", b"A.py", b"json.py", b"a\0b", b""]),
    st.binary(max_size=12),
    st.text("ab/.\\:_P", max_size=12).map(str.encode),
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "flags": NUMBERS,
        "method": NUMBERS,
        "crc": LONG_NUMBERS,
        "packed": LONG_NUMBERS,
        "unpacked": LONG_NUMBERS,
        "name": NAMES,
        "extra": st.binary(max_size=24),
        "offset": LONG_NUMBERS,
        "disk": st.integers(0, 1),
        "mode": NUMBERS,
    },
)
ENTRIES = st.builds(
    Entry,
    NAMES,
    st.binary(max_size=40),
    method=st.sampled_from([0, 8]),
    mode=st.sampled_from([0, REGULAR | 0o644, LINK | 0o777]),
    local=st.one_of(st.just({}), FIELDS),
    central=st.one_of(st.just({}), FIELDS),
    comment=st.sampled_from([b"", b"PK\x05\x06"]),
    before=st.one_of(st.just(b""), st.binary(max_size=6)),
)
LINES = st.lists(
    st.sampled_from(
        [
            "Name: my-bot", "Version: 1.0", "Tag: py3-none-any", "Wheel-Version: 1.0", "Root-Is-Purelib: true",
            "[domino_arena.bots]", "my-bot = my_bot", "a = b", "[x]", " folded", "Requires-Dist: pluggy",
            "Requires-Dist: torch; 'a' in extra", "Requires-Python: >=3", "From x", ":", "=", "",
            "Content-Type: multipart/mixed; boundary=a", "--a", "Summary: \0\u202e", "my_bot.py,sha256=x,1", '"',
        ]
    ),
    max_size=12,
).map("\n".join)  # fmt: skip
TEXTS = st.one_of(LINES, LINES, st.text(max_size=80)).map(lambda text: text.encode()) | st.binary(
    max_size=60
)
MARKERS = st.lists(
    st.sampled_from(
        ["(", ")", "and", "or", "in", "not", "==", ">=", "~=", "'3'", "'x'", "python_version", "extra", "os_name", "extras"]
    ),
    max_size=9,
).map(" ".join)  # fmt: skip
REQUIREMENTS = st.builds(
    lambda name, range_, marker: f"{name}{range_}; {marker}",
    st.sampled_from(["pluggy", "torch", "domino-arena[x]", "msgspec (", "x @ file:///"]),
    st.sampled_from(["", ">=1", "===x", "~=1", "!=1.*", ">=1,<2)", ">" + "1" * 999]),
    MARKERS,
)


def damaged(changes) -> bytes:
    data = GOOD
    for damage, place, value in changes:
        data = DAMAGES[damage](data, place, value)
    return data


def edited(local, central, more, end) -> bytes:
    """A wheel whose module's headers are edited, with other members, and an odd last header."""
    odd = Entry("my_bot.py", BOT, local=local, central=central)
    return zip_of([*entries(bot=odd)[:-1], *more, entries(bot=odd)[-1]], end=end)


ZIPS = {
    "any bytes": st.one_of(
        st.binary(max_size=400), st.binary(max_size=200).map(lambda data: b"PK\x03\x04" + data)
    ),
    "damage": st.lists(DAMAGE, min_size=1, max_size=8).map(damaged),
    "headers": st.builds(
        edited,
        st.one_of(st.just({}), FIELDS),
        st.one_of(st.just({}), FIELDS),
        st.lists(ENTRIES, max_size=3),
        st.one_of(
            st.just({}),
            st.dictionaries(st.sampled_from(["disk", "here", "count", "size", "offset"]), NUMBERS),
        ),
    ),
    "names": st.lists(NAMES, max_size=4).map(lambda names: wheel(*map(Entry, names))),
    "what it says of itself": st.dictionaries(
        st.sampled_from(["metadata", "wheel", "entry", "record"]), TEXTS
    ).map(lambda changes: wheel(**changes)),
    "METADATA": st.tuples(TEXTS, TEXTS).map(
        lambda texts: wheel(metadata=texts[0] + METADATA.encode() + texts[1])
    ),
    "requirements": st.lists(REQUIREMENTS, max_size=3).map(lambda lines: requiring(*lines)),
    "versions": st.text("0123456789.!+-abcrdevpost_*v ", max_size=70).map(
        lambda version: wheel(
            metadata=METADATA.replace("1.0", version), dist=f"my_bot-{version}.dist-info"
        )
    ),
}


@pytest.mark.parametrize(
    "count", [40, pytest.param(2000, marks=pytest.mark.exhaustive)], ids=["some", "many"]
)
@pytest.mark.parametrize("zips", ZIPS.values(), ids=ZIPS)
def test_whatever_comes_is_read_or_refused(zips, count):
    @settings(max_examples=count)
    @given(zips)
    def read(data):
        read_or_refuse(data)

    read()


@pytest.mark.parametrize("place", range(0, len(GOOD), 7))
def test_wheel_that_is_cut_is_refused(place):
    with pytest.raises(WheelError):
        read_files(GOOD[:place])
