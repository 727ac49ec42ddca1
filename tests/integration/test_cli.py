"""`arena` as a user runs it: processes, folders and wheels, behind the real walls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.wheels import pack_project

pytestmark = pytest.mark.sandbox

LAYS = "observation.legal[0]"
PASSES = "observation.legal[-1]"


def arena(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from engine.cli import main; main()", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def write_project(folder: Path, *, version: str, choice: str, name: str = "twin") -> Path:
    """A bot with its choice in a module of its own, so that another version's could be taken for it."""
    package = folder / "src" / name
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "{name}"\nversion = "{version}"\n'
        f'[project.entry-points."domino_arena.bots"]\n{name} = "{name}"\n'
    )
    (package / "choice.py").write_text(f"def choose(observation):\n    return {choice}\n")
    (package / "__init__.py").write_text(
        "from engine.sdk import Strategy, hookimpl\n"
        f"from {name}.choice import choose\n"
        "class Chooser(Strategy):\n"
        "    def act(self, observation):\n"
        "        return choose(observation)\n"
        "@hookimpl\n"
        "def make_strategy(game, ruleset, players):\n"
        "    return Chooser()\n"
    )
    return folder


@pytest.mark.parametrize("trusted", [[], ["--trusted"]], ids=["sandboxed", "trusted"])
def test_two_versions_of_one_package_meet_each_with_its_own_code(tmp_path, trusted):
    old = write_project(tmp_path / "old", version="1.0", choice=PASSES)
    new = write_project(tmp_path / "new", version="1.1", choice=LAYS)
    (tmp_path / "new.whl").write_bytes(pack_project(new))
    arguments = ["play", old, "new.whl", "--game", "podkidnoe", "--boards", 2, "--seed", "versions"]
    done = arena(*arguments, "--json", *trusted, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sandboxed"] is not bool(trusted)
    one, other = found["entrants"]
    assert (one["name"], other["name"]) == ("twin@1.0", "twin@1.1")
    assert one["bots"][0]["wheel"] != other["bots"][0]["wheel"]
    # The old one passes whenever it may, so each of its turns costs it a point.
    assert (one["place"], other["place"]) == (2, 1)


def test_sandboxed_and_trusted_play_are_the_same_match(tmp_path):
    def digest(*arguments: str) -> str:
        match = ["play", "greedy", "random", "--game", "eighty", "--boards", "2", "--seed", "same"]
        return json.loads(arena(*match, "--json", *arguments, cwd=tmp_path).stdout)["digest"]

    assert digest() == digest("--trusted")


def test_record_of_a_match_is_verified_and_replayed(tmp_path):
    play = ["play", "greedy", "random", "bold", "--game", "podkidnoe", "--boards", "1"]
    done = arena(*play, "--records", "records", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (record,) = (tmp_path / "records").iterdir()
    assert f"record: {Path('records') / record.name}" in done.stdout
    assert arena("verify", record, cwd=tmp_path).returncode == 0
    assert "greedy" in arena("replay", record, cwd=tmp_path).stdout


def test_new_project_passes_its_own_tests_and_the_check(tmp_path):
    assert arena("new", "my-bot", cwd=tmp_path).returncode == 0
    project = tmp_path / "my-bot"
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:django"],
        cwd=project,
        env={name: value for name, value in os.environ.items() if "DJANGO" not in name},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tests.returncode == 0, tests.stdout
    checked = arena("check", ".", "--json", cwd=project)
    assert checked.returncode == 0, checked.stdout
    report = json.loads(checked.stdout)
    assert list(report) == ["verdict", "reasons", "games", "debug"]
    assert (report["verdict"], report["reasons"], report["debug"]) == ("accepted", [], [])
    assert [game["game"] for game in report["games"]] == ["eighty", "podkidnoe"]


def test_new_project_is_clean_for_a_formatter_and_a_linter(tmp_path):
    assert arena("new", "my-bot", cwd=tmp_path).returncode == 0
    ruff = [sys.executable, "-m", "ruff"]
    rules = ["--isolated", "--select", "ANN,B,E,F,I,PT,RUF,SIM,UP,W", "--ignore", "ANN001,ANN002"]
    rules += ["--ignore", "ANN003,ANN201,ANN202"]
    for command in (["format", "--isolated", "--check"], ["check", *rules]):
        done = subprocess.run(
            [*ruff, *command, "."],
            cwd=tmp_path / "my-bot",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ("observation.hand", "which is no action of the game"),  # no action at all
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_bot_that_fails_is_rejected_with_reason_and_log(tmp_path, choice, says):
    write_project(tmp_path / "bad", version="1.0", choice=choice)
    done = arena("check", "bad", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("bad: rejected\n- ")
    assert says in done.stdout


def test_folder_that_is_no_project_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    done = arena("play", "./empty", "greedy", "--game", "eighty", cwd=tmp_path)
    assert done.returncode == 2
    assert "empty is a folder without a pyproject.toml" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["play", "check"])
def test_file_that_is_no_wheel_is_refused_with_the_reason(tmp_path, command):
    (tmp_path / "notes.whl").write_text("no zip")
    arguments = ["greedy", "--game", "eighty"] if command == "play" else []
    done = arena(command, "notes.whl", *arguments, cwd=tmp_path)
    said = done.stderr if command == "play" else done.stdout
    assert done.returncode == (2 if command == "play" else 1)
    assert "zip" in said


def test_project_with_two_bots_is_refused_by_play_and_rejected_by_check(tmp_path):
    project = write_project(tmp_path / "two", version="1.0", choice=LAYS)
    with (project / "pyproject.toml").open("a") as file:
        file.write('other = "twin"\n')
    played = arena("play", "./two", "greedy", "--game", "eighty", cwd=tmp_path)
    assert played.returncode == 2
    assert "exactly one bot" in played.stderr
    checked = arena("check", "two", "--json", cwd=tmp_path)
    assert checked.returncode == 1
    assert "exactly one bot" in json.loads(checked.stdout)["reasons"][0]


def test_installed_bot_that_is_broken_does_not_hide_the_others(tmp_path):
    site = tmp_path / "site"
    info = site / "clumsy-3.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: clumsy\nVersion: 3.0\n")
    (info / "entry_points.txt").write_text("[domino_arena.bots]\nclumsy = clumsy\n")
    (site / "clumsy.py").write_text("raise RuntimeError('not today')\n")
    done = arena("bots", "--json", cwd=tmp_path, PYTHONPATH=str(site))
    assert done.returncode == 1
    bots = {bot["name"]: bot for bot in json.loads(done.stdout)["bots"]}
    assert "not today" in bots["clumsy"]["error"]
    assert bots["greedy"]["error"] is None


def test_terminal_sees_progress_with_the_time_left_and_others_see_nothing(tmp_path):
    terminal, end = os.openpty()
    command = ["play", "greedy", "random", "--game", "eighty", "--boards", "40"]
    code = "from engine.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    ) as process:
        os.close(end)
        shown = b"".join(iter(lambda: read_terminal(terminal), b""))
        answer = process.stdout.read() if process.stdout else b""
    os.close(terminal)
    assert process.returncode == 0
    assert b"greedy - random" in shown
    assert b"/80" in shown
    assert b"left" in shown
    assert b"\x1b" not in answer


def read_terminal(terminal: int) -> bytes:
    """What is written next; nothing once the other end is closed."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
