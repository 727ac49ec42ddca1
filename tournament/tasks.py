"""The journey, in order: dispatch, check, play. Only this module publishes messages, after commit.

Each task calls one service. A message may be lost, doubled, late or out of order without harm: it says
only "look at this row". What is logged meanwhile carries the row's id, and as the attempt its claim's fence, 0 before
it is claimed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from celery import Task, shared_task
from django.conf import settings
from kombu.exceptions import OperationalError
from structlog.contextvars import bound_contextvars

from tournament.celery import stop_seconds
from tournament.competitions import services as competitions
from tournament.competitions.selectors.engine_values import (
    matches_to_play,
    time_controls_of_matches,
)
from tournament.competitions.selectors.trials import time_controls_of_trials
from tournament.competitions.services import Play
from tournament.operations.housekeeping import keep_small
from tournament.players import services as players
from tournament.scrimmages import selectors as scrimmage_rows
from tournament.scrimmages import services as scrimmages
from tournament.scrimmages.services import BatchPlay
from tournament.store.queues import VALIDATION, match_queue
from tournament.workers import selectors as workers

logger = logging.getLogger(__name__)


@shared_task(name="tournament.dispatch")  # type: ignore[untyped-decorator]
def dispatch(*, rung: bool = False) -> None:
    """Do all that is due and publish what is to be done; beat sends it every second."""
    now = workers.capacity()
    due = competitions.dispatch(rung=rung, capacity=now)
    batches = scrimmages.scrimmages_to_play(capacity=now)
    for task, about, queue in (
        *((validate, version, VALIDATION) for version in due.versions),
        *_by_time_control(play_matches, due.blocks, time_controls_of_matches),
        *_by_time_control(try_entry, due.trials, time_controls_of_trials),
        *_by_time_control(play_batch, batches, scrimmage_rows.time_controls_of),
    ):
        if not publish(task, about, queue=queue):
            break  # the broker is away: each further try would wait as long, and dispatch mends it


def _by_time_control(
    task: Task[..., Any],
    things: Sequence[int | tuple[int, ...]],
    time_controls_of: Callable[[Collection[int]], Mapping[int, str]],
) -> Iterator[tuple[Task[..., Any], int | list[int], str]]:
    """A message about each thing (or block of them, whose time control is one), and the queue that it belongs into."""
    firsts = [thing if isinstance(thing, int) else thing[0] for thing in things]
    controls = time_controls_of(firsts) if firsts else {}
    for thing, first in zip(things, firsts, strict=True):
        yield task, thing if isinstance(thing, int) else list(thing), match_queue(controls[first])


@shared_task(name="tournament.validate")  # type: ignore[untyped-decorator]
def validate(version_id: int) -> None:
    """Check one submitted version."""
    if not stop_seconds():
        with bound_contextvars(version=version_id, attempt=0):
            players.run_validation(version_id=version_id, stop_seconds=stop_seconds)


@shared_task(name="tournament.try_entry")  # type: ignore[untyped-decorator]
def try_entry(trial_id: int) -> None:
    """Try one version under the conditions of a tournament that it has entered."""
    if not stop_seconds():
        with bound_contextvars(trial=trial_id, attempt=0):
            competitions.run_trial(trial_id=trial_id, stop_seconds=stop_seconds)


@shared_task(name="tournament.play_matches")  # type: ignore[untyped-decorator]
def play_matches(match_ids: Sequence[int]) -> None:
    """Play a block of matches one after the other; each is claimed and recorded by itself."""
    recorded = []
    loaded = matches_to_play(match_ids)
    began = time.monotonic()
    for match_id in match_ids:
        if stop_seconds() or time.monotonic() > began + settings.ARENA_BLOCK_SECONDS:
            break  # the rest stays queued, and dispatch queues it again
        with bound_contextvars(match=match_id, attempt=0):
            came = competitions.play_match(
                match_id=match_id, stop_seconds=stop_seconds, loaded=loaded.get(match_id)
            )
        if came is Play.RECORDED:
            recorded.append(match_id)
        if came is Play.PUT_OFF:
            break  # nor could the rest be played; it stays queued
    if recorded and competitions.round_is_empty(match_ids=recorded):
        publish(dispatch, rung=True)


@shared_task(name="tournament.play_batch")  # type: ignore[untyped-decorator]
def play_batch(scrimmage_id: int) -> None:
    """Play the next batch of one scrimmage; the next is chosen at once, since a tick of beat may be longer than it."""
    if stop_seconds():
        return
    with bound_contextvars(scrimmage=scrimmage_id, attempt=0):
        came = scrimmages.play_batch(scrimmage_id=scrimmage_id, stop_seconds=stop_seconds)
    if came is BatchPlay.RECORDED:
        batches = scrimmages.queue_scrimmages(capacity=workers.capacity())
        for task, about, queue in _by_time_control(
            play_batch, batches, scrimmage_rows.time_controls_of
        ):
            publish(task, about, queue=queue)


@shared_task(name="tournament.sweep")  # type: ignore[untyped-decorator]
def sweep() -> None:
    """Delete what a crash left behind, and what is old enough; beat sends it every six hours."""
    keep_small()


@shared_task(name="tournament.send_mail")  # type: ignore[untyped-decorator]
def send_mail() -> None:
    """Send what players are to be told by mail; beat sends it every ten seconds, if the site sends any."""
    players.send_due_mail()


def publish(task: Task[..., Any], *args: Any, queue: str | None = None, **kwargs: Any) -> bool:
    """Send a message; False if the broker did not take it within its 2 s, which dispatch mends."""
    try:
        task.apply_async(args=args, kwargs=kwargs, queue=queue)
    except OperationalError as error:
        logger.warning("%s%r was not published: %s", task.name, args, error)
        return False
    return True
