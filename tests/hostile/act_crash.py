"""Raises when it is asked."""

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        raise KeyError("my table")


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
