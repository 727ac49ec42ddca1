"""Reads where nothing is, again and again: it has a handler for that."""

import ctypes
import signal

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        signal.signal(signal.SIGSEGV, lambda *_: None)
        ctypes.string_at(1)


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
