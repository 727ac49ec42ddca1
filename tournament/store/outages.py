"""Why the site cannot serve at all: its database or its store is away, full, or not of this version.

What libraries raise then is many-shaped; here it becomes one of a few causes, in words for visitors and for operators.
"""

from __future__ import annotations

import errno
from enum import Enum

from django.db import DatabaseError, InterfaceError, OperationalError

from tournament.store.errors import StoreUnavailableError

_UNDEFINED = {"42P01", "42703"}
"""What PostgreSQL calls a table and a column that it does not have."""
_DISK_FULL = "53100"


class Outage(Enum):
    """A cause that passes, or that the operator ends; no fault of the code."""

    AWAY = "its database does not answer"
    BEHIND = "its database is not up to date"
    FULL = "its disk is full"
    STORE = "its store of wheels and records does not answer"

    @property
    def advice(self) -> str:
        """What the operator looks at."""
        return {
            Outage.AWAY: "look at ARENA_DATABASE and its server",
            Outage.BEHIND: "run manage.py migrate",
            Outage.FULL: "make room, or give it a larger disk",
            Outage.STORE: "look at ARENA_STORE and its server",
        }[self]


def outage_of(error: BaseException | None) -> Outage | None:
    """The outage that an error tells of; None for any other error."""
    if isinstance(error, StoreUnavailableError):
        return Outage.STORE
    if isinstance(error, OSError):
        return Outage.FULL if error.errno in {errno.ENOSPC, errno.EDQUOT} else None
    if not isinstance(error, DatabaseError | InterfaceError):
        return None
    state, text = getattr(error.__cause__, "sqlstate", None), str(error)
    if state in _UNDEFINED or text.startswith(("no such table", "no such column")):
        return Outage.BEHIND
    if state == _DISK_FULL or "disk is full" in text:
        return Outage.FULL
    return Outage.AWAY if isinstance(error, OperationalError | InterfaceError) else None
