"""Reads the machine's accounts."""

from pathlib import Path

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        Path("/etc/passwd").read_text()
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
