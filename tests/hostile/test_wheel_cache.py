"""The cache of unpacked wheels: whoever is killed, races, or fills the disk, a folder is whole or not there."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import InfrastructureError
from engine.wheels import mark_of, unpack_wheel
from engine.wheels.archive import read_files
from engine.wheels.unpacking import holds
from tests.hostile.wheel_makers import Entry, wheel

DATA = wheel(Entry("pkg/__init__.py"), Entry("pkg/sub/table.txt", b"1 2 3\n" * 40))
FILES = read_files(DATA)
ROOT = Path(__file__).parents[2]

KILLED = """
import os, signal, sys
from pathlib import Path
from engine.wheels import unpack_wheel

data, room, damaged = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2]), sys.argv[3] == "damaged"
STEPS = {"open", "os.mkdir", "os.rename", "os.chmod", "os.remove", "os.rmdir", "os.scandir"}
left = None

def count(event, _arguments):
    global left
    if left is not None and event in STEPS:
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
for step in range(1000):
    cache = room / str(step)
    if damaged:
        (unpack_wheel(data, cache) / "my_bot.py").write_bytes(b"evil")
    pid = os.fork()
    if not pid:
        left = step
        unpack_wheel(data, cache)
        left = None
        os._exit(0)
    if os.waitpid(pid, 0)[1] == 0:
        print(step)
        sys.exit(0)
"""
"""Unpacks again and again, killed (kill -9) one step later each time, until it comes through; prints the steps."""
RACE = """
import os, sys
from pathlib import Path
from engine.wheels import unpack_wheel
from engine.wheels.archive import read_files
from engine.wheels.unpacking import holds

data, room = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2])
files = read_files(data)
for turn in range(20):
    cache = room / str(turn)
    if turn % 2:
        (unpack_wheel(data, cache) / "my_bot.py").write_bytes(b"evil")
    ready, go = os.pipe()
    pids = []
    for _ in range(4):
        pid = os.fork()
        if not pid:
            os.close(go)
            os.read(ready, 1)
            os._exit(0 if holds(unpack_wheel(data, cache), files) else 1)
        pids.append(pid)
    os.close(ready)
    os.close(go)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids), turn
    assert [path.name for path in cache.iterdir() if path.name.startswith(".")] == []
"""
"""Four processes unpack one wheel at one moment, where there is none, or a damaged one."""


def run(program: str, folder: Path, *arguments: str) -> str:
    """What the program prints in a process of its own, given the wheel and a room."""
    (folder / "bot.whl").write_bytes(DATA)
    room = folder / "room"
    room.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder / "bot.whl"), str(room), *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("before", ["nothing", "damaged"])
def test_process_that_is_killed_at_any_step_leaves_a_whole_folder_or_none(tmp_path, before):
    steps = int(run(KILLED, tmp_path, before))
    assert steps > 15
    for cache in (tmp_path / "room").iterdir():
        found = [folder for folder in cache.iterdir() if not folder.name.startswith(".unpacking-")]
        assert all(
            holds(folder, FILES)
            or (before == "damaged" and (folder / "my_bot.py").read_bytes() == b"evil")
            for folder in found
        )
        assert holds(unpack_wheel(DATA, cache), FILES)


def test_processes_that_unpack_one_wheel_at_one_moment_all_find_it_whole(tmp_path):
    run(RACE, tmp_path)


@contextlib.contextmanager
def small_files():
    """A limit on the size of files, which stops a write as a full disk does.

    It holds for all that this process writes, pytest's own output included: only around what is tried.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_write_that_stops_half_way_is_our_failure_and_leaves_nothing(tmp_path):
    for _ in range(2):
        with (
            pytest.raises(InfrastructureError, match="a wheel cannot be unpacked: file too large"),
            small_files(),
        ):
            unpack_wheel(DATA, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_full_disk_is_our_failure_and_leaves_nothing(tmp_path, monkeypatch):
    def write_half(path, content):
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(
        InfrastructureError, match="a wheel cannot be unpacked: no space left on device"
    ):
        unpack_wheel(DATA, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def tampered(how: str, folder: Path) -> None:
    bot = folder / "my_bot.py"
    if how == "changed":
        bot.write_bytes(b"import os\n")
    elif how == "changed, of the same size":
        bot.write_bytes(bot.read_bytes()[::-1])
    elif how == "added":
        (folder / "json.py").write_bytes(b"")
    elif how == "an empty folder":
        (folder / "json").mkdir()
    elif how == "missing":
        bot.unlink()
    elif how == "a link to a file":
        bot.rename(folder.parent / "elsewhere.py")
        bot.symlink_to(folder.parent / "elsewhere.py")
    elif how == "a link to a folder":
        (folder / "pkg").rename(folder.parent / "elsewhere")
        (folder / "pkg").symlink_to(folder.parent / "elsewhere")
    elif how == "itself a link":
        folder.rename(folder.parent / "elsewhere")
        folder.symlink_to(folder.parent / "elsewhere")
    elif how == "itself a file":
        folder.rename(folder.parent / "elsewhere")
        folder.write_bytes(b"")
    elif how == "a FIFO":
        bot.unlink()
        os.mkfifo(bot)
    elif how == "a folder for a file":
        bot.unlink()
        bot.mkdir()


HOW = [
    "changed", "changed, of the same size", "added", "an empty folder", "missing", "a link to a file",
    "a link to a folder", "itself a link", "itself a file", "a FIFO", "a folder for a file",
]  # fmt: skip


@pytest.mark.parametrize("how", HOW)
def test_folder_with_which_somebody_tampered_is_seen_and_made_anew(tmp_path, how):
    folder = unpack_wheel(DATA, tmp_path)
    mark = mark_of(folder)
    tampered(how, folder)
    assert mark_of(folder) != mark
    assert not holds(folder, FILES)
    assert unpack_wheel(DATA, tmp_path) == folder
    assert holds(folder, FILES)
    assert not folder.is_symlink()


def test_mark_stays_as_long_as_nothing_is_changed(tmp_path):
    folder = unpack_wheel(DATA, tmp_path)
    mark = mark_of(folder)
    for name in FILES:
        (folder / name).read_bytes()
    unpack_wheel(DATA, tmp_path)
    assert mark_of(folder) == mark
    assert mark_of(tmp_path / "nothing") == ""
