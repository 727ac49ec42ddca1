"""Sends an empty message and waits."""

import os
import time

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        os.write(3, b"")
        time.sleep(3600)


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
