"""What a bot that plays Podkidnoe imports: its observations, actions and ruleset."""

from __future__ import annotations

from engine.games.podkidnoe import (
    Action,
    Draw,
    End,
    Event,
    Lay,
    Observation,
    Pass,
    Ruleset,
    TopUp,
)

__all__ = [
    "Action",
    "Draw",
    "End",
    "Event",
    "Lay",
    "Observation",
    "Pass",
    "Ruleset",
    "TopUp",
]
