"""Sends bytes that mean nothing."""

import os

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        os.write(3, bytes(range(256)))
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
