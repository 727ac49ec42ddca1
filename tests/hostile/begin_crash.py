"""Raises when its first game begins."""

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def begin_game(self, info):
        raise OSError("no game")

    def act(self, observation):
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
