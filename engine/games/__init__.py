"""The games, one a file. They do not know each other, nor bots, matches or tournaments.

`GAMES` is the one list of what can be played; everything else asks `get_game`.
"""

from __future__ import annotations

from engine.errors import UsageError
from engine.games.base import Game
from engine.games.eighty import EIGHTY
from engine.games.podkidnoe import PODKIDNOE

GAMES: dict[str, Game] = {game.name: game for game in (EIGHTY, PODKIDNOE)}
"""Every game by its name."""


def get_game(name: str) -> Game:
    """The game called `name`. Raises UsageError naming the known ones."""
    try:
        return GAMES[name]
    except KeyError:
        raise UsageError(f"there is no game {name!r}; there are: {', '.join(GAMES)}") from None
