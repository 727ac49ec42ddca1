"""Trials at entry: asked for, queued, played, and what comes of a failed one.

A version that a tournament would freeze is played once under that tournament's own conditions, unless the check
after the upload has played just those. Asking is done by `dispatch`, which looks at what is entered; so nothing has
to remember to ask, and no order of entries, uploads and closes leaves a version untried.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from engine.checking import CHECK_SECONDS, CheckReport, check_wheel
from engine.sdk.timecontrol import TIME_CONTROLS, TimeControl
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    TRIAL_DECIDED,
    TRIAL_TO_PLAY,
    TRIAL_TRANSITIONS,
    EntryTrial,
    Tournament,
    TournamentState,
    TrialState,
)
from tournament.competitions.selectors.entries import prospects
from tournament.competitions.selectors.trials import (
    bots_to_try,
    conditions_to_try,
    tournaments_that_want,
    tournaments_with_trials,
    trial_conditions,
)
from tournament.competitions.selectors.waiting import matches_wait
from tournament.competitions.services.notices import tell_players
from tournament.players.models import VersionState
from tournament.store import leases
from tournament.store.clock import in_seconds
from tournament.store.errors import StoreUnavailableError
from tournament.store.leases import Lease, LeaseLostError, StoppedError
from tournament.store.queues import Capacity
from tournament.store.services import drop_broken_connection, guard_each, put_blob, read_often

logger = logging.getLogger(__name__)

STALE_SECONDS = 60.0
"""A trial queued for longer is queued again: its message may be lost. A worker may be at matches for that long."""
URGENT_SECONDS = 600.0
"""So long before a close its trials no longer stand back behind matches."""
RETRIABLE = (TrialState.STUCK, TrialState.FAILED)
TRIALS_PER_SLOT = 4
"""How many trials are in flight for each worker slot."""
_LONG = TIME_CONTROLS["long"]


def request_due_trials() -> int:
    """Ask for the trials that tournaments lack; of how many tournaments some were asked for."""
    return guard_each(list(tournaments_with_trials().order_by("pk")), _request)


def _request(tournament: Tournament) -> bool:
    keys = conditions_to_try(tournament)
    if not keys:
        return False
    bots = list(bots_to_try(tournament, keys).values_list("pk", flat=True))
    return bool(bots) and bool(request_trials(tournament=tournament, bots=bots))


@transaction.atomic
def request_trials(*, tournament: Tournament, bots: Collection[int] | None = None) -> int:
    """Ask for the trials of the versions that these bots (ids; by default all that have entered) would play with.

    How many versions those are. One trial a version and conditions, for all tournaments; it is due at the earliest of
    their closes. Harmless for any tournament at any time.
    """
    is_late = tournament.state == TournamentState.RUNNING
    versions = sorted(
        prospect.on_trial.pk
        for prospect in prospects(tournament, bots, late=is_late).values()
        if prospect.on_trial is not None
    )
    conditions = conditions_to_try(tournament)
    EntryTrial.objects.bulk_create(
        [
            EntryTrial(
                version_id=version,
                key=key,
                conditions=msgspec.to_builtins(each),
                due_at=tournament.closes_at,
            )
            for version in versions
            for key, each in conditions.items()
        ],
        batch_size=500,
        ignore_conflicts=True,
    )
    EntryTrial.objects.filter(
        version__in=versions, key__in=list(conditions), due_at__gt=tournament.closes_at
    ).update(due_at=tournament.closes_at)
    return len(versions)


@transaction.atomic
def queue_trials(*, capacity: Capacity | None = None) -> tuple[int, ...]:
    """Choose the trials to publish now and mark them queued: those that are due first.

    While matches wait for a worker only one is in flight, but for those that a close is near to: these go beside the
    matches. None is queued with a time control that no worker plays, and none again as long as none has been heard of.
    """
    capacity = capacity or Capacity.by_settings()
    open_trials = EntryTrial.objects.filter(state__in=TRIAL_TO_PLAY)
    if not open_trials.exists():
        return ()
    stale = Q(state=TrialState.QUEUED, queued_at__lt=in_seconds(-STALE_SECONDS))
    in_flight = open_trials.filter(state__in=[TrialState.QUEUED, TrialState.RUNNING])
    room = capacity.total * TRIALS_PER_SLOT - in_flight.exclude(stale).count()
    due = open_trials.filter(
        Q(state=TrialState.PENDING, run_after__lte=Now())
        | (stale if capacity.is_known else Q(pk__in=())),
        conditions__time_control__name__in=capacity.time_controls,
        version__state=VersionState.ACCEPTED,
        version__bot__paused_reason="",
    )
    if matches_wait():
        urgent = due.filter(due_at__lte=in_seconds(URGENT_SECONDS))
        if urgent.exists():
            due = urgent
        else:
            room = min(room, int(not in_flight.exclude(stale).exists()))
    ids = tuple(
        due.select_for_update(skip_locked=True, of=("self",))
        .order_by("due_at", "pk")
        .values_list("pk", flat=True)[: max(0, room)]
    )
    TRIAL_TRANSITIONS.move(
        EntryTrial.objects.filter(pk__in=ids), TrialState.QUEUED, queued_at=Now()
    )
    EntryTrial.objects.filter(pk__in=ids, state=TrialState.QUEUED).update(queued_at=Now())
    return ids


def run_trial(
    *,
    trial_id: int,
    owner: str | None = None,
    stop_seconds: Callable[[], float] = lambda: 0.0,
    trusted: bool | None = None,
) -> bool:
    """Try a version and record the verdict; False if it was not ours to try or nothing came of it.

    As `players.services.run_validation`: `stop_seconds` tells for how long the worker has known that it has to stop,
    our own failures are recorded with the trial, which is played again, at last stuck, and `trusted` plays it
    without a sandbox (by default as the settings say).
    """
    lease = leases.claim(
        EntryTrial.objects.filter(
            version__state=VersionState.ACCEPTED, version__bot__paused_reason=""
        ),
        trial_id,
        transitions=TRIAL_TRANSITIONS,
        running=TrialState.RUNNING,
        seconds=settings.ARENA_LEASE_SECONDS,
        owner=owner or leases.own_name(),
    )
    if lease is None:
        return False
    try:
        report = _try(lease, stop_seconds, trusted=trusted)
        drop_broken_connection()
        log_sha256 = put_blob(report.log.encode()) if report.log else ""
        return _record(lease, report, log_sha256)
    except LeaseLostError:
        logger.warning("trial %s was taken over", trial_id)
    except StoppedError:
        _give_back(lease, leases.FREE_FIELDS)
    except StoreUnavailableError as error:
        logger.warning("trial %s waits for the store: %s", trial_id, error)
        drop_broken_connection()
        _give_back(lease, leases.free_for_now())
    except Exception as error:
        logger.exception("trial %s could not be played", trial_id)
        drop_broken_connection()
        _count_failure(
            leases.held(EntryTrial.objects.all(), lease), f"{type(error).__name__}: {error}"
        )
    return False


def _give_back(lease: Lease, fields: Mapping[str, Any]) -> None:
    TRIAL_TRANSITIONS.move(
        leases.held(EntryTrial.objects.all(), lease), TrialState.PENDING, **fields
    )


def _try(lease: Lease, stop_seconds: Callable[[], float], *, trusted: bool | None) -> CheckReport:
    trial = EntryTrial.objects.select_related("version").get(pk=lease.pk)
    conditions = trial_conditions(trial)
    return check_wheel(
        read_often(trial.version.wheel_sha256),
        settings.WHEEL_CACHE,
        keep_alive=leases.Heartbeat(
            EntryTrial.objects.all(), lease, settings.ARENA_LEASE_SECONDS, stop_seconds
        ),
        trusted=settings.ARENA_TRUST_BOTS if trusted is None else trusted,
        seconds=_seconds(conditions.time_control),
        only=conditions,
    )


def _seconds(control: TimeControl) -> float:
    """The real time of a trial: that of a whole check, which holds a few games in the longest of the named controls."""
    return CHECK_SECONDS * max(1.0, control.game_cpu_ms / _LONG.game_cpu_ms)


@transaction.atomic
def _record(lease: Lease, report: CheckReport, log_sha256: str) -> bool:
    passed = report.verdict == "accepted"
    recorded = TRIAL_TRANSITIONS.move(
        leases.held(EntryTrial.objects.all(), lease),
        TrialState.PASSED if passed else TrialState.FAILED,
        only_from=TrialState.RUNNING,
        reason="\n".join(report.reasons),
        log_sha256=log_sha256,
        decided_at=Now(),
        **leases.FREE_FIELDS,
    )
    if not recorded:
        logger.warning("a late verdict of trial %s was discarded", lease.pk)
        return False
    if not passed:
        _tell_owner(EntryTrial.objects.select_related("version__bot__owner").get(pk=lease.pk))
    return True


def _tell_owner(trial: EntryTrial) -> None:
    """Tell the owner in which tournaments the version would not play."""
    version = trial.version
    for tournament in tournaments_that_want(trial):
        instead = prospects(
            tournament, [version.bot_id], late=tournament.state == TournamentState.RUNNING
        )[version.bot_id]
        if version.pk not in {failed.version_id for failed in instead.failed}:
            continue  # uploaded too late for this one, or an older one that would not play anyhow
        older = instead.version or instead.on_trial
        then = f"{older.version} stands in for it" if older is not None else "no other version can"
        tell_players(
            [version.bot.owner],
            tournament,
            f"{version} would not play in {tournament.name}: {trial.reason[:300]}. As things stand {then}",
        )


@transaction.atomic
def _count_failure(rows: QuerySet[EntryTrial], detail: str) -> bool:
    trial = rows.select_for_update().first()
    if trial is None:
        return False
    attempts = trial.attempts + 1
    is_stuck = attempts >= leases.MAX_ATTEMPTS
    return bool(
        TRIAL_TRANSITIONS.move(
            rows,
            TrialState.STUCK if is_stuck else TrialState.PENDING,
            only_from=TrialState.RUNNING,
            reason=f"our failure, not the bot's: {detail}" if is_stuck else trial.reason,
            **leases.free_after_failure(attempts),
        )
    )


def return_expired_trials() -> int:
    """Give back the trials whose worker shows no sign of life; how many those were."""
    rows = EntryTrial.objects.filter(leases.expired(), state=TrialState.RUNNING)
    found = list(rows.values_list("pk", flat=True)[:100])
    return guard_each(
        found, lambda pk: _count_failure(rows.filter(pk=pk), "its worker died during the trial")
    )


@transaction.atomic
def retry_trial(*, trial: EntryTrial) -> EntryTrial:
    """Put a trial back into the queue that is stuck, has failed, or that a worker has, for every tournament that has not
    been sealed. Whoever plays it now has lost it.

    Raises TournamentStateError for any other.
    """
    again = (*RETRIABLE, TrialState.QUEUED, TrialState.RUNNING)
    if trial.state not in again or not TRIAL_TRANSITIONS.move_row(
        trial,
        TrialState.PENDING,
        fence=trial.fence + 1,
        attempts=0,
        run_after=Now(),
        reason="",
        log_sha256="",
        decided_at=None,
        **leases.FREE_FIELDS,
    ):
        raise TournamentStateError(
            f"{trial} is {trial.get_state_display()}: only one that is stuck or has failed is played again"
        )
    return trial


@transaction.atomic
def cancel_trial(*, trial: EntryTrial, reason: str) -> EntryTrial:
    """Let a trial count as failed that is not decided, so that no tournament waits for it: an older version plays.

    Its owner is told. Raises TournamentStateError for one that is decided, or without a reason.
    """
    if not reason.strip():
        raise TournamentStateError("give a reason: its owner will read it")
    if trial.state in TRIAL_DECIDED or not TRIAL_TRANSITIONS.move_row(
        trial,
        TrialState.FAILED,
        fence=trial.fence + 1,
        reason=f"cancelled by staff: {reason.strip()}",
        decided_at=Now(),
        **leases.FREE_FIELDS,
    ):
        raise TournamentStateError(f"{trial} is {trial.get_state_display()} already")
    _tell_owner(EntryTrial.objects.select_related("version__bot__owner").get(pk=trial.pk))
    return trial
