"""From what a user calls a bot to its code: an installed plugin's name, a folder, or a wheel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from engine.agents import BotSource
from engine.cli.files import read_regular_file
from engine.errors import PluginError, UsageError, WheelError
from engine.games.base import Game
from engine.plugins import installed_plugins, source_of_plugin
from engine.wheels import MAX_WHEEL_BYTES, pack_project, wheel_source

Bot = TypeVar("Bot")
"""A bot, or what it is called."""


def find_bot(text: str, stage: Path) -> BotSource:
    """The bot that `text` means, its code laid out in a folder of its own below `stage`.

    A name that is installed means the plugin, also where a folder of that name lies here; write
    ``./name`` for the folder. Raises UsageError, saying what would do.
    """
    path = Path(text)
    if not _looks_like_path(text):
        if any(plugin.name == text for plugin in installed_plugins()):
            return source_of_plugin(text, stage)
        if not path.exists():
            return _refuse_unknown(text)
    try:
        return wheel_source(wheel_of(path), stage)
    except WheelError as error:
        raise UsageError(f"{text} is no bot that can play: {error}") from error


def find_named_bot(name: str, stage: Path) -> BotSource:
    """The installed plugin of a name that came out of a file, never code that only lies where we stand.

    Raises UsageError, saying that a folder or wheel has to be named by the user.
    """
    if any(plugin.name == name for plugin in installed_plugins()):
        return source_of_plugin(name, stage)
    raise UsageError(
        f"the bot {name!r} of the record is not installed here: name the folder or wheel of a bot that you "
        "trust after the record, for instance ./mybot"
    )


def wheel_of(path: Path) -> bytes:
    """The wheel at `path`, or made of the project in the folder `path`.

    Raises UsageError if there is nothing to read, WheelError if no wheel can be made of it.
    """
    if path.is_dir():
        if not (path / "pyproject.toml").is_file():
            raise UsageError(
                f"{path} is a folder without a pyproject.toml, so no bot; arena new starts one"
            )
        return pack_project(path)
    return read_regular_file(path, MAX_WHEEL_BYTES)


def seat_entrants(game: Game, sources: Sequence[Bot]) -> list[tuple[Bot, ...]]:
    """The bots of each entrant: each bot is one, or a bot a seat makes pairs, partners being one entrant."""
    if len(sources) in game.entrant_counts:
        return [(source,) for source in sources]
    sides: dict[int, list[Bot]] = {}
    for seat, source in enumerate(sources):
        sides.setdefault(game.side_of(seat), []).append(source)
    return [tuple(sides[side]) for side in sorted(sides)]


def _looks_like_path(text: str) -> bool:
    return "/" in text or "\\" in text or text.startswith(".") or text.endswith(".whl")


def _refuse_unknown(text: str) -> BotSource:
    known = ", ".join(sorted({plugin.name for plugin in installed_plugins()})) or "none"
    raise PluginError(
        f"there is no bot {text!r}: no installed bot has this name, and it is no folder or wheel; "
        f"installed: {known}"
    )
