"""Keeping a site small: what is old goes, and what is too much for its budget of disk, the oldest first."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings

from tournament.competitions import services as competitions
from tournament.operations.doctor import NEAR_BUDGET
from tournament.players import services as players
from tournament.scrimmages import selectors as scrimmage_rows
from tournament.scrimmages import services as scrimmages
from tournament.store.clock import read_clock
from tournament.store.tallies import STORE_BYTES, read_tallies

logger = logging.getLogger(__name__)


def keep_small() -> None:
    """Let old records go, delete what no row names, and stay within the budget as far as there is anything to let go."""
    now = read_clock()
    competitions.expire_old_records(before=now - timedelta(days=settings.ARENA_RECORD_DAYS))
    scrimmages.expire_records(before=now - timedelta(days=settings.ARENA_SCRIMMAGE_DAYS))
    players.drop_old_mail(now)
    _sweep()
    while is_over_budget() and _expire_some():
        if not _sweep():
            break  # what was let go is too young to be deleted, or something else names it: the next sweep sees
    if warning := budget_warning():
        logger.warning(warning)


def _expire_some() -> int:
    return competitions.expire_oldest_records() + scrimmages.expire_oldest_batches()


def _sweep() -> int:
    return competitions.sweep_blobs(also_keep=scrimmage_rows.blobs_in_use)


def store_bytes() -> float | None:
    """What wheels, records and logs took when that was last measured; None if it never was."""
    return read_tallies().get(STORE_BYTES, {}).get("")


def is_over_budget() -> bool:
    """Whether the store takes more than the operator grants."""
    taken = store_bytes()
    return bool(settings.ARENA_STORE_BYTES and taken and taken > settings.ARENA_STORE_BYTES)


def budget_warning() -> str:
    """What to say to operators of the store's size, if it is over its budget or near it; else empty."""
    taken, budget = store_bytes(), settings.ARENA_STORE_BYTES
    if taken is None or not budget or taken < NEAR_BUDGET * budget:
        return ""
    return (
        f"wheels, records and logs take {taken / 1e9:.1f} GB of the {budget / 1e9:.1f} GB of ARENA_STORE_GB. The "
        "sweep lets the oldest records of ladders and scrimmages go that nothing links to; grant more, or keep them "
        "for fewer days (ARENA_RECORD_DAYS, ARENA_SCRIMMAGE_DAYS)"
    )
