"""How work that waits for a worker stands: in words for operators, as a place in the queue for who waits for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Case, CharField, Q, TextChoices, Value, When
from django.db.models.functions import Now

from tournament.store.models import Tally
from tournament.store.pulses import MEMORY, spell_about, spell_delays
from tournament.store.tallies import SLOTS


class QueueState(TextChoices):
    """Where a row of work stands; each row that is not over is in just one of these."""

    STUCK = "stuck", "stuck"
    """After too many failures of our own: it waits for an operator."""
    HELD = "held", "held"
    """It is not handed out as things stand: something that it belongs to is paused."""
    RUNNING = "running", "running"
    QUEUED = "queued", "handed out"
    """A message about it is on its way to a worker."""
    DELAYED = "delayed", "to be tried again"
    """Its last attempt failed; it is not due before some seconds have passed."""
    WAITING = "waiting", "waiting"
    """It is due, and waits for its turn."""


def queue_state(*, running: str, queued: str, stuck: str, held: Q) -> Case:
    """An expression: the `QueueState` of a row that is not over, given what the states are called in its table.

    `held` says which of those that do not run are held.
    """
    return Case(
        When(state=stuck, then=Value(QueueState.STUCK.value)),
        When(state=running, then=Value(QueueState.RUNNING.value)),
        When(held, then=Value(QueueState.HELD.value)),
        When(state=queued, then=Value(QueueState.QUEUED.value)),
        When(run_after__gt=Now(), then=Value(QueueState.DELAYED.value)),
        default=Value(QueueState.WAITING.value),
        output_field=CharField(),
    )


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Where something stands in its queue, for who waits for it."""

    place: int
    """1 comes next."""
    waiting: int
    """How many wait, itself included."""
    seconds: float | None
    """About how long until it begins, by measured durations; None if that cannot be told now."""
    held_up: str = ""
    """Why that cannot be told; or why it is not handed out at all."""

    @property
    def text(self) -> str:
        """For people: ``3rd of 12 in the queue, begins in about 2 minutes``."""
        place = f"{spell_ordinal(self.place)} of {self.waiting} in the queue"
        if self.seconds is not None:
            return f"{place}, begins in {spell_about(self.seconds)}"
        return f"{place}; {self.held_up}" if self.held_up else place


def slots_now() -> int:
    """How much all workers do at once, as they last said themselves; what the settings say while none has."""
    told = Tally.objects.filter(name=SLOTS, label="").values_list("value", flat=True).first()
    return int(told) if told else settings.ARENA_WORKER_SLOTS


def place_behind(
    ahead: int,
    waiting: int,
    *,
    each_seconds: float,
    slots: float,
    not_before: float = 0.0,
    held_by: str = "",
) -> QueuePlace:
    """The place behind `ahead` others, each of which takes so long while so many are done at once.

    It does not begin before `not_before` seconds have passed. No time is told for what is held, and while
    nothing is handed out or no worker is there.
    """
    held_up = held_by or spell_delays(MEMORY.known_delays())
    seconds = None if held_up else max(not_before, ahead * each_seconds / max(slots, 0.01))
    return QueuePlace(ahead + 1, max(waiting, ahead + 1), seconds, held_up)


def mean_seconds(times: Iterable[tuple[datetime | None, datetime | None]], default: float) -> float:
    """How long work took on average, given when each was begun and over; `default` if none is known."""
    spans = [(end - begin).total_seconds() for begin, end in times if begin and end]
    return max(0.001, sum(spans) / len(spans)) if spans else default


def spell_ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``3rd``, ``11th``, ``22nd``."""
    teens = number % 100 in range(11, 14)
    ending = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
