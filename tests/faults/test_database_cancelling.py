"""A cancellation against a claim, a finish and a rescue, in every order: what is cancelled stays so."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connections, transaction

from tests.faults.databases import Database, let_time_pass, make_cup, published_here
from tests.faults.failpoints import interleave
from tests.faults.harness import Tally
from tournament import tasks
from tournament.competitions import services
from tournament.competitions.models import (
    Attempt,
    AttemptEnding,
    Match,
    MatchState,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors.engine_values import match_to_play
from tournament.competitions.services import Play, playing
from tournament.competitions.services.dispatching import return_expired_matches
from tournament.store.clock import in_seconds

pytestmark = [pytest.mark.faults, pytest.mark.exhaustive]


def first_match() -> int:
    return Match.objects.order_by("pk").values_list("pk", flat=True)[0]


def play() -> None:
    """All that a worker does with a match: claim, play, finish."""
    services.play_match(match_id=first_match())


def rescue() -> None:
    """Give back what a worker has held that shows no sign of life."""
    return_expired_matches()


def dispatch() -> None:
    tasks.dispatch(rung=True)


def cancel() -> None:
    services.cancel_tournament(tournament=Tournament.objects.get(), reason="power cut")


def let_a_worker_die() -> None:
    assert playing._claim(first_match(), "a worker that dies") is not None
    Match.objects.filter(pk=first_match()).update(lease_until=in_seconds(-1))


def nothing() -> None:
    pass


def states() -> list[tuple[Any, ...]]:
    rows = Match.objects.order_by("pk")
    return list(rows.values_list("pk", "state", "fence", "digest", "pairing__decided_by"))


def check_it_is_cancelled_for_good() -> None:
    """Each match has one end, and nothing that comes late changes it."""
    tournament = Tournament.objects.get()
    assert tournament.state == TournamentState.CANCELLED
    for match in Match.objects.select_related("pairing"):
        recorded = match.tries.filter(ending=AttemptEnding.RECORDED).count()
        if match.state == MatchState.FINISHED:
            assert (recorded, bool(match.digest), bool(match.pairing.decided_by)) == (1, True, True)
        else:
            assert match.state == MatchState.CANCELLED
            assert (recorded, match.digest, match.pairing.decided_by) == (0, "", "")
    assert not Attempt.objects.filter(ending=AttemptEnding.RUNNING).exists()
    before = states()
    let_time_pass()
    dispatch()
    for pk, *_ in before:
        assert services.play_match(match_id=pk) is Play.NOT_OURS
    assert states() == before


@pytest.mark.parametrize(
    ("prepare", "first", "second", "least"),
    [
        (nothing, play, cancel, 20),  # cancelled before and after each step of a play
        (nothing, cancel, play, 8),  # a match begins, and ends, between two steps of a cancellation
        (let_a_worker_die, rescue, cancel, 5),
        (let_a_worker_die, cancel, rescue, 8),
        (nothing, dispatch, cancel, 20),  # its matches are just being queued
        (nothing, cancel, dispatch, 8),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_cancelled_stays_cancelled_wherever_the_other_is_interrupted(
    database: Database,
    tally: Tally,
    prepare: Callable[[], None],
    first: Callable[[], None],
    second: Callable[[], None],
    least: int,
):
    with database.entered():
        make_cup()
        prepare()
        connections.close_all()
    for at in itertools.count(1):
        with database.tried(), published_here():
            point = interleave(first, second, at)
            tally.fault("interleaving")
            try:
                check_it_is_cancelled_for_good()
            except AssertionError as error:
                raise AssertionError(f"interrupted {point} (point {at}): {error}") from error
        if not point:
            break
    assert at > least


class Worker:
    """One match, who claims it, and what should come of it by the table of states alone."""

    def __init__(self) -> None:
        self.pk = first_match()
        self.lease: Any = None
        self.state = MatchState.PENDING
        self.is_held = False
        with published_here():
            lease = playing._claim(self.pk, "rehearsal")
            assert lease is not None
            self.played = playing._play(match_to_play(self.pk), lease, lambda: 0.0, trusted=True)
            playing.release_match(lease)

    def claim(self) -> None:
        lease = playing._claim(self.pk, "worker")
        assert (lease is not None) == (self.state == MatchState.PENDING)
        if lease is not None:
            self.lease, self.state, self.is_held = lease, MatchState.RUNNING, True

    def rescue(self) -> None:
        Match.objects.filter(pk=self.pk, state=MatchState.RUNNING).update(
            lease_until=in_seconds(-1)
        )
        assert return_expired_matches() == self.is_running
        if self.is_running:
            self.state, self.is_held = MatchState.PENDING, False

    def finish(self) -> None:
        if self.lease is None:
            return
        match = match_to_play(self.pk)
        recorded = playing._record(match, self.lease, self.played, sandboxed=True)
        assert recorded == (self.is_running and self.is_held)
        if recorded:
            self.state = MatchState.FINISHED

    def give_back(self) -> None:
        if self.lease is None:
            return
        released = playing.release_match(self.lease)
        assert released == (self.is_running and self.is_held)
        if released:
            self.state, self.is_held = MatchState.PENDING, False

    def cancel(self) -> None:
        cancel()
        if self.state != MatchState.FINISHED:
            self.state, self.is_held = MatchState.CANCELLED, False

    @property
    def is_running(self) -> bool:
        return self.state == MatchState.RUNNING


def test_cancelled_stays_cancelled_in_every_order(database: Database, tally: Tally):
    """Of a claim, a rescue, another claim, a finish by whoever claimed last, a giving back and a cancellation."""
    with database.entered():
        make_cup()
        rehearsed = Worker()
        orders: Sequence[tuple[str, ...]] = sorted(
            set(
                itertools.permutations(
                    ["claim", "rescue", "claim", "finish", "give_back", "cancel"]
                )
            )
        )
        for order in orders:
            with transaction.atomic():
                worker = Worker.__new__(Worker)
                worker.__dict__.update(rehearsed.__dict__)
                for step in order:
                    getattr(worker, step)()
                found = Match.objects.get(pk=worker.pk)
                assert found.state == worker.state, order
                assert Tournament.objects.get().state == TournamentState.CANCELLED
                transaction.set_rollback(True)
        tally.fault("order", len(orders))
        assert len(orders) == 360
        connections.close_all()
