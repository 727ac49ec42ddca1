"""Leaves a note in a temporary folder."""

import tempfile

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        with tempfile.TemporaryFile() as note:
            note.write(b"board 7")
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
