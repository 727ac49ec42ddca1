"""Plays an action that is not legal."""

from engine.sdk import Strategy, hookimpl
from engine.sdk.eighty import Bid


class Attacker(Strategy):
    def act(self, observation):
        return Bid(999)


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
