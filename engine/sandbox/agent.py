"""The referee's side of a bot's process: asks it, measures it, and believes nothing that it says."""

from __future__ import annotations

import contextlib
import math
import os
import re
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from engine import wire
from engine.agents import (
    CHOOSING,
    STARTING,
    AgentFactory,
    AgentLog,
    BotSource,
    Declined,
    Failure,
    Limits,
    Reply,
    answer_failure,
    never,
    spell_out,
    spell_type,
    time_failure,
)
from engine.errors import InfrastructureError
from engine.idleness import Idleness, own_wait
from engine.outcome import Termination
from engine.sandbox import policy
from engine.sandbox.launcher import (
    BubblewrapLauncher,
    Launched,
    Launcher,
    receive_hello,
)
from engine.sandbox.probe import ProbeReport, require_sandbox
from engine.sandbox.processes import parent_of
from engine.sandbox.runtime import BOT_FOLDER
from engine.sandbox.starvation import Schedule, Starvation, read_schedule
from engine.sandbox.zygote_launcher import shared_launcher
from engine.sdk import GameInfo
from engine.sdk.loading import TRACEBACK_BYTES, IllegalChoice, NoAction
from engine.sdk.timecontrol import TimeControl

_LOOK = int(socket.MSG_PEEK | socket.MSG_DONTWAIT)
_AT_ONCE = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
_SLICE_SECONDS = 1.0
"""The lease is kept alive at least so often while a bot thinks."""
_PATIENCES = tuple(0.5**power for power in range(1, 11))
"""Seconds below one that a socket may wait, halving: so it is told another only rarely."""
_LEAST_SLICES = 8
"""A shorter patience is looked at in slices that are shorter still."""
_MOST_WALLS = 6
"""A bot that a busy machine does not let run is waited for so many times as long as it may sleep."""
_CLOCK_GRACE_SECONDS = 0.001
"""The clock is looked at again so long after it could have run out at the earliest."""
_DEATH_SECONDS = 2.0
"""How long a process that closed its channel may take to be dead, if that is why."""


def sandbox_factory(launcher: Launcher | None = None) -> AgentFactory:
    """Makes agents whose bots live in processes of their own, behind walls.

    Without a `launcher` of its own it uses the strongest walls that hold here, tried once a process, and
    raises SandboxUnavailableError if none do.
    """
    chosen = launcher or _launcher_of(require_sandbox())

    def make(
        source: BotSource,
        *,
        game: str,
        ruleset: Any,
        players: int,
        time_control: TimeControl,
        keep_alive: Callable[[], None] = never,
    ) -> SandboxAgent:
        start = wire.Start(
            game=game,
            ruleset=wire.encode_value(ruleset),
            players=players,
            time_control=time_control,
            folder="",  # known when it is launched
            entry_point=source.entry_point,
        )
        return SandboxAgent(chosen, source.folder, start, keep_alive)

    return make


def _launcher_of(report: ProbeReport) -> Launcher:
    assert report.level is not None, "a sandbox that is required has a level"
    return shared_launcher(report.level) if report.is_forking else BubblewrapLauncher()


