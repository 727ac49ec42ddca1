"""Leases: how work that machines do is claimed, kept, given back and taken over.

A claim is one guarded UPDATE that sets owner, lease and ``fence = fence + 1``. Everything that the
holder writes later names its fence; once another has claimed the row that matches nothing, so a late
result writes no rows. The database's clock alone decides when a lease has expired.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, models
from django.db.models import Q
from django.db.models.functions import Now
from structlog.contextvars import bind_contextvars, get_contextvars

from engine.errors import InfrastructureError
from tournament.store.clock import in_seconds
from tournament.store.services import drop_broken_connection
from tournament.store.states import StateT, Transitions

MAX_ATTEMPTS = 5
"""After so many failures of our own, work waits for an operator."""

OUTAGE_SECONDS = 10.0
"""So long after one that found the store away waits the next attempt."""

_JITTER = random.SystemRandom()


class LeaseLostError(InfrastructureError):
    """Another has taken the row over, or it was cancelled: whatever comes of the work is discarded."""


class StoppedError(InfrastructureError):
    """The worker was told to stop and could not finish in time: the work is given back, no failure."""


class LeaseFields(models.Model):
    """What a row of such work has besides its `state`."""

    run_after = models.DateTimeField(db_default=Now(), editable=False)
    """Not to be queued before."""
    queued_at = models.DateTimeField(null=True, editable=False)
    """When it was last handed to the broker; a message that was lost is sent again."""
    lease_owner = models.CharField(max_length=100, blank=True, default="", editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    claimed_at = models.DateTimeField(null=True, editable=False)
    """When it was last claimed; it stays when the claim ends, so that it tells how long the work took."""
    fence = models.PositiveIntegerField(default=0, editable=False)
    """Counts the claims and cancellations; who holds an older number has lost the row."""
    attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    """Failures of our own so far."""

    class Meta:  # noqa: D106 Django's own
        abstract = True


@dataclass(frozen=True, slots=True)
class Lease:
    """A held claim on the row `pk`."""

    pk: int
    fence: int
    owner: str


def own_name() -> str:
    """How this process signs its claims: host and process id."""
    return f"{socket.gethostname()[:80]}:{os.getpid()}"


def claim(
    rows: models.QuerySet[Any],
    pk: int,
    *,
    transitions: Transitions[StateT],
    running: StateT,
    seconds: float,
    owner: str,
    fence: int | None = None,
) -> Lease | None:
    """Claim the row `pk` of `rows` for `seconds`; None if another has it or it is not to be done.

    `rows` says which rows may be claimed at all; its states are those that may go to `running`. The guard of
    the update is the row's `fence`: as the caller has read it with the row, else as it is now. With one that
    was read before, None may also mean that the row has changed since, and `rows` may ask other tables by
    subqueries only; else it may join them.
    """
    claimable = rows.filter(pk=pk)
    if fence is None:
        fence = claimable.values_list("fence", flat=True).first()
        if fence is None:
            return None
        claimable = rows.model._default_manager.filter(pk=pk)  # noqa: SLF001 Django's name of it
    claimed = transitions.move(
        claimable.filter(fence=fence),
        running,
        lease_owner=owner,
        lease_until=in_seconds(seconds),
        claimed_at=Now(),
        fence=fence + 1,
    )
    if not claimed:
        return None
    if "attempt" in get_contextvars():  # a task has said what is logged with it
        bind_contextvars(attempt=fence + 1)
    return Lease(pk, fence + 1, owner)


def held(rows: models.QuerySet[Any], lease: Lease) -> models.QuerySet[Any]:
    """The row of `lease`, unless it has been taken over or cancelled."""
    return rows.filter(pk=lease.pk, fence=lease.fence, lease_owner=lease.owner)


def prolong(rows: models.QuerySet[Any], lease: Lease, seconds: float) -> bool:
    """Hold the claim for `seconds` more; False when it is lost (another's, cancelled, or expired)."""
    return bool(
        held(rows, lease).filter(lease_until__gt=Now()).update(lease_until=in_seconds(seconds))
    )


class Heartbeat:
    """A `keep_alive`: call it often, it prolongs the lease when a third of it has passed.

    Raises LeaseLostError once the lease is lost, and StoppedError when the worker has to stop
    (`stop_seconds` tells for how long it has known) and its grace is over. A database that is away is
    asked again at the next sign of life, until the lease is over by this machine's clock; then its error
    is raised.
    """

    def __init__(
        self,
        rows: models.QuerySet[Any],
        lease: Lease,
        seconds: float,
        stop_seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._rows = rows
        self._lease = lease
        self._seconds = seconds
        self._stop_seconds = stop_seconds
        self._most_stop_seconds = settings.ARENA_STOP_SECONDS
        self._prolonged = time.monotonic()

    def __call__(self) -> None:
        """Show a sign of life."""
        if self._stop_seconds() > self._most_stop_seconds:
            raise StoppedError("the worker was told to stop")
        if time.monotonic() - self._prolonged < self._seconds / 3:
            return
        asked = time.monotonic()
        try:
            drop_broken_connection()
            is_held = prolong(self._rows, self._lease, self._seconds)
        except (OperationalError, InterfaceError):
            if asked - self._prolonged >= self._seconds:
                raise
            return
        if not is_held:
            raise LeaseLostError(f"claim {self._lease.fence} on row {self._lease.pk} is lost")
        self._prolonged = asked


FREE_FIELDS: dict[str, Any] = {"lease_owner": "", "lease_until": None, "queued_at": None}
"""What a row gets when its claim ends."""


def free_for_now() -> dict[str, Any]:
    """What a row gets that cannot be worked on while the store is away: free, not to be tried again at once; no failure of it."""
    return {**FREE_FIELDS, "run_after": in_seconds(OUTAGE_SECONDS)}


def expired() -> Q:
    """Rows whose holder has shown no sign of life for the length of its lease."""
    return Q(lease_until__lte=Now())


def backoff_seconds(attempts: int) -> float:
    """How long to wait after the failure number `attempts`: min(300, 2ⁿ) s, with up to a quarter more."""
    return float(min(300, 2**attempts)) * (1 + _JITTER.random() / 4)


def free_after_failure(attempts: int) -> dict[str, Any]:
    """What a row gets after the failure number `attempts`: free, and not to be tried again too soon."""
    return {
        **FREE_FIELDS,
        "attempts": attempts,
        "run_after": in_seconds(backoff_seconds(attempts)),
    }
