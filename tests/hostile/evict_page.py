"""Tells another process a bit through the page cache: drops a page of its own file, or leaves it there."""

import os

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        file = os.open(__file__, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
