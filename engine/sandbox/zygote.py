"""A process that holds what every bot needs, and is forked for each: a bot is there in a millisecond.

It runs behind the same walls as a bot, holds trusted code alone, imports no bot, and learns nothing of
any: what a child must know it reads from its own channel. When the zygote ends, so do all its children.
Like `engine.sandbox.bot_host`, of which it is the mother, it knows of the referee only `engine.wire`.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import resource
import select
import signal
import socket
import struct
import sys
import traceback
from typing import NoReturn

from engine import wire
from engine.sandbox.bot_host import close_files_from, live, prepare
from engine.sandbox.landlock import system_calls

_PRELOADED = (
    "abc", "bisect", "collections.abc", "contextlib", "copy", "dataclasses", "enum", "fractions",
    "functools", "heapq", "importlib.resources", "itertools", "json", "logging", "math", "msgspec.inspect",
    "msgspec.json", "msgspec.structs", "operator", "pathlib", "random", "re", "statistics", "string",
    "textwrap", "threading", "time", "typing", "engine.sdk.eighty", "engine.sdk.podkidnoe", "engine.sdk.tricks",
)  # fmt: skip
"""What bots import most; all else they may import by themselves, in their own time."""
_CONTROL = 3
_OPEN_FILES = 256
"""Far above three for each child that is being made and one for each that lives."""
_OUR_FAILURE = 70
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CAPABILITY_VERSION = 0x20080522


def main(control: int, level: str, import_path: list[str]) -> NoReturn:
    """Serve the referee at the other end of `control` until it goes.

    At `level` ``landlock`` no bubblewrap has prepared this process: it gives up its rights itself.
    `import_path` is where bots find modules, once everything of ours is loaded.
    """
    is_alone = level == "landlock"
    if is_alone:
        _die_with_parent(os.getppid())
        _give_up_rights()
    _preload()
    sys.path[:] = import_path
    # From here on the archive of the engine is not read any more.
    if control != _CONTROL:
        os.dup2(control, _CONTROL)
    close_files_from(_CONTROL + 1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    _Zygote(socket.socket(fileno=_CONTROL), is_alone=is_alone).serve()


def _preload() -> None:
    """Import; then hide from the collector what is there, so that no fork copies it to count it."""
    gc.disable()
    for name in _PRELOADED:
        importlib.import_module(name)
    prepare()
    gc.collect()
    gc.freeze()


class _Zygote:
    def __init__(self, control: socket.socket, *, is_alone: bool) -> None:
        self._control = control
        self._is_alone = is_alone
        self._own_pid = os.getpid()
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._pids: dict[int, int] = {}
        self._pidfds: dict[int, int] = {}
        """By the child's number, both."""

    def serve(self) -> NoReturn:
        self._tell(wire.Hello())
        while True:
            for ready, _ in self._poll.poll():
                if ready == self._control.fileno():
                    self._obey()
                else:
                    self._bury(ready)

    def _obey(self) -> None:
        packet, files, _, _ = socket.recv_fds(self._control, wire.REQUEST_BYTES, 3)
        if not packet:
            os._exit(0)  # the referee has gone
        order = wire.decode_order(packet)
        if isinstance(order, wire.Kill):
            if order.number in self._pidfds:
                signal.pidfd_send_signal(self._pidfds[order.number], signal.SIGKILL)
            return
        self._fork(order.number, files)
        for file in files:
            os.close(file)

    def _fork(self, number: int, files: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            os.write(files[1], f"no process could be made: {error}\n".encode())
            self._tell(wire.Ended(number, _OUR_FAILURE))
            return
        if pid == 0:
            self._be_born(files)
        self._pids[number] = pid
        self._pidfds[number] = pidfd = os.pidfd_open(pid)
        self._poll.register(pidfd, select.POLLIN)

    def _be_born(self, files: list[int]) -> NoReturn:
        try:
            if self._is_alone:
                _die_with_parent(self._own_pid)
            self._control.detach()  # its number becomes another file's
            gc.enable()
            live(*files)
        except BaseException:  # noqa: BLE001  # told in the child's log, which the referee reads
            traceback.print_exc()
        finally:
            os._exit(_OUR_FAILURE)

    def _bury(self, pidfd: int) -> None:
        number = next(number for number, fd in self._pidfds.items() if fd == pidfd)
        _, status = os.waitpid(self._pids.pop(number), 0)
        self._poll.unregister(pidfd)
        os.close(self._pidfds.pop(number))
        code = os.waitstatus_to_exitcode(status)
        if self._own_pid == 1 and not self._pids:
            _end_all_others()
        self._tell(wire.Ended(number, 128 - code if code < 0 else code))

    def _tell(self, news: wire.News) -> None:
        self._control.send(wire.encode(news))


def _end_all_others() -> None:
    """Of a pid namespace, by its first process, which alone is spared: a bot that managed to fork leaves nothing."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return  # as it should be: there is nobody
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _die_with_parent(parent: int) -> None:
    """Ask to be killed when the parent ends; if it has ended meanwhile, end."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _give_up_rights() -> None:
    """No capability, and no way to gain one."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    header, nothing = struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24)
    if system_calls().capset(header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities could not be given up")


def _prctl(option: int, value: int) -> None:
    if system_calls().prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) was refused")
