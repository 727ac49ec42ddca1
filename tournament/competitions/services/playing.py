"""Playing a match: claimed, played with no transaction open, recorded in one guarded by the fence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from engine.agents import BotSource
from engine.formats import StageView, forfeit_outcome
from engine.outcome import Outcome
from engine.outcome import Termination as Ending
from engine.record import encode_record, is_ratable
from engine.referee import PlayedMatch
from engine.runner import run_match
from engine.wheels import mark_of, wheel_source
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    MATCH_TRANSITIONS,
    RULES_VERSION,
    Attempt,
    AttemptEnding,
    Match,
    MatchState,
    Pairing,
    PauseCause,
    RulingKind,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors.engine_values import (
    engine_pairing,
    match_spec,
    match_to_play,
    match_view,
    pairing_view,
    stage_format,
    versions_of,
)
from tournament.competitions.selectors.tables import record_name
from tournament.competitions.services.rounds import store_result
from tournament.competitions.services.rulings import note_ruling, spell_result
from tournament.players.models import Player
from tournament.players.services import Crash, count_match
from tournament.store import leases
from tournament.store.errors import StoreUnavailableError
from tournament.store.leases import Lease, LeaseLostError, StoppedError
from tournament.store.services import drop_broken_connection, put_packed, read_often

logger = logging.getLogger(__name__)


class Play(StrEnum):
    """What came of a message that said "play this match"."""

    RECORDED = "recorded"
    """Played, and its result is written."""
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


def play_match(
    *,
    match_id: int,
    owner: str | None = None,
    stop_seconds: Callable[[], float] = lambda: 0.0,
    trusted: bool | None = None,
    loaded: Match | None = None,
) -> Play:
    """Claim a match, play it, record its result.

    Harmless for any match at any time: of several at once one plays, and a late result writes no rows.
    `stop_seconds` tells for how long the worker has known that it has to stop. `trusted` plays without
    a sandbox (by default as the settings say); the match is then not rated. `loaded` is its row of
    `matches_to_play`; if somebody has claimed or cancelled the match since, it is not ours any more. Our own
    failures are recorded as attempts; after the fifth the match is stuck and its tournament pauses. That the
    store is away is no failure of the match.
    """
    lease = _claim(match_id, owner or leases.own_name(), loaded)
    if lease is None:
        return Play.NOT_OURS
    is_trusted = settings.ARENA_TRUST_BOTS if trusted is None else trusted
    try:
        match = loaded if loaded is not None else match_to_play(match_id)
        played = _play(match, lease, stop_seconds, trusted=is_trusted)
        drop_broken_connection()
        recorded = _record(match, lease, played, sandboxed=not is_trusted)
    except LeaseLostError:
        logger.warning("the play of match %s was taken over or cancelled", match_id)
        return Play.DISCARDED
    except StoppedError:
        release_match(lease)
        return Play.RELEASED
    except StoreUnavailableError as error:
        logger.warning("match %s waits for the store: %s", match_id, error)
        drop_broken_connection()
        _put_off(lease)
        return Play.PUT_OFF
    except Exception as error:
        logger.exception("match %s could not be played", match_id)
        drop_broken_connection()
        count_failure(lease, AttemptEnding.FAILED, f"{type(error).__name__}: {error}")
        return Play.FAILED
    return Play.RECORDED if recorded else Play.DISCARDED


@transaction.atomic
def _claim(match_id: int, owner: str, loaded: Match | None = None) -> Lease | None:
    playable = Tournament.objects.filter(
        pk=OuterRef("tournament"),
        state=TournamentState.RUNNING,
        paused_reason="",
        rules_version=RULES_VERSION,
    )
    lease = leases.claim(
        Match.objects.filter(Exists(playable)),
        match_id,
        transitions=MATCH_TRANSITIONS,
        running=MatchState.RUNNING,
        seconds=settings.ARENA_LEASE_SECONDS,
        owner=owner,
        fence=None if loaded is None else loaded.fence,
    )
    if lease is not None:
        Attempt.objects.create(match_id=match_id, fence=lease.fence, worker=owner)
    return lease


def _play(
    match: Match, lease: Lease, stop_seconds: Callable[[], float], *, trusted: bool
) -> PlayedMatch:
    spec = match_spec(match)
    sources = [
        [wheel_source_of(bot.wheel or "") for bot in entrant.bots] for entrant in spec.entrants
    ]
    heartbeat = leases.Heartbeat(
        Match.objects.all(), lease, settings.ARENA_LEASE_SECONDS, stop_seconds
    )
    return run_match(spec, sources, trusted=trusted, keep_alive=heartbeat)


def wheel_source_of(wheel: str) -> BotSource:
    """A stored wheel (``sha256:…``), unpacked into the site's cache of wheels, and as it was unpacked."""
    source, mark = _unpack(wheel, settings.WHEEL_CACHE)
    if mark_of(Path(source.folder)) != mark:  # the cache was cleared, or somebody changed it
        _unpack.cache_clear()
        source, _ = _unpack(wheel, settings.WHEEL_CACHE)
    return source


