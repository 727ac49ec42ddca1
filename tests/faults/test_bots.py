"""Bots that attack the worker they are played by: they forfeit, and it lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.outcome import Termination
from tests.faults import oracle
from tests.faults.cups import make_bot_of, start_cup
from tests.faults.harness import Site
from tests.tournament_factories import CHANCE
from tournament.competitions.models import Attempt, Match, PairingEntrant

pytestmark = [
    pytest.mark.faults,
    pytest.mark.stack,
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.exhaustive,
]
HOSTILE = Path(__file__).parents[1] / "hostile"
ATTACKS = {
    "fork": Termination.CRASH,  # a fork bomb: it may not fork, and raises
    "memory_list": Termination.MEMORY,
    "spin": Termination.TIME,
    "sleep": Termination.TIME,  # a hang
    "flood": Termination.TIME,  # 2 GB of output
}


def attack(name: str) -> str:
    """The source of a hostile bot; the flood prints twenty times as much as that of the other tests."""
    if name == "flood":
        return (HOSTILE / "flood_log.py").read_text().replace("range(1000)", "range(20_000)")
    return (HOSTILE / f"{name}.py").read_text()


def test_bots_that_attack_forfeit_and_their_worker_lives(site: Site):
    sources = site.folder / "sources"
    sources.mkdir()
    cups = {}
    for name in ATTACKS:
        field = [
            make_bot_of(f"hostile-{name.replace('_', '-')}", attack(name), sources),
            make_bot_of(f"honest-{name.replace('_', '-')}", CHANCE.read_text(), sources),
        ]
        cups[name] = start_cup(field, name=f"Cup of {name}")
    site.tally.fault("hostile bot", len(ATTACKS))
    (worker,) = site.start()
    site.play_out(list(cups.values()))
    assert {n: Match.objects.get(tournament=cup).termination for n, cup in cups.items()} == ATTACKS
    winners = PairingEntrant.objects.filter(place=1).values_list("entrant__name", flat=True)
    assert all(name.startswith("honest") for name in winners)
    players = {
        int(name.rpartition(":")[2]) for name in Attempt.objects.values_list("worker", flat=True)
    }
    assert len(players) == 1, "a process of the pool had to be replaced"
    assert players <= {*worker.children()}
    site.tally.judged(oracle.judge(list(cups.values()), repeatable=False))
