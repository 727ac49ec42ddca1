"""Whether a process lives, and whether it can serve: for load balancers, orchestrators and people."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from tournament.store.errors import StoreError
from tournament.store.pulses import delays
from tournament.store.services import check_store

OK = "ok"
BROKER_SECONDS = 0.5
"""How long the broker may take to answer."""
RECENT_SECONDS = 1.0
"""For so long what was found is told again."""
STORE_SECONDS = 10.0
"""For so long it is believed that the store takes what is written: each try writes a file."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a site needs to serve, thing by thing: ``ok``, or what is wrong with it."""

    needed: Mapping[str, str]
    """Without one of these it cannot serve."""
    helpful: Mapping[str, str]
    """Without one of these it serves, and what is asked of it is done later."""

    @property
    def is_ready(self) -> bool:
        """Whether requests can be sent to this process."""
        return all(state == OK for state in self.needed.values())

    @property
    def status(self) -> str:
        """``ready``, ``degraded`` (it serves, but work waits) or ``not ready``."""
        if not self.is_ready:
            return "not ready"
        return "ready" if all(state == OK for state in self.helpful.values()) else "degraded"


_trying = threading.Lock()
_found: tuple[float, Readiness] | None = None


def recent_readiness() -> Readiness:
    """As `readiness`, tried once a second at most, and never by two at once: anybody may ask, as often as they like.

    While it is being tried, as by a database that does not answer, others are told what was found before.
    """
    global _found  # noqa: PLW0603 - remembered by this process
    known = _found
    if known is not None and time.monotonic() - known[0] < RECENT_SECONDS:
        return known[1]
    if not _trying.acquire(blocking=known is None):
        assert known is not None
        return known[1]
    try:
        if _found is None or _found is known:  # else somebody has tried while this one waited
            found = readiness()
            _found = (time.monotonic(), found)
        return _found[1]
    finally:
        _trying.release()


def readiness() -> Readiness:
    """Try everything; within some seconds, however it is. What depends on the database is not tried without it."""
    database = _try(_check_database)
    is_there = database == OK
    skipped = "not tried: the database does not answer"
    return Readiness(
        needed={
            "database": database,
            "migrations": _try(_check_migrations) if is_there else skipped,
            "store": _try(_check_store),
        },
        helpful={
            "broker": broker_state(settings.CELERY_BROKER_URL),
            "queue": _queue_state() if is_there else skipped,
        },
    )


def _try(check: Callable[[], str]) -> str:
    try:
        return check()
    except (DatabaseError, StoreError, OSError) as error:
        # An error of the database may name its user and host, which are not for everybody.
        return f"failed: {type(error).__name__}"


def _check_database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return OK


_migrated = False


def _check_migrations() -> str:
    """Asked of the database until they are all there; no process of newer code begins with fewer."""
    global _migrated  # noqa: PLW0603 - once a process is what this is about
    if not _migrated:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if missing:
            return f"{len(missing)} missing: run manage.py migrate"
        _migrated = True
    return OK


_store_ok_until = 0.0


def _check_store() -> str:
    global _store_ok_until  # noqa: PLW0603 - remembered by this process
    if time.monotonic() >= _store_ok_until:
        check_store()
        _store_ok_until = time.monotonic() + STORE_SECONDS
    return OK


def broker_state(address: str, *, seconds: float = BROKER_SECONDS) -> str:
    """Whether the broker at Celery's `address` answers in time: ``ok``, or what is wrong; no word of its password."""
    url = address.replace("redis+socket://", "unix://").replace("?virtual_host=", "?db=")
    if not url.startswith(("redis://", "rediss://", "unix://")):
        return OK  # one that lives in the process, or one that we have no way to ask
    try:
        with redis.Redis.from_url(
            url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=None
        ) as client:
            client.ping()
    except redis.RedisError as error:
        return (
            f"does not answer ({type(error).__name__}): what is asked for is kept, and done later"
        )
    return OK


def _queue_state() -> str:
    return "; ".join(delay.reason for delay in delays()) or OK