@lru_cache(maxsize=1024)
def _unpack(wheel: str, cache: Path) -> tuple[BotSource, str]:
    source = wheel_source(read_often(wheel.removeprefix("sha256:")), cache)
    return source, mark_of(Path(source.folder))


def _record(match: Match, lease: Lease, played: PlayedMatch, *, sandboxed: bool) -> bool:
    """Write the blobs, then everything else in one transaction; False for a late result."""
    record_sha256 = put_packed(encode_record(played.record))
    logs_sha256 = put_packed(msgspec.json.encode(played.logs)) if _says_anything(played) else ""
    with transaction.atomic():
        recorded = MATCH_TRANSITIONS.move(
            leases.held(Match.objects.all(), lease),
            MatchState.FINISHED,
            only_from=MatchState.RUNNING,
            rated=match.rated and sandboxed and is_ratable(played.record),
            is_sandboxed=sandboxed,
            termination=str(played.record.outcome.termination),
            record_sha256=record_sha256,
            logs_sha256=logs_sha256,
            digest=played.record.digest,
            wall_ms=played.record.timing.wall_ms,
            finished_at=Now(),
            **leases.FREE_FIELDS,
        )
        if not recorded:
            logger.warning("a late result of match %s was discarded", lease.pk)
            return False
        _decide(match.pairing, match_view(match), played.record.outcome)
        end_attempt(lease, AttemptEnding.RECORDED)
        _count_match(match, played)
    return True


def _says_anything(played: PlayedMatch) -> bool:
    return any(seat.log.text or seat.log.traceback or seat.fault for seat in played.logs)


CRASHES = frozenset({Ending.CRASH, Ending.MEMORY})
"""The faults by which a bot breaks down; a slow or a wrong answer is its play."""


def _count_match(match: Match, played: PlayedMatch) -> None:
    """Count the match for every version in it: one that crashes again and again is set aside."""
    crashes = _crashes(match, played)
    versions = {
        version: crashes.get((entrant, bot))
        for entrant, playing in enumerate(versions_of(match))
        for bot, version in enumerate(playing)
    }
    for version in sorted(versions):
        if count_match(version_id=version, crash=versions[version]):
            logger.warning("version %s is set aside for its crashes, after %s", version, match)


