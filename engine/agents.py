"""The port that the referee asks, and the agent that plays a trusted bot in this process.

An agent stands for one seat in one rotation of a match: it is started, asked, closed, and never used
again. What a bot does wrong comes back as a `Failure`; only our own failures are raised. The other
implementation of the port is `engine.sandbox.agent`, the only one that may play a bot of a stranger.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import msgspec
import pluggy

from engine.errors import PluginError
from engine.outcome import Termination, clean_detail
from engine.plugins import BotSource
from engine.sdk import PROJECT, Action, GameInfo, Strategy, hookspecs
from engine.sdk.timecontrol import TimeControl

__all__ = [
    "Agent",
    "AgentFactory",
    "AgentLog",
    "BotSource",
    "Declined",
    "Failure",
    "InProcessAgent",
    "Limits",
    "Reply",
    "in_process_factory",
    "never",
    "spell_type",
]

_TYPE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,60}")

STARTING = "starting"
CHOOSING = "choosing an action"
"""What a bot was doing when it failed."""

LONGEST_LOG = 64 * 1024
"""Characters kept of what a bot prints."""
LONGEST_TRACEBACK = 8 * 1024
"""Characters kept of a crash's traceback."""


class Limits(msgspec.Struct, frozen=True):
    """What one question may cost."""

    cpu_us: int
    """CPU time in microseconds."""
    wall_ms: int
    """Real time in milliseconds."""


class Reply(msgspec.Struct, frozen=True):
    """The index of the chosen action among the legal ones, and the CPU time it cost."""

    index: int
    cpu_us: int


class Failure(msgspec.Struct, frozen=True):
    """What a bot did wrong. `detail` is one line for its author and the record: no paths, no ids."""

    kind: Termination
    detail: str
    cpu_us: int = 0


class Declined(msgspec.Struct, frozen=True):
    """The plugin made no strategy: it does not play this game, ruleset or number of players."""

    cpu_us: int = 0


class AgentLog(msgspec.Struct, frozen=True, kw_only=True):
    """What a bot printed (head only, `truncated` if cut) and the traceback of its crash, for its owner."""

    text: str = ""
    truncated: bool = False
    traceback: str = ""


class Agent(Protocol):
    """One seat's bot in one rotation."""

    def start(self) -> None:
        """Begin to start the bot, without waiting. Raises InfrastructureError for our own failure."""

    def wait_ready(self, limits: Limits) -> int | Declined | Failure:
        """Wait until the bot has been imported and has made its strategy: the CPU microseconds it cost."""

    def begin_game(self, info: GameInfo) -> None:
        """Tell the bot that a game begins; the cost counts for its first answer."""

    def ask(
        self, observation: Any, legal: Sequence[Any], limits: Limits, *, deal: int, turn: int
    ) -> Reply | Failure:
        """Ask for one of the `legal` actions. `deal` and `turn` mark the log."""

    def close(self) -> AgentLog:
        """End the bot and everything it started; idempotent."""


class AgentFactory(Protocol):
    """Makes the agent of one seat, not yet started."""

    def __call__(
        self,
        source: BotSource,
        *,
        game: str,
        ruleset: Any,
        players: int,
        time_control: TimeControl,
        keep_alive: Callable[[], None],
    ) -> Agent:
        """The agent of `source` for a table of `players` seats; it calls `keep_alive` while it waits."""


def never() -> None:
    """A `keep_alive` for plays that hold no lease."""


# The words of a fault are those of `engine.sandbox.agent`, so that equal play gives an equal digest.


def crash_failure(error: BaseException, cpu_us: int, doing: str) -> Failure:
    """The failure of a bot that raised `error` while `doing` something."""
    if isinstance(error, MemoryError):
        return Failure(Termination.MEMORY, f"ran out of memory while {doing}", cpu_us)
    name = spell_type(type(error).__name__)
    return Failure(Termination.CRASH, f"raised {name} while {doing}", cpu_us)


def time_failure(cpu_us: int, limits: Limits, doing: str) -> Failure:
    """The failure of a bot that went over `limits`: of its CPU time if that is over, else of real time."""
    if cpu_us > limits.cpu_us:
        return Failure(Termination.TIME, f"used up its CPU time while {doing}", cpu_us)
    return Failure(
        Termination.TIME, f"gave no answer within {limits.wall_ms} ms while {doing}", cpu_us
    )


