"""Each line of what a wheel must not be has its test, and whatever bytes come, nothing else is raised."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import struct
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import engine
from engine.errors import WheelError
from engine.wheels import (
    pack_module,
    pack_project,
    provided_versions,
    read_wheel,
    requirement_reasons,
    source_of,
    unpack_wheel,
    wheel_source,
)
from engine.wheels.archive import MAX_WHEEL_BYTES, read_files
from engine.wheels.metadata import record_hash
from engine.wheels.unpacking import holds

BOT = b"from engine.sdk import hookimpl\n"
DIST = "my_bot-1.0.dist-info"
METADATA = "Metadata-Version: 2.1\nName: my-bot\nVersion: 1.0\nSummary: Plays\n"
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
ENTRY = "[domino_arena.bots]\nmy-bot = my_bot\n"


def entries(**changes):
    """The files of a good wheel with some changed, added, or (None) left out; RECORD fits them."""
    files = {
        "my_bot.py": BOT,
        f"{DIST}/METADATA": METADATA.encode(),
        f"{DIST}/WHEEL": WHEEL.encode(),
        f"{DIST}/entry_points.txt": ENTRY.encode(),
    }
    extra = changes.pop("extra", {})
    named = {"metadata": f"{DIST}/METADATA", "wheel": f"{DIST}/WHEEL"}
    named |= {"entry": f"{DIST}/entry_points.txt", "bot": "my_bot.py"}
    for key, value in changes.items():
        files[named[key]] = value if value is None or isinstance(value, bytes) else value.encode()
    files |= extra
    files = {name: content for name, content in files.items() if content is not None}
    record = "".join(
        f"{name},{record_hash(content)},{len(content)}\n"
        for name, content in files.items()
        if not name.endswith("/")
    )
    files.setdefault(f"{DIST}/RECORD", f"{record}{DIST}/RECORD,,\n".encode())
    return files


def zip_of(files, *, compression=zipfile.ZIP_DEFLATED, change=None):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name)
            member.compress_type = compression
            member.external_attr = 0o644 << 16
            if change is not None:
                change(member)
            archive.writestr(member, content)
    return buffer.getvalue()


def wheel(**changes):
    return zip_of(entries(**changes))


def with_file(path, content=b"x = 1\n"):
    return wheel(extra={path: content})


def renamed(name, to):
    """A wheel with a file whose name is overwritten in the zip by bytes that no tool would write."""
    return with_file(name).replace(name.encode(), to)


def wheel_hashed(algorithm, content=BOT):
    """A wheel whose RECORD gives the module's hash by that algorithm."""
    plain = record_hash(BOT).encode()
    known = algorithm if algorithm in hashlib.algorithms_available else "sha256"
    other = record_hash(content, known).replace(known, algorithm, 1).encode()
    record = entries()[f"{DIST}/RECORD"].replace(plain, other)
    return wheel(extra={f"{DIST}/RECORD": record})


def streamed(files, **options):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            with archive.open(zipfile.ZipInfo(name), "w", **options) as member:
                member.write(content)
    return buffer.getvalue()


def reasons_against(data):
    with pytest.raises(WheelError) as caught:
        read_wheel(data)
    return caught.value.reasons


def test_good_wheel_tells_what_it_is():
    data = wheel(extra={"my_bot_data/table.txt": b"1"})
    info = read_wheel(data)
    assert (info.bot, info.distribution, info.version) == ("my-bot", "my-bot", "1.0")
    assert info.entry_point == "my_bot"
    assert info.summary == "Plays"
    assert info.sha256 == hashlib.sha256(data).hexdigest()
    assert "my_bot_data/table.txt" in info.files


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_record_may_use_any_hash_that_the_wheel_format_allows(algorithm):
    assert read_wheel(wheel_hashed(algorithm)).bot == "my-bot"


def test_entries_of_folders_are_no_files():
    data = wheel(extra={"my_bot_data/": b"", "my_bot_data/table.txt": b"1"})
    assert "my_bot_data/" not in read_wheel(data).files


def as_link(member):
    if member.filename == "my_bot.py":
        member.external_attr = (stat.S_IFLNK | 0o777) << 16


