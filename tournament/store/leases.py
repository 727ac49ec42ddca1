"""Leases: how work that machines do is claimed, kept, given back and taken over.

A claim is one guarded UPDATE that sets owner, lease and ``fence = fence + 1``. Everything that the
holder writes later names its fence; once another has claimed the row that matches nothing, so a late
result writes no rows. The database's clock alone decides when a lease has expired.
"""

from __future__ import annotations

import os
import random
import socket
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from tournament.store.clock import in_seconds

MAX_ATTEMPTS = 5
"""After so many failures of our own, work waits for an operator."""


class LeaseFields(models.Model):
    """What a row of such work has besides its `state`."""

    run_after = models.DateTimeField(db_default=Now(), editable=False)
    """Not to be queued before."""
    queued_at = models.DateTimeField(null=True, editable=False)
    """When it was last handed to the broker; a message that was lost is sent again."""
    lease_owner = models.CharField(max_length=100, blank=True, default="", editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    fence = models.PositiveIntegerField(default=0, editable=False)
    """Counts the claims and cancellations; who holds an older number has lost the row."""
    attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    """Failures of our own so far."""

    class Meta:  # noqa: D106 Django's own
        abstract = True


@dataclass(frozen=True, slots=True)
class Lease:
    """A held claim."""

    pk: int
    fence: int
    owner: str


def own_name() -> str:
    """How this process signs its claims: host and process id."""
    return f"{socket.gethostname()[:80]}:{os.getpid()}"


def held(rows: models.QuerySet[Any], lease: Lease) -> models.QuerySet[Any]:
    """The row of `lease`, if nobody has taken it over."""
    return rows.filter(pk=lease.pk, fence=lease.fence, lease_owner=lease.owner)


def claim_fields(owner: str, seconds: float) -> dict[str, Any]:
    """What a claim sets along with the state."""
    return {
        "lease_owner": owner,
        "lease_until": in_seconds(seconds),
        "fence": F("fence") + 1,
    }


def prolong(rows: models.QuerySet[Any], lease: Lease, seconds: float) -> bool:
    """Hold the claim for `seconds` more; False when it is lost (another's, cancelled, or expired)."""
    return bool(
        held(rows, lease).filter(lease_until__gt=Now()).update(lease_until=in_seconds(seconds))
    )


FREE_FIELDS: dict[str, Any] = {"lease_owner": "", "lease_until": None, "queued_at": None}
"""What a row gets when its claim ends."""


def expired() -> Q:
    """Rows whose holder has shown no sign of life for the length of its lease."""
    return Q(lease_until__lte=Now())


def backoff_seconds(attempts: int, random_source: random.Random) -> float:
    """How long to wait after the failure number `attempts`: min(300, 2ⁿ) s, with up to a quarter of jitter."""
    return float(min(300, 2**attempts)) * (1 + random_source.random() / 4)
