"""`arena check` under the conditions of a tournament, with bots that play in this process."""

from __future__ import annotations

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
