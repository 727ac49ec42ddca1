"""How a bot is loaded, asked and told apart from what is no bot: the same in the sandbox and in this process.

All of it runs a bot's code, also where that is not seen: comparing, printing and naming its values calls
methods that it may have written. So call this only where whatever is raised counts as the bot's.
"""

from __future__ import annotations

import importlib
import traceback
from typing import Any

import msgspec
import pluggy

from engine.errors import PluginError
from engine.games.base import Action
from engine.sdk import hookspecs
from engine.sdk.hookspecs import PROJECT
from engine.sdk.strategy import Strategy

LONGEST_TEXT = 200
"""Characters of a bot's own words that are handed on."""
TRACEBACK_BYTES = 8 * 1024
"""What is kept of a crash's traceback: half from its beginning and half from its end, where the cause stands."""
_CUT = b"\n... cut ...\n"


class IllegalChoice(msgspec.Struct, frozen=True):
    """The bot chose an action of the game that is not legal here: the action as it prints itself."""

    action: str


class NoAction(msgspec.Struct, frozen=True):
    """The bot chose something that is no action: the name of its type."""

    kind: str


def new_manager() -> pluggy.PluginManager:
    """A manager that knows the hooks of bots, and no bot yet."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


def make_strategy(
    manager: pluggy.PluginManager, entry_point: str, *, game: str, ruleset: Any, players: int
) -> Strategy[Any, Any] | None:
    """The strategy of the bot that is imported from ``sys.path``, or None if it declines.

    Raises whatever the bot raises, and PluginError for a plugin that is none.
    """
    module, _, attribute = entry_point.partition(":")
    plugin: Any = importlib.import_module(module)
    for name in filter(None, attribute.split(".")):
        plugin = getattr(plugin, name)
    manager.register(plugin)
    manager.check_pending()
    if not manager.hook.make_strategy.get_hookimpls():
        raise PluginError(
            f"{entry_point} implements no make_strategy: write a function of that name "
            "and put @hookimpl above it"
        )
    strategy = manager.hook.make_strategy(game=game, ruleset=ruleset, players=players)
    if strategy is not None and not isinstance(strategy, Strategy):
        raise PluginError(
            f"make_strategy answered with {type_name(strategy)}: it must be a Strategy or None"
        )
    return strategy


def choose(strategy: Strategy[Any, Any], observation: Any) -> int | IllegalChoice | NoAction:
    """The index of the strategy's choice among the legal actions, or what it chose instead.

    What it chose instead is printed for its log.
    """
    legal = observation.legal
    action = strategy.act(observation)
    try:
        return int(legal.index(action))
    except ValueError:
        print(f"not one of the legal actions: {action!r:.1000}")
    if isinstance(action, Action):
        return IllegalChoice(_exact(str(action)))
    return NoAction(type_name(action))


def type_name(value: object) -> str:
    """The name of a value's type, whatever its metaclass says."""
    return _exact(type.__dict__["__name__"].__get__(type(value)))


def describe_crash(error: BaseException) -> bytes:
    """A crash's traceback as UTF-8, no longer than `TRACEBACK_BYTES`."""
    try:
        text = "".join(traceback.format_exception(error, limit=-20))
    except BaseException as failure:  # noqa: BLE001 - an exception may have a __str__ that raises
        text = f"{type_name(error)}, whose traceback cannot be written: it raised {type_name(failure)}\n"
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= TRACEBACK_BYTES:
        return data
    half = (TRACEBACK_BYTES - len(_CUT)) // 2
    return data[:half] + _CUT + data[-half:]


def _exact(text: str) -> str:
    """The beginning of a text, as a plain one: a subclass of ``str`` may do anything when it is used."""
    return str.__getitem__(text, slice(LONGEST_TEXT))
