"""Imports the part of the engine that deals."""

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        import engine.referee  # noqa: F401

        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
