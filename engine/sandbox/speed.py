"""How fast is this machine? A fixed piece of work is measured, and the bots' budgets scale by it.

So a bot can think as far on a slow worker as on a fast one, and its match does not hang on which it got.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

REFERENCE_US = 1_000
"""CPU microseconds that the work takes on a machine where budgets are what the time control says."""
_FIRST_REPEATS = 70
_LATER_REPEATS = 20
_AGAIN_SECONDS = 30.0
"""So long after one measurement a process is ready for the next."""
SMALLEST_PERCENT, LARGEST_PERCENT = 25, 400
"""What lies beyond is no speed, but a machine that cannot be measured."""


@dataclass(slots=True)
class Speedometer:
    """What a process has seen of its machine's speed.

    It measures CPU time, and keeps the best of many short pieces: other load (the sibling of its core, a virtual
    machine that is let wait, cold caches) only makes a machine look slower. Where all of the first measurement met
    some, as when everything starts at once, a later one does not.
    """

    best_us: float = math.inf
    due: float = -math.inf
    """When the next measurement is, in monotonic seconds."""

    def budget_percent(self, now: float) -> int:
        """What CPU budgets have to be here, by the best that was measured up to `now`, in monotonic seconds."""
        if now >= self.due:
            repeats = _FIRST_REPEATS if math.isinf(self.best_us) else _LATER_REPEATS
            self.best_us = min(self.best_us, *(_measure_us() for _ in range(repeats)))
            self.due = now + _AGAIN_SECONDS
        percent = round(100 * self.best_us / REFERENCE_US)
        return min(max(percent, SMALLEST_PERCENT), LARGEST_PERCENT)


_here = Speedometer()


def budget_percent() -> int:
    """What CPU budgets have to be here, in percent of the time control's: 200 on a machine half as fast.

    It may fall while a process lives, as a `Speedometer` gets nearer to what the machine can do; it never rises.
    """
    return _here.budget_percent(time.monotonic())


def _measure_us() -> float:
    began = time.thread_time_ns()
    _work()
    return (time.thread_time_ns() - began) / 1000


def _work() -> int:
    """What bots do: small integers, lists, dictionaries, calls."""
    seen: dict[int, int] = {}
    state = 1
    for step in range(3_000):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        key = state % 97
        seen[key] = seen.get(key, 0) + (step & 3)
        if state & 1:
            state ^= max(seen[key], step)
    return sum(sorted(seen.values()))