def _crashes(match: Match, played: PlayedMatch) -> dict[tuple[int, int], Crash]:
    """By entrant and bot how it crashed. A fault of no single seat is that of all its entrant's bots."""
    crashes = {}
    entrants = played.record.entrants
    for fault in played.record.outcome.faults:
        bots = range(len(entrants[fault.entrant].bots))
        if fault.seat is not None:  # an entrant's seats lie as far apart as there are entrants
            bots = bots[fault.seat // len(entrants) % len(bots) :][:1]
        for bot in bots if fault.kind in CRASHES else ():
            log = _spell_log(match, played, fault.entrant, bot)
            crashes[fault.entrant, bot] = Crash(str(match), fault.detail, log)
    return crashes


def _spell_log(match: Match, played: PlayedMatch, entrant: int, bot: int) -> str:
    """What that bot left in its last sitting."""
    logs = [log for log in played.logs if (log.entrant, log.bot) == (entrant, bot)]
    last = max((log.sitting for log in logs), default=0)
    name = record_name(match.tournament, match.pairing.key)
    parts = [
        part
        for log in logs
        if log.sitting == last
        for part in (log.log.text, log.log.traceback, log.fault, log.debug_command(name))
    ]
    return "\n".join(filter(None, parts))


def _decide(pairing: Pairing, view: StageView, outcome: Outcome) -> None:
    result = stage_format(pairing.round.stage).decide(view, engine_pairing(pairing), outcome)
    store_result(pairing, result)


@transaction.atomic
def release_match(lease: Lease) -> bool:
    """Give a match back unplayed, without counting a failure; False if the claim was lost."""
    released = MATCH_TRANSITIONS.move(
        leases.held(Match.objects.all(), lease), MatchState.PENDING, **leases.FREE_FIELDS
    )
    if released:
        end_attempt(lease, AttemptEnding.RELEASED)
    return bool(released)


@transaction.atomic
def _put_off(lease: Lease) -> None:
    """Give a match back until the store may be there again. An attempt that could only fail is none, so however
    long that takes, neither is the match ever stuck nor do its attempts pile up.
    """
    if MATCH_TRANSITIONS.move(
        leases.held(Match.objects.all(), lease), MatchState.PENDING, **leases.free_for_now()
    ):
        Attempt.objects.filter(match_id=lease.pk, fence=lease.fence).delete()


@transaction.atomic
def count_failure(
    lease: Lease, ending: AttemptEnding, detail: str, *, only_if: Q | None = None
) -> bool:
    """Note a failure of our own: tried again later, after the fifth stuck; False if the claim was lost.

    `only_if` narrows the states of the row in which it counts. The tournament is locked before the
    match, as by whoever pauses or cancels it, so that neither waits for the other for ever.
    """
    Tournament.objects.select_for_update(of=("self",)).filter(matches=lease.pk).first()
    rows = leases.held(Match.objects.filter(only_if or Q()), lease)
    match = rows.select_for_update(of=("self",)).select_related("pairing").first()
    if match is None:
        return False
    attempts = match.attempts + 1
    is_stuck = attempts >= leases.MAX_ATTEMPTS
    moved = MATCH_TRANSITIONS.move(
        rows,
        MatchState.STUCK if is_stuck else MatchState.PENDING,
        only_from=MatchState.RUNNING,
        **leases.free_after_failure(attempts),
    )
    end_attempt(lease, ending, detail)
    if is_stuck:
        _pause(match, ending)
    return bool(moved)


def _pause(match: Match, ending: AttemptEnding) -> None:
    """Pause its tournament, in words for everybody: what exactly happened stands in the attempts."""
    reason = (
        f"{match.pairing.key} could not be played in {leases.MAX_ATTEMPTS} attempts; the last ended "
        f"so: {ending.label}. Its attempts in the admin tell more"
    )
    Tournament.objects.filter(pk=match.tournament_id, paused_reason="").update(
        paused_reason=reason[:500], pause_cause=PauseCause.FAILURE
    )


def end_attempt(lease: Lease, ending: AttemptEnding, detail: str = "") -> None:
    """Note how the attempt of a claim ended."""
    Attempt.objects.filter(
        match_id=lease.pk, fence=lease.fence, ending=AttemptEnding.RUNNING
    ).update(ending=ending, ended_at=Now(), detail=detail[:2000])


@transaction.atomic
def forfeit_match(
    *, match: Match, offenders: Sequence[int], reason: str, by: Player | None = None
) -> Match:
    """Decide a match against `offenders` (entrant ids) without playing it; there is no record of it.

    What is being played is discarded; it is not rated. Raises TournamentStateError if it is decided or
    the tournament does not run, FormatError for offenders that are not in it.
    """
    tournament = Tournament.objects.select_for_update().get(pk=match.tournament_id)
    pairing = Pairing.objects.select_related("round__stage__tournament").get(pk=match.pairing_id)
    entrants = list(pairing.entrants.values_list("entrant", flat=True))
    if tournament.state != TournamentState.RUNNING or pairing.decided_by:
        raise TournamentStateError(f"{pairing.key} is decided, or {tournament.name} does not run")
    if not reason.strip():
        raise TournamentStateError("give a reason: the players will read it")
    indexes = [entrants.index(offender) if offender in entrants else -1 for offender in offenders]
    outcome = forfeit_outcome(len(entrants), indexes, reason.strip())
    match.refresh_from_db()
    if not MATCH_TRANSITIONS.move_row(
        match,
        MatchState.FINISHED,
        fence=match.fence + 1,
        rated=False,
        termination=str(Ending.FORFEIT),
        finished_at=Now(),
        **leases.FREE_FIELDS,
    ):
        raise TournamentStateError(f"{pairing.key} is {match.get_state_display()}")
    Attempt.objects.filter(match=match, ending=AttemptEnding.RUNNING).update(
        ending=AttemptEnding.CANCELLED, ended_at=Now(), detail=reason.strip()
    )
    _decide(pairing, pairing_view(pairing.round.stage, pairing), outcome)
    Pairing.objects.filter(pk=pairing.pk).update(is_ruled=True)
    fresh = Pairing.objects.prefetch_related("entrants__entrant").get(pk=pairing.pk)
    note_ruling(
        tournament=tournament,
        kind=RulingKind.FORFEITED,
        subject=pairing.key,
        reason=reason,
        by=by,
        published=pairing.round,
        before="open",
        after=spell_result(fresh),
    )
    return match
