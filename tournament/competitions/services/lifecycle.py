"""A tournament's states: opened, closed, sealed, started; paused, resumed, cancelled."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from engine.errors import FormatError, UsageError
from engine.formats.base import SeededEntrant
from engine.formats.stages import check_stages, stage_lot
from engine.shuffle import commitment
from engine.standings import draw_lot
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    ENTRANT_TRANSITIONS,
    MATCH_TRANSITIONS,
    TOURNAMENT_TRANSITIONS,
    Entrant,
    EntrantBot,
    EntrantState,
    MatchState,
    PauseCause,
    Seeding,
    SeriesEntry,
    Shortage,
    Tournament,
    TournamentSecret,
    TournamentState,
    TrialState,
)
from tournament.competitions.selectors.engine_values import stage_plan, tournament_key
from tournament.competitions.selectors.entries import (
    Prospect,
    entrants_with_bots,
    prospects,
    rated_match_keys,
    spell_trial_state,
    trials_awaited,
    versions_awaited,
)
from tournament.competitions.services.entries import enter
from tournament.competitions.services.invitations import expire_invitations
from tournament.competitions.services.notices import send_notice, tell_players
from tournament.competitions.services.rounds import advance_round, cancel_matches
from tournament.competitions.services.stages import begin_stage
from tournament.competitions.services.trials import request_trials
from tournament.leaderboards.selectors import strengths
from tournament.leaderboards.services import void_results
from tournament.players.models import Bot, BotVersion, VersionState
from tournament.store.clock import read_clock


@transaction.atomic
def open_tournament(*, tournament: Tournament, secret: bytes | None = None) -> Tournament:
    """Open it for entries: draw the secret and publish the commitment to it.

    A `secret` of 32 bytes is given only for a demonstration that is to be repeated: who knows it knows
    all deals. Raises TournamentStateError unless it is a draft.
    """
    tournament = _lock(tournament)
    secret = secret or secrets.token_bytes(32)
    _move(tournament, TournamentState.OPEN, commitment=commitment(tournament.slug, secret))
    TournamentSecret.objects.create(tournament=tournament, secret=secret)
    _enter_for_season(tournament)
    return tournament


def _enter_for_season(tournament: Tournament) -> None:
    """Enter who is entered for its whole series, as long as there is room; the others get a notice."""
    entries = SeriesEntry.objects.filter(series__slots__tournament=tournament)
    for entry in entries.prefetch_related("bots__bot__owner").order_by("pk"):
        bots = [part.bot for part in entry.bots.all()]
        try:
            enter(tournament=tournament, bots=bots, by=bots[0].owner)
        except UsageError as error:
            tell_players(
                {bot.owner for bot in bots},
                tournament,
                f"{entry.name} is entered for the whole series, but not for {tournament.name}: {error}",
            )


@transaction.atomic
def close_tournament(*, tournament: Tournament, now: datetime | None = None) -> Tournament:
    """Close the entries, and seal if all that was uploaded in time has been checked and tried.

    Sealing freezes each entrant to its newest accepted version uploaded before the close that has passed its
    trials under this tournament's conditions, and publishes `pub`. If fewer than the least number have entered it is postponed or cancelled instead,
    and all who have entered get a notice; nothing has been sealed then, and the commitment stays good,
    since `pub` names the close that came to pass. As long as an uploaded version that might play is being checked or tried, it stays closed
    without a seal; call it again later. While one is stuck it is paused, with the version as the
    reason, and goes on with the first call that finds it decided, or being checked again. Raises TournamentStateError before the scheduled close (deals
    depend on that time, so it cannot be moved), and in any other state.
    """
    tournament = _lock(tournament)
    if tournament.state == TournamentState.OPEN:
        if (now or read_clock()) < tournament.closes_at:
            raise TournamentStateError(f"entries are open until {_spell(tournament.closes_at)}")
        missing = _missing_entrants(tournament)
        if missing and _postpone(tournament, missing, now or read_clock()):
            return tournament
        if missing:
            return cancel_tournament(tournament=tournament, reason=missing)
        _move(tournament, TournamentState.CLOSED)
        expire_invitations(tournament)
    elif tournament.state != TournamentState.CLOSED or tournament.pub:
        raise TournamentStateError(
            f"{tournament.name} is {tournament.get_state_display()}: it cannot be closed"
        )
    _lock_bots(tournament)
    unchecked = versions_awaited(tournament)  # first: who is accepted a moment later is seen below
    found = prospects(tournament)
    on_trial = trials_awaited(tournament, found)
    if on_trial:
        request_trials(tournament=tournament)
    _hold_while_stuck(tournament, _stuck(unchecked, on_trial))
    if not unchecked and not on_trial:
        _seal(tournament, found)
    return tournament


def _stuck(unchecked: Sequence[BotVersion], on_trial: Sequence[Prospect]) -> list[str]:
    """What the tournament awaits and the site could not do, in words."""
    return [
        f"{version}, uploaded before the close, which the site could not check"
        for version in unchecked
        if version.state == VersionState.STUCK
    ] + [
        f"{prospect.on_trial}, which the site could not try under these rules"
        for prospect in on_trial
        if any(trial.state == TrialState.STUCK for trial in prospect.trials)
    ]


def _missing_entrants(tournament: Tournament) -> str:
    """How many are missing, in words; empty if there are enough."""
    least, here = tournament.min_entrants, tournament.entrants.count()
    if least is None:
        return _not_for_so_many(tournament, here)
    if here >= least:
        return ""
    return f"{here} of the {least} entrants that it needs had entered when entries closed"


def _not_for_so_many(tournament: Tournament, here: int) -> str:
    """Why so many cannot play its stages, if it is to be postponed then; else its start says so."""
    if tournament.if_too_few != Shortage.POSTPONE:
        return ""
    stages = tournament.stages.select_related("tournament")
    try:
        check_stages(here, [stage_plan(stage) for stage in stages])
    except FormatError as error:
        return f"{here} had entered when entries closed: {error}"
    return ""


def _postpone(tournament: Tournament, missing: str, now: datetime) -> bool:
    """Move close and start, if that is the organiser's wish and it has not moved too often."""
    if (
        tournament.if_too_few != Shortage.POSTPONE
        or tournament.postponed_times >= tournament.postpone_most
    ):
        return False
    pause = tournament.starts_at - tournament.closes_at
    step = timedelta(minutes=tournament.postpone_minutes)
    tournament.closes_at += step
    if tournament.closes_at <= now:  # after an outage: entries stay open as long as they would have
        tournament.closes_at = (now + step).replace(microsecond=0)
    later = tournament.closes_at + pause - tournament.starts_at
    tournament.stages.filter(stops_at__isnull=False).update(stops_at=F("stops_at") + later)
    tournament.starts_at += later
    tournament.postponed_times += 1
    tournament.save(update_fields=["closes_at", "starts_at", "postponed_times"])
    send_notice(
        tournament,
        f"{tournament.name} is postponed, since {missing}: entries stay open until "
        f"{_spell(tournament.closes_at)}, and it starts at {_spell(tournament.starts_at)}",
    )
    return True


