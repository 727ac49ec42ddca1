"""Forks each bot's process from a zygote that waits, with all that bots need, behind the same walls.

Interpreters start slowly; forks do not. A zygote is started when it is first needed, by the thread that
plays, and dies with it. It sees either the one folder of a bot, or the folder of all unpacked wheels: then
Landlock leaves each fork its own wheel's folder alone, which is why a kernel without Landlock gets
`engine.sandbox.launcher.BubblewrapLauncher`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from engine import wire
from engine.errors import InfrastructureError
from engine.sandbox import policy
from engine.sandbox.cgroup import Group, make_group
from engine.sandbox.launcher import (
    LOAD_NUMPY,
    Bubblewrap,
    Launched,
    bubblewrap_command,
    find_bubblewrap,
    interpreter_command,
    is_unpacked_wheel,
    open_channel,
    open_engine,
    open_log,
    readable_inside,
    receive_hello,
    spawn,
    uses_numpy,
)
from engine.sandbox.memory import wheel_in_memory
from engine.sandbox.policy import Level
from engine.sandbox.processes import parent_of
from engine.sandbox.runtime import BOT_FOLDER, WHEELS_FOLDER, find_runtime

_MOST_ZYGOTES = 8
"""Of one thread. Bots of unpacked wheels share one; a folder elsewhere needs one of its own."""
_PARTING_SECONDS = 2.0
"""How long a killed process may take to be dead."""


class ZygoteLauncher:
    """A fork per process: about a millisecond."""

    def __init__(self, level: Level = "bubblewrap") -> None:
        self._level = level
        self._mine = threading.local()  # the kernel ends a zygote with the thread that started it

    def launch(self, folder: str) -> Launched:
        """As `Launcher.launch` says."""
        room = _room_of(folder, self._level)
        zygote = self._zygote(room)
        with contextlib.ExitStack() as kept, contextlib.ExitStack() as passed_on:
            ours, theirs = open_channel(kept, passed_on)
            log_fd, traceback_fd = open_log("log", kept), open_log("traceback", kept)
            fork = zygote.fork(theirs.fileno(), log_fd, traceback_fd)
            kept.pop_all()
        readable = (*_readable(self._level), room.folder)
        walls = policy.walls(readable, has_numpy=room.has_numpy)
        return Launched(fork, ours, log_fd, traceback_fd, room.folder, walls)

    def close(self) -> None:
        """End this thread's zygotes, and so all that was forked from them."""
        zygotes = self._zygotes()
        while zygotes:
            zygotes.popitem()[1].close()

    def _zygote(self, room: _Room) -> _Zygote:
        zygotes = self._zygotes()
        for place in [place for place, zygote in zygotes.items() if zygote.is_broken]:
            zygotes.pop(place).close()
        zygote = zygotes.pop(room.place, None)
        if zygote is None:
            self._make_room(zygotes)
            zygote = self._start(room)
        zygotes[room.place] = zygote  # the last used stands last
        return zygote

    def _start(self, room: _Room) -> _Zygote:
        group = make_group()
        try:
            return _Zygote(_start(room, self._level), group)
        except BaseException:
            if group is not None:
                group.end()
            raise

    def _make_room(self, zygotes: dict[_Place, _Zygote]) -> None:
        idle = [place for place, zygote in zygotes.items() if zygote.is_idle]
        if idle and len(zygotes) >= _MOST_ZYGOTES:
            zygotes.pop(idle[0]).close()

    def _zygotes(self) -> dict[_Place, _Zygote]:
        """This thread's zygotes; after a fork of ours they are the parent's, and forgotten here."""
        mine = self._mine.__dict__
        if mine.get("pid") != os.getpid():
            for zygote in mine.get("zygotes", {}).values():
                zygote.forget()
            mine.update(pid=os.getpid(), zygotes={})
        zygotes: dict[_Place, _Zygote] = mine["zygotes"]
        return zygotes


@cache
def shared_launcher(level: Level) -> ZygoteLauncher:
    """The launcher of this process for a level: its zygotes are kept from match to match."""
    launcher = ZygoteLauncher(level)
    atexit.register(launcher.close)
    return launcher


_Place = tuple[str, int, int, bool]


