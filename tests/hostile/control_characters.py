"""Prints what would move the cursor of a terminal."""

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        print("\x1b[2J<b>\x00\x9b\u202e")
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
