"""What runs inside the walls: raises them, imports the bot, and hands it its turns.

Only trusted code runs until `Hello` is sent; from then on this process belongs to the bot. It may do here
what it likes, also with this module: the referee believes nothing that comes out. It must not know
anything of the referee's side but the messages of `engine.wire`.
"""

from __future__ import annotations

import ctypes
import fcntl
import io
import mmap
import os
import resource
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn, ParamSpec, TypeVar

import msgspec

from engine import wire
from engine.games import GAMES, get_game
from engine.sandbox.landlock import landlock_abi, restrict_to, system_calls
from engine.sdk import GameInfo, Strategy, loading

_CHANNEL = 3
_LOG = 2
_TRACEBACK = 4
_CLOSE_RANGE, _HIGHEST = 436, (1 << 32) - 1
"""The number of the system call is the same on all architectures (man 2 close_range)."""
_MOST_FILES = 1 << 20
"""No process of most systems may have more open (``fs.nr_open``)."""
_SPARE_BYTES = 1 << 20
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

P = ParamSpec("P")
T = TypeVar("T")


def live(channel: int, log: int, traceback_file: int) -> NoReturn:
    """Live in this process, whose inherited files are numbered so, until it is ended."""
    _arrange_files(channel, log, traceback_file)
    walls = _receive()
    assert isinstance(walls, wire.Walls)
    raise_walls(walls)
    _send(wire.Hello())
    start = _receive()
    assert isinstance(start, wire.Start)
    _Host(start).serve()


def _arrange_files(channel: int, log: int, traceback_file: int) -> None:
    """Leave open: the null device as 0 and 1, the log as 2, the channel as 3, the traceback as 4."""
    aside = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (log, channel, traceback_file)]
    for target, descriptor in zip((_LOG, _CHANNEL, _TRACEBACK), aside, strict=True):
        os.dup2(descriptor, target)
    close_files_from(_TRACEBACK + 1)


def close_files_from(first: int) -> None:
    """Close every open file with that number or a higher one: a limit says nothing of those that were open before it."""
    if system_calls().syscall(_CLOSE_RANGE, first, _HIGHEST, 0) == 0:
        return
    try:  # before Linux 5.9
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208  # what is here is loaded
    except OSError:  # behind bubblewrap, where there is no /proc
        os.closerange(first, _MOST_FILES)
        return
    for number in numbers:
        if number >= first:
            os.closerange(number, number + 1)


def prepare() -> None:
    """Make beforehand what every bot's process needs: a zygote's forks then have it."""
    landlock_abi()
    for name, game in GAMES.items():
        wire.turns_of(game.observation_type)
        _rulesets_of(name).decode(wire.encode_value(game.make_ruleset()))
    _plugin_manager()


@cache
def _rulesets_of(game: str) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(get_game(game).ruleset_type)


_plugin_manager = cache(loading.new_manager)


class _FilterProgram(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def raise_walls(walls: wire.Walls) -> None:
    """Landlock, the resource limits, then the filter of system calls. Raises OSError if the kernel refuses."""
    if walls.landlock_abi:
        restrict_to(walls.readable, walls.landlock_abi)
    for name, value in walls.rlimits.items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (bound, bound))
    libc = system_calls()
    program = _FilterProgram(len(walls.seccomp) // 8, walls.seccomp)
    # Whoever started us has set no_new_privs, without which the kernel would not take a filter.
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program)) != 0:
        raise OSError(ctypes.get_errno(), "the kernel refused the filter of system calls")


def _receive() -> wire.Walls | wire.Start:
    return wire.decode_request(_read())


def _read() -> bytes:
    packet = os.read(_CHANNEL, wire.REQUEST_BYTES)
    if not packet:
        os._exit(0)  # the referee has gone
    return packet


def _send(message: wire.Reply) -> None:
    os.write(_CHANNEL, wire.encode(message))


class _BotLog(io.TextIOBase):
    """Where ``print()`` goes: the log, with a mark before the first words of each turn."""

    def __init__(self) -> None:
        self._mark: tuple[str, tuple[int, ...]] | None = None

    def mark(self, words: str, *values: int) -> None:
        """Put `words`, with the values in their places, before what is written next."""
        self._mark = (words, values)

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._mark is not None:
            words, values = self._mark
            text = f"--- {words.format(*values)}\n{text}"
            self._mark = None
        data = text.encode("utf-8", "backslashreplace")
        try:
            os.write(_LOG, data)
        except OSError:
            # The log is full: its head is kept, and its reader sees by its length that it was cut.
            return len(text)
        return len(text)


class _Host:
    """One strategy and the turns it gets."""

    def __init__(self, start: wire.Start) -> None:
        self._start = start
        self._log = _BotLog()
        self._games = 0
        # Room to tell of a MemoryError: address space that is never touched, so it costs nothing.
        self._spare = mmap.mmap(-1, _SPARE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def serve(self) -> NoReturn:
        """Make the strategy and play until the referee ends this process."""
        sys.stdout = sys.stderr = self._log
        self._ruleset = _rulesets_of(self._start.game).decode(self._start.ruleset)
        turns = wire.turns_of(get_game(self._start.game).observation_type)
        self._log.mark("start")
        strategy = self._guard(0, self._make_strategy)
        if strategy is None:
            _send(wire.Declined())
            os._exit(0)
        _send(wire.Ready())
        while True:
            request = turns.decode(_read())
            if isinstance(request, wire.Turn):
                _send(self._play_turn(strategy, request))
            else:
                self._begin_game(strategy, request)

    def _make_strategy(self) -> Strategy[Any, Any] | None:
        start = self._start
        sys.path.append(start.folder)
        return loading.make_strategy(
            _plugin_manager(),
            start.entry_point,
            game=start.game,
            ruleset=self._ruleset,
            players=start.players,
        )

    def _begin_game(self, strategy: Strategy[Any, Any], request: wire.BeginGame) -> None:
        info = GameInfo(
            game=self._start.game,
            ruleset=self._ruleset,
            seat=request.seat,
            players=request.players,
            time_control=self._start.time_control,
            random_seed=int.from_bytes(request.random_seed, "big"),
            number=request.number,
        )
        self._games = request.number
        self._log.mark("game {} begins", request.number)
        self._guard(request.turn, strategy.begin_game, info)

    def _play_turn(self, strategy: Strategy[Any, Any], request: wire.Turn[Any]) -> wire.Reply:
        self._log.mark(
            "game {}, deal {}, action {}, move {}",
            self._games,
            request.deal,
            request.action,
            request.move,
        )
        try:
            choice = loading.choose(strategy, request.observation)
            if isinstance(choice, int):
                return wire.Answer(request.turn, choice)
            if isinstance(choice, loading.IllegalChoice):
                return wire.Illegal(request.turn, choice.action)
            return wire.Nonsense(request.turn, choice.kind)
        except BaseException as error:  # noqa: BLE001  # as in _guard, without a call in between
            self._end_with(error, request.turn)

    def _guard(self, turn: int, call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """What `call` returns; if it raises, tell, and end this process."""
        try:
            return call(*args, **named)
        except BaseException as error:  # noqa: BLE001  # also SystemExit: whatever a bot raises is its crash
            self._end_with(error, turn)

    def _end_with(self, error: BaseException, turn: int) -> NoReturn:
        self._spare.close()
        os.write(_TRACEBACK, loading.describe_crash(error))
        out_of_memory = issubclass(type(error), MemoryError)
        _send(wire.Crashed(turn, loading.type_name(error), out_of_memory))
        os._exit(1)