def as_fifo(member):
    if member.filename == "my_bot.py":
        member.external_attr = (stat.S_IFIFO | 0o644) << 16


def nested(files):
    return {f"my_bot-1.0/{name}": content for name, content in files.items()}


def refusal(data):
    """Why a wheel is refused; None if it is not. Any other error than WheelError passes through."""
    try:
        read_wheel(data)
    except WheelError as error:
        return error.reasons
    return None


REFUSALS = [
    # What is no wheel at all
    ("nothing", lambda: b"", "no wheel"),
    ("text", lambda: b"print('hello')", "no wheel"),
    ("a source distribution", lambda: b"\x1f\x8b\x08" + b"x" * 100, "source distribution"),
    ("an empty zip", lambda: zip_of({}), "no .dist-info"),
    ("half a zip", lambda: wheel()[:-30], "cut"),
    ("a zip with a comment", lambda: wheel()[:-2] + b"\x05\x00hello", "comment or other bytes"),
    ("a zip behind other bytes", lambda: b"PK\x03\x04" + wheel(), "not where it says"),
    ("the zipped source", lambda: zip_of({"pyproject.toml": b"", "my_bot.py": b""}), "source of a"),
    ("a zipped folder", lambda: zip_of(nested(entries())), "everything lies in the folder"),
    ("zipped by Finder", lambda: with_file("__MACOSX/._my_bot.py"), "Finder"),
    ("a big file", lambda: b"PK\x03\x04" + bytes(MAX_WHEEL_BYTES), "bytes; at most"),
    # Paths
    ("an absolute path", lambda: with_file("/etc/x.py"), "must not be absolute"),
    ("a way out", lambda: with_file("my/../../x.py"), "must not contain .."),
    ("an empty part", lambda: with_file("my//x.py"), "empty parts"),
    ("not ASCII", lambda: with_file("my_bot_é.py"), "printable ASCII"),
    ("a control character", lambda: with_file("my\x1b[2J.py"), "printable ASCII"),
    ("a backslash", lambda: with_file("my\\x.py"), "written with /"),
    ("a drive", lambda: with_file("C:x.py"), "written with /"),
    ("a long path", lambda: with_file("x" * 300 + ".py"), "at most 200 characters"),
    ("names that differ in case", lambda: with_file("MY_bot.py"), "but for upper and lower case"),
    ("a file that is a folder", lambda: with_file("my_bot.py/x.py"), "both a file and a folder"),
    ("a name that begins with NUL", lambda: renamed("Xy.py", b"\0y.py"), "printable ASCII"),
    ("a name that is only NULs", lambda: renamed("Xy", b"\0\0"), "printable ASCII"),
    ("a folder outside", lambda: with_file("../../x/", b""), "must not contain .."),
    ("an absolute folder", lambda: with_file("/etc/", b""), "must not be absolute"),
    ("a folder with content", lambda: with_file("my/", b"x = 1"), "has the name of a folder"),
    # Kinds of files
    ("a symbolic link", lambda: zip_of(entries(), change=as_link), "symbolic link"),
    ("a FIFO", lambda: zip_of(entries(), change=as_fifo), "special file"),
    ("a .data folder", lambda: with_file("my_bot-1.0.data/scripts/python3"), ".data folder"),
    ("a .pth", lambda: with_file("my.pth"), "at every start of Python"),
    ("sitecustomize", lambda: with_file("sitecustomize.py"), "at every start of Python"),
    ("usercustomize", lambda: with_file("usercustomize/__init__.py"), "at every start of Python"),
    ("compiled code", lambda: with_file("my_fast.cpython-311-x86_64-linux-gnu.so"), "pure Python"),
    ("a numbered library", lambda: with_file("lib/libx.so.1"), "pure Python"),
    ("compiled Python", lambda: with_file("my_bot.pyc"), "ship the source"),
    ("a cache", lambda: with_file("__pycache__/my_bot.txt"), "ship the source"),
    # Top-level names
    ("a name of the stdlib", lambda: with_file("json.py"), "would stand in for another module"),
    ("a private one", lambda: with_file("_socket.py"), "would stand in for another module"),
    (
        "the engine",
        lambda: with_file("engine/sdk/__init__.py"),
        "would stand in for another module",
    ),
    ("the bots", lambda: with_file("bots/x.py"), "would stand in for another module"),
    ("the site", lambda: with_file("tournament/x.py"), "would stand in for another module"),
    ("tests", lambda: with_file("tests/test_x.py"), "would stand in for another module"),
    ("pluggy", lambda: with_file("pluggy/__init__.py"), "would stand in for another module"),
    ("msgspec", lambda: with_file("MsgSpec.py"), "would stand in for another module"),
    # Sizes
    (
        "many files",
        lambda: wheel(extra={f"d/f{i}": b"" for i in range(2001)}),
        "files; at most 2000",
    ),
    ("a bomb", lambda: with_file("zeros.txt", bytes(15 << 20)), "200 times its size"),
    ("a lot of bytes", lambda: with_file("zeros.txt", bytes(21 << 20)), "at most 20971520"),
    # RECORD
    (
        "a file that RECORD does not list",
        lambda: zip_of(entries() | {"added.py": b""}),
        "added.py is not listed in RECORD",
    ),
    (
        "a file that RECORD misses",
        lambda: zip_of({k: v for k, v in entries(extra={"a.py": b""}).items() if k != "a.py"}),
        "'a.py' is listed in RECORD and missing",
    ),
    (
        "a file that was changed",
        lambda: zip_of(entries() | {"my_bot.py": b"changed"}),
        "my_bot.py differs from what RECORD says",
    ),
    (
        "an odd RECORD",
        lambda: wheel(extra={f"{DIST}/RECORD": b"my_bot.py\n"}),
        "not path,hash,size",
    ),
    ("a weak hash", lambda: wheel_hashed("md5"), "by sha256 or better"),
    ("a hash of no kind", lambda: wheel_hashed("nonsense"), "by sha256 or better"),
    ("a better hash that is false", lambda: wheel_hashed("sha512", b"other"), "differs from what"),
    ("the form for large files", lambda: streamed(entries(), force_zip64=True), "zip64"),
    ("a broken RECORD", lambda: wheel(extra={f"{DIST}/RECORD": b'a,"b\n'}), "cannot be read"),
    # What it says of itself
    ("no METADATA", lambda: wheel(metadata=None), "lacks METADATA"),
    ("no WHEEL", lambda: wheel(wheel=None), "lacks WHEEL"),
    (
        "two .dist-info folders",
        lambda: with_file("other-1.0.dist-info/METADATA"),
        "one .dist-info folder",
    ),
    ("no version", lambda: wheel(metadata="Name: my-bot\n"), "a Name and a Version"),
    ("an odd version", lambda: wheel(metadata="Name: my-bot\nVersion: new\n"), "a Version such as"),
    (
        "a version of 5000 digits",
        lambda: wheel(metadata=f"Name: my-bot\nVersion: {'1' * 5000}\n"),
        "a Version such as",
    ),
    ("another's name", lambda: wheel(metadata=METADATA.replace("my-", "x-")), "does not fit"),
    ("not UTF-8", lambda: wheel(metadata=b"Name: \xff\n"), "not UTF-8"),
    ("a later format", lambda: wheel(wheel=WHEEL.replace("1.0", "2.0")), "must be 1.x"),
    (
        "a platform tag",
        lambda: wheel(wheel=WHEEL.replace("py3-none-any", "cp311-cp311-linux_x86_64")),
        "a bot is pure Python",
    ),
    ("no tag", lambda: wheel(wheel="Wheel-Version: 1.0\n"), "a bot is pure Python"),
    ("not pure", lambda: wheel(wheel=WHEEL.replace("true", "false")), "Root-Is-Purelib"),
    # The bot
    ("no entry point", lambda: wheel(entry=None), "it declares no bot"),
    ("none in our group", lambda: wheel(entry="[console_scripts]\nx = y\n"), "declares: none"),
    ("two bots", lambda: wheel(entry=f"{ENTRY}other = my_bot\n"), "declares: my-bot, other"),
    ("an odd file", lambda: wheel(entry="my-bot = my_bot"), "entry_points.txt cannot be read"),
    ("a bad name", lambda: wheel(entry=ENTRY.replace("my-bot", "My Bot")), "must be 2 to 32"),
    ("a long name", lambda: wheel(entry=ENTRY.replace("my-bot", "b" * 33)), "must be 2 to 32"),
    ("extras", lambda: wheel(entry=ENTRY.replace("= my_bot", "= my_bot [x]")), "must be written"),
    (
        "an entry point outside",
        lambda: wheel(entry=ENTRY.replace("= my_bot", "= subprocess:Popen")),
        "names the module subprocess, which is not in the wheel",
    ),
    # What it needs
    (
        "a dependency that is not there",
        lambda: wheel(metadata=f"{METADATA}Requires-Dist: torch>=2\n"),
        "depends on 'torch>=2', which is not there",
    ),
    (
        "a dependency from an address",
        lambda: wheel(metadata=f"{METADATA}Requires-Dist: pluggy @ https://example.org/p.whl\n"),
        "which is not there",
    ),
    (
        "another version of the SDK",
        lambda: wheel(metadata=f"{METADATA}Requires-Dist: domino-arena>=99\n"),
        "widen the range",
    ),
    (
        "a dependency that cannot be read",
        lambda: wheel(metadata=f"{METADATA}Requires-Dist: ???\n"),
        "cannot be read",
    ),
    (
        "another Python",
        lambda: wheel(metadata=f"{METADATA}Requires-Python: <3\n"),
        "it requires Python <3",
    ),
    (
        "an odd Python",
        lambda: wheel(metadata=f"{METADATA}Requires-Python: three\n"),
        "Requires-Python 'three' cannot be read",
    ),
]


