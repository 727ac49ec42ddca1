"""Was it the bot that was slow, or the machine that did not let it run?

Real time has a cap against bots that sleep. On a machine that is far too busy an honest bot could meet it
too; then the attempt is void, and the match is played again. Linux counts for every process how long it
was ready to run and had to wait (``man 5 proc``, schedstat). A bot has no disk and no device, so one that
the kernel lets wait for those (state ``D``) waits for memory that was taken from it: the machine again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from engine.errors import StarvedError
from engine.idleness import own_times as _own_times


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler has done to a process until a moment."""

    at: float
    """The moment, in monotonic seconds."""
    ran: float
    """Seconds on a processor."""
    waited: float
    """Seconds in which it was ready to run and did not; the wait that goes on now is not counted yet."""
    is_ready: bool
    """Whether it is running or waits to run, rather than sleeping."""
    lacks_memory: bool = False
    """Whether it waits until its memory is there again."""


def read_schedule(pid: int) -> Schedule | None:
    """How a process has fared so far; None where the kernel does not tell, or there is no such process."""
    folder = Path(f"/proc/{pid}")
    try:
        ran, waited, _ = (folder / "schedstat").read_text().split()
        state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None
    return Schedule(
        at=time.monotonic(),
        ran=int(ran) / 1e9,
        waited=int(waited) / 1e9,
        is_ready=state == "R",
        lacks_memory=state == "D",
    )


@dataclass(slots=True)
class OwnPace:
    """How much longer this thread takes for what it does than on a machine with nothing else to do."""

    _began: tuple[int, int] = field(default_factory=_own_times)

    def slowdown(self) -> float:
        """At least 1; what it ran and waited to run since this was made, by what it ran."""
        ran, waited = (now - then for now, then in zip(_own_times(), self._began, strict=True))
        return 1 + waited / ran if ran > 0 else 1.0


_LONGEST_GAP = 2.0
"""Looks lie a second apart. What lies longer between two of them was time in which we did not run either."""


class Starvation:
    """Adds up, from looks at a process that lets us wait, how long it could not run."""

    def __init__(self) -> None:
        self._first: Schedule | None = None
        self._last: Schedule | None = None
        self._standstill_since = 0.0
        self._lacked_memory = 0.0
        self._watched = 0.0
        self.waited = 0.0
        """Seconds, since the first look, in which it could have used a processor and did not get it."""

    @property
    def lacked_memory(self) -> float:
        """Seconds of those in which it waited for memory: no count of the kernel's holds them."""
        return self._lacked_memory

    def look(self, now: Schedule | None) -> None:
        """Take in how it fares now."""
        if now is None:
            return
        if self._first is None or self._last is None:
            self._first, self._standstill_since = now, now.at
        else:
            self._compare(self._first, self._last, now)
        self._last = now

    def _compare(self, first: Schedule, last: Schedule, now: Schedule) -> None:
        passed = now.at - last.at
        self._watched += min(passed, _LONGEST_GAP)
        if last.lacks_memory and now.lacks_memory:
            self._lacked_memory += passed
        stands_still = (now.ran, now.waited) == (last.ran, last.waited)
        if not (stands_still and last.is_ready and now.is_ready):
            self._standstill_since = now.at
        # What it waits for now is counted by the kernel only once it gets to run.
        uncounted = now.at - self._standstill_since
        self.waited = now.waited - first.waited + uncounted + self._lacked_memory

    def check(self, wall_ms: int) -> None:
        """Raises StarvedError if, for at least half of the time watched, it had to wait to run."""
        if self._watched > 0 and self.waited >= self._watched / 2:
            raise StarvedError(
                f"this machine is too busy: a bot that has {wall_ms / 1000:g} seconds was ready to run for "
                f"{self._watched:.1f}, and had to wait for {self.waited:.1f} of them"
            )
