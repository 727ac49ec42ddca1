"""Sends messages without end."""

import os

from engine import wire
from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        while True:
            os.write(3, wire.encode(wire.Answer(0, 0)))


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
