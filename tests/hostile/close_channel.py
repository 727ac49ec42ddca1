"""Closes its channel to the referee and waits."""

import os
import time

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        os.close(3)
        time.sleep(3600)


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
