"""Whole matches: what a match becomes does not depend on where its bots run."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.games import get_game
from engine.outcome import Termination
from engine.record import (
    BoardsContest,
    BotRef,
    DealSource,
    EntrantRef,
    GamesContest,
    make_spec,
    replay,
)
from engine.runner import run_match
from engine.sdk.timecontrol import time_control
from engine.shuffle import local_prk
from engine.wheels import pack_module, wheel_source
from tests.hostile.stage import nothing_left_behind, source_in

pytestmark = pytest.mark.sandbox

BOTS = Path(__file__).parents[2] / "bots"


def spec_of(game, sources, contest):
    return make_spec(
        game=game,
        entrants=[
            EntrantRef(f"{source.bot}#{place}", (BotRef(source.bot, source.version, source.wheel),))
            for place, source in enumerate(sources)
        ],
        contest=contest,
        time_control=time_control("standard"),
        deals=DealSource(local_prk("sandbox"), "local", reveal=True),
    )


def house_bots(folder, *names):
    return [
        wheel_source(pack_module(BOTS / f"{name}.py", bot=name, version="1.0"), folder)
        for name in names
    ]


@pytest.mark.parametrize(
    ("game", "names", "contest"),
    [
        ("eighty", ("greedy", "chance"), BoardsContest(2)),
        ("eighty", ("highest", "lowest"), GamesContest(1)),
        ("podkidnoe", ("greedy", "chance", "lowest"), BoardsContest(1)),
    ],
    ids=["boards", "a game to the target", "three at the table"],
)
def test_match_in_the_sandbox_has_the_digest_of_the_same_match_here(tmp_path, game, names, contest):
    sources = house_bots(tmp_path, *names)
    spec = spec_of(game, sources, contest)
    seats = [(source,) for source in sources]
    with nothing_left_behind():
        held = run_match(spec, seats).record
    assert held.outcome.termination is Termination.COMPLETED
    assert held.digest == run_match(spec, seats, trusted=True).record.digest
    replay(held)


@pytest.mark.parametrize(
    ("bot", "kind"),
    [
        ("network", Termination.CRASH),
        ("illegal_action", Termination.ILLEGAL_ACTION),
        ("nonsense", Termination.PROTOCOL),
        ("import_crash", Termination.CRASH),
    ],
)
def test_attacker_forfeits_and_the_record_is_true(tmp_path, bot, kind):
    attacker = source_in(tmp_path / "attacker", bot)
    sources = [attacker, *house_bots(tmp_path / "wheels", "lowest")]
    spec = spec_of("eighty", sources, BoardsContest(1))
    with nothing_left_behind():
        played = run_match(spec, [(source,) for source in sources])
    outcome = played.record.outcome
    assert outcome.termination is kind
    assert {fault.entrant for fault in outcome.faults} == {0}
    assert outcome.places == (2, 1)
    replay(played.record)


ANSWERS = {
    "a text": "'pass'",
    "nothing": "None",
    "an object": "object()",
    "a type with an odd name": "type('a b', (), {})()",
    "another game's action": "Draw()",
    "an illegal action": "Bid(999)",
    "an action that prints a path": "Odd('/etc/passwd')",
    "an action that prints junk": "Odd('\\x1b[2J' * 300)",
    "an action that cannot be printed": "Odd(None)",
    "something that is equal to nothing": "Unequal()",
    "something with a name of its own": "Named()",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_fault_in_the_sandbox_has_the_digest_of_the_same_fault_here(tmp_path, answer):
    module = tmp_path / "junk.py"
    module.write_text(
        f"""
from engine.sdk import Action, Strategy, hookimpl
from engine.sdk.eighty import Bid
from engine.sdk.podkidnoe import Draw

class Odd(Action):
    text: str | None
    def __str__(self):
        return self.text

class Unequal:
    def __eq__(self, other):
        raise SystemExit(0)

class Meta(type):
    __name__ = property(lambda cls: "x" * 9999)

class Named(metaclass=Meta):
    pass

class Junk(Strategy):
    def act(self, observation):
        return {answer}

@hookimpl
def make_strategy(game, ruleset, players):
    return Junk()
"""
    )
    junk = wheel_source(pack_module(module, bot="junk", version="1.0"), tmp_path / "cache")
    sources = [junk, *house_bots(tmp_path / "cache", "lowest")]
    spec = spec_of("eighty", sources, BoardsContest(1))
    seats = [(source,) for source in sources]
    held, here = (run_match(spec, seats, trusted=trusted).record for trusted in (False, True))
    assert held.outcome.faults == here.outcome.faults
    assert [fault.entrant for fault in held.outcome.faults] == [0]
    assert held.digest == here.digest
    replay(held)


def test_process_that_imported_a_bot_never_meets_a_board_twice(tmp_path):
    sources = [source_in(tmp_path, "remember")] * 2
    played = run_match(
        spec_of("eighty", sources, BoardsContest(2)), [(source,) for source in sources]
    )
    seats = get_game("eighty").seats(2)
    assert len(played.logs) == 2 * seats
    assert all(log.log.text.count("asked 1\n") == 1 for log in played.logs if log.log.text)
    assert sum("asked 1\n" in log.log.text for log in played.logs) > seats
