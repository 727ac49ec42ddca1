"""What a database's file holds of rows that are no more."""

from __future__ import annotations

from django.db import DatabaseError, connection


def scrub_deleted() -> bool:
    """Write the file anew, so that nothing of deleted or changed rows is left in it; whether that is done.

    A database deletes by forgetting where something was: the bytes stay until others take their place, perhaps for years.
    SQLite's file can be written anew at once, while others wait; False if somebody keeps it busy for long.
    PostgreSQL frees what is deleted by its own vacuum, within minutes of a site that is used, and is let alone.
    """
    if connection.vendor != "sqlite":
        return True
    try:
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_busy: bool = cursor.fetchone()[0]
    except DatabaseError:
        return False
    return not is_busy
