"""Ctrl-C, SIGTERM, a closed terminal: the first one ends the work in order, the next ones ask to hurry."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
    """Hear them within the block. A closed terminal is not heard where it is ignored, as under nohup."""
    interruptions = Interruptions()
    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    heard = [number for number in HEARD if not (is_nohup and number is signal.SIGHUP)]
    before = {number: signal.signal(number, interruptions.handle) for number in heard}
    try:
        yield interruptions
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
