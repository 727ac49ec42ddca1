"""Leaves a note in its folder."""

from pathlib import Path

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        Path(__file__).with_name("note.txt").write_text("board 7: 6-6 lies at seat 2")
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
