"""Sends a message that is too long."""

import os

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        os.write(3, b"x" * 100_000)
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
