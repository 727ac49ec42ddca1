"""What an error says of the site: it is away, full or behind, or it is a fault of the code."""

from __future__ import annotations

import errno

import psycopg.errors
import pytest
from django.db import InterfaceError, OperationalError, ProgrammingError

from tournament.store.errors import BlobMissingError, StoreUnavailableError
from tournament.store.outages import Outage, outage_of


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
