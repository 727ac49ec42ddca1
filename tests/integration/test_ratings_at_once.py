"""Ratings are verified, rebuilt and voided while results are appended, each in a process of its own."""

from __future__ import annotations

import pytest

from tests.processes import at_once
from tests.tournament_factories import make_bot, make_player
from tournament.leaderboards.models import RatingEvent, RatingStep
from tournament.leaderboards.services import (
    RatedResult,
    RatedTeam,
    append_results,
    rebuild_ratings,
    unvoid_results,
    verify_ratings,
    void_results,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.exhaustive,
]
POOL = {"game": "eighty", "kind": "mono"}
BOTS = ("alpha", "beta", "gamma")
ROUNDS = 12


def append(name: str, number: int) -> None:
    winner, loser = BOTS[number % 3], BOTS[(number + 1) % 3]
    teams = (RatedTeam(((winner, "1.0"),), 1), RatedTeam(((loser, "1.0"),), 2))
    append_results(results=[RatedResult(f"{name}/M{number}", teams)], **POOL)


def work(name: str) -> None:
    """Results come in, a few at a time."""
    for number in range(ROUNDS):
        append(name, number)


def rule() -> None:
    """Matches are voided, and every other one counts again."""
    for number in range(ROUNDS):
        append("ruled", number)
        void_results(match_keys=[f"ruled/M{number}"], **POOL)
        if number % 2:
            unvoid_results(match_keys=[f"ruled/M{number}"], **POOL)


def look() -> None:
    """What is stored is at no moment other than the log says."""
    for _ in range(ROUNDS):
        assert verify_ratings(**POOL) == ()


def mend() -> None:
    """There is nothing to mend, whenever it is tried."""
    for _ in range(ROUNDS):
        assert rebuild_ratings(**POOL) == ()


def test_no_result_is_lost_and_nothing_differs_whoever_works_beside():
    owner = make_player()
    for name in BOTS:
        make_bot(name, owner)
    append("first", 0)
    acts = [lambda: work("one"), lambda: work("two"), rule, look, mend]
    at_once(lambda number: acts[number](), len(acts))
    assert verify_ratings(**POOL) == ()
    kept = 1 + 2 * ROUNDS + ROUNDS // 2
    assert RatingStep.objects.count() == 2 * kept
    events = RatingEvent.objects.order_by("seq").values_list("seq", flat=True)
    assert list(events) == list(range(1, 1 + 1 + 2 * ROUNDS + 2 * ROUNDS + ROUNDS // 2))
