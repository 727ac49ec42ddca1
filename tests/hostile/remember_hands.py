"""Remembers the hand that it had on each board: whoever meets a board again from the other side knows its opponent's."""

from engine.sdk import Strategy, hookimpl

HANDS = {}


class Attacker(Strategy):
    def begin_game(self, info):
        self.number = info.number
        self.opponent = HANDS.get(info.number)

    def act(self, observation):
        HANDS.setdefault(self.number, observation.hand)
        return observation.legal[-1 if self.opponent else 0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
