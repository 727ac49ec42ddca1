"""Fills a list without end."""

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        hoard = []
        while True:
            hoard.append(bytes(10**6))


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
