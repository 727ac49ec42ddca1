"""`arena check` under the conditions of a tournament, with bots that play in this process."""

from __future__ import annotations

import re
import shlex

import pytest

from engine.cli.exits import ExitCode
from engine.wheels import pack_module

PICKY = """
from engine.sdk import Strategy, hookimpl


class Picky(Strategy):
    def act(self, observation):
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Picky() if game == "podkidnoe" and ruleset.max_draws == 2 else None
"""


@pytest.fixture
def wheel(tmp_path):
    source = tmp_path / "picky.py"
    source.write_text(PICKY)
    path = tmp_path / "picky-1.0-py3-none-any.whl"
    path.write_bytes(pack_module(source, bot="picky", version="1.0"))
    return path


def test_bot_is_tried_under_the_conditions_that_are_named(arena, wheel):
    answer = arena("check", wheel, "--trusted", "--game", "podkidnoe", "--seats", "3")
    assert answer.code == ExitCode.OK
    assert (
        "plays Podkidnoe by the default rules at 3 seats in the time control standard" in answer.out
    )


def test_bot_that_does_not_play_them_is_rejected(arena, wheel):
    rule = ("--rule", "max_draws=1", "--time-control", "fast")
    answer = arena("check", wheel, "--trusted", "--game", "podkidnoe", *rule)
    assert answer.code == ExitCode.NOT_GOOD
    assert (
        "by max_draws=1 at 2 seats in the time control fast: make_strategy answered None"
        in answer.out
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--seats", "4"), "--seats goes with --game"),  # of which game?
        (("--game", "chess"), "no game 'chess'"),  # unknown
        (("--game", "eighty", "--seats", "3"), "no table of 3 seats"),  # Eighty has four
        (("--game", "eighty", "--rule", "target"), "OPTION=VALUE"),  # no value
        (("--game", "eighty", "--time-control", "slow"), "fast, standard, long"),  # unknown
    ],
)
def test_conditions_that_cannot_be_are_refused(arena, wheel, arguments, told):
    answer = arena("check", wheel, "--trusted", *arguments)
    assert answer.code == ExitCode.USAGE
    assert told in answer.err


CRASHER = """
from engine.sdk import Strategy, hookimpl


class Crasher(Strategy):
    def begin_game(self, info):
        self.asked = 0
        self.drawn = info.random_seed

    def act(self, observation):
        self.asked += 1
        if self.asked == 3:
            raise ValueError(f"drawn {self.drawn} with {observation.hand}")
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Crasher() if game == "podkidnoe" else None
"""


@pytest.fixture
def crasher(tmp_path):
    (tmp_path / "crasher.py").write_text(CRASHER)
    path = tmp_path / "crasher-1.0-py3-none-any.whl"
    path.write_bytes(pack_module(tmp_path / "crasher.py", bot="crasher", version="1.0"))
    return path


def test_fault_of_a_check_can_be_played_again_by_the_command_that_is_told(arena, crasher):
    checked = arena("check", crasher.name, "--trusted", "--records", "faults")
    assert checked.code == ExitCode.NOT_GOOD
    commands = re.findall(r"^play it again: arena (debug faults/.*)$", checked.out, re.MULTILINE)
    assert len(commands) == 3  # after so many faults a check ends
    for command in commands:
        answer = arena(*shlex.split(command), "--no-pdb")
        assert answer.code == ExitCode.NOT_GOOD
        assert re.search(r"ValueError: drawn \d+ with ", answer.err)
        assert "earlier answers are not those" not in answer.err


def test_command_is_told_without_a_folder_too_and_in_json(arena, crasher):
    assert (
        "play it again: arena debug RECORD ./crasher-1.0"
        in arena("check", crasher.name, "--trusted").out
    )
    answer = arena("check", crasher.name, "--trusted", "--json", "--records", "r").json
    assert all(command.startswith("arena debug r/check-") for command in answer["debug"])
    assert len(answer["debug"]) == 3
