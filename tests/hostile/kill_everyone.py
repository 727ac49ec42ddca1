"""Signals all that it can see."""

import os
import signal

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        os.kill(-1, signal.SIGKILL)
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
