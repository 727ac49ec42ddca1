"""Sleeps."""

import time

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        time.sleep(3600)
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
