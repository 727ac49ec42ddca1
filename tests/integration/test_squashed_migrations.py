"""A site that was made by one migration after the other goes on, and gets the tables that a new one has."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from tests.databases import connected_to
from tests.postgresql import postgresql_server
from tournament.operations import backups
from tournament.operations.databases import read_postgresql, sqlite_database

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]
"""In each run: tests/architecture/test_migrations.py, by what Django knows of the models."""

Empty = Callable[[], Any]
"""Connects this process to an empty database."""


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request, tmp_path: Path, django_db_blocker) -> Iterator[Empty]:
    with django_db_blocker.unblock():
        if request.param == "sqlite":
            numbers = iter(range(9))
            yield lambda: connected_to(sqlite_database(tmp_path / f"{next(numbers)}.sqlite3"))
        else:
            yield empty_postgresql


@contextmanager
def empty_postgresql() -> Iterator[None]:
    with (
        postgresql_server() as server,
        connected_to(read_postgresql(server.address(), sys.argv)),
    ):
        yield


def tables() -> dict[str, tuple[list[str], list[str]]]:
    """By name the columns of each table and its constraints and indexes, whatever these are called."""
    with connection.cursor() as cursor:
        return {
            table: (
                sorted(map(str, connection.introspection.get_table_description(cursor, table))),
                sorted(map(str, connection.introspection.get_constraints(cursor, table).values())),
            )
            for table in connection.introspection.table_names(cursor)
        }


def step_by_step(last: dict[str, str]) -> list[tuple[str, str]]:
    """The migrations that were there before some of them were made at once; of these apps up to the named one."""
    known = MigrationLoader(None).disk_migrations.items()
    return sorted(
        (app, name)
        for (app, name), migration in known
        if not migration.replaces and name <= last.get(app, name)
    )


@pytest.mark.parametrize(
    "last",
    [
        {},  # the version before
        {"players": "0007_erasure_keys", "competitions": "0009_expiry_and_tally"},  # an older one
        {"competitions": "0009_expiry_and_tally"},  # an update that was interrupted
    ],
)
def test_older_site_gets_the_tables_of_a_new_one(empty: Empty, last):
    with empty():
        call_command("migrate", interactive=False, verbosity=0)
        expected = tables()
    with empty():
        about = backups.About(
            format=backups.FORMAT,
            made_at=0,
            version="0.1",
            vendor=connection.vendor,
            migrations=step_by_step(last),
            tables={},
        )
        backups._make_tables(about)
        call_command("migrate", interactive=False, verbosity=0)
        assert tables() == expected
        executor = MigrationExecutor(connection)
        assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
        assert executor.loader.replacements.keys() <= executor.loader.applied_migrations.keys()
