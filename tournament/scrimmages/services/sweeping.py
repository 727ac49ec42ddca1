"""Letting records of scrimmages go when they are old; what their sets said stays."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from tournament.scrimmages.models import Batch

AT_ONCE = 1000


def expirable_batches() -> QuerySet[Batch]:
    """The batches whose records may be let go, the oldest first: all but those that staff keep."""
    kept = Batch.objects.exclude(record_sha256="").exclude(scrimmage__is_kept=True)
    return kept.order_by("played_at", "pk")


def expire_records(*, before: datetime) -> int:
    """Forget the records and logs of batches that were played before that; of how many batches.

    The sweep of blobs then deletes them. Sets, digests, numbers and answers stay.
    """
    return _forget(expirable_batches().filter(played_at__lt=before))


def expire_oldest_batches() -> int:
    """Forget those of some of the oldest, however young they are; of how many batches."""
    return _forget(expirable_batches()[:AT_ONCE])


def _forget(batches: QuerySet[Batch]) -> int:
    rows = Batch.objects.filter(pk__in=list(batches.values_list("pk", flat=True)))
    return rows.update(record_sha256="", logs_sha256="")
