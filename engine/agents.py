"""The port that the referee asks, and the agent that plays a trusted bot in this process.

An agent stands for one seat in one rotation of a match: it is started, asked, closed, and never used
again. What a bot does wrong comes back as a `Failure`; only our own failures are raised. The other
implementation of the port is `engine.sandbox.agent`, the only one that may play a bot of a stranger.
"""

from __future__ import annotations

import contextlib
import io
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import msgspec

from engine.errors import PluginError
from engine.idleness import HARMLESS_PART, Idleness, own_wait
from engine.outcome import Termination
from engine.plugins import BotSource
from engine.sdk import GameInfo, Strategy
from engine.sdk.loading import (
    TRACEBACK_BYTES,
    IllegalChoice,
    NoAction,
    choose,
    describe_crash,
    make_strategy,
    new_manager,
    type_name,
)
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
    "spell_out",
    "spell_type",
    "strategy_here",
]

_NOTATION = re.compile(r"[a-z]{1,10}( [0-9]{1,6}| [0-6]-[0-6])?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_TYPE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,60}")

STARTING = "starting"
CHOOSING = "choosing an action"
"""What a bot was doing when it failed."""

LONGEST_LOG = 64 * 1024
"""Characters kept of what a bot prints."""
LONGEST_TRACEBACK = TRACEBACK_BYTES
"""Characters kept of a crash's traceback."""


class Limits(msgspec.Struct, frozen=True):
    """What one question may cost."""

    cpu_us: int
    """CPU time in microseconds."""
    wall_ms: int
    """Real time in milliseconds in which the bot neither computes nor waits for the machine: all its questions share it."""


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
        self,
        observation: Any,
        legal: Sequence[Any],
        limits: Limits,
        *,
        deal: int,
        turn: int,
        move: int,
    ) -> Reply | Failure:
        """Ask for one of the `legal` actions.

        The log is marked with `deal`, with `turn`, the action's index in the deal, and with `move`, which counts
        the seat's own actions in its game from 1.
        """

    def idle_seconds(self) -> float:
        """Real seconds so far in which it was asked and neither computed nor waited for the machine."""

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


# The words of a fault are the same wherever a bot runs, so that equal play gives an equal digest.


def crash_failure(error: BaseException, cpu_us: int, doing: str) -> Failure:
    """The failure of a bot that raised `error` while `doing` something."""
    if issubclass(type(error), MemoryError):
        return Failure(Termination.MEMORY, f"ran out of memory while {doing}", cpu_us)
    name = spell_type(type_name(error))
    return Failure(Termination.CRASH, f"raised {name} while {doing}", cpu_us)


def time_failure(cpu_us: int, limits: Limits, doing: str, *, idled_before: float = 0.0) -> Failure:
    """The failure of a bot that went over `limits`: of its CPU time if that is over, else of real time.

    `idled_before`: seconds of `limits.wall_ms` that it had used in earlier questions.
    """
    if cpu_us > limits.cpu_us:
        return Failure(Termination.TIME, f"used up its CPU time while {doing}", cpu_us)
    if 1000 * idled_before > limits.wall_ms * HARMLESS_PART:
        words = f"was idle for {limits.wall_ms} ms in all, at last while {doing}"
    else:
        words = f"gave no answer within {limits.wall_ms} ms while {doing}"
    return Failure(Termination.TIME, words, cpu_us)


def answer_failure(answer: IllegalChoice | NoAction, cpu_us: int) -> Failure:
    """The failure of a bot whose answer is none of the legal actions."""
    if isinstance(answer, IllegalChoice):
        detail = f"chose {_spell_action(answer.action)}"
        return Failure(Termination.ILLEGAL_ACTION, detail, cpu_us)
    detail = f"chose something of type {spell_type(answer.kind)}, which is no action of the game"
    return Failure(Termination.PROTOCOL, detail, cpu_us)


def _spell_action(text: str) -> str:
    """An action in the record's notation, if it looks like one."""
    if _NOTATION.fullmatch(text):
        return f"{text}, which is not legal here"
    return "an action that is not legal here"


def spell_type(name: str) -> str:
    """The name of a type if it looks like one: a bot may call its types anything."""
    return name if _TYPE_NAME.fullmatch(name) else "something unnamed"


def spell_out(text: str, longest: int) -> tuple[str, bool]:
    """The head of a bot's words with control characters spelled out, and whether that cut them.

    Logs reach terminals and pages.
    """
    spelled = _CONTROL.sub(_spell_control, text[: longest + 1])
    return spelled[:longest], len(spelled) > longest


