"""Recurses without end in C code, past Python's guard."""

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        nested = ()
        for _ in range(10**6):
            nested = (nested,)
        return hash(nested)


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
