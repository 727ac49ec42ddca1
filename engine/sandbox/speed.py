"""How fast is this machine? A fixed piece of work is measured, and the bots' budgets scale by it.

So a bot can think as far on a slow worker as on a fast one, and its match does not hang on which it got.
"""

from __future__ import annotations

import time
from functools import cache

REFERENCE_US = 1_000
"""CPU microseconds that the work takes on a machine where budgets are what the time control says."""
_REPEATS = 70
SMALLEST_PERCENT, LARGEST_PERCENT = 25, 400
"""What lies beyond is no speed, but a machine that cannot be measured."""


@cache
def budget_percent() -> int:
    """What CPU budgets have to be here, in percent of the time control's: 200 on a machine half as fast.

    Measured once a process, in CPU time, as the best of many short pieces: other load only makes it look
    slower, and less so where some piece meets none.
    """
    best_us = min(_measure_us() for _ in range(_REPEATS))
    return min(max(round(100 * best_us / REFERENCE_US), SMALLEST_PERCENT), LARGEST_PERCENT)


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
