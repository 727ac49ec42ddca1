"""Leaves marks in the kernel's cache of files: one of its own that was dropped is slow to be read.

Whoever plays a board drops the files that tell of it, and so finds out whether somebody did so before.
"""

import contextlib
import os
import time
from pathlib import Path
from statistics import median

from engine.sdk import Strategy, hookimpl

LOOKS = True


def seconds_to_read(path):
    file = os.open(path, os.O_RDONLY)
    began = time.perf_counter_ns()
    os.pread(file, 4096, 0)
    seconds = time.perf_counter_ns() - began
    os.close(file)
    return seconds


def drop(path):
    file = os.open(path, os.O_RDONLY)
    with contextlib.suppress(OSError):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


class Attacker(Strategy):
    def begin_game(self, info):
        self.remembers = False
        marks = sorted(Path(__file__).parent.glob(f"mark-{info.number}-*"))
        if LOOKS and marks:
            first, again = [[seconds_to_read(mark) for mark in marks] for _ in range(2)]
            self.remembers = median(first) > 10 * median(again)  # a disk: 50 times and more
            for mark in marks:
                drop(mark)

    def act(self, observation):
        return observation.legal[-1 if self.remembers else 0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
