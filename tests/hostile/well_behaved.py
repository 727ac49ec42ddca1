"""Attacks nobody: takes the first legal action."""

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
