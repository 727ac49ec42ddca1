"""What a bot that plays Eighty imports: its observations, actions and ruleset."""

from __future__ import annotations

from engine.games.eighty import (
    Action,
    Bid,
    Call,
    Contract,
    Nello,
    Observation,
    Pass,
    Play,
    Played,
    Ruleset,
    Trick,
    Trump,
)

__all__ = [
    "Action",
    "Bid",
    "Call",
    "Contract",
    "Nello",
    "Observation",
    "Pass",
    "Play",
    "Played",
    "Ruleset",
    "Trick",
    "Trump",
]