def _spell_control(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


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
        self._cpu_us = 0
        self._idleness = Idleness(own_wait)
        self._games = 0

    def start(self) -> None:
        """Nothing: all of it happens in `wait_ready`."""

    def wait_ready(self, limits: Limits) -> int | Declined | Failure:
        """Import the bot and make its strategy."""
        self._log.mark("start")
        made, cpu_us = self._run(self._make_strategy, STARTING)
        if isinstance(made, Failure):
            return made
        if cpu_us > limits.cpu_us or self._idle_ms(limits) > limits.wall_ms:
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
        result, cpu_us = self._run(lambda: strategy.begin_game(info), CHOOSING)
        self._unpaid_us += cpu_us
        if isinstance(result, Failure):
            self._pending = result

    def ask(
        self,
        observation: Any,
        legal: Sequence[Any],
        limits: Limits,
        *,
        deal: int,
        turn: int,
        move: int,
    ) -> Reply | Failure:
        """The bot's choice, its clock looked at after the fact."""
        if self._pending is not None:
            return self._pending
        strategy = self._strategy
        assert strategy is not None, "an agent is asked only when it is ready"
        self._log.mark(f"game {self._games}, deal {deal}, action {turn}, move {move}")
        del legal  # the observation's own
        idled_before = self._idle_ms(limits) / 1000
        answer, cpu_us = self._run(lambda: choose(strategy, observation), CHOOSING)
        cpu_us += self._unpaid_us
        self._unpaid_us = 0
        if isinstance(answer, Failure):
            return answer
        if cpu_us > limits.cpu_us or self._idle_ms(limits) > limits.wall_ms:
            return time_failure(cpu_us, limits, CHOOSING, idled_before=idled_before)
        if isinstance(answer, IllegalChoice | NoAction):
            return answer_failure(answer, cpu_us)
        return Reply(answer, cpu_us)

    def idle_seconds(self) -> float:
        """As `Agent.idle_seconds`, without the question that is open."""
        return self._idleness.seconds(self._cpu_us / 1e6, 0)

    def close(self) -> AgentLog:
        """Forget the bot."""
        self._strategy = None
        self._room.empty()
        return self._log.collect()

    def _make_strategy(self) -> Strategy[Any, Any] | None:
        return make_strategy(
            new_manager(),
            self._source.entry_point,
            game=self._game,
            ruleset=self._ruleset,
            players=self._players,
        )

    def _idle_ms(self, limits: Limits) -> float:
        """Real milliseconds that it has idled in all it was asked."""
        return 1000 * self._idleness.seconds(self._cpu_us / 1e6, limits.wall_ms / 1000)

    def _run(self, call: Callable[[], Any], doing: str) -> tuple[Any, int]:
        """What `call` returns, or the failure it makes, and its CPU microseconds.

        Raises KeyboardInterrupt if the user has pressed Ctrl-C meanwhile, whatever the bot made of that.
        """
        began, began_cpu = time.monotonic_ns(), time.thread_time_ns()
        interrupts = _Interrupts()
        try:
            with (
                interrupts,
                self._room,
                contextlib.redirect_stdout(self._log),
                contextlib.redirect_stderr(self._log),
            ):
                result = call()
        except BaseException as error:
            if interrupts.have_come:
                raise KeyboardInterrupt from error
            cpu_us = (time.thread_time_ns() - began_cpu) // 1000
            self._log.keep_traceback(error)
            result = crash_failure(error, cpu_us, doing)
        else:
            if interrupts.have_come:
                raise KeyboardInterrupt
            cpu_us = (time.thread_time_ns() - began_cpu) // 1000
        self._idleness.add((time.monotonic_ns() - began) / 1e9)
        self._cpu_us += cpu_us
        return result, cpu_us


@contextlib.contextmanager
def strategy_here(
    source: BotSource, *, game: str, ruleset: Any, players: int
) -> Iterator[Strategy[Any, Any] | None]:
    """A trusted bot's strategy for whoever wants to look into it: nothing of it is caught or redirected.

    Its modules are in place until the end of the block. Raises as `make_strategy`.
    """
    room = _PrivateModules(source.folder)
    try:
        with room:
            yield make_strategy(
                new_manager(), source.entry_point, game=game, ruleset=ruleset, players=players
            )
    finally:
        room.empty()


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


class _Interrupts:
    """Tells a Ctrl-C of the user from a KeyboardInterrupt that a bot raises."""

    def __init__(self) -> None:
        self.have_come = False
        self._is_installed = False

    def __enter__(self) -> None:
        is_ours = threading.current_thread() is threading.main_thread()
        if is_ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._is_installed = True

    def __exit__(self, *exc: object) -> None:
        if self._is_installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _note(self, _number: int, _frame: object) -> None:
        self.have_come = True
        raise KeyboardInterrupt


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
        """Keep the traceback of a crash."""
        self._traceback = describe_crash(error).decode("utf-8", "replace")

    def collect(self) -> AgentLog:
        """The log so far."""
        text, is_cut = spell_out("".join(self._parts), LONGEST_LOG)
        return AgentLog(
            text=text,
            truncated=self._is_cut or is_cut,
            traceback=spell_out(self._traceback, LONGEST_TRACEBACK)[0],
        )