def _lock_bots(tournament: Tournament) -> None:
    """Wait for the uploads that have begun: one that was in time may be committed after the close.

    An upload locks its bot before its moment is noted, so what is not seen from here on is late.
    """
    entered = EntrantBot.objects.filter(tournament=tournament).values("bot")
    list(Bot.objects.select_for_update(no_key=True).filter(pk__in=entered).order_by("pk"))


def _hold_while_stuck(tournament: Tournament, stuck: Sequence[str]) -> None:
    """Pause it while versions that it awaits are stuck, so that its organiser sees why it waits."""
    if stuck and tournament.pause_cause in {"", PauseCause.STUCK_VERSION}:
        reason = (
            f"waits for {'; '.join(stuck)}: staff have to have it done again, or its owner withdraws "
            "that version"
        )
        _write_pause(tournament, PauseCause.STUCK_VERSION, reason)
    elif not stuck and tournament.pause_cause == PauseCause.STUCK_VERSION:
        _write_pause(tournament, "", "")


def _write_pause(tournament: Tournament, cause: str, reason: str) -> None:
    tournament.pause_cause, tournament.paused_reason = cause, reason[:500]
    tournament.save(update_fields=["pause_cause", "paused_reason"])


def _seal(tournament: Tournament, found: Mapping[int, Prospect]) -> None:
    for entrant in entrants_with_bots(tournament):
        _freeze(entrant, found)
    wheels = sorted(
        EntrantBot.objects.filter(
            tournament=tournament, entrant__state=EntrantState.ACTIVE
        ).values_list("bot__name", "version__wheel_sha256")
    )
    tournament.pub = make_pub(tournament.closes_at, wheels)
    tournament.save(update_fields=["pub"])


def make_pub(closes_at: datetime, wheels: list[tuple[str, str]]) -> str:
    """The canonical JSON that is published at the close (docs, "Verifiable deals", step 2).

    The scheduled close in UTC to the second, and the sorted [bot, wheel SHA-256 in hex] list; keys
    sorted, no spaces.
    """
    return json.dumps(
        {
            "close": closes_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "entrants": [list(pair) for pair in sorted(wheels)],
        },
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )


