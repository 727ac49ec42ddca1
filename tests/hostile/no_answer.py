"""Answers with nothing."""

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        return None


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