@dataclass(frozen=True, slots=True)
class _Room:
    """What of the machine's folders a zygote sees for a bot."""

    place: _Place
    """Path, device and inode outside: a folder that was made anew is another. And whether it has numpy."""
    shown_as: str
    folder: str
    """The bot's own folder as it sees it."""

    @property
    def has_numpy(self) -> bool:
        """Whether the zygote has numpy loaded: it takes longer to start, and its forks more memory."""
        return self.place[3]


def _room_of(folder: str, level: Level) -> _Room:
    path = Path(folder).absolute()
    is_wheel, has_numpy = is_unpacked_wheel(path), uses_numpy(path)
    if is_wheel and level == "bubblewrap":
        path = wheel_in_memory(path)
    outside = path.parent if is_wheel else path
    try:
        found = outside.stat()
    except OSError as error:
        raise InfrastructureError(f"the bot's folder cannot be found: {error}") from error
    place = (str(outside), found.st_dev, found.st_ino, has_numpy)
    if level == "landlock":
        return _Room(place, str(outside), str(path))
    if is_wheel:
        return _Room(place, WHEELS_FOLDER, f"{WHEELS_FOLDER}/{path.name}")
    return _Room(place, BOT_FOLDER, BOT_FOLDER)


def _readable(level: Level) -> tuple[str, ...]:
    if level == "bubblewrap":
        return readable_inside()
    return tuple(outside for outside, _ in find_runtime().shown)


@dataclass(frozen=True, slots=True)
class _Started:
    """The processes of a zygote that begins, and our ends of what leads there."""

    process: _Outer
    control: socket.socket
    log_fd: int


class _Outer(Protocol):
    """The process that we started, of which the zygote is a child, or itself one."""

    process: subprocess.Popen[bytes]

    def end(self) -> None: ...


@dataclass(slots=True)
class _Plain:
    """A zygote that is our own child."""

    process: subprocess.Popen[bytes]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def _start(room: _Room, level: Level) -> _Started:
    with contextlib.ExitStack() as kept, contextlib.ExitStack() as passed_on:
        ours, theirs = open_channel(kept, passed_on)
        log_fd, engine_fd = open_log("zygote", kept), open_engine(passed_on)
        import_path = find_runtime().import_path
        if level == "landlock":
            import_path = import_path[2:]
        program = (
            f"{LOAD_NUMPY if room.has_numpy else ''}from engine.sandbox.zygote import main; "
            f"main({theirs.fileno()}, {level!r}, {list(import_path)!r})"
        )
        inherited = (theirs.fileno(), log_fd, engine_fd)
        started = _Started(
            _start_behind_bubblewrap(room, engine_fd, program, log_fd, inherited)
            if level == "bubblewrap"
            else _start_alone(engine_fd, program, log_fd, inherited),
            ours,
            log_fd,
        )
        kept.pop_all()
    return started


def _start_behind_bubblewrap(
    room: _Room, engine_fd: int, program: str, log_fd: int, inherited: tuple[int, ...]
) -> Bubblewrap:
    shown = (room.place[0], room.shown_as)
    command = bubblewrap_command(find_bubblewrap(), engine_fd, shown, program)
    return Bubblewrap(spawn(command, log_fd, inherited))


def _start_alone(engine_fd: int, program: str, log_fd: int, inherited: tuple[int, ...]) -> _Plain:
    runtime = find_runtime()
    path = [f"/proc/self/fd/{engine_fd}", *runtime.import_path[2:], *runtime.package_folders]
    return _Plain(spawn(interpreter_command(path, program), log_fd, inherited))


