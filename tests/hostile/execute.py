"""Becomes another program."""

import os
import sys

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        os.execv(sys.executable, [sys.executable, "-c", "pass"])


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
