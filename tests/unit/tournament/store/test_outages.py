"""What an error says of the site: it is away, full or behind, or it is a fault of the code."""

from __future__ import annotations

import errno
import logging

import psycopg.errors
import pytest
from django.db import InterfaceError, OperationalError, ProgrammingError

from tournament.store.errors import BlobMissingError, StoreUnavailableError
from tournament.store.outages import Outage, OutageFilter, outage_of


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "outage"),
    [
        (OperationalError("connection refused"), Outage.AWAY),  # nobody is there
        (InterfaceError("the connection is closed"), Outage.AWAY),  # it broke
        (OperationalError("no such table: players_bot"), Outage.BEHIND),  # SQLite before migrate
        (caused(ProgrammingError("…"), psycopg.errors.UndefinedTable()), Outage.BEHIND),  # PostgreSQL
        (caused(ProgrammingError("…"), psycopg.errors.UndefinedColumn()), Outage.BEHIND),  # of an older version
        (caused(ProgrammingError("…"), psycopg.errors.SyntaxError()), None),  # our own mistake
        (OperationalError("database or disk is full"), Outage.FULL),  # SQLite
        (caused(OperationalError("…"), psycopg.errors.DiskFull()), Outage.FULL),  # PostgreSQL
        (OSError(errno.ENOSPC, "No space left on device"), Outage.FULL),  # the store's folder
        (OSError(errno.EACCES, "Permission denied"), None),  # does not pass by itself
        (StoreUnavailableError("timeout"), Outage.STORE),  # S3 is away
        (BlobMissingError("ab"), None),  # lost: an operator has to know
        (RuntimeError("no such table"), None),  # only a database can say so
        (None, None),
    ],
)  # fmt: skip
def test_outage_is_told_from_a_fault_of_the_code(error, outage):
    assert outage_of(error) is outage


def test_traceback_of_an_outage_is_let_through_once_a_minute_and_of_faults_always():
    now = 0.0
    kept = OutageFilter(lambda: now)

    def is_written(error: Exception | None) -> bool:
        info = (type(error), error, None) if error else None
        return kept.filter(logging.LogRecord("x", logging.ERROR, "", 0, "", (), info))

    away, full = OperationalError("refused"), OSError(errno.ENOSPC, "no space")
    assert [is_written(away), is_written(away), is_written(full), is_written(full)] == [
        *(True, False),
        *(True, False),  # another outage is told, too
    ]
    assert [is_written(KeyError("ours")), is_written(KeyError("ours")), is_written(None)] == [
        True
    ] * 3
    now = 59.9
    assert not is_written(away)
    now = 60.0
    assert is_written(away)
