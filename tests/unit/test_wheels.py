"""Each line of what a wheel must not be has its test, and whatever bytes come, nothing else is raised."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
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
from engine.wheels.record import record_hash
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
@given(st.dictionaries(NAMES, st.binary(max_size=300).map(b"#".__add__), max_size=6))
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
