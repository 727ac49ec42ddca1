"""Random plays any legal action, each as likely as the other: what every other bot has to beat.

The smallest bot that plays everything. It also shows how to be random and still repeatable: all its
choices follow from the seed that the arena gives it.
"""

from __future__ import annotations

from random import Random
from typing import Any

from engine.sdk import GameInfo, Ruleset, Strategy, hookimpl


@hookimpl
def make_strategy(game: str, ruleset: Ruleset, players: int) -> Strategy[Any, Any] | None:
    """Random plays whatever it is asked to play."""
    return Chance()


class Chance(Strategy[Any, Any]):
    """Throws dice."""

    def begin_game(self, info: GameInfo) -> None:
        """Take fresh dice for each game, so that any game can be repeated by itself."""
        self.dice = Random(f"{info.random_seed}/{info.number}")

    def act(self, observation: Any) -> Any:
        """Choose blindly."""
        return self.dice.choice(observation.legal)
