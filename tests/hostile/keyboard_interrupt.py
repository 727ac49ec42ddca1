"""Raises what is no Exception."""

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        raise KeyboardInterrupt


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
