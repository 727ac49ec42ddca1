"""Why the site cannot serve at all: its database or its store is away, full, or not of this version.

What libraries raise then is many-shaped; here it becomes one of a few causes, in words for visitors and for operators.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable
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


TOLD_EVERY_SECONDS = 60.0
_LONGEST_DETAIL = 200


class OutageFilter(logging.Filter):
    """Lets a traceback of each outage through once a minute: every request meets the same one meanwhile.

    For a logger whose errors somebody else tells in a line each, as the web server does with every answer.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._told: dict[Outage, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is written."""
        outage = outage_of(record.exc_info[1]) if record.exc_info else None
        if outage is None:
            return True
        now, last = self._clock(), self._told.get(outage)
        if last is not None and now - last < TOLD_EVERY_SECONDS:
            return False
        self._told[outage] = now
        return True


def spell_outage(outage: Outage, error: BaseException) -> str:
    """The cause in a line for a log, with what the library says of it."""
    detail = next(iter(str(error).splitlines()), "")[:_LONGEST_DETAIL]
    return f"{outage.value} ({detail})" if detail else outage.value


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
