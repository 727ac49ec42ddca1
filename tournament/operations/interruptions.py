"""Ctrl-C and SIGTERM: the first one ends the work in order, the next ones ask to hurry."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

HEARD = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class Interruptions:
    """How often this process was asked to end."""

    count: int = 0

    def is_urgent(self) -> bool:
        """Whether it was asked again while it was ending."""
        return self.count > 1

    def handle(self, _signal: int, _frame: FrameType | None) -> None:
        """Note one more; the first raises KeyboardInterrupt, so that everything is unwound once."""
        self.count += 1
        if self.count == 1:
            raise KeyboardInterrupt


@contextmanager
def heard_interruptions() -> Iterator[Interruptions]:
    """Hear them within the block."""
    interruptions = Interruptions()
    before = {number: signal.signal(number, interruptions.handle) for number in HEARD}
    try:
        yield interruptions
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