@pytest.mark.parametrize(
    ("make", "words"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS]
)
def test_wheel_is_refused_with_what_to_change(make, words):
    assert any(words in reason for reason in reasons_against(make()))


def test_all_reasons_are_told_at_once_but_not_without_end():
    data = wheel(extra={f"bad{number}.pth": b"" for number in range(50)} | {"json.pyc": b""})
    reasons = reasons_against(data)
    assert len(reasons) == 21
    assert reasons[-1] == "and 31 more of the kind"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: wheel(metadata=f"{METADATA}Requires-Dist: torch; extra == 'dev'\n"), "an extra"),
        (
            lambda: wheel(metadata=f"{METADATA}Requires-Dist: torch; python_version < '3'\n"),
            "a marker that does not hold",
        ),
        (
            lambda: wheel(
                metadata=f"{METADATA}Requires-Dist: Domino_Arena>={engine.__version__}\n"
            ),
            "our SDK under another spelling",
        ),
        (lambda: wheel(wheel=WHEEL + "Tag: py2-none-any\n"), "made for Python 2 as well"),
        (lambda: wheel(entry=ENTRY + "[console_scripts]\nx = my_bot:x\n"), "a script besides"),
        (lambda: wheel(entry=ENTRY.replace("= my_bot", "= my_bot:plugin.x")), "an attribute"),
        (lambda: zip_of(entries(), compression=zipfile.ZIP_STORED), "not compressed"),
        (lambda: zip_of(entries() | {"pkg/": b""}), "with entries for folders"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wheel_is_accepted(make, why):
    assert read_wheel(make()).bot == "my-bot"


def central_entry_of(data, name):
    place = data.index(b"PK\x01\x02")
    while True:
        length = struct.unpack("<H", data[place + 28 : place + 30])[0]
        if data[place + 46 : place + 46 + length] == name:
            return place
        place = data.index(b"PK\x01\x02", place + 4)


@pytest.mark.parametrize(
    ("offset", "value", "why"),
    [
        (24, 5, "it is said to be shorter"),
        (24, 5000, "it is said to be longer"),
        (20, 5, "its compressed part is said to be shorter"),
        (16, 12345, "its checksum is another's"),
        (42, 3, "it is said to lie elsewhere"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_header_that_lies_is_refused(offset, value, why):
    data = bytearray(wheel())
    place = central_entry_of(data, b"my_bot.py") + offset
    data[place : place + 4] = struct.pack("<L", value)
    assert any("does not tell the truth" in reason for reason in reasons_against(bytes(data)))


def test_content_behind_the_promised_end_is_refused():
    files = entries(bot=b"x" * 100)
    data = bytearray(zip_of(files))
    for place in (central_entry_of(data, b"my_bot.py") + 24, data.index(b"my_bot.py") - 30 + 22):
        data[place : place + 4] = struct.pack("<L", 50)
    assert any("does not tell the truth" in reason for reason in reasons_against(bytes(data)))


def test_encrypted_file_is_refused():
    data = bytearray(wheel())
    place = central_entry_of(data, b"my_bot.py") + 8
    data[place] |= 1
    assert any("is encrypted" in reason for reason in reasons_against(bytes(data)))


def test_unknown_compression_is_refused():
    data = zip_of(entries(), compression=zipfile.ZIP_BZIP2)
    assert any("compressed in a way" in reason for reason in reasons_against(data))


@settings(deadline=None)
@given(st.binary(max_size=400))
@example(b"PK\x05\x06" + bytes(18))
def test_any_bytes_are_read_or_refused(data):
    assert refusal(data) != ()


GOOD = wheel(extra={"pkg/__init__.py": b"x = 1\n" * 50})


DAMAGES = {
    "set": lambda data, place, value: data[:place] + bytes([value]) + data[place + 1 :],
    "cut": lambda data, place, _: data[:place] + data[place + 1 :],
    "insert": lambda data, place, value: data[:place] + bytes([value]) + data[place:],
}
DIRECTORY = GOOD.index(b"PK\x01\x02")


@settings(max_examples=800, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(DAMAGES)),
            st.one_of(st.integers(0, len(GOOD)), st.integers(DIRECTORY, len(GOOD))),
            st.one_of(st.sampled_from([0, 1, 255]), st.integers(0, 255)),
        ),
        min_size=1,
        max_size=8,
    )
)
@example([("set", DIRECTORY + 46, 0)])  # a name that begins with NUL
@example([("set", DIRECTORY + 28, 0)])  # no name
def test_damaged_wheel_is_read_or_refused(changes):
    data = GOOD
    for damage, place, value in changes:
        data = DAMAGES[damage](data, place, value)
    assert refusal(data) != ()


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["metadata", "wheel", "entry"]),
        st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)),
    )
)
def test_any_dist_info_is_read_or_refused(changes):
    assert refusal(wheel(**changes)) != ()


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_any_requirement_is_read_or_refused(requirement, python):
    metadata = METADATA + f"Requires-Dist: {requirement}\nRequires-Python: {python}\n"
    assert refusal(wheel(metadata=metadata.encode("utf-8", "surrogatepass"))) != ()