class SandboxAgent:
    """One bot in one process, an `engine.agents.Agent`. Between its turns the process is stopped."""

    def __init__(
        self, launcher: Launcher, folder: str, start: wire.Start, keep_alive: Callable[[], None]
    ) -> None:
        self._launcher = launcher
        self._folder = folder
        self._start = start
        self._keep_alive = keep_alive
        self._launched: Launched | None = None
        self._bot: _BotProcess | None = None
        self._packet = bytearray()
        self._turn = 0
        self._broken: Failure | None = None
        self._has_crashed = False
        self._log = AgentLog()

    def start(self) -> None:
        """Launch the process. Raises InfrastructureError if that cannot be done."""
        self._launched = self._launcher.launch(self._folder)
        with contextlib.suppress(ConnectionError):  # it has ended already: wait_ready says why
            _send(self._launched.channel, self._launched.walls)

    def wait_ready(self, limits: Limits) -> int | Declined | Failure:
        """As `Agent.wait_ready`; the clock starts when the walls stand. Raises InfrastructureError if they never do."""
        assert self._launched is not None, "start() comes first"
        self._bot = bot = self._await_walls(self._launched)
        try:
            start = msgspec.structs.replace(self._start, folder=self._launched.folder)
            _send(self._launched.channel, start)
        except ConnectionError as error:
            raise InfrastructureError(f"the sandbox was ended from outside: {error}") from error
        answer = self._exchange(bot, limits, STARTING)
        if isinstance(answer, Failure):
            return answer
        reply, cpu_us = answer
        match reply:
            case wire.Ready():
                return cpu_us
            case wire.Declined():
                return Declined(cpu_us)
            case _:
                return self._judge_other(reply, cpu_us, STARTING)

    def begin_game(self, info: GameInfo) -> None:
        """Put the news into the channel, where the stopped process finds it with its next turn."""
        message = wire.BeginGame(
            turn=self._turn + 1,
            seat=info.seat,
            players=info.players,
            random_seed=info.random_seed.to_bytes(32, "big"),
            number=info.number,
        )
        self._tell(message)

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
        """As `Agent.ask`. Whatever waits in the channel before the question is asked is a violation."""
        bot = self._bot
        assert bot is not None, "wait_ready() comes first"
        self._turn += 1
        if self._broken is None and bot.has_spoken():
            self._broken = Failure(Termination.PROTOCOL, "sent a message before it was asked")
        if self._broken is None:
            self._tell(wire.Turn(self._turn, deal, turn, move, observation))
        if self._broken is not None:
            return self._broken
        answer = self._exchange(bot, limits, CHOOSING)
        if isinstance(answer, Failure):
            return answer
        reply, cpu_us = answer
        if isinstance(reply, wire.Answer):
            if reply.turn != self._turn:
                return Failure(Termination.PROTOCOL, "answered another turn", cpu_us)
            if reply.index >= len(legal):
                return Failure(
                    Termination.ILLEGAL_ACTION, "chose an action that does not exist", cpu_us
                )
            return Reply(reply.index, cpu_us)
        return self._judge_other(reply, cpu_us, CHOOSING)

    def idle_seconds(self) -> float:
        """As `Agent.idle_seconds`."""
        return 0.0 if self._bot is None else self._bot.idle_seconds(0)

    def close(self) -> AgentLog:
        """As `Agent.close`: when it returns, nothing of the bot is left."""
        launched, self._launched = self._launched, None
        if launched is not None:
            try:
                launched.process.end()
                self._log = _read_log(launched, has_crashed=self._has_crashed)
            finally:
                if self._bot is not None:
                    self._bot.close()
                launched.channel.close()
                os.close(launched.log_fd)
                os.close(launched.traceback_fd)
        return self._log

    def private_bytes(self) -> int:
        """Memory of the bot's process that it shares with no other. `wait_ready` comes first."""
        assert self._bot is not None, "wait_ready() comes first"
        return self._bot.private_bytes()

    def _await_walls(self, launched: Launched) -> _BotProcess:
        """Wait for `Hello`: the last words of trusted code, so all that fails before is our own failure."""
        deadline = time.monotonic() + policy.LAUNCH_SECONDS
        while not _is_readable(launched.channel.fileno(), _SLICE_SECONDS):
            self._keep_alive()
            if time.monotonic() > deadline:
                raise InfrastructureError("the sandbox did not start in time")
        try:
            packet, pid = receive_hello(launched.channel, wire.ANSWER_BYTES)
        except ConnectionError:
            packet, pid = b"", None
        if not packet:
            status = launched.process.wait_status(_DEATH_SECONDS)
            words = _read_part(launched.log_fd, policy.LOG_BYTES, launched.folder)[0].strip()
            raise InfrastructureError(f"the sandbox did not start (status {status}): {words}")
        if not isinstance(wire.decode_reply(packet), wire.Hello) or not pid:
            raise InfrastructureError("the sandbox began with something else than its greeting")
        if parent_of(pid) != launched.process.parent_pid:
            raise InfrastructureError("the sandbox's greeting came from another process")
        launched.channel.setsockopt(
            socket.SOL_SOCKET, socket.SO_PASSCRED, 0
        )  # known now, and not free
        try:
            return _BotProcess(pid, launched.channel)
        except OSError as error:
            raise InfrastructureError(f"the sandbox was ended from outside: {error}") from error

    def _tell(self, message: wire.Request) -> None:
        """Send; a channel that is closed or full is the bot's doing."""
        assert self._launched is not None, "start() comes first"
        try:
            _send_packed(self._launched.channel, message, self._packet)
        except BlockingIOError:
            self._broken = Failure(Termination.PROTOCOL, "does not read what it is told")
        except ConnectionError:
            self._broken = self._judge_end(0)

    def _exchange(
        self, bot: _BotProcess, limits: Limits, doing: str
    ) -> tuple[wire.Reply, int] | Failure:
        """Let the process run until it answers: the answer and its CPU time, or what it did wrong."""
        # What it used after its last answer, until it was stopped, is charged now.
        before_us = bot.last_us
        idled_before = bot.idle_seconds(limits.wall_ms / 1000)
        bot.resume()
        try:
            packet = self._await_packet(bot, limits, before_us)
        finally:
            bot.stop()
        cpu_us = bot.cpu_us() - before_us
        if packet is None or cpu_us > limits.cpu_us:
            return time_failure(cpu_us, limits, doing, idled_before=idled_before)
        if not packet and bot.has_hung_up():
            return self._judge_end(cpu_us)
        try:
            return wire.decode_reply(packet), cpu_us
        except wire.UnreadableMessageError as error:
            return Failure(Termination.PROTOCOL, f"sent {error}", cpu_us)

    def _await_packet(self, bot: _BotProcess, limits: Limits, before_us: int) -> memoryview | None:
        """The next packet, empty at the channel's end; None when a clock has run out.

        One thread cannot use more CPU time than passes, so nothing need be looked at before the rest of
        the CPU budget could be used up. Of real time only what the bot idles is charged, over all that it was ever
        asked: what we waited for a packet, never longer than we meant to, and neither its CPU time nor what it had to
        wait for the machine. Raises StarvedError if the machine makes it wait too long.
        """
        wall = limits.wall_ms / 1000
        idle_left = wall - bot.idle_seconds(wall)
        cpu_left = limits.cpu_us / 1e6
        slice_seconds = min(_SLICE_SECONDS, wall / _LEAST_SLICES)
        starvation, passed, not_idle = None, 0.0, 0.0
        while cpu_left > 0 and (left := idle_left + not_idle - passed) > 0:
            patience = min(cpu_left + _CLOCK_GRACE_SECONDS, left, slice_seconds)
            packet, seconds = bot.receive(patience)
            if packet is not None:
                return packet
            passed += seconds
            starvation = starvation or Starvation()
            lacked_memory = starvation.lacked_memory
            starvation.look(bot.schedule())
            bot.idleness.excuse(starvation.lacked_memory - lacked_memory)
            self._keep_alive()
            cpu_used = (bot.cpu_us() - before_us) / 1e6
            cpu_left = limits.cpu_us / 1e6 - cpu_used
            not_idle = cpu_used + starvation.waited
            if passed >= wall * _MOST_WALLS and cpu_left > 0:
                starvation.check(limits.wall_ms)
                break
        return None

    def _judge_other(self, reply: wire.Reply, cpu_us: int, doing: str) -> Failure:
        """What a reply that is no answer means. Its texts go into records, so only harmless ones pass."""
        self._has_crashed = isinstance(reply, wire.Crashed)
        match reply:
            case wire.Crashed(out_of_memory=True):
                return Failure(Termination.MEMORY, f"ran out of memory while {doing}", cpu_us)
            case wire.Crashed(error=error):
                return Failure(
                    Termination.CRASH, f"raised {spell_type(error)} while {doing}", cpu_us
                )
            case wire.Illegal(turn=self._turn, action=action):
                return answer_failure(IllegalChoice(action), cpu_us)
            case wire.Nonsense(turn=self._turn, kind=kind):
                return answer_failure(NoAction(kind), cpu_us)
            case _:
                return Failure(Termination.PROTOCOL, f"sent a wrong message while {doing}", cpu_us)

    def _judge_end(self, cpu_us: int) -> Failure:
        """Its channel is closed: by its end, or by itself."""
        assert self._launched is not None, "start() comes first"
        if self._bot is not None:
            self._bot.resume()
        status = self._launched.process.wait_status(_DEATH_SECONDS)
        if status is None:
            return Failure(Termination.PROTOCOL, "closed its channel", cpu_us)
        self._has_crashed = True
        return Failure(Termination.CRASH, f"its process ended ({_explain(status)})", cpu_us)


