"""Thinks for ever."""

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        while True:
            pass


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
