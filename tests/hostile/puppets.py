"""Bots' processes played by the test itself: the referee's real agents, the real bytes, no bot.

A puppet sits at the other end of a real channel, in this process. It hears every packet that is sent to
its seat and answers at once with whatever packets its script gives. What has a pid is one process that sleeps.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest import mock

from engine import wire
from engine.sandbox import agent as sandbox_agent
from engine.sandbox import policy
from engine.sandbox.launcher import Launched, open_channel, open_log

Script = Callable[["Puppet", bytes], list[bytes]]
"""What a puppet says to a packet that it has just heard."""


@dataclass(slots=True)
class Puppet:
    """What sits on one seat in one sitting."""

    number: int
    """How many were started before it: with four seats a sitting, the sixth sits on seat 1 of the second."""
    script: Script
    heard: list[bytes] = field(default_factory=list)
    """Every packet sent to it."""


class _Channel(socket.socket):
    """Our end of a channel, whose other end speaks as soon as it is spoken to."""

    def __init__(self, ours: socket.socket, theirs: socket.socket, puppet: Puppet, pid: int):
        super().__init__(fileno=ours.detach())
        self._theirs = theirs
        self._puppet = puppet
        self._pid = pid

    def send(self, packet: bytes, flags: int = 0) -> int:
        size = super().send(packet, flags)
        heard = self._theirs.recv(wire.REQUEST_BYTES)
        self._puppet.heard.append(heard)
        for answer in self._puppet.script(self._puppet, heard):
            self._theirs.send(answer, socket.MSG_DONTWAIT)
        return size

    def recvmsg(self, *sizes: int):
        """As if the process that sleeps had spoken: it is the one that may be stopped."""
        packet, _, flags, address = super().recvmsg(*sizes)
        credentials = struct.pack("3i", self._pid, os.getuid(), os.getgid())
        sender = (socket.SOL_SOCKET, socket.SCM_CREDENTIALS, credentials)
        return packet, [sender], flags, address

    def close(self) -> None:
        super().close()
        self._theirs.close()


@dataclass(frozen=True, slots=True)
class _Sleeper:
    """A `Process` that is never to blame."""

    parent_pid: int

    def wait_status(self, seconds: float) -> int:
        return 0

    def end(self) -> None:
        """Others still use it."""


@dataclass(slots=True)
class PuppetLauncher:
    """Starts puppets instead of processes."""

    script: Script
    pid: int
    """A process that sleeps."""
    puppets: list[Puppet] = field(default_factory=list)

    def launch(self, folder: str) -> Launched:
        puppet = Puppet(len(self.puppets), self.script)
        self.puppets.append(puppet)
        with contextlib.ExitStack() as kept:
            ours, theirs = open_channel(kept, kept)
            log_fd, traceback_fd = open_log("log", kept), open_log("traceback", kept)
            kept.pop_all()
        channel = _Channel(ours, theirs, puppet, self.pid)
        walls = policy.walls((folder,))
        return Launched(_Sleeper(os.getpid()), channel, log_fd, traceback_fd, folder, walls)


@contextmanager
def sleeping_process() -> Iterator[int]:
    """The pid of a process that does nothing, for puppets; meanwhile every clock of a bot stands still."""
    with (
        subprocess.Popen(["sleep", "infinity"]) as process,
        mock.patch.object(sandbox_agent._BotProcess, "cpu_us", return_value=0),
    ):
        try:
            yield process.pid
        finally:
            process.kill()


def greet(packet: bytes) -> list[bytes]:
    """What trusted code says before the bot is asked anything."""
    request = wire.decode_request(packet)
    return [wire.encode(wire.Hello() if isinstance(request, wire.Walls) else wire.Ready())]