# Unpacking


def test_wheel_is_unpacked_into_a_folder_named_by_its_hash(tmp_path):
    data = wheel(extra={"pkg/data/table.txt": b"1 2 3"})
    folder = unpack_wheel(data, tmp_path / "cache")
    assert folder == tmp_path / "cache" / hashlib.sha256(data).hexdigest()
    assert (folder / "my_bot.py").read_bytes() == BOT
    assert (folder / "pkg/data/table.txt").read_bytes() == b"1 2 3"
    assert list((tmp_path / "cache").iterdir()) == [folder]


def test_unpacking_again_leaves_the_folder_as_it_is(tmp_path):
    folder = unpack_wheel(wheel(), tmp_path)
    before = folder.stat().st_ino
    assert unpack_wheel(wheel(), tmp_path).stat().st_ino == before


@pytest.mark.parametrize("damage", ["changed", "missing", "added", "linked"])
def test_damaged_folder_is_made_anew(tmp_path, damage):
    folder = unpack_wheel(wheel(), tmp_path)
    bot = folder / "my_bot.py"
    if damage == "changed":
        bot.write_bytes(b"import os\n")
    elif damage == "added":
        (folder / "json.py").write_bytes(b"")
    else:
        bot.unlink()
        if damage == "linked":
            (tmp_path / "elsewhere.py").write_bytes(BOT)
            bot.symlink_to(tmp_path / "elsewhere.py")
    again = unpack_wheel(wheel(), tmp_path)
    assert again == folder
    assert bot.read_bytes() == BOT
    assert not bot.is_symlink()
    assert not (folder / "json.py").exists()
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == [folder]


