"""A process that dies between any two steps of a match or a round: nothing lost, nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connections

from tests.faults import oracle
from tests.faults.databases import Database, make_cup, play_on, published_here
from tests.faults.failpoints import die_at, points_of
from tests.faults.harness import Tally
from tournament import tasks
from tournament.competitions.models import Match, Tournament

pytestmark = [pytest.mark.faults, pytest.mark.exhaustive]


def play_the_last_of_the_round() -> None:
    """What a worker does that gets the message: the match, and a ring for dispatch."""
    with published_here():
        tasks.play_matches([Match.objects.order_by("-pk").values_list("pk", flat=True)[0]])


def dispatch_the_next_round() -> None:
    """What dispatch does when a round has been emptied: close it, rate it, publish and queue the next."""
    with published_here():
        tasks.dispatch(rung=True)


def bring_to_its_last_match(tournament: Tournament) -> None:
    with published_here():
        first, *_ = tournament.matches.order_by("pk").values_list("pk", flat=True)
        tasks.play_matches([first])


def bring_to_the_end_of_a_round(tournament: Tournament) -> None:
    with published_here():
        tasks.play_matches(list(tournament.matches.values_list("pk", flat=True)))


@pytest.mark.parametrize(
    ("prepare", "act", "least"),
    [
        (
            bring_to_its_last_match,
            play_the_last_of_the_round,
            25,
        ),  # claim, play, blobs, record, ring
        (
            bring_to_the_end_of_a_round,
            dispatch_the_next_round,
            40,
        ),  # close, rate, pair, queue, publish
    ],
)
def test_crash_between_any_two_steps_leaves_no_trace_in_the_results(
    database: Database,
    tally: Tally,
    tmp_path: Path,
    prepare: Callable[[Tournament], None],
    act: Callable[[], None],
    least: int,
):
    with database.entered():
        cup = make_cup(format="single_elimination")
        prepare(cup)
        connections.close_all()
    with database.tried():
        expected = oracle.play_without_faults([cup])
    with database.tried():
        points = points_of(act, tmp_path / "points")
    assert len(points) >= least
    for number in range(1, len(points) + 1):
        with database.tried():
            point = die_at(number, act, tmp_path / "points")
            tally.fault("crash at a step")
            play_on([cup])
            verdict = oracle.judge([cup], expected)
            try:
                tally.judged(verdict)
            except AssertionError as error:
                raise AssertionError(f"after a crash {point} (point {number}): {error}") from error
