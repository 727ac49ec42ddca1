"""Makes a file in memory."""

import os

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        os.memfd_create("hoard")
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
