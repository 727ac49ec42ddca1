"""What a bot author subclasses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import msgspec

from engine.games.base import Ruleset
from engine.sdk.timecontrol import TimeControl

ObservationT = TypeVar("ObservationT")
ActionT = TypeVar("ActionT")


class GameInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a strategy learns once a game, before its first turn."""

    game: str
    ruleset: Ruleset
    seat: int
    """Where this strategy sits, 0 … players-1, clockwise."""
    players: tuple[str, ...]
    """The entrants' names by seat; in Eighty seats 0 and 2 are partners, 1 and 3 the others."""
    time_control: TimeControl
    random_seed: int
    """256 random bits of this seat's own: seed your `random.Random` with it and your play can be repeated."""
    number: int
    """Which game of this process this is, from 0."""


class Strategy(ABC, Generic[ObservationT, ActionT]):
    """A player's mind: one instance sits on one seat and plays all games of one process."""

    def begin_game(self, info: GameInfo) -> None:
        """A game begins. Its CPU time counts for the first turn."""

    @abstractmethod
    def act(self, observation: ObservationT) -> ActionT:
        """Choose one of `observation.legal`. Called only when there is a choice."""
