"""Starts a thread."""

import threading
import time

from engine.sdk import Strategy, hookimpl


class Attacker(Strategy):
    def act(self, observation):
        threading.Thread(target=time.sleep, args=(3600,)).start()
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
