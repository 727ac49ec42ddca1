"""Calls home."""

import socket

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        socket.create_connection(("127.0.0.1", 80), timeout=1)
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
