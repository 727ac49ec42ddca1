"""`arena check` as it is typed: whatever the file is or does, one verdict or one clear error, and an end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from engine.wheels import pack_module
from tests.hostile.wheel_makers import bomb, requiring, wheel, with_file

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SLEEPS_AT_IMPORT = """
import time
from engine.sdk import hookimpl
time.sleep(10_000)
"""
SLEEPS_AT_EVERY_TURN = """
import time
from engine.sdk import Strategy, hookimpl

class Sleeper(Strategy):
    def act(self, observation):
        time.sleep(0.4)
        return observation.legal[0]

@hookimpl
def make_strategy(game, ruleset, players):
    return Sleeper()
"""
LEAVES_A_MARK = """
import os, sys
from engine.sdk import hookimpl
print("imported by", os.getppid(), sys.argv)
with open({mark!r}, "w") as file:
    file.write("here")
"""


def check(path: Path | str, *options: str) -> subprocess.CompletedProcess[str]:
    program = "from engine.cli import main; main()"  # what the script `arena` runs
    command = [sys.executable, "-c", program, "check", str(path), "--json", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def written(folder: Path, data: bytes) -> Path:
    path = folder / "attacker-1.0-py3-none-any.whl"
    path.write_bytes(data)
    return path


def bot_of(folder: Path, source: str) -> Path:
    """A wheel of a bot of one module."""
    module = folder / "attacker.py"
    module.write_text(source)
    return written(folder, pack_module(module, bot="attacker", version="1.0"))


def rejection(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The reasons of a rejection that is told just as is promised."""
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert list(answer) == ["verdict", "reasons", "games", "debug"]
    assert (answer["verdict"], answer["games"]) == ("rejected", [])
    assert answer["reasons"]
    return answer["reasons"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: b"", "the file is empty"),
        (lambda: b"import random\n", "a wheel is a zip file"),
        (lambda: b"PK\x03\x04" + bytes(11 << 20), "more than 10 MiB"),
        (lambda: wheel(bomb(300 << 20)), "at most 20971520"),
        (lambda: with_file("json.py"), "would stand in for another module"),
        (lambda: with_file("../../x.py"), "must not contain .."),
        (lambda: requiring("torch"), "copy what you need"),
    ],
    ids=["nothing", "text", "11 MiB", "a bomb", "a shadow", "a way out", "torch"],
)
def test_file_that_is_no_good_wheel_is_rejected(tmp_path, make, words):
    assert any(words in reason for reason in rejection(check(written(tmp_path, make()))))


def make_fifo(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.whl")
    return folder / "pipe.whl"


def make_socket(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s.whl"))
    return folder / "s.whl"


def make_closed(folder: Path) -> Path:
    path = written(folder, wheel())
    path.chmod(0)
    return path


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "nowhere.whl", "no such file or directory"),
        (lambda folder: folder, "is a folder without a pyproject.toml"),
        (lambda _: "/dev/zero", "it is a device or a pipe"),
        (lambda _: "/dev/tty", "cannot read /dev/tty"),
        (make_fifo, "it is a device or a pipe"),
        (make_socket, "it is a device or a pipe"),
        *([(make_closed, "is not readable")] if os.geteuid() else []),  # root may read all
    ],
)
def test_what_is_no_file_is_one_clear_error(tmp_path, make, words):
    done = check(make(tmp_path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param(
            (HERE / "import_without_end.py").read_text(),
            "used up its CPU time while starting",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            (HERE / "fork.py").read_text(),
            "PermissionError while choosing an action",
            marks=pytest.mark.exhaustive,
        ),
        ("print('x' * 10**7)\nraise ValueError\n", "raised ValueError while starting"),
    ],
    ids=["an import without end", "forks", "floods its log"],
)
def test_hostile_bot_is_rejected_and_the_check_ends(tmp_path, source, words):
    done = check(bot_of(tmp_path, source))
    assert any(words in reason for reason in rejection(done))
    assert len(done.stderr) < 80_000


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "source", [SLEEPS_AT_IMPORT, SLEEPS_AT_EVERY_TURN], ids=["import", "turns"]
)
def test_bot_that_sleeps_ends_with_the_checks_own_time(tmp_path, source):
    (reason,) = rejection(check(bot_of(tmp_path, source), "--seconds", "2"))
    assert "it is too slow: after " in reason
    assert "trials were done, and 2 are given" in reason


@pytest.mark.sandbox
def test_bot_is_never_imported_outside_the_sandbox(tmp_path):
    mark = tmp_path / "mark"
    done = check(bot_of(tmp_path, LEAVES_A_MARK.format(mark=str(mark))))
    assert any("raised FileNotFoundError" in r or "PermissionError" in r for r in rejection(done))
    assert not mark.exists()
    assert "imported by 1 " in done.stderr  # the first process of the sandbox's own namespace
