"""Leaves marks in the kernel's cache of names: one that was looked up is faster the next time, even in vain.

Whoever plays a board looks up names that tell of it, and so finds out whether somebody did so before.
"""

import os
import random
import time
from pathlib import Path
from statistics import median

from engine.sdk import Strategy, hookimpl

LOOKS = True
NAMES = 64


def seconds_to_look_up(path):
    began = time.perf_counter_ns()
    os.access(path, os.F_OK)
    return time.perf_counter_ns() - began


def is_known(folder, what, own):
    """Whether names that tell of `what` are answered much faster than names of one's own.

    What the kernel's cache of a disk's names knows is answered some five times as fast. What another seat looked up
    just now, some one and a half times: the processor's caches are still warm. That is gone by the next rotation.
    """
    pairs = [
        (seconds_to_look_up(f"{folder}/{what}-{i}"), seconds_to_look_up(f"{folder}/{own}-{i}"))
        for i in range(NAMES)
    ]
    return 3 * median(known for known, _ in pairs) < median(fresh for _, fresh in pairs)


class Attacker(Strategy):
    def begin_game(self, info):
        self.remembers = False
        if LOOKS:
            own = random.Random(info.random_seed).getrandbits(64)
            folders = {
                str(Path(path).parent) for path in (os.__file__, __file__, "/usr/lib/x", "/x")
            }
            known = [
                is_known(folder, f"board-{info.number}", own + info.number) for folder in folders
            ]
            self.remembers = any(known)

    def act(self, observation):
        return observation.legal[-1 if self.remembers else 0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
