"""Which scrimmages have their next batch played now: after all else, but never none.

Every step is a guarded update, so duplicates, several at once and late ones are harmless. It publishes nothing itself;
`tournament.tasks` does, after commit.
"""

from __future__ import annotations

import contextlib

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from tournament.scrimmages.errors import ScrimmageError
from tournament.scrimmages.models import (
    IN_FLIGHT,
    OPEN,
    SCRIMMAGE_TRANSITIONS,
    Scrimmage,
    ScrimmageState,
)
from tournament.scrimmages.selectors import (
    TRICKLE_SECONDS,
    barred_scrimmages,
    site_is_busy,
    why_ended,
)
from tournament.scrimmages.services.asking import cancel_scrimmage
from tournament.scrimmages.services.playing import count_failure
from tournament.store.clock import in_seconds
from tournament.store.leases import Lease, expired
from tournament.store.queues import Capacity
from tournament.store.services import beat, guard_each

STALE_SECONDS = 60.0
"""A batch queued for longer is queued again: its message may be lost. A worker may be at others for that long."""


def scrimmages_to_play(*, capacity: Capacity | None = None) -> tuple[int, ...]:
    """Do all that is due with scrimmages by the database's clock; the ids of those whose next batch is to be played."""
    if not Scrimmage.objects.filter(state__in=OPEN).exists():
        return ()
    return_expired_scrimmages()
    end_barred_scrimmages()
    return queue_scrimmages(capacity=capacity)


def return_expired_scrimmages() -> int:
    """Give back those whose worker shows no sign of life; how many those were."""
    rows = Scrimmage.objects.filter(expired(), state=ScrimmageState.RUNNING)
    found = list(rows.values_list("pk", "fence", "lease_owner")[:1000])
    return guard_each(found, lambda row: _return_expired(Lease(*row)))


def _return_expired(lease: Lease) -> bool:
    still_expired = expired() & Q(state=ScrimmageState.RUNNING)
    return count_failure(lease, "its worker showed no sign of life", only_if=still_expired)


def end_barred_scrimmages() -> int:
    """Cancel those that cannot go on, since a bot may not play any more; how many those were."""
    return guard_each(barred_scrimmages()[:1000], _end_barred)


def _end_barred(scrimmage: Scrimmage) -> bool:
    with contextlib.suppress(ScrimmageError):  # it ended by itself meanwhile
        cancel_scrimmage(scrimmage=scrimmage, reason=why_ended(scrimmage))
        return True
    return False


@transaction.atomic
def queue_scrimmages(*, capacity: Capacity | None = None) -> tuple[int, ...]:
    """Choose whose next batch to publish now and mark them queued: those that have waited longest.

    No more are in flight than the settings say. While the site is busy with tournaments or checks, only one is, and
    one is begun every `TRICKLE_SECONDS`.
    """
    capacity = capacity or Capacity.by_settings()
    stale = Q(state=ScrimmageState.QUEUED, queued_at__lt=in_seconds(-STALE_SECONDS))
    in_flight = Scrimmage.objects.filter(state__in=IN_FLIGHT).exclude(stale).count()
    due = Scrimmage.objects.filter(
        Q(state=ScrimmageState.WAITING, run_after__lte=Now())
        | (stale if capacity.is_known else Q(pk__in=())),
        time_control__in=capacity.time_controls,
    )
    room = settings.ARENA_SCRIMMAGE_SLOTS - in_flight
    if room > 0 and due.exists() and site_is_busy():
        room = int(not in_flight and beat(name="scrimmages", at_least_seconds=TRICKLE_SECONDS))
    if room < 1:
        return ()
    ids = tuple(
        due.select_for_update(skip_locked=True)
        .order_by("run_after", "pk")
        .values_list("pk", flat=True)[:room]
    )
    SCRIMMAGE_TRANSITIONS.move(
        Scrimmage.objects.filter(pk__in=ids), ScrimmageState.QUEUED, queued_at=Now()
    )
    Scrimmage.objects.filter(pk__in=ids, state=ScrimmageState.QUEUED).update(queued_at=Now())
    return ids
