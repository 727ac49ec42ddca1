"""Says how often this process was asked: a process that is used again would go on counting."""

from engine.sdk import Strategy, hookimpl

ASKED = []


class Attacker(Strategy):
    def act(self, observation):
        ASKED.append(observation)
        print("asked", len(ASKED))
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Attacker()
