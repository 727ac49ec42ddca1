"""Ten thousand matches of twenty tournaments wait: each gets its share, and no step grows with the queue."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections
from django.test import override_settings

from tests.faults.databases import Database, make_cup
from tournament.competitions.models import Match, MatchState, Pairing, Round, Stage, Tournament
from tournament.competitions.services.dispatching import queue_matches
from tournament.competitions.services.playing import _claim, release_match

pytestmark = [pytest.mark.faults, pytest.mark.exhaustive]
SLOTS = 8
WEIGHTS = [1] * 10 + [2] * 10


def fill(matches: int) -> list[Tournament]:
    """Running tournaments with so many waiting matches each: one real one, and copies of its rows."""
    first = make_cup(bots=2, format="round_robin")
    stage, model = first.stages.get(), first.matches.get()
    tournaments = [first]
    for number in range(1, len(WEIGHTS)):
        copied = Tournament.objects.get(pk=first.pk)
        copied.pk, copied.slug = None, f"copy-{number}"
        copied.weight = WEIGHTS[number]
        copied.save(force_insert=True)
        tournaments.append(copied)
    for tournament in tournaments:
        begun = stage
        if tournament is not first:
            begun = Stage.objects.get(pk=stage.pk)
            begun.pk, begun.tournament = None, tournament
            begun.save(force_insert=True)
        opened = Round.objects.create(
            stage=begun, index=2, state="open", opened_at=tournament.starts_at
        )
        pairings = Pairing.objects.bulk_create(
            Pairing(tournament=tournament, round=opened, key=f"X/{n}", slot=n)
            for n in range(matches)
        )
        Match.objects.bulk_create(
            Match(tournament=tournament, pairing=pairing, rated=model.rated) for pairing in pairings
        )
    first.matches.filter(pk=model.pk).update(state=MatchState.CANCELLED)
    return tournaments


@pytest.fixture
def queue(database: Database) -> Iterator[list[Tournament]]:
    """Ten thousand of them."""
    with database.entered(), override_settings(ARENA_WORKER_SLOTS=SLOTS):
        tournaments = fill(500)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        yield tournaments
        connections.close_all()


def work(blocks: Sequence[Sequence[int]]) -> None:
    """Let these matches be done with."""
    done = [pk for block in blocks for pk in block]
    Match.objects.filter(pk__in=done).update(state=MatchState.CANCELLED)


def test_twenty_tournaments_share_the_workers_by_their_weights(queue):
    waiting: list[Sequence[int]] = []
    served: Counter[int] = Counter()
    for _ in range(150):
        waiting += queue_matches()
        assert sum(map(len, waiting)) <= SLOTS * 4
        for block in waiting[:SLOTS]:
            served[Match.objects.get(pk=block[0]).tournament_id] += len(block)
        work(waiting[:SLOTS])
        del waiting[:SLOTS]
    unit = served.total() / sum(WEIGHTS)
    shares = [served[t.pk] / (unit * weight) for t, weight in zip(queue, WEIGHTS, strict=True)]
    assert min(shares) >= 0.8
    assert max(shares) <= 1.2


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Counts the statements by their first word."""
    found: Counter[str] = Counter()

    def count(execute: Any, sql: str, *rest: Any) -> Any:
        found[sql.split(maxsplit=1)[0]] += 1
        return execute(sql, *rest)

    with connection.execute_wrapper(count):
        yield found


def test_neither_a_claim_nor_sharing_out_asks_more_or_keeps_more_as_the_queue_grows(queue):
    def tick() -> int:
        with counted() as asked:
            blocks = queue_matches()
        work(blocks)
        return asked.total()

    tick()  # the clock's row is there from now on
    tracemalloc.start()
    try:
        with_all = tick()
        gc.collect()
        began, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(20):
            tick()
        _, peak = tracemalloc.get_traced_memory()
        gc.collect()
        ended, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert ended - began < 200_000, "it keeps something of each tick"
    assert peak - began < 10_000_000, "it holds rows that it does not need"
    pk = (
        Match.objects.filter(state=MatchState.PENDING)
        .order_by("-pk")
        .values_list("pk", flat=True)[0]
    )
    with counted() as claiming:
        lease = _claim(pk, "worker")
    assert lease is not None
    release_match(lease)
    keep = [
        pk
        for tournament in queue
        for pk in tournament.matches.filter(state=MatchState.PENDING)
        .order_by("pk")
        .values_list("pk", flat=True)[:20]
    ]
    Match.objects.exclude(pk__in=keep).filter(state=MatchState.PENDING).update(
        state=MatchState.CANCELLED
    )
    with_few = tick()
    assert with_all <= with_few + 2
    assert claiming.total() <= 6
