"""The only door for bots: what a plugin may import. Protocol ``arena-bot/1``.

A bot imports `engine.sdk` for Strategy, hookimpl and Tile, and `engine.sdk.eighty` or
`engine.sdk.podkidnoe` for a game's observations and actions. The SDK knows games and tiles; it must
not know matches, records, sandboxes or tournaments.
"""

from __future__ import annotations

from engine.games.base import Action, Observation, Ruleset
from engine.sdk.hookspecs import ENTRY_POINT_GROUP, PROJECT, hookimpl
from engine.sdk.strategy import GameInfo, Strategy
from engine.sdk.timecontrol import TimeControl
from engine.tiles import Tile

PROTOCOL = "arena-bot/1"
"""Everything exported here stays as it is within protocol 1; additions only have defaults."""

__all__ = [
    "ENTRY_POINT_GROUP",
    "PROJECT",
    "PROTOCOL",
    "Action",
    "GameInfo",
    "Observation",
    "Ruleset",
    "Strategy",
    "Tile",
    "TimeControl",
    "hookimpl",
]
