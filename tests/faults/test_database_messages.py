"""Messages that come ten times at once, and workers that end a round at the same moment."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from typing import Any

import pytest
from django.db import connections

from tests.faults import oracle
from tests.faults.databases import Database, Messages, make_cup, published_here
from tests.faults.harness import Tally
from tests.processes import PROCESSES, at_once
from tournament import tasks
from tournament.competitions.models import Attempt, Match, Round, Tournament, TournamentState
from tournament.competitions.services import playing

pytestmark = [pytest.mark.faults, pytest.mark.exhaustive]
COPIES = 10


def delivered_at_once(messages: Messages, copies: int = COPIES) -> None:
    """Deliver each message to so many processes at once; what these publish waits in the end, once each."""
    sent, messages.waiting[:] = list(messages.waiting), []
    for task, args, kwargs in sent:

        def run(_: int, task=task, args=args, kwargs=kwargs) -> list[tuple[str, Any, Any]]:
            with published_here() as answers:
                task(*args, **kwargs)
            return [(each.name, more, named) for each, more, named in answers.waiting]

        for answers in at_once(run, copies):
            for name, more, named in answers:
                message = (tasks.dispatch.app.tasks[name], more, named)
                if message not in messages.waiting:
                    messages.waiting.append(message)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "single_elimination", "bots": 5},  # three rounds, a bye in the first
        {"format": "swiss", "bots": 4},  # each round is paired from the last one's results
    ],
    ids=lambda changes: changes["format"],
)
def test_message_that_comes_ten_times_at_once_is_one_claim(
    database: Database, tally: Tally, changes: dict[str, Any]
):
    with database.entered():
        cup = make_cup(**changes)
        connections.close_all()
    with database.tried():
        expected = oracle.play_without_faults([cup])
    with database.entered(), published_here() as messages:
        for _ in range(60):
            cup.refresh_from_db()
            if cup.state != TournamentState.RUNNING:
                break
            if not messages.waiting:
                messages.publish(tasks.dispatch, rung=True)
            tally.fault("message doubled", (COPIES - 1) * len(messages.waiting))
            delivered_at_once(messages)
        assert set(Attempt.objects.values_list("fence", flat=True)) == {1}
        assert Attempt.objects.count() == Match.objects.count()
        tally.judged(oracle.judge([cup], expected))
        connections.close_all()


def record_together(cup: Tournament, count: int) -> list[int]:
    """Play the open round's matches in so many processes, which all begin to record at the same moment.

    Each rings dispatch when its block has emptied the round, and dispatches then; who did.
    """
    barrier = multiprocessing.get_context("fork").Barrier(count)
    record = playing._record

    def record_when_all_have_played(*args: Any, **kwargs: Any) -> bool:
        barrier.wait(timeout=120)
        return record(*args, **kwargs)

    ids = list(cup.matches.filter(state="pending").order_by("pk").values_list("pk", flat=True))
    assert len(ids) == count

    def finish(number: int) -> bool:
        with published_here() as messages, pytest.MonkeyPatch.context() as patch:
            patch.setattr(playing, "_record", record_when_all_have_played)
            tasks.play_matches([ids[number]])
            rings = len(messages.waiting)
            messages.deliver()
        return bool(rings)

    return [number for number, rang in enumerate(at_once(finish, count)) if rang]


def test_eight_that_finish_the_last_match_of_a_round_at_once_make_one_next_round(
    database: Database, tally: Tally
):
    with database.entered():
        cup = make_cup(bots=2 * PROCESSES, format="swiss", format_options={"rounds": 3})
        connections.close_all()
    with database.tried():
        expected = oracle.play_without_faults([cup])
    with database.entered():
        for number in range(1, 4):
            assert Counter(Round.objects.values_list("index", flat=True)) == Counter(
                range(1, number + 1)
            )
            assert record_together(cup, PROCESSES), "nobody rang, though the round is over"
            tally.fault("eight at once")
            Match.objects.filter(state="queued").update(state="pending", queued_at=None)
        cup.refresh_from_db()
        assert cup.state == TournamentState.FINISHED
        tally.judged(oracle.judge([cup], expected))
        connections.close_all()
