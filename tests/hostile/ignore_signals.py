"""Thinks for ever, and ignores what it may ignore."""

import signal

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        for number in (signal.SIGTERM, signal.SIGXCPU, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            pass


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
