"""Recurses without end."""

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        return self.act(observation)


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
