"""Playing a batch: claimed, played with no transaction open, recorded in one guarded by the fence.

A claim on a scrimmage is for one batch, the next one. So a crash loses no more than that, and no batch is counted
twice: it stands under its number, and only who holds the claim writes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Coalesce, Now

from engine.comparison import scores_of_sets
from engine.outcome import Termination
from engine.record import encode_record
from engine.referee import PlayedMatch
from engine.runner import run_match
from tournament.competitions.models import RULES_VERSION
from tournament.competitions.selectors.tables import fault_words
from tournament.competitions.services.playing import wheel_source_of
from tournament.players.models import VersionState
from tournament.scrimmages.models import (
    SCRIMMAGE_TRANSITIONS,
    Answer,
    Batch,
    Scrimmage,
    ScrimmageState,
)
from tournament.scrimmages.selectors import batch_spec, judge, last_batch, sets_of
from tournament.store import leases
from tournament.store.errors import StoreUnavailableError
from tournament.store.leases import Lease, LeaseLostError, StoppedError
from tournament.store.services import drop_broken_connection, put_packed

logger = logging.getLogger(__name__)


class BatchPlay(StrEnum):
    """What came of a message that said "play the next batch"."""

    RECORDED = "recorded"
    """Played, and its sets are written."""
    NOT_OURS = "not_ours"
    """Another has it, or it is not to be played now."""
    DISCARDED = "discarded"
    """Played in part or whole, but the claim was lost: nothing is written."""
    RELEASED = "released"
    """Given back, since the worker has to stop."""
    PUT_OFF = "put_off"
    """Given back, since the store is away: it is played once that answers."""
    FAILED = "failed"
    """Our own failure: it is played again later."""


def play_batch(
    *,
    scrimmage_id: int,
    owner: str | None = None,
    stop_seconds: Callable[[], float] = lambda: 0.0,
    trusted: bool | None = None,
) -> BatchPlay:
    """Claim a scrimmage, play its next batch, record it.

    Harmless for any scrimmage at any time: of several at once one plays, and a late result writes no rows.
    `stop_seconds` tells for how long the worker has known that it has to stop. `trusted` plays without a sandbox
    (by default as the settings say). Our own failures are counted; after the fifth in a row it is stuck.
    """
    lease = _claim(scrimmage_id, owner or leases.own_name())
    if lease is None:
        return BatchPlay.NOT_OURS
    is_trusted = settings.ARENA_TRUST_BOTS if trusted is None else trusted
    try:
        scrimmage = Scrimmage.objects.select_related("first__bot", "other__bot").get(
            pk=scrimmage_id
        )
        number = last_batch(scrimmage) + 1
        played = _play(scrimmage, number, lease, stop_seconds, trusted=is_trusted)
        drop_broken_connection()
        recorded = _record(scrimmage, number, lease, played, sandboxed=not is_trusted)
    except LeaseLostError:
        logger.warning("a batch of scrimmage %s was taken over or cancelled", scrimmage_id)
        return BatchPlay.DISCARDED
    except StoppedError:
        _release(lease, leases.FREE_FIELDS)
        return BatchPlay.RELEASED
    except StoreUnavailableError as error:
        logger.warning("a batch of scrimmage %s waits for the store: %s", scrimmage_id, error)
        drop_broken_connection()
        _release(lease, leases.free_for_now())
        return BatchPlay.PUT_OFF
    except Exception as error:
        logger.exception("a batch of scrimmage %s could not be played", scrimmage_id)
        drop_broken_connection()
        count_failure(lease, f"{type(error).__name__}: {error}")
        return BatchPlay.FAILED
    return BatchPlay.RECORDED if recorded else BatchPlay.DISCARDED


@transaction.atomic
def _claim(scrimmage_id: int, owner: str) -> Lease | None:
    playable = Scrimmage.objects.filter(
        rules_version=RULES_VERSION,
        first__state=VersionState.ACCEPTED,
        other__state=VersionState.ACCEPTED,
        first__bot__paused_reason="",
        other__bot__paused_reason="",
    )
    lease = leases.claim(
        playable,
        scrimmage_id,
        transitions=SCRIMMAGE_TRANSITIONS,
        running=ScrimmageState.RUNNING,
        seconds=settings.ARENA_LEASE_SECONDS,
        owner=owner,
    )
    if lease is not None:
        Scrimmage.objects.filter(pk=lease.pk).update(started_at=Coalesce("started_at", Now()))
    return lease


def _play(
    scrimmage: Scrimmage,
    number: int,
    lease: Lease,
    stop_seconds: Callable[[], float],
    *,
    trusted: bool,
) -> PlayedMatch:
    spec = batch_spec(scrimmage, number)
    sources = [
        [wheel_source_of(bot.wheel or "") for bot in entrant.bots] for entrant in spec.entrants
    ]
    heartbeat = leases.Heartbeat(
        Scrimmage.objects.all(), lease, settings.ARENA_LEASE_SECONDS, stop_seconds
    )
    return run_match(spec, sources, trusted=trusted, keep_alive=heartbeat)


def _record(
    scrimmage: Scrimmage, number: int, lease: Lease, played: PlayedMatch, *, sandboxed: bool
) -> bool:
    """Write the blobs, then everything else in one transaction; False for a late result.

    As in `arena compare`, a fault ends it, and the match that it ended counts nothing: who knows how the rest
    would have gone.
    """
    record = played.record
    is_faulty = record.outcome.termination is not Termination.COMPLETED
    scores = [] if is_faulty else scores_of_sets(record)
    judged = judge(scrimmage, [*sets_of(scrimmage), *scores], is_faulty=is_faulty)
    record_sha256 = put_packed(encode_record(record))
    logs_sha256 = put_packed(msgspec.json.encode(played.logs)) if _says_anything(played) else ""
    with transaction.atomic():
        recorded = SCRIMMAGE_TRANSITIONS.move(
            leases.held(Scrimmage.objects.all(), lease),
            ScrimmageState.FINISHED if judged.is_decided else ScrimmageState.WAITING,
            only_from=ScrimmageState.RUNNING,
            counts=list(judged.findings.counts),
            likelihood_ratio=judged.findings.ratio,
            answer=Answer(str(judged.findings.verdict)) if judged.is_decided else "",
            reason="\n".join(fault_words(record)),
            ended_at=Now() if judged.is_decided else None,
            run_after=Now(),
            attempts=0,
            failure="",
            **leases.FREE_FIELDS,
        )
        if not recorded:
            logger.warning("a late batch of scrimmage %s was discarded", lease.pk)
            return False
        Batch.objects.create(
            scrimmage=scrimmage,
            number=number,
            scores=scores,
            termination=str(record.outcome.termination),
            digest=record.digest,
            record_sha256=record_sha256,
            logs_sha256=logs_sha256,
            is_sandboxed=sandboxed,
            wall_ms=record.timing.wall_ms,
            fence=lease.fence,
            worker=lease.owner,
        )
    return True


def _says_anything(played: PlayedMatch) -> bool:
    return any(seat.log.text or seat.log.traceback or seat.fault for seat in played.logs)


def _release(lease: Lease, fields: Mapping[str, Any]) -> None:
    """Give it back unplayed, without counting a failure."""
    SCRIMMAGE_TRANSITIONS.move(
        leases.held(Scrimmage.objects.all(), lease), ScrimmageState.WAITING, **fields
    )


@transaction.atomic
def count_failure(lease: Lease, detail: str, *, only_if: Q | None = None) -> bool:
    """Note a failure of our own: tried again later, after the fifth in a row stuck; False if the claim was lost.

    `only_if` narrows the states of the row in which it counts.
    """
    rows = leases.held(Scrimmage.objects.filter(only_if or Q()), lease)
    scrimmage = rows.select_for_update().first()
    if scrimmage is None:
        return False
    attempts = scrimmage.attempts + 1
    is_stuck = attempts >= leases.MAX_ATTEMPTS
    moved = SCRIMMAGE_TRANSITIONS.move(
        rows,
        ScrimmageState.STUCK if is_stuck else ScrimmageState.WAITING,
        only_from=ScrimmageState.RUNNING,
        failure=detail[:2000],
        reason=f"{attempts} attempts failed by our fault, not the bots'" if is_stuck else "",
        **leases.free_after_failure(attempts),
    )
    return bool(moved)
