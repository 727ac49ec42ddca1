"""Counting the attempts that are over, once each, for the metrics: how they ended, how long their matches had waited."""

from __future__ import annotations

from collections import Counter

from django.db import transaction

from tournament.competitions.models import Attempt, AttemptEnding
from tournament.store.services import beat
from tournament.store.tallies import count

ATTEMPTS = "attempts"
"""The tally of attempts by how they ended."""
WAITS = "claim_wait"
"""The tally of matches by how many seconds they had waited for a worker: by the bound that they are not above."""
WAIT_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
"""Seconds."""
ENDLESS = "+Inf"
WAITED = "claim_wait_seconds"
"""The tally of all seconds that they had waited."""
SECONDS_BETWEEN = 2.0
AT_ONCE = 2000


def tally_attempts() -> int:
    """Count what has ended since; of how many attempts. Does nothing if that was done a moment ago.

    An attempt is marked in the transaction that counts it, so none is counted twice, whoever does it at once.
    """
    if not beat(name="tally", at_least_seconds=SECONDS_BETWEEN):
        return 0
    return _tally()


@transaction.atomic
def _tally() -> int:
    over = Attempt.objects.filter(is_tallied=False, ended_at__isnull=False)
    rows = list(
        over.select_for_update(skip_locked=True, of=("self",))
        .order_by("pk")
        .values_list("pk", "ending", "started_at", "match__run_after")[:AT_ONCE]
    )
    if not rows:
        return 0
    Attempt.objects.filter(pk__in=[row[0] for row in rows]).update(is_tallied=True)
    count(ATTEMPTS, Counter(ending for _, ending, _, _ in rows))
    # Only these still know when they were due: a failure puts that off.
    waits = [
        max(0.0, (started_at - due).total_seconds())
        for _, ending, started_at, due in rows
        if ending == AttemptEnding.RECORDED
    ]
    if waits:
        count(WAITS, Counter(map(_bound, waits)))
        count(WAITED, {"": sum(waits)})
    return len(rows)


def _bound(seconds: float) -> str:
    return next((str(bound) for bound in WAIT_BOUNDS if seconds <= bound), ENDLESS)
