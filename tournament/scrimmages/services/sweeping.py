"""Letting records of scrimmages go when they are old; what their sets said stays."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from tournament.scrimmages.models import Batch
from tournament.store.clock import read_clock


def expire_records() -> int:
    """Forget the records and logs of batches that are older than the settings say; of how many batches.

    The sweep of blobs then deletes them. Sets, digests, numbers and answers stay.
    """
    oldest = read_clock() - timedelta(days=settings.ARENA_SCRIMMAGE_DAYS)
    old = Batch.objects.filter(played_at__lt=oldest).exclude(record_sha256="")
    return old.update(record_sha256="", logs_sha256="")
