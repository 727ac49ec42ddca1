"""Tells of a crash with words that would harm a page or a terminal."""

import os

from engine import wire
from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        os.write(3, wire.encode(wire.Crashed(1, "<script>\x1b[2J", False)))


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
