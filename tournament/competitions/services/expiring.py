"""Letting go of the records of ladders' matches when they are old: what is played on and on would fill any disk.

Digest, result and ratings stay. What something links to is never let go: a match that staff keep or a ruling concerns,
and every match of a tournament that has ended and is verified by its bundle.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from tournament.competitions.models import Match, MatchState
from tournament.competitions.selectors.trials import CONTINUOUS

AT_ONCE = 1000


def expirable_matches() -> QuerySet[Match]:
    """The matches whose records may be let go, the oldest first."""
    is_linked = (
        Q(is_kept=True)
        | Q(pairing__is_ruled=True)
        | Q(pairing__edition__gt=1)
        | Q(tournament__bundle_digest__startswith="sha256:")
    )
    return (
        Match.objects.filter(
            state=MatchState.FINISHED, pairing__round__stage__format__in=CONTINUOUS
        )
        .exclude(record_sha256="")
        .exclude(is_linked)
        .order_by("finished_at", "pk")
    )


def expire_old_records(*, before: datetime) -> int:
    """Let go of the records and logs of matches that were finished before that; of how many matches."""
    expired = 0
    while ids := _ids(expirable_matches().filter(finished_at__lt=before)):
        expired += _forget(ids)
    return expired


def expire_oldest_records() -> int:
    """Let go of some of the oldest that may be let go, however young they are; of how many matches."""
    return _forget(_ids(expirable_matches()))


def _ids(rows: QuerySet[Match]) -> list[int]:
    return list(rows.values_list("pk", flat=True)[:AT_ONCE])


@transaction.atomic
def _forget(ids: Sequence[int]) -> int:
    """Guarded by what may have come between: that staff keep it, or that it is played again."""
    rows = Match.objects.filter(pk__in=ids, state=MatchState.FINISHED, is_kept=False)
    return rows.update(record_sha256="", logs_sha256="")