def answer_failure(answer: object, cpu_us: int) -> Failure:
    """The failure of a bot whose answer is none of the legal actions."""
    if isinstance(answer, Action):
        detail = clean_detail(f"chose {answer}, which is not legal here")
        return Failure(Termination.ILLEGAL_ACTION, detail, cpu_us)
    name = spell_type(type(answer).__name__)
    detail = f"chose something of type {name}, which is no action of the game"
    return Failure(Termination.PROTOCOL, detail, cpu_us)


def spell_type(name: str) -> str:
    """The name of a type if it looks like one: a bot may call its types anything."""
    return name if _TYPE_NAME.fullmatch(name) else "something unnamed"


class InProcessAgent:
    """Plays a trusted bot in this process: no wall between it and us, so only for one's own code.

    Each agent imports its bot anew, under modules of its own that are in place only while the bot
    runs: nothing is remembered between rotations, and two versions of one package can meet. What the
    bot imports from outside its folder is shared with this process. Clocks are looked at afterwards:
    a bot that never returns is never stopped. One thread at a time.
    """

    def __init__(self, source: BotSource, *, game: str, ruleset: Any, players: int) -> None:
        self._source = source
        self._game = game
        self._ruleset = ruleset
        self._players = players
        self._room = _PrivateModules(source.folder)
        self._log = _BotLog()
        self._strategy: Strategy[Any, Any] | None = None
        self._pending: Failure | None = None
        self._unpaid_us = 0
        self._games = 0

    def start(self) -> None:
        """Nothing: all of it happens in `wait_ready`."""

    def wait_ready(self, limits: Limits) -> int | Declined | Failure:
        """Import the bot and make its strategy."""
        self._log.mark("start")
        made, cpu_us, wall_ms = self._run(self._make_strategy, STARTING)
        if isinstance(made, Failure):
            return made
        if cpu_us > limits.cpu_us or wall_ms > limits.wall_ms:
            return time_failure(cpu_us, limits, STARTING)
        if made is None:
            return Declined(cpu_us)
        self._strategy = made
        return cpu_us

    def begin_game(self, info: GameInfo) -> None:
        """Tell the bot; if it fails, the next question says so."""
        if self._strategy is None or self._pending is not None:
            return
        strategy = self._strategy
        self._games = info.number
        self._log.mark(f"game {info.number} begins")
        result, cpu_us, _ = self._run(lambda: strategy.begin_game(info), CHOOSING)
        self._unpaid_us += cpu_us
        if isinstance(result, Failure):
            self._pending = result

    def ask(
        self, observation: Any, legal: Sequence[Any], limits: Limits, *, deal: int, turn: int
    ) -> Reply | Failure:
        """The bot's choice, its clock looked at after the fact."""
        if self._pending is not None:
            return self._pending
        strategy = self._strategy
        assert strategy is not None, "an agent is asked only when it is ready"
        self._log.mark(f"game {self._games}, deal {deal}, action {turn}")
        answer, cpu_us, wall_ms = self._run(lambda: strategy.act(observation), CHOOSING)
        cpu_us += self._unpaid_us
        self._unpaid_us = 0
        if isinstance(answer, Failure):
            return answer
        if cpu_us > limits.cpu_us or wall_ms > limits.wall_ms:
            return time_failure(cpu_us, limits, CHOOSING)
        return self._judge(answer, legal, cpu_us)

    def close(self) -> AgentLog:
        """Forget the bot."""
        self._strategy = None
        self._room.empty()
        return self._log.collect()

    def _judge(self, answer: object, legal: Sequence[Any], cpu_us: int) -> Reply | Failure:
        if answer in legal:
            return Reply(legal.index(answer), cpu_us)
        self._log.write(f"not one of the legal actions: {answer!r:.1000}\n")
        return answer_failure(answer, cpu_us)

    def _make_strategy(self) -> Any:
        """The bot's strategy, or None. Raises whatever the bot raises, and PluginError for no plugin."""
        module, _, attribute = self._source.entry_point.partition(":")
        plugin: Any = importlib.import_module(module)
        for name in filter(None, attribute.split(".")):
            plugin = getattr(plugin, name)
        manager = pluggy.PluginManager(PROJECT)
        manager.add_hookspecs(hookspecs)
        manager.register(plugin)
        manager.check_pending()
        if not manager.hook.make_strategy.get_hookimpls():
            raise PluginError(
                f"{self._source.entry_point} implements no make_strategy: write a function of that "
                "name and put @hookimpl above it"
            )
        strategy = manager.hook.make_strategy(
            game=self._game, ruleset=self._ruleset, players=self._players
        )
        if strategy is not None and not isinstance(strategy, Strategy):
            raise PluginError(
                f"make_strategy answered with {type(strategy).__name__}: "
                "it must be a Strategy or None"
            )
        return strategy

    def _run(self, call: Callable[[], Any], doing: str) -> tuple[Any, int, int]:
        """What `call` returns, or the failure it makes; CPU microseconds and real milliseconds."""
        began, began_cpu = time.monotonic_ns(), time.thread_time_ns()
        try:
            with (
                self._room,
                contextlib.redirect_stdout(self._log),
                contextlib.redirect_stderr(self._log),
            ):
                result = call()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a bot raises is its crash
            cpu_us = (time.thread_time_ns() - began_cpu) // 1000
            self._log.keep_traceback(error)
            result = crash_failure(error, cpu_us, doing)
        else:
            cpu_us = (time.thread_time_ns() - began_cpu) // 1000
        return result, cpu_us, (time.monotonic_ns() - began) // 1_000_000