def _freeze(entrant: Entrant, found: Mapping[int, Prospect]) -> None:
    """Give each of its bots the version it plays with; drop it if one has none."""
    for part in entrant.bots.all():
        prospect = found.get(part.bot_id)
        version = None if prospect is None else prospect.version
        if version is None:
            why = part.bot.paused_reason or _why_none(entrant, prospect)
            ENTRANT_TRANSITIONS.move_row(
                entrant, EntrantState.WITHDRAWN, reason=f"{part.bot.name}: {why}"[:300]
            )
            return
        EntrantBot.objects.filter(pk=part.pk).update(version=version)


def _why_none(entrant: Entrant, prospect: Prospect | None) -> str:
    """Why a bot has no version, for everybody: what exactly failed is for its owner and the organiser."""
    if prospect is not None and prospect.failed:
        versions = ", ".join(trial.version.version for trial in prospect.failed)
        return f"{versions} did not pass the trial under the rules of this tournament"
    return (
        f"no version uploaded before the close was accepted for {entrant.tournament.game} "
        "as it is played here"
    )


@transaction.atomic
def start_tournament(*, tournament: Tournament, now: datetime | None = None) -> Tournament:
    """Seed the entrants as the organiser wished, and publish the first round.

    A start before `starts_at` brings that time forward. A tournament that its format cannot run with
    these entrants is cancelled, with the reason. Raises TournamentStateError while it is paused or
    not sealed, and in any other state than closed.
    """
    tournament = _lock(tournament)
    if tournament.state != TournamentState.CLOSED or not tournament.pub:
        raise TournamentStateError(f"{tournament.name} cannot start: {_why_not_yet(tournament)}")
    if tournament.paused_reason:
        raise TournamentStateError(f"{tournament.name} is paused: {tournament.paused_reason}")
    now = now or read_clock()
    if now < tournament.starts_at:
        tournament.starts_at = now
        tournament.save(update_fields=["starts_at"])
    _seed(tournament)
    try:
        _begin(tournament)
    except FormatError as error:
        here = tournament.entrants.filter(seed__isnull=False).count()
        return cancel_tournament(
            tournament=tournament, reason=f"it cannot be played with {here} entrants: {error}"
        )
    _move(tournament, TournamentState.RUNNING)
    advance_round(tournament=tournament)
    tournament.refresh_from_db()
    return tournament


def _why_not_yet(tournament: Tournament) -> str:
    where = f"it is {tournament.get_state_display()}"
    if tournament.state != TournamentState.CLOSED:
        return where
    awaited = ", ".join(
        [f"{version} ({version.get_state_display()})" for version in versions_awaited(tournament)]
        + [
            f"{prospect.on_trial} ({spell_trial_state(prospect)[1]})"
            for prospect in trials_awaited(tournament)
        ]
    )
    return f"{where} and not sealed yet" + (f", since it waits for {awaited}" if awaited else "")


def _seed(tournament: Tournament) -> None:
    """Number the entrants: by rating, then name; or by lot; or by the organiser's order, the rest behind it."""
    entrants = _by_rating(tournament)
    if tournament.seeding == Seeding.LOT:
        lot = stage_lot(tournament_key(tournament), tournament.slug, 0)
        entrants.sort(key=lambda entrant: draw_lot(lot, f"seed/{entrant.name}"))
    elif tournament.seeding == Seeding.HAND:
        entrants.sort(key=lambda entrant: (entrant.wanted_seed is None, entrant.wanted_seed))
    for seed, entrant in enumerate(entrants, 1):
        entrant.seed = seed
    Entrant.objects.bulk_update(entrants, ["seed"], batch_size=500)


@transaction.atomic
def order_entrants(*, tournament: Tournament, names: Sequence[str]) -> Tournament:
    """Put the entrants in an order, the strongest first; who is left out follows by rating.

    Raises TournamentStateError if seeds are not set by hand or it has begun, and for a name that is
    none of its entrants' or stands there twice.
    """
    tournament = _lock(tournament)
    if tournament.seeding != Seeding.HAND:
        raise TournamentStateError(
            f"the seeds of {tournament.name} follow from {tournament.get_seeding_display()}"
        )
    if tournament.state not in {TournamentState.OPEN, TournamentState.CLOSED}:
        raise TournamentStateError(
            f"{tournament.name} is {tournament.get_state_display()}: its seeds do not change now"
        )
    twice = sorted({name for name in names if list(names).count(name) > 1})
    entrants = {entrant.name: entrant for entrant in tournament.entrants.all()}
    unknown = [name for name in names if name not in entrants]
    if unknown or twice:
        raise TournamentStateError(
            "; ".join(
                [f"{name!r} is no entrant of {tournament.name}" for name in unknown[:5]]
                + [f"{name!r} stands there twice" for name in twice[:5]]
            )
        )
    order = {name: number for number, name in enumerate(names, 1)}
    for name, entrant in entrants.items():
        entrant.wanted_seed = order.get(name)
    Entrant.objects.bulk_update(entrants.values(), ["wanted_seed"], batch_size=500)
    return tournament


