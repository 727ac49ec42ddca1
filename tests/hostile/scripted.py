"""Plays what ``script.json`` beside it says, and prints the hash of every packet that it is sent."""

import hashlib
import json
import os
from pathlib import Path

from engine.sdk import Strategy, hookimpl

SCRIPT = json.loads(Path(__file__).with_name("script.json").read_text())
read = os.read


def listen(descriptor, size):
    packet = read(descriptor, size)
    if descriptor == 3:
        print(hashlib.sha256(packet).hexdigest())
    return packet


os.read = listen


def count_actions(observation):
    """How many actions of this deal everybody has seen."""
    if hasattr(observation, "log"):
        return sum(str(event.action) != "top-up" for event in observation.log)
    tricks = sum(len(trick.plays) for trick in observation.tricks) + len(observation.trick)
    has_trump = observation.contract is not None and observation.contract.trump is not None
    return len(observation.calls) + has_trump + tricks


class Scripted(Strategy):
    def begin_game(self, info):
        self.game = f"{info.players[0]}, game {info.number}"

    def act(self, observation):
        wanted = dict(enumerate(SCRIPT[self.game])).get(count_actions(observation))
        return next((a for a in observation.legal if str(a) == wanted), observation.legal[0])


@hookimpl
def make_strategy(game, ruleset, players):
    return Scripted()