class _BotProcess:
    """A living process by its pidfd and its CPU clock, with the channel to it."""

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self._channel = channel
        self._packet = memoryview(bytearray(wire.ANSWER_BYTES + 1))
        self._pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._clock = (~pid << 3) | 2  # CPUCLOCK_SCHED of the process, man 3 clock_getcpuclockid
        self._patience = 0.0
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._last_waited = 0.0
        self.last_us = 0
        """CPU microseconds when it was looked at last."""
        self._cpu_before_us = self.cpu_us()
        self.idleness = Idleness(self._waited)

    def cpu_us(self) -> int:
        """CPU microseconds so far; after its death what was read last."""
        try:
            now_us = time.clock_gettime_ns(self._clock) // 1000
        except OSError:
            return self.last_us
        # Should its pid have gone to another process meanwhile, it is dead, and loses by that.
        if now_us > self.last_us:  # cheaper than max(), and this is asked at every turn
            self.last_us = now_us
        return self.last_us

    def idle_seconds(self, allowed: float) -> float:
        """Real seconds that it idled in all it was asked; what is below an eighth of `allowed` may be told too high."""
        return self.idleness.seconds((self.last_us - self._cpu_before_us) / 1e6, allowed)

    def _waited(self) -> float:
        """Seconds in which it or we waited to run: its answer may lie ready meanwhile."""
        schedule = self.schedule()
        if schedule is not None:
            self._last_waited = schedule.waited
        return self._last_waited + own_wait()

    def private_bytes(self) -> int:
        """Memory that it shares with no other process."""
        lines = Path(f"/proc/{self._pid}/smaps_rollup").read_text().splitlines()
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_"))

    def schedule(self) -> Schedule | None:
        """How it has fared with the scheduler; None where the kernel does not tell, or after its death."""
        return read_schedule(self._pid)

    def stop(self) -> None:
        """Let it not run on: not in its opponents' time."""
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGSTOP)
        except ProcessLookupError:
            return  # it has ended: the channel tells

    def resume(self) -> None:
        """Let it run."""
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGCONT)
        except ProcessLookupError:
            return  # it has ended: the channel tells

    def has_spoken(self) -> bool:
        """Whether a packet waits in the channel."""
        if not self._poll.poll(0):
            return False
        try:
            return bool(self._channel.recv(1, _LOOK))
        except (BlockingIOError, ConnectionError):
            return False  # its end: sending will tell

    def has_hung_up(self) -> bool:
        """Whether its end of the channel is closed."""
        poll = select.poll()
        poll.register(self._channel, 0)
        return bool(poll.poll(0))

    def receive(self, seconds: float) -> tuple[memoryview | None, float]:
        """The next packet, and how many seconds that took, of those that were meant.

        It is empty at the channel's end, None if none comes. Waits at most `seconds`, maybe less.
        """
        began = time.monotonic()
        packet = self._receive(seconds)
        passed = min(time.monotonic() - began, seconds)
        self.idleness.add(passed)
        return packet, passed

    def _receive(self, seconds: float) -> memoryview | None:
        """As `receive`, without a look at the clock.

        A packet that is longer than allowed is cut but stays too long. It is good until the next is received.
        """
        patience = 1.0 if seconds >= 1 else _PATIENCES[min(-math.frexp(seconds)[1], 9)]
        if patience != self._patience:
            self._patience = patience
            wait = struct.pack("ll", *divmod(int(patience * 1e6), 1_000_000))
            self._channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, wait)
        # A process that ended without reading all it was told makes an error that comes before its last
        # words, once.
        for _ in range(2):
            try:
                return self._packet[: self._channel.recv_into(self._packet)]
            except BlockingIOError:
                return None
            except ConnectionError:
                continue
        return self._packet[:0]

    def close(self) -> None:
        """Forget the process."""
        os.close(self._pidfd)


