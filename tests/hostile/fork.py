"""Forks."""

import os

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        while True:
            os.fork()


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
