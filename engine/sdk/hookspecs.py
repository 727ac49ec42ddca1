"""The one hook that a bot plugin implements."""

from __future__ import annotations

from typing import Any

import pluggy

from engine.games.base import Ruleset
from engine.sdk.strategy import Strategy

PROJECT = "domino_arena"
"""pluggy's project name."""
ENTRY_POINT_GROUP = "domino_arena.bots"
"""The entry point group; a wheel has exactly one entry point in it, named like the bot."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec(firstresult=True)
def make_strategy(game: str, ruleset: Ruleset, players: int) -> Strategy[Any, Any] | None:
    """Make the strategy that plays `game` with `ruleset` at a table of `players` seats, or None.

    Called once per process. None says: this bot does not play that.
    """
