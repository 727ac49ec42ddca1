"""Checking submitted versions: what is due, who does it, and what comes of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from engine.checking import CheckReport, check_wheel
from tournament.players.models import (
    VERSION_TRANSITIONS,
    BotVersion,
    VersionGame,
    VersionState,
)
from tournament.store import leases
from tournament.store.clock import in_seconds
from tournament.store.errors import StoreUnavailableError
from tournament.store.leases import Lease, LeaseLostError, StoppedError
from tournament.store.queues import VALIDATION, Capacity
from tournament.store.services import drop_broken_connection, guard_each, put_blob, read_blob

logger = logging.getLogger(__name__)

STALE_SECONDS = 15.0
"""A version queued for longer is queued again: its message may be lost."""
MAX_QUEUED = 20
"""The most versions that wait in the broker's queue; the others wait in the table."""


@dataclass(frozen=True, slots=True)
class DueVersions:
    """The versions to hand to the broker now, the longest waiting first."""

    ids: tuple[int, ...]


def run_validation(
    *,
    version_id: int,
    owner: str | None = None,
    stop_seconds: Callable[[], float] = lambda: 0.0,
    trusted: bool | None = None,
) -> bool:
    """Check a version and record the verdict; False if it was not ours to check or nothing came of it.

    `stop_seconds` tells for how long the worker has known that it has to stop. Our own failures are
    recorded with the version, which is tried again, at last stuck. `trusted` plays it without a
    sandbox (by default as the settings say).
    """
    lease = leases.claim(
        BotVersion.objects.filter(bot__paused_reason=""),
        version_id,
        transitions=VERSION_TRANSITIONS,
        running=VersionState.RUNNING,
        seconds=settings.ARENA_LEASE_SECONDS,
        owner=owner or leases.own_name(),
    )
    if lease is None:
        return False
    try:
        report = _check(lease, stop_seconds, trusted=trusted)
        drop_broken_connection()
        log_sha256 = put_blob(report.log.encode()) if report.log else ""
        return _record(lease, report, log_sha256)
    except LeaseLostError:
        logger.warning("the check of version %s was taken over or withdrawn", version_id)
    except StoppedError:
        _give_back(lease, leases.FREE_FIELDS)
    except StoreUnavailableError as error:
        logger.warning("the check of version %s waits for the store: %s", version_id, error)
        drop_broken_connection()
        _give_back(lease, leases.free_for_now())
    except Exception as error:
        logger.exception("version %s could not be checked", version_id)
        drop_broken_connection()
        _fail(lease, f"{type(error).__name__}: {error}")
    return False


def _check(lease: Lease, stop_seconds: Callable[[], float], *, trusted: bool | None) -> CheckReport:
    version = BotVersion.objects.get(pk=lease.pk)
    return check_wheel(
        read_blob(version.wheel_sha256),
        settings.WHEEL_CACHE,
        keep_alive=leases.Heartbeat(
            BotVersion.objects.all(), lease, settings.ARENA_LEASE_SECONDS, stop_seconds
        ),
        trusted=settings.ARENA_TRUST_BOTS if trusted is None else trusted,
    )


@transaction.atomic
def _record(lease: Lease, report: CheckReport, log_sha256: str) -> bool:
    accepted = report.verdict == "accepted"
    recorded = VERSION_TRANSITIONS.move(
        leases.held(BotVersion.objects.all(), lease),
        VersionState.ACCEPTED if accepted else VersionState.REJECTED,
        only_from=VersionState.RUNNING,
        reason="\n".join(report.reasons),
        log_sha256=log_sha256,
        decided_at=Now(),
        **leases.FREE_FIELDS,
    )
    if not recorded:
        logger.warning("a late verdict on version %s was discarded", lease.pk)
        return False
    if accepted:
        VersionGame.objects.bulk_create(
            VersionGame(version_id=lease.pk, game=game.game, options=game.options)
            for game in report.games
        )
    return True


def _give_back(lease: Lease, fields: Mapping[str, Any]) -> None:
    VERSION_TRANSITIONS.move(
        leases.held(BotVersion.objects.all(), lease), VersionState.SUBMITTED, **fields
    )


def _fail(lease: Lease, detail: str) -> None:
    _count_failure(leases.held(BotVersion.objects.all(), lease), detail)


@transaction.atomic
def _count_failure(rows: QuerySet[BotVersion], detail: str) -> bool:
    version = rows.select_for_update().first()
    if version is None:
        return False
    attempts = version.attempts + 1
    is_stuck = attempts >= leases.MAX_ATTEMPTS
    VERSION_TRANSITIONS.move(
        rows,
        VersionState.STUCK if is_stuck else VersionState.SUBMITTED,
        only_from=VersionState.RUNNING,
        reason=f"our failure, not the bot's: {detail}" if is_stuck else version.reason,
        **leases.free_after_failure(attempts),
    )
    return True


def return_expired_versions() -> int:
    """Give back the versions whose worker shows no sign of life; how many those were."""
    rows = BotVersion.objects.filter(leases.expired(), state=VersionState.RUNNING)
    found = list(rows.values_list("pk", flat=True)[:100])
    return guard_each(
        found, lambda pk: _count_failure(rows.filter(pk=pk), "its worker died during the check")
    )


@transaction.atomic
def queue_versions(*, capacity: Capacity | None = None) -> DueVersions:
    """Mark what is to be checked now as queued, also what was queued long ago and not begun.

    Nothing that no worker takes is queued, and nothing again as long as none has been heard of.
    """
    capacity = capacity or Capacity.by_settings()
    if not capacity.of(VALIDATION):
        return DueVersions(())
    if not BotVersion.objects.filter(
        state__in=[VersionState.SUBMITTED, VersionState.QUEUED]
    ).exists():
        return DueVersions(())
    stale = Q(state=VersionState.QUEUED, queued_at__lt=in_seconds(-STALE_SECONDS))
    waiting = BotVersion.objects.filter(state=VersionState.QUEUED).exclude(stale).count()
    due = (
        BotVersion.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(
            Q(state=VersionState.SUBMITTED, run_after__lte=Now())
            | (stale if capacity.is_known else Q(pk__in=())),
            bot__paused_reason="",
        )
        .order_by("run_after", "pk")
    )
    ids = tuple(version.pk for version in due[: max(0, MAX_QUEUED - waiting)])
    VERSION_TRANSITIONS.move(
        BotVersion.objects.filter(pk__in=ids), VersionState.QUEUED, queued_at=Now()
    )
    BotVersion.objects.filter(pk__in=ids, state=VersionState.QUEUED).update(queued_at=Now())
    return DueVersions(ids)