def _send(channel: socket.socket, message: wire.Request) -> None:
    """Send without waiting: the channel has room for many messages. Raises BlockingIOError or ConnectionError."""
    _send_packed(channel, message, bytearray())


def _send_packed(channel: socket.socket, message: wire.Request, packet: bytearray) -> None:
    """As `_send`; it is packed into `packet`, whose memory is used again."""
    wire.pack_into(message, packet)
    if len(packet) > wire.REQUEST_BYTES:
        raise InfrastructureError(f"a message of {len(packet)} bytes is too long for the sandbox")
    channel.send(packet, _AT_ONCE)


def _is_readable(descriptor: int, seconds: float) -> bool:
    """Wait up to `seconds` until there is something to read, an end included."""
    poll = select.poll()  # unlike select.select, not limited to the first 1024 descriptors
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(seconds, 0) * 1000))


def _explain(status: int) -> str:
    try:
        return f"status {status}, {signal.Signals(status - 128).name}"
    except ValueError:
        return f"status {status}"


def _read_log(launched: Launched, *, has_crashed: bool) -> AgentLog:
    """What is left of a process; its folder has the same name wherever it lay.

    A bot can write where its traceback would stand, so there is none where it did not crash.
    """
    text, truncated = _read_part(launched.log_fd, policy.LOG_BYTES, launched.folder)
    last_words = ""
    if has_crashed:
        last_words, _ = _read_part(launched.traceback_fd, TRACEBACK_BYTES, launched.folder)
    return AgentLog(text=text, truncated=truncated, traceback=_hide_places(last_words))


def _hide_places(text: str) -> str:
    """A traceback without the places of this machine: of files that are not the bot's the name alone."""
    return _FOREIGN_FILE.sub(r'File "<sandbox>/\1"', text)


_FOREIGN_FILE = re.compile(rf'File "(?!{re.escape(BOT_FOLDER)}/)/(?:[^"/\n]*+/)*+([^"/\n]*+)"')
"""Possessive throughout: a bot writes what it is matched with, and must not choose how long that takes."""


def _read_part(descriptor: int, limit: int, folder: str) -> tuple[str, bool]:
    """The head of a log, no longer than `limit` characters, and whether it is full."""
    data = os.pread(descriptor, limit, 0)
    words = data.decode("utf-8", "replace").replace(folder, BOT_FOLDER)
    text, is_cut = spell_out(words, limit)
    return text, is_cut or len(data) >= limit
