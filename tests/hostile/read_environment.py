"""Reads the environment of process 1."""

from pathlib import Path

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        Path("/proc/1/environ").read_bytes()
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
