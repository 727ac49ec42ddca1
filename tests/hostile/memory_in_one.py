"""Asks for 3 GB at once."""

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        bytearray(3 * 10**9)
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
