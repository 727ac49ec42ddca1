"""Thinks for ever inside one call of C code."""

import re

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        re.match(r"(a*)*b", "a" * 40)
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
