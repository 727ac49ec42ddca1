"""Which workers there are, and what bots get on this site."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import msgspec
from django.conf import settings
from django.db.models import QuerySet

from engine.sandbox.findings import Finding
from engine.sandbox.limits import PublishedLimits, limits_here
from tournament.competitions.models import RULES_VERSION
from tournament.store.clock import in_seconds, read_clock
from tournament.store.queues import Capacity
from tournament.workers.models import WorkerReport

SILENT_SECONDS = 90
"""A worker of which nothing was heard for so long is silent: three signs of life were missed."""
GIVEN_UP_SECONDS = 600
"""Work is still sent for a worker that was heard of so lately: one that lost its broker comes back."""


def living_workers() -> QuerySet[WorkerReport]:
    """Those that were heard of lately, the fastest first."""
    return WorkerReport.objects.filter(seen_at__gte=in_seconds(-SILENT_SECONDS)).order_by(
        "budget_percent", "name"
    )


def count_workers() -> dict[str, int]:
    """How many are ``there``, and how many are ``silent``."""
    there = living_workers().count()
    return {"there": there, "silent": WorkerReport.objects.count() - there}


def capacity() -> Capacity:
    """How much the workers can do at once that hold bots, or may trust them, and play by our rules."""
    heard = WorkerReport.objects.filter(seen_at__gte=in_seconds(-GIVEN_UP_SECONDS))
    rows = list(heard.values_list("queues", "slots", "rules_version", "level", "trusts_bots"))
    if not rows:
        return Capacity.by_settings(is_known=False)
    slots: Counter[str] = Counter()
    total = 0
    for queues, each, rules_version, level, trusts_bots in rows:
        if rules_version == RULES_VERSION and (level or trusts_bots):
            slots.update(dict.fromkeys(queues, each))
            total += each
    return Capacity(slots, total)


def is_silent(worker: WorkerReport, *, now: datetime | None = None) -> bool:
    """Whether nothing was heard of it for too long, by the database's clock."""
    return ((now or read_clock()) - worker.seen_at).total_seconds() > SILENT_SECONDS


def findings_of(worker: WorkerReport) -> list[Finding]:
    """What it found on its machine, as the doctor tells it there."""
    return msgspec.convert(worker.findings, list[Finding])


def site_limits() -> PublishedLimits:
    """What bots get on this site, by its own installation."""
    return limits_here(wheel_bytes=settings.WHEEL_MAX_BYTES)