def _by_rating(tournament: Tournament) -> list[Entrant]:
    entrants = [
        entrant
        for entrant in entrants_with_bots(tournament)
        if entrant.state == EntrantState.ACTIVE
    ]
    versions = {
        entrant.pk: [part.version for part in entrant.bots.all() if part.version is not None]
        for entrant in entrants
    }
    shown = strengths(
        game=tournament.game,
        kind=tournament.kind,
        versions=[version for line in versions.values() for version in line],
    )
    entrants.sort(
        key=lambda entrant: (
            -sum(shown[version.pk] for version in versions[entrant.pk]),
            entrant.name,
        )
    )
    return entrants


def _begin(tournament: Tournament) -> None:
    """Begin the first stage. Raises FormatError if so many cannot play these stages."""
    entrants = [
        SeededEntrant(id=pk, seed=seed)
        for pk, seed in tournament.entrants.order_by("seed").values_list("pk", "seed")
        if seed is not None
    ]
    stages = list(tournament.stages.select_related("tournament"))
    check_stages(len(entrants), [stage_plan(stage) for stage in stages])
    begin_stage(stages[0], entrants)


@transaction.atomic
def cancel_tournament(*, tournament: Tournament, reason: str) -> Tournament:
    """End it without a result: what is being played is discarded, what was played counts for nothing.

    Its rated results are void from then on (`selectors.preview_cancellation` tells beforehand what
    that changes); its finished matches keep their records. Raises TournamentStateError if it has ended, or without a reason.
    """
    if not reason.strip():
        raise TournamentStateError("give a reason: the players will read it")
    tournament = _lock(tournament)
    _move(tournament, TournamentState.CANCELLED, cancelled_reason=reason.strip()[:500])
    expire_invitations(tournament)
    send_notice(tournament, f"{tournament.name} is cancelled: {reason.strip()}")
    cancel_matches(tournament.matches.all())
    logged = rated_match_keys(tournament.pairings.all())
    if logged:
        void_results(game=tournament.game, kind=tournament.kind, match_keys=logged)
    return tournament


@transaction.atomic
def pause_tournament(
    *, tournament: Tournament, reason: str, cause: PauseCause = PauseCause.ORGANISER
) -> Tournament:
    """Let no more of its matches begin; what is being played is finished and counts.

    Raises TournamentStateError if it has ended or is paused already (the reason that it has stays), or
    without a reason.
    """
    if not reason.strip():
        raise TournamentStateError("give a reason: the players will read it")
    tournament = _lock(tournament)
    if tournament.state in {TournamentState.FINISHED, TournamentState.CANCELLED}:
        raise TournamentStateError(f"{tournament.name} has ended")
    if tournament.paused_reason:
        raise TournamentStateError(
            f"{tournament.name} is paused already: {tournament.paused_reason}"
        )
    _write_pause(tournament, cause, reason.strip())
    MATCH_TRANSITIONS.move(
        tournament.matches.all(),
        MatchState.PENDING,
        only_from=MatchState.QUEUED,
        queued_at=None,
    )
    return tournament


@transaction.atomic
def resume_tournament(*, tournament: Tournament) -> Tournament:
    """Go on; matches that were stuck are tried again.

    Raises TournamentStateError unless it is paused, and while it waits for a version that is stuck:
    then it goes on by itself.
    """
    tournament = _lock(tournament)
    if not tournament.paused_reason:
        raise TournamentStateError(f"{tournament.name} is not paused")
    if tournament.pause_cause == PauseCause.STUCK_VERSION:
        raise TournamentStateError(
            f"{tournament.name} {tournament.paused_reason}; then it goes on by itself"
        )
    _write_pause(tournament, "", "")
    MATCH_TRANSITIONS.move(
        tournament.matches.all(),
        MatchState.PENDING,
        only_from=MatchState.STUCK,
        attempts=0,
        run_after=Now(),
    )
    MATCH_TRANSITIONS.move(  # queued just when it was paused; their messages came to nothing meanwhile
        tournament.matches.all(), MatchState.PENDING, only_from=MatchState.QUEUED, queued_at=None
    )
    return tournament


def _lock(tournament: Tournament) -> Tournament:
    return Tournament.objects.select_for_update().get(pk=tournament.pk)


def _move(tournament: Tournament, target: TournamentState, **fields: object) -> None:
    if not TOURNAMENT_TRANSITIONS.move_row(tournament, target, **fields):
        raise TournamentStateError(
            f"{tournament.name} is {tournament.get_state_display()} and cannot become "
            f"{target.label}"
        )


def _spell(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
