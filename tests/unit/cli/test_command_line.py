"""What holds for every command: help, exit codes, plain output, a quick start."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.exits import ExitCode, exit_code_of
from engine.cli.output import print_table
from engine.errors import (
    ContestError,
    InfrastructureError,
    RecordError,
    SandboxUnavailableError,
    WheelError,
)

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def command_names() -> list[str]:
    return re.findall(r"^  ([a-z]+)  ", _run("--help").stdout, re.MULTILINE)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from engine.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ContestError("x"), ExitCode.USAGE),  # what was asked cannot be
        (WheelError(["x"]), ExitCode.USAGE),
        (RecordError("games", "x"), ExitCode.NOT_GOOD),  # what was judged is untrue
        (SandboxUnavailableError(["x"]), ExitCode.NO_SANDBOX),
        (InfrastructureError("x"), ExitCode.FAILURE),  # our own failure
    ],
)
def test_error_has_an_exit_code_of_its_kind(error, code):
    assert exit_code_of(error) is code


@pytest.mark.parametrize(
    "arguments",
    [
        ["play"],  # an argument is missing
        ["frobnicate"],  # no such command
        ["--frobnicate"],  # no such option of arena itself
        ["play", "greedy", "--game"],  # an option without its value
        ["play", "greedy", "--gmae", "eighty"],  # no such option of the command
        ["replay", "x", "--deal", "y"],  # another type
        ["bench", "formats", "--pairs", "x"],  # below a group of its own
        ["bench", "frobnicate"],
    ],
)
def test_wrong_usage_ends_with_2_and_is_one_line_on_stderr(arguments):
    done = _run(*arguments)
    assert done.returncode == ExitCode.USAGE
    assert done.stdout == ""
    assert re.fullmatch(r"error: .+; see \S*( \w+)* --help\n", done.stderr), done.stderr


def test_output_is_plain_when_it_is_no_terminal():
    done = _run("play", "greedy", "random", "--game", "podkidnoe", "--trusted")
    assert done.returncode == ExitCode.OK
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr == ""


def test_missing_sandbox_ends_with_3_and_says_what_can_be_done(arena, monkeypatch):
    def refuse(*arguments, **options):
        raise SandboxUnavailableError(["bubblewrap is missing"])

    monkeypatch.setattr("engine.cli.play.run_match", refuse)
    answer = arena("play", "greedy", "random", "--game", "eighty")
    assert answer.code == ExitCode.NO_SANDBOX
    assert answer.err.startswith("error: bubblewrap is missing; ")
    assert "--trusted" in answer.err


def test_version_names_protocol_and_record(arena):
    assert re.fullmatch(
        r"domino-arena \d+\.\d+\.\d+ \(arena-bot/1, arena-match/1\)\n", arena("version").out
    )


def test_help_starts_without_the_engine():
    code = (
        "import sys; from engine.cli.app import make_app; make_app(); "
        "print([m for m in sys.modules if m.startswith(('engine.', 'msgspec', 'pluggy', 'rich.'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(re.findall(r"'([\w.]+)'", done.stdout))
    assert loaded <= {
        "engine.cli",
        "engine.cli.app",
        "engine.cli.bench",
        "engine.cli.bench_fairness",
        "engine.cli.bench_formats",
        "engine.cli.bench_sandbox",
        "engine.cli.exits",
        "engine.cli.output",
        "engine.errors",
    }


def test_every_command_and_option_is_on_the_page():
    page = PAGE.read_text()
    commands = command_names()
    assert "play" in commands
    for command in commands:
        assert f"arena {command}" in page
        arguments = [command, "engine"] if command == "bench" else [command]
        for option in set(re.findall(r"--[a-z][a-z-]+", _run(*arguments, "--help").stdout)):
            assert f"`{option}" in page or option == "--help", f"{command} {option}"


def test_every_exit_code_is_on_the_page():
    for code in ExitCode:
        assert f"| {code.value} |" in PAGE.read_text()


def test_table_is_aligned_with_numbers_to_the_right(capsys):
    print_table(("name", "points"), [("a", 5), ("longer", 120)])
    assert capsys.readouterr().out == "name    points\na            5\nlonger     120\n"


def test_bots_name_cannot_bring_control_characters_to_the_terminal(arena):
    answer = arena("play", "greedy", "\x1b[2Jevil", "--game", "eighty")
    assert answer.code == ExitCode.USAGE
    assert "\x1b" not in answer.err
