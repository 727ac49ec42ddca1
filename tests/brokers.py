"""A Valkey of a test's own, like that of a site."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import redis

from tournament.operations import broker

PATIENCE_SECONDS = 60.0


class Broker:
    """A server, and how often somebody came to it."""

    def __init__(self, folder: Path) -> None:
        self.socket = broker.socket_in(folder)
        command = broker.command(broker.find_server(), self.socket, folder)
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    @property
    def url(self) -> str:
        return broker.url(self.socket)

    def visitors(self) -> int:
        """How many connections it has taken, this one not counted."""
        with redis.Redis(unix_socket_path=str(self.socket)) as client:
            return client.info("stats")["total_connections_received"] - 1

    def wait_until_it_answers(self) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not (self.socket.exists() and broker.answers(self.socket)):
            assert self.process.poll() is None, "the broker has ended"
            assert time.monotonic() < until, "the broker does not start"
            time.sleep(0.02)


@contextlib.contextmanager
def running_broker() -> Iterator[Broker]:
    """One that answers; whatever was done to it, nothing of it is left afterwards."""
    folder = broker.make_socket_folder()
    found = Broker(folder)
    try:
        found.wait_until_it_answers()
        yield found
    finally:
        found.process.kill()
        found.process.wait()
        shutil.rmtree(folder)
