"""The database that an address names, and how a process of the site connects to it.

The settings read it before Django is set up, so it must not know Django.
"""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tournament.operations.errors import OperationsError

SQLITE_FILE = "arena.sqlite3"
MOVED_FILE = "moved-to"
"""Beside a SQLite file whose site has moved: where to, in words."""
TLS_OPTIONS = frozenset({"sslmode", "sslrootcert", "sslcert", "sslkey"})
"""What an address may say after its question mark; libpq's own names."""
MOST_NAME_BYTES = 63
"""PostgreSQL cuts longer application names."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long PostgreSQL lets a process wait, in seconds; 0: for ever."""

    statement: int
    lock: int
    idle_in_transaction: int


WEB = Limits(statement=30, lock=10, idle_in_transaction=120)
"""A visitor has gone by then, and a thread of the web server is free for others. A ruling may replay ratings
between two statements, for some 20 s with 100 000 events."""
WORKER = Limits(statement=120, lock=30, idle_in_transaction=60)
"""A frozen worker must not hold its locks for ever; the longest that a live one computes within a transaction is
the pairing of a large round."""
COMMAND = Limits(statement=0, lock=30, idle_in_transaction=0)
"""An operator waits for as long as it takes, but not behind a lock without hearing of it."""
MIGRATION = Limits(statement=0, lock=5, idle_in_transaction=0)
"""A change of a table that waits for its lock lets everybody wait behind it: rather try again."""


def read_database(address: str | None, home: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """Django's settings of the database at `address`, or of the SQLite file in `home` if it is empty.

    `arguments` are the process's own: they tell what it is. Raises OperationsError for an address that
    names no database, and without one in a home whose site has moved to PostgreSQL: else it would go on in both.
    """
    if address:
        return read_postgresql(address, arguments)
    marker = home / MOVED_FILE
    if marker.exists():
        raise OperationsError(
            f"the site in {home} has moved to {marker.read_text(encoding='utf-8').strip()}: set ARENA_DATABASE to that "
            f"database. To go back to what {SQLITE_FILE} held then, and give up all that has happened since, delete "
            f"{marker}"
        )
    return sqlite_database(home / SQLITE_FILE)


def sqlite_database(path: Path) -> dict[str, Any]:
    """Django's settings of a SQLite file that several processes write to."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
        "TEST": {"NAME": path.with_name("test.sqlite3")},
    }


def read_postgresql(address: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Django's settings of the PostgreSQL database at `address`, for a process started by `arguments`.

    Raises OperationsError if it names none, or if the driver is not installed.
    """
    try:
        parts = urlsplit(address)
        port: int | str = parts.port or ""
    except ValueError:
        parts, port = urlsplit(""), ""
    asked = dict(parse_qsl(parts.query, keep_blank_values=True))
    if (
        parts.scheme not in {"postgres", "postgresql"}
        or not parts.path.strip("/")
        or set(asked) - TLS_OPTIONS
    ):
        raise OperationsError(
            "ARENA_DATABASE must look like postgresql://user:password@host:port/name, with "
            f"?sslmode=… after it if need be (and {', '.join(sorted(TLS_OPTIONS - {'sslmode'}))})"
        )
    if importlib.util.find_spec("psycopg") is None:
        raise OperationsError(
            "ARENA_DATABASE names PostgreSQL: pip install 'domino-arena[postgres]'"
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": port,
        # A thread of the web server and a process of a worker keep their connection, and look before each request
        # or task whether it still works.
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**connection_options(arguments), **asked},
    }


def connection_options(arguments: Sequence[str]) -> Mapping[str, Any]:
    """What libpq is told for a process started by `arguments`."""
    limits = limits_of(arguments)
    session = {
        "statement_timeout": limits.statement * 1000,
        "lock_timeout": limits.lock * 1000,
        "idle_in_transaction_session_timeout": limits.idle_in_transaction * 1000,
        "default_transaction_isolation": r"read\ committed",  # guarded updates count on it
        "jit": "off",  # it takes longer to compile a page's query than to answer it
    }
    name = f"arena {process_name(arguments)}".encode()[:MOST_NAME_BYTES]
    return {
        "application_name": name.decode(errors="ignore"),
        "options": " ".join(f"-c {key}={value}" for key, value in session.items()),
        "connect_timeout": 5,
        # A server that has vanished without a word is given up after some 20 s instead of 15 minutes.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 2,
        "tcp_user_timeout": 20_000,
    }


def limits_of(arguments: Sequence[str]) -> Limits:
    """How long a process started by `arguments` may wait."""
    program = _program(arguments)
    if program == "gunicorn":
        return WEB
    if program == "celery":
        return WORKER
    return MIGRATION if process_name(arguments) == "migrate" else COMMAND


def process_name(arguments: Sequence[str]) -> str:
    """What a process of the site is: ``web``, a worker's name as in ``matches@host``, ``beat``, or a command."""
    program, rest = _program(arguments), list(arguments[1:])
    if program == "gunicorn":
        return "web"
    if program == "celery":
        return _worker_name(rest) if "worker" in rest else "beat" if "beat" in rest else program
    if program == "manage.py" and rest:
        return rest[0]
    return program or "python"


def _worker_name(arguments: Sequence[str]) -> str:
    for place, argument in enumerate(arguments):
        option, separator, value = argument.partition("=")
        if option in {"--hostname", "-n"}:
            name = value if separator else next(iter(arguments[place + 1 :]), "worker")
            return name.replace("%h", socket.gethostname())  # as Celery does
    return "worker"


def _program(arguments: Sequence[str]) -> str:
    """The program's name; of ``python -m celery`` that of the package."""
    path = Path(next(iter(arguments), ""))
    return path.parent.name if path.name == "__main__.py" else path.name