class _Zygote:
    """A zygote as we see it."""

    def __init__(self, started: _Started, group: Group | None) -> None:
        self._group = group
        self._is_confined = group is None
        self._outer = started.process
        self._control = started.control
        self._log_fd = started.log_fd
        self._count = 0
        self._living: set[int] = set()
        self._statuses: dict[int, int] = {}
        self._pid = 0
        self.is_broken = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing that was forked from it lives."""
        self._read_news()
        return not self._living

    def fork(self, channel: int, log_fd: int, traceback_fd: int) -> _Fork:
        """A new process with these files. Raises InfrastructureError."""
        self._read_news()
        if not self._is_confined:
            self._confine()
        self._count += 1
        self._tell(wire.Fork(self._count), [channel, log_fd, traceback_fd])
        self._living.add(self._count)
        return _Fork(self, self._count)

    def _confine(self) -> None:
        """Put it into its cgroup before the first fork, which is then in there too."""
        assert self._group is not None, "there is a group"
        deadline = time.monotonic() + policy.LAUNCH_SECONDS
        while not self.pid and not self.is_broken and time.monotonic() < deadline:
            self._await_news(0.1)
        if not self.pid:
            raise InfrastructureError(f"the sandbox did not start: {self._last_words()}")
        self._group.add(self.pid)
        self._is_confined = True

    def kill(self, number: int) -> None:
        """End a fork, and wait until it is dead; if it will not die, end all. Raises InfrastructureError."""
        self._read_news()
        if number not in self._living or self.is_broken:
            return
        try:
            self._tell(wire.Kill(number), [])
            died = self.wait_status(number, _PARTING_SECONDS) is not None
        except InfrastructureError:
            died = False
        if not died:
            self.close()

    def wait_status(self, number: int, seconds: float) -> int | None:
        """The exit status of a fork once it is dead. Raises InfrastructureError if the zygote has ended."""
        deadline = time.monotonic() + seconds
        while number in self._living:
            self._read_news()
            left = deadline - time.monotonic()
            if number not in self._living:
                break
            if self.is_broken:
                raise InfrastructureError(f"the sandbox has ended: {self._last_words()}")
            if left < 0:
                return None
            self._await_news(left)
        return self._statuses.pop(number, 0)

    def _await_news(self, seconds: float) -> None:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.poll(seconds * 1000)

    @property
    def pid(self) -> int:
        """As this system counts; 0, which is nobody's, until it has said hello."""
        if not self._pid:
            self._read_news()
        return self._pid

    def close(self) -> None:
        """End it and all that was forked from it."""
        self.is_broken = True
        self._outer.end()
        if self._group is not None:
            self._group.end()
        self.forget()

    def forget(self) -> None:
        """Let go of it without ending it."""
        self.is_broken = True
        if self._outer.process.returncode is None:
            self._outer.process.returncode = 0  # another process waits for it
        self._control.close()
        if self._log_fd >= 0:
            os.close(self._log_fd)
            self._log_fd = -1

    def _tell(self, order: wire.Order, files: list[int]) -> None:
        try:
            socket.send_fds(
                self._control,
                [wire.encode(order)],
                files,
                socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL,
            )
        except OSError as error:
            self.is_broken = True
            raise InfrastructureError(
                f"the sandbox has ended: {error}; {self._last_words()}"
            ) from error

    def _read_news(self) -> None:
        """Take in what it has told, without waiting."""
        while not self.is_broken:
            poll = select.poll()
            poll.register(self._control, select.POLLIN)
            if not poll.poll(0):
                return
            try:
                packet, pid = receive_hello(self._control, wire.ANSWER_BYTES)
            except ConnectionError:
                packet, pid = b"", None
            if not packet:
                self.is_broken = True
                return
            if not self._is_its_own(pid):
                continue  # no bot can reach this channel; one that could would not be heard
            news = wire.decode_news(packet)
            if isinstance(news, wire.Hello):
                self._pid = pid or 0
            else:
                self._living.discard(news.number)
                self._statuses[news.number] = news.status

    def _is_its_own(self, sender: int | None) -> bool:
        """Whether the zygote itself is the sender: what we started, or the first process behind it."""
        if self._pid:
            return sender == self._pid
        return bool(sender) and self._outer.process.pid in (sender, parent_of(sender or 0))

    def _last_words(self) -> str:
        if self._log_fd < 0:
            return "it was closed"
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._outer.process.wait(_PARTING_SECONDS)  # what it says in dying is all there then
        words = os.pread(self._log_fd, policy.LOG_BYTES, 0).decode("utf-8", "replace").strip()
        return words or f"exit status {self._outer.process.returncode}"


@dataclass(frozen=True, slots=True)
class _Fork:
    """A `Process` that was forked from a zygote."""

    zygote: _Zygote
    number: int

    @property
    def parent_pid(self) -> int:
        return self.zygote.pid

    def wait_status(self, seconds: float) -> int | None:
        return self.zygote.wait_status(self.number, seconds)

    def end(self) -> None:
        self.zygote.kill(self.number)
