"""The broker's queues, and how much of each the site's workers take at once.

A match, a trial and a batch of a scrimmage lie in the queue of their time control, so that a host can be kept
for some of them: long thinking on big machines, fast play on small ones. What no worker takes is not sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.conf import settings

from engine.sdk.timecontrol import TIME_CONTROLS

CONTROL = "control"
"""Dispatch alone, so that it never waits behind anything."""
VALIDATION = "validation"
"""Checks of uploaded versions, and the sweep of the store."""
MATCHES = "matches"
"""Stands for the queues of all time controls: who takes from it takes from each of them."""


def match_queue(time_control: str) -> str:
    """Where what is played with that time control lies."""
    return f"{MATCHES}.{time_control}"


MATCH_QUEUES = tuple(map(match_queue, TIME_CONTROLS))
PLAYING_QUEUES = frozenset({VALIDATION, MATCHES, *MATCH_QUEUES})
"""Who takes from one of them plays bots."""


def spelled_out(queues: Iterable[str]) -> tuple[str, ...]:
    """The queues with those that `MATCHES` stands for behind it."""
    return tuple(
        dict.fromkeys(
            each
            for queue in queues
            for each in ((queue, *MATCH_QUEUES) if queue == MATCHES else (queue,))
        )
    )


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much all workers together can do at once."""

    slots: Mapping[str, int]
    """By queue; a worker that takes from several counts in each with all that it can."""
    total: int
    is_known: bool = True
    """False while no worker has been heard of: then what was sent once is not sent again."""

    @classmethod
    def by_settings(cls, *, is_known: bool = True) -> Capacity:
        """What the settings say: ``ARENA_WORKER_SLOTS`` of everything."""
        slots = settings.ARENA_WORKER_SLOTS
        return cls(dict.fromkeys(PLAYING_QUEUES, slots), slots, is_known)

    def of(self, queue: str) -> int:
        """How much of that queue is taken at once; 0 if nobody takes from it."""
        return self.slots.get(queue, 0)

    @property
    def time_controls(self) -> tuple[str, ...]:
        """The time controls that somebody plays."""
        return tuple(name for name in TIME_CONTROLS if self.of(match_queue(name)))
