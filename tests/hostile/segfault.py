"""Reads where nothing is."""

import ctypes

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        ctypes.string_at(1)


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
