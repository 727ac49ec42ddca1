"""Erased people are gone from the database's file, not only from its tables."""

from __future__ import annotations

from pathlib import Path

from django.db import connection

from tests.databases import connected_to
from tournament.operations.databases import sqlite_database
from tournament.store.scrubbing import scrub_deleted

MAIL = b"anneliese@example.org"


def holds_mail(folder: Path) -> bool:
    return any(MAIL in file.read_bytes() for file in folder.iterdir())


def test_nothing_of_a_deleted_row_is_left_in_the_file(tmp_path, django_db_blocker):
    with django_db_blocker.unblock(), connected_to(sqlite_database(tmp_path / "arena.sqlite3")):
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE person (mail TEXT)")
            cursor.execute("INSERT INTO person VALUES (%s)", [MAIL.decode()])
            cursor.execute("PRAGMA wal_checkpoint")
            cursor.execute("DELETE FROM person")
        assert holds_mail(tmp_path), "SQLite only forgets where it was"
        assert scrub_deleted()
        assert not holds_mail(tmp_path)


def test_database_that_is_busy_is_told(tmp_path, django_db_blocker):
    with django_db_blocker.unblock(), connected_to(sqlite_database(tmp_path / "arena.sqlite3")):
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
        assert not scrub_deleted(), "no file is written anew in the middle of a transaction"
