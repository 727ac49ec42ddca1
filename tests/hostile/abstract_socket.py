"""Listens on an abstract socket."""

import socket

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        socket.socket(socket.AF_UNIX).bind("\0arena")
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