def test_workers_may_unpack_the_same_wheel_at_once(tmp_path):
    data = wheel(extra={f"pkg/m{number}.py": b"x = 1\n" for number in range(100)})
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(unpack_wheel(data, tmp_path)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [tmp_path / hashlib.sha256(data).hexdigest()] * 6
    assert holds(found[0], read_files(data))


def test_left_overs_of_a_killed_process_are_removed_and_work_in_progress_is_not(tmp_path):
    for name, age in ((".unpacking-old", 7200), (".unpacking-new", 60)):
        (tmp_path / name / "fresh").mkdir(parents=True)
        moment = time.time() - age
        os.utime(tmp_path / name, (moment, moment))
    folder = unpack_wheel(wheel(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".unpacking-new", folder.name]


def test_refused_wheel_is_not_unpacked(tmp_path):
    with pytest.raises(WheelError):
        unpack_wheel(with_file("my.pth"), tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_source_of_a_wheel_says_what_the_record_needs(tmp_path):
    data = wheel()
    source = wheel_source(data, tmp_path)
    assert source == source_of(read_wheel(data), tmp_path / hashlib.sha256(data).hexdigest())
    assert source.wheel == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert (source.bot, source.version, source.entry_point) == ("my-bot", "1.0", "my_bot")


def test_nothing_of_a_wheel_is_imported(tmp_path):
    wheel_source(wheel(bot=b"raise SystemExit('imported')"), tmp_path)
    assert "my_bot" not in sys.modules


# Packing


def module(folder):
    path = folder / "steady_play.py"
    path.write_bytes(BOT)
    return path


def test_module_becomes_an_ordinary_wheel(tmp_path):
    data = pack_module(module(tmp_path), bot="steady", version="1.2", summary="Plays\nsteadily")
    info = read_wheel(data)
    assert (info.bot, info.version, info.entry_point) == ("steady", "1.2", "steady_play")
    assert info.summary == "Plays steadily"
    assert info.requires == ("domino-arena",)


def test_equal_source_gives_equal_bytes(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    one = pack_module(module(first), bot="steady", version="1.2")
    other = pack_module(module(second), bot="steady", version="1.2")
    assert one == other
    assert hashlib.sha256(one).hexdigest() == (
        "523dd331a003a3824facca32b71af4cd484139dd0ac04a034be35593bd9a07ac"
    ), "packing changed: every reference bot's wheel would get another hash"


def test_module_that_shadows_the_stdlib_cannot_be_packed(tmp_path):
    path = tmp_path / "random.py"
    path.write_text("")
    with pytest.raises(WheelError, match="give your package a name of its own"):
        pack_module(path, bot="random", version="1")


PYPROJECT = """
[project]
name = "My.Bot"
version = "1.0"
description = "Plays"
requires-python = ">=3.11"
dependencies = ["domino-arena>=0.1"]

[project.entry-points."domino_arena.bots"]
my-bot = "my_bot"
"""


def project(folder, files, pyproject=PYPROJECT):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    if pyproject is not None:
        (folder / "pyproject.toml").write_text(pyproject)
    return folder


@pytest.mark.parametrize(
    ("files", "packed"),
    [
        (
            {"src/my_bot/__init__.py": "", "src/my_bot/play.py": ""},
            ["my_bot/__init__.py", "my_bot/play.py"],
        ),
        (
            {"my_bot/__init__.py": "", "my_bot/table.json": "{}"},
            ["my_bot/__init__.py", "my_bot/table.json"],
        ),
        ({"my_bot.py": "", "setup.py": "raise SystemExit", "conftest.py": ""}, ["my_bot.py"]),
        ({"src/my_bot.py": "", "tests/test_bot.py": "", "tool.py": ""}, ["my_bot.py"]),
        (
            {"my_bot.py": "", "tests/test_x.py": "", "docs/x.py": "", "build/lib/a.py": ""},
            ["my_bot.py"],
        ),
        (
            {"my_bot/__init__.py": "", "my_bot/__pycache__/x.pyc": "", "my_bot/.hidden": ""},
            ["my_bot/__init__.py"],
        ),
    ],
    ids=["src", "flat", "one module", "module in src", "besides tests", "left-overs"],
)
def test_project_is_packed_without_running_it(tmp_path, files, packed):
    info = read_wheel(pack_project(project(tmp_path, files)))
    assert [name for name in info.files if ".dist-info/" not in name] == packed
    assert (info.bot, info.distribution, info.version) == ("my-bot", "my-bot", "1.0")
    assert info.requires == ("domino-arena>=0.1",)


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}\.(py|txt|json)", fullmatch=True)


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(NAMES, st.binary(max_size=300), max_size=6))
def test_packed_project_unpacks_to_its_files(files):
    files = {name: content for name, content in files.items() if "customize" not in name}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project(folder, {"src/my_bot/__init__.py": ""})
        for path, content in files.items():
            (folder / "src/my_bot" / path).write_bytes(content)
        unpacked = unpack_wheel(pack_project(folder), folder / "cache")
        found = {path.name: path.read_bytes() for path in (unpacked / "my_bot").iterdir()}
    assert found == {"__init__.py": b""} | files


def test_packing_a_project_twice_gives_equal_bytes(tmp_path):
    project(tmp_path, {"my_bot.py": BOT.decode()})
    assert pack_project(tmp_path) == pack_project(tmp_path)


@pytest.mark.parametrize(
    ("pyproject", "words"),
    [
        (None, "no pyproject.toml"),
        ("[project", "cannot be read"),
        ("[tool.x]\n", r"no \[project\] table"),
        (PYPROJECT.replace('version = "1.0"', 'dynamic = ["version"]'), "version is dynamic"),
        (PYPROJECT.replace('version = "1.0"', ""), "must have a version"),
        (PYPROJECT.replace('version = "1.0"', "version = 1.0"), "must have a version"),
        (PYPROJECT.replace('version = "1.0"', 'version = "one"'), "none such as 1.0.0"),
        (PYPROJECT.replace("My.Bot", "my bot"), "must be letters"),
        (PYPROJECT.replace('my-bot = "my_bot"', ""), "exactly one bot"),
        (PYPROJECT + 'other = "my_bot"\n', "exactly one bot"),
        (PYPROJECT.replace('"my_bot"', "3"), "exactly one bot"),
        (PYPROJECT.replace('"my_bot"', '"your_bot"'), "there is no your_bot.py"),
        (PYPROJECT.replace('"my_bot"', '"my_bot.deep"'), "not in the wheel"),
        (PYPROJECT.replace('["domino-arena>=0.1"]', '"domino-arena"'), "list of texts"),
        (PYPROJECT.replace("domino-arena>=0.1", "torch"), "copy what you need"),
        (PYPROJECT.replace('"Plays"', "3"), "description must be a text"),
    ],
)
def test_project_that_cannot_be_packed_is_told_what_to_change(tmp_path, pyproject, words):
    project(tmp_path, {"my_bot.py": ""}, pyproject)
    with pytest.raises(WheelError, match=words):
        pack_project(tmp_path)


def test_symbolic_link_in_a_project_is_refused(tmp_path):
    project(tmp_path, {"my_bot/__init__.py": ""})
    (tmp_path / "my_bot/passwords.txt").symlink_to("/etc/passwd")
    with pytest.raises(WheelError, match="symbolic link"):
        pack_project(tmp_path)


def test_huge_project_is_refused_before_it_is_read(tmp_path):
    project(tmp_path, {"my_bot/__init__.py": ""})
    with (tmp_path / "my_bot/table.bin").open("wb") as file:
        file.truncate(MAX_WHEEL_BYTES + 1)
    with pytest.raises(WheelError, match="more than"):
        pack_project(tmp_path)


def test_provided_packages_are_those_installed_here():
    assert set(provided_versions()) == {"domino-arena", "pluggy", "msgspec", "numpy"}
    assert requirement_reasons(["pluggy>=1.5", "msgspec", "numpy>=2"]) == []