def in_process_factory(
    source: BotSource,
    *,
    game: str,
    ruleset: Any,
    players: int,
    time_control: TimeControl,
    keep_alive: Callable[[], None],
) -> InProcessAgent:
    """An AgentFactory for trusted bots. `keep_alive` is the referee's alone: there is nothing to wait for."""
    del time_control, keep_alive
    return InProcessAgent(source, game=game, ruleset=ruleset, players=players)


class _PrivateModules:
    """The modules of one bot, in ``sys.modules`` only while its code runs.

    They are those whose top-level name stands in the bot's folder.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._own: dict[str, ModuleType] = {}
        self._outside: dict[str, ModuleType] = {}
        self._prefixes = tuple(f"{name}." for name in _top_level_names(folder))
        self._size = 0
        self._writes = sys.dont_write_bytecode

    def __enter__(self) -> None:
        names = self._own or self._named(sys.modules)
        self._outside = {name: sys.modules.pop(name) for name in names if name in sys.modules}
        sys.modules.update(self._own)
        sys.path.insert(0, self._folder)
        self._size = len(sys.modules)
        sys.dont_write_bytecode, self._writes = True, sys.dont_write_bytecode

    def __exit__(self, *exc: object) -> None:
        sys.dont_write_bytecode = self._writes
        if len(sys.modules) != self._size:
            self._own = {name: sys.modules[name] for name in self._named(sys.modules)}
        with contextlib.suppress(ValueError):  # the bot may have taken it off itself
            sys.path.remove(self._folder)
        for name in self._own:
            sys.modules.pop(name, None)
        sys.modules.update(self._outside)

    def empty(self) -> None:
        """Forget the modules, and what was seen in their folder."""
        self._own = {}
        sys.path_importer_cache.pop(self._folder, None)

    def _named(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if f"{name}.".startswith(self._prefixes)]


def _top_level_names(folder: str) -> set[str]:
    """The names that an import finds in a folder first. Raises PluginError if there is no such folder."""
    try:
        paths = list(Path(folder).iterdir())
    except OSError as error:
        raise PluginError(f"the bot's folder cannot be read: {error}") from error
    names = {path.name.partition(".")[0] for path in paths if path.suffix == ".py" or path.is_dir()}
    return names - {"__pycache__", ""}


class _BotLog(io.TextIOBase):
    """What a bot prints: the head is kept, with a mark before the first words of each turn."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = LONGEST_LOG
        self._mark = ""
        self._is_cut = False
        self._traceback = ""

    def mark(self, words: str) -> None:
        """Put `words` before what is written next."""
        self._mark = f"--- {words}\n"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Keep what there is room for."""
        if text:
            marked = self._mark + text
            self._mark = ""
            kept = marked[: self._room]
            self._is_cut = self._is_cut or len(kept) < len(marked)
            self._room -= len(kept)
            self._parts.append(kept)
        return len(text)

    def keep_traceback(self, error: BaseException) -> None:
        """Keep the traceback of a crash: its end, where the cause stands."""
        try:
            text = "".join(traceback.format_exception(error, limit=-20))
        except Exception as failure:  # noqa: BLE001 - an exception may have a __str__ that raises
            text = f"{type(error).__name__}; its text raised {type(failure).__name__}\n"
        self._traceback = text[-LONGEST_TRACEBACK:]

    def collect(self) -> AgentLog:
        """The log so far."""
        return AgentLog(
            text="".join(self._parts), truncated=self._is_cut, traceback=self._traceback
        )
