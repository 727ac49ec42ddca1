"""Whether the queue moves: told by pulses in the database, so that no page ever asks the broker."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import InterfaceError, OperationalError

from tournament.store.clock import read_clock
from tournament.store.models import Pulse
from tournament.store.outages import Outage

DISPATCH = "dispatch"
"""Beats each time that work is handed out, once a second."""
WORKERS = "workers"
"""Beats whenever a worker that plays bots gives a sign of life."""
LATE_SECONDS = {DISPATCH: 15.0, WORKERS: 90.0}
"""After so long without a beat something is down; a long dispatch or three lost signs of life may be chance."""
REMEMBERED_SECONDS = 2.0
"""For so long a process does not ask again."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Something that should happen again and again and has not for long."""

    name: str
    seconds: float | None
    """Since when; None if it has never happened."""

    @property
    def reason(self) -> str:
        """What does not happen, for people."""
        since = "yet" if self.seconds is None else f"for {spell_seconds(self.seconds)}"
        if self.name == DISPATCH:
            return f"nothing has been handed out {since}"
        return f"no worker has been heard of {since}"


def pulse_age(name: str) -> float | None:
    """Seconds since the last beat, by the database's clock; None if there was none."""
    at = Pulse.objects.filter(name=name).values_list("at", flat=True).first()
    return None if at is None else max(0.0, (read_clock() - at).total_seconds())


def delays() -> tuple[Delay, ...]:
    """What is late now, by the database."""
    beats = dict(Pulse.objects.filter(name__in=LATE_SECONDS).values_list("name", "at"))
    now = read_clock()
    ages = {
        name: (now - beats[name]).total_seconds() if name in beats else None
        for name in LATE_SECONDS
    }
    return tuple(
        Delay(name, age) for name, age in ages.items() if age is None or age > LATE_SECONDS[name]
    )


class DelayMemory:
    """`delays`, asked at most every so often: what every page can afford."""

    def __init__(self) -> None:
        self._asked_at = float("-inf")
        self._found: tuple[Delay, ...] = ()

    def known_delays(self) -> tuple[Delay, ...]:
        """What was late when it was last asked, at most `REMEMBERED_SECONDS` ago."""
        now = time.monotonic()
        if now - self._asked_at >= REMEMBERED_SECONDS:
            self._found, self._asked_at = delays(), now
        return self._found

    def reason(self) -> str:
        """The same in words, for answers that need no database: where that is away, they say so."""
        try:
            return spell_delays(self.known_delays())
        except (OperationalError, InterfaceError):
            return Outage.AWAY.value

    def forget(self) -> None:
        """Ask again at the next time."""
        self._asked_at = float("-inf")


MEMORY = DelayMemory()
"""This process's."""


def spell_delays(found: Sequence[Delay]) -> str:
    """In one sentence without a full stop; empty if nothing is late."""
    return ", and ".join(delay.reason for delay in found)


def spell_seconds(seconds: float) -> str:
    """How long, in round words: ``a few seconds``, ``40 seconds``, ``2 minutes``, ``3 hours``, ``2 days``."""
    if seconds < 5:
        return "a few seconds"
    if seconds < 55:
        return f"{5 * round(seconds / 5)} seconds"
    for unit, size, limit in (("minute", 60, 55 * 60), ("hour", 3600, 23 * 3600)):
        if seconds < limit:
            return _count(round(seconds / size), unit)
    return _count(round(seconds / 86_400), "day")


def spell_about(seconds: float) -> str:
    """As `spell_seconds`, of what is only about so: ``a few seconds``, ``about 2 minutes``."""
    words = spell_seconds(seconds)
    return words if words.startswith("a few") else f"about {words}"


def _count(number: int, unit: str) -> str:
    number = max(1, number)
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
