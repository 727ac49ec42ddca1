"""How long a bot let others wait without doing anything: real time, less its CPU time, less what the machine is to blame for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

HARMLESS_PART = 1 / 8
"""So much of what a bot may idle is not looked into: whether it was the machine that was slow."""


def own_times() -> tuple[int, int]:
    """Nanoseconds that this thread ran, and that it was ready to run and waited; zeros where the kernel does not tell."""
    try:
        ran, waited, _ = Path("/proc/thread-self/schedstat").read_text().split()
    except OSError:
        return 0, 0
    return int(ran), int(waited)


def own_wait() -> float:
    """Seconds that this thread was ready to run and waited."""
    return own_times()[1] / 1e9


class Idleness:
    """Adds up, over all questions to one bot, the real time in which it was the bot that did nothing.

    `waited` tells the seconds so far in which the machine let it, or us who ask it, wait to run. It is called only where
    the rest says that there is something to excuse, since it asks the kernel.
    """

    def __init__(self, waited: Callable[[], float]) -> None:
        self._waited = waited
        self._waited_before = waited()
        self._open = 0.0
        self._excused = 0.0

    def add(self, seconds: float) -> None:
        """A question was open for so many seconds more."""
        self._open += seconds

    def excuse(self, seconds: float) -> None:
        """So many of them are not the bot's, nor among those that `waited` tells."""
        self._excused += seconds

    def seconds(self, cpu_seconds: float, allowed: float) -> float:
        """Seconds so far, given its CPU seconds; what is below an eighth of `allowed` may be told too high."""
        idle = self._open - cpu_seconds
        if idle > allowed * HARMLESS_PART:
            idle -= self._excused + self._waited() - self._waited_before
        return max(idle, 0.0)
