"""Rounds: published from what the formats plan, closed in their order, their results rated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from fractions import Fraction

import msgspec
from django.db import transaction
from django.db.models import F, Max, Prefetch, QuerySet
from django.db.models.functions import Now

from engine.bundle import ResultPart, result_part
from engine.errors import FormatError
from engine.formats import base as formats
from engine.formats.base import SCORE_DENOMINATOR
from engine.formats.stages import match_key, split_match_key
from engine.record import is_rated_contest
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    ENTRANT_TRANSITIONS,
    MATCH_TRANSITIONS,
    PLAYED,
    ROUND_TRANSITIONS,
    TOURNAMENT_TRANSITIONS,
    Attempt,
    AttemptEnding,
    Entrant,
    EntrantBot,
    EntrantState,
    Match,
    MatchState,
    Pairing,
    PairingEntrant,
    Round,
    RoundState,
    Stage,
    StageEntrant,
    SupersededMatch,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors.engine_values import (
    engine_pairing_result,
    running_stage,
    stage_contest,
    stage_format,
    stage_options,
    stage_view,
)
from tournament.competitions.services.stages import (
    begin_next_stage,
    end_stage,
    opens_no_more,
    rests,
    write_places,
)
from tournament.leaderboards.services import RatedResult, RatedTeam, append_results
from tournament.store.clock import read_clock
from tournament.store.leases import FREE_FIELDS

MAX_OPEN_PAIRINGS = 500
"""A format that can pair ahead does so until so many pairings are open."""


@transaction.atomic
def seal_results(*, tournament: Tournament, until: datetime) -> Tournament:
    """Show the results of all rounds that are published from now on only from `until` on.

    What is public stays so; what is sealed already is sealed until then instead. Raises
    TournamentStateError for a time that is not to come, and if nothing is left to seal.
    """
    tournament = Tournament.objects.select_for_update().get(pk=tournament.pk)
    has_ended = tournament.state in {TournamentState.FINISHED, TournamentState.CANCELLED}
    sealed = Round.objects.filter(stage__tournament=tournament, published_at__isnull=True)
    if has_ended and not sealed.exists():
        raise TournamentStateError(f"{tournament.name} has ended: its results are public")
    if until <= read_clock():
        raise TournamentStateError("results are sealed until a time to come: choose a later one")
    tournament.results_at = until.replace(microsecond=0)
    tournament.save(update_fields=["results_at"])
    return tournament


@transaction.atomic
def publish_results(*, tournament: Tournament) -> bool:
    """Make the sealed results public and rate them, in the order of the rounds; whether any were sealed.

    No later round is sealed then, until `seal_results` is called again. Nothing of a cancelled tournament
    is rated.
    """
    tournament = Tournament.objects.select_for_update().get(pk=tournament.pk)
    sealed = list(
        Round.objects.filter(stage__tournament=tournament, published_at__isnull=True)
        .select_related("stage__tournament")
        .order_by("stage__index", "index")
    )
    Round.objects.filter(pk__in=[each.pk for each in sealed]).update(published_at=Now())
    tournament.results_at = None
    tournament.save(update_fields=["results_at"])
    for each in sealed:
        is_due = each.state == RoundState.COMPLETE and not each.is_partial
        if is_due and tournament.state != TournamentState.CANCELLED:
            rate_round(each)
    return bool(sealed)


@transaction.atomic
def advance_round(*, tournament: Tournament) -> bool:
    """Close the rounds that are decided, in their order; publish the next ones; finish at the end.

    When a stage is over the next one begins at once, with the round that it begins with. Whether anything changed. The tournament's row is locked, so many that finish a round's last match
    at once make one next round. Harmless at any time.
    """
    tournament = Tournament.objects.select_for_update().get(pk=tournament.pk)
    if tournament.state != TournamentState.RUNNING:
        return False
    changed = False
    stage = running_stage(tournament)
    while stage is not None:
        has_moved, view = _advance_stage(stage)
        changed |= has_moved
        if view is None:
            return changed
        changed = True
        end_stage(stage, view)
        stage = begin_next_stage(stage, view)
    _finish(tournament)
    return True


def _advance_stage(stage: Stage) -> tuple[bool, formats.StageView | None]:
    """Bring a stage as far as its results allow: whether anything changed, and its view if it is over."""
    changed = False
    while True:
        changed |= _close_rounds(stage)
        if not _may_go_on(stage):
            return changed, None
        view = stage_view(stage)
        planned = None if _is_stopped(stage) else _plan_round(stage, view)
        if planned is None:
            if not all(published.is_complete for published in view.rounds):
                return changed, None
            if stage.rounds.filter(is_partial=True).exists():
                raise FormatError("the rounds after a ruling cannot be paired again")
            if stage.rounds.exclude(state=RoundState.COMPLETE).exists():
                continue  # decided since we looked: it has to be closed first
            return changed, view
        _publish(stage, planned, view)
        changed = True


def _is_stopped(stage: Stage) -> bool:
    return opens_no_more(stage, read_clock())


def _close_rounds(stage: Stage) -> bool:
    """Close what is decided up to the first round that is not; so the log's order is that of the rounds.

    The batches of a continuous format close each by itself: one slow match holds up no other's rating.
    """
    closed = False
    for opened in stage.rounds.filter(state=RoundState.OPEN).order_by("index"):
        if opened.is_partial or opened.pairings.filter(decided_by="").exists():
            if stage_format(stage).is_continuous:
                continue
            break
        if opened.published_at is not None:
            rate_round(opened)
        ROUND_TRANSITIONS.move_row(opened, RoundState.COMPLETE, completed_at=Now())
        closed = True
    return closed


def rate_round(closed: Round) -> None:
    """Append the rating events of a complete round, in the order of the match keys.

    What is in the log already is left out. In the caller's transaction.
    """
    tournament = closed.stage.tournament
    rated = (
        Match.objects.filter(
            pairing__round=closed,
            pairing__decided_by__in=PLAYED,
            state=MatchState.FINISHED,
            rated=True,
        )
        .select_related("pairing__tournament")
        .prefetch_related(
            Prefetch("pairing__entrants", PairingEntrant.objects.select_related("entrant")),
            Prefetch(
                "pairing__entrants__entrant__bots",
                EntrantBot.objects.select_related("version__bot"),
            ),
        )
    )
    results = [
        RatedResult(
            match_key=match.pairing.rating_key,
            teams=tuple(_team(part) for part in match.pairing.entrants.all()),
        )
        for match in sorted(rated, key=lambda match: match.pairing.key)
    ]
    if results:
        append_results(game=tournament.game, kind=tournament.kind, results=results)


def _team(part: PairingEntrant) -> RatedTeam:
    versions = [bot.version for bot in part.entrant.bots.all() if bot.version is not None]
    assert part.place is not None  # the pairing is decided
    return RatedTeam(
        members=tuple((version.bot.name, version.version) for version in versions),
        place=part.place,
    )


def _plan_round(stage: Stage, view: formats.StageView) -> formats.Round | None:
    """The round that the format pairs next; None if it has no other, or none yet."""
    try:
        return stage_format(stage).next_round(view)
    except FormatError:
        if all(published.is_complete for published in view.rounds):
            raise  # else it waits for a round that is still open
        return None


def _may_go_on(stage: Stage) -> bool:
    """Whether there may be a round to publish, or nothing left to wait for.

    While one match holds up a stage whose rounds are all published, this spares reading all of it.
    """
    if stage.rounds.filter(is_partial=True).exists():
        return True
    now = read_clock()
    if rests(stage, now) and not opens_no_more(stage, now):
        return False
    undecided = Pairing.objects.filter(round__stage=stage, decided_by="").count()
    if not undecided or undecided >= MAX_OPEN_PAIRINGS:
        return not undecided
    all_rounds = stage_format(stage).round_count(stage.entrants.count(), stage_options(stage))
    return all_rounds is None or stage.rounds.count() < all_rounds


def _publish(stage: Stage, planned: formats.Round, view: formats.StageView) -> None:
    tournament = stage.tournament
    is_sealed = tournament.results_at is not None and tournament.results_at > read_clock()
    published, created = Round.objects.get_or_create(
        stage=stage,
        index=planned.index,
        defaults={
            "state": RoundState.OPEN,
            "opened_at": Now(),
            "published_at": None if is_sealed else Now(),
            "absent": sorted(view.inactive),
            "awaited": _awaited(stage, view),
        },
    )
    missing = planned.pairings if created else _missing(published, planned)
    _add_pairings(stage, published, missing)


def _awaited(stage: Stage, view: formats.StageView) -> list[str]:
    """What was open when a batch was picked: it was picked without knowing it."""
    if not stage_format(stage).is_continuous:
        return []
    return [
        match_key(stage.index, pairing.key)
        for published in view.rounds
        for pairing in published.pairings
        if pairing.result is None
    ]


def _missing(published: Round, planned: formats.Round) -> tuple[formats.Pairing, ...]:
    """The pairings that a ruling took from a round; from now on it has all again."""
    if not published.is_partial:
        return ()
    Round.objects.filter(pk=published.pk).update(is_partial=False)
    kept = {
        split_match_key(pairing.key)[1]: tuple(part.entrant_id for part in pairing.entrants.all())
        for pairing in published.pairings.prefetch_related("entrants")
    }
    moved = [
        pairing.key
        for pairing in planned.pairings
        if kept.get(pairing.key, pairing.entrants) != pairing.entrants
    ]
    if moved:
        raise FormatError(f"{', '.join(moved)} would be paired otherwise after the ruling")
    return tuple(pairing for pairing in planned.pairings if pairing.key not in kept)


def _add_pairings(stage: Stage, published: Round, planned: Sequence[formats.Pairing]) -> None:
    tournament = stage.tournament
    keys = {pairing.slot: match_key(stage.index, pairing.key) for pairing in planned}
    editions = _last_editions(tournament, list(keys.values()))
    pairings = Pairing.objects.bulk_create(
        [
            Pairing(
                tournament=tournament,
                round=published,
                key=keys[pairing.slot],
                slot=pairing.slot,
                is_bye=pairing.is_bye,
                edition=1 + editions.get(keys[pairing.slot], 0),
                decided_by=str(pairing.result.decided_by) if pairing.result else "",
            )
            for pairing in planned
        ],
        batch_size=500,
    )
    both = list(zip(pairings, planned, strict=True))
    PairingEntrant.objects.bulk_create(
        [part for row, pairing in both for part in _parts(row, pairing)], batch_size=500
    )
    rated = is_rated(stage)
    Match.objects.bulk_create(
        [
            Match(tournament=tournament, pairing=row, rated=rated)
            for row, pairing in both
            if pairing.result is None
        ],
        batch_size=500,
    )


def _last_editions(tournament: Tournament, keys: Sequence[str]) -> dict[str, int]:
    """By key the number of the last edition that a ruling took back."""
    if not SupersededMatch.objects.filter(tournament=tournament).exists():
        return {}
    rows = SupersededMatch.objects.filter(tournament=tournament, key__in=keys)
    return dict(rows.order_by().values_list("key").annotate(Max("edition")))


def is_rated(stage: Stage) -> bool:
    """Whether matches of the stage are rated: if the organiser says so and they have boards enough."""
    return stage.tournament.rated and is_rated_contest(stage_contest(stage))


def _parts(row: Pairing, pairing: formats.Pairing) -> Iterable[PairingEntrant]:
    for index, entrant in enumerate(pairing.entrants):
        part = PairingEntrant(pairing=row, index=index, entrant_id=entrant)
        if pairing.result is not None:
            _set_result(part, pairing.result)
        yield part


def _set_result(part: PairingEntrant, result: formats.PairingResult) -> None:
    part.place = result.places[part.index]
    part.points = result.points[part.index]
    part.score_twelfths = in_twelfths(result.scores[part.index])
    part.advances = result.advances[part.index]


def in_twelfths(score: Fraction) -> int:
    """A score as it is stored. Raises ValueError for one that is no multiple of 1/12."""
    twelfths = score * SCORE_DENOMINATOR
    if twelfths.denominator != 1:
        raise ValueError(f"a score of {score} is no multiple of 1/{SCORE_DENOMINATOR}")
    return twelfths.numerator


def store_result(pairing: Pairing, result: formats.PairingResult) -> bool:
    """Write how an open pairing came out, in the caller's transaction; False if it is decided already."""
    decided = Pairing.objects.filter(pk=pairing.pk, decided_by="").update(
        decided_by=str(result.decided_by)
    )
    if decided:
        _write_parts(pairing, result)
    return bool(decided)


class EarlierResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result that a ruling replaced, as `Pairing.earlier` keeps it."""

    until_round: int
    """How many rounds of the stage had been published when it was replaced, and stayed: they were paired
    by it. One more than there are if the next stage had begun and stayed."""
    is_ruled: bool
    """Whether it was a ruling itself, and no match says so."""
    result: ResultPart


def replace_result(
    pairing: Pairing, result: formats.PairingResult, *, until_round: int, is_ruled: bool = True
) -> None:
    """Write another result over that of a decided pairing, in the caller's transaction.

    What it was before is kept, with how many rounds stay that were paired by it; of what was replaced
    before no more than those stay either.
    """
    before = [
        {**each, "until_round": min(each["until_round"], until_round)} for each in pairing.earlier
    ]
    replaced = EarlierResult(
        until_round=until_round,
        is_ruled=pairing.is_ruled,
        result=result_part(engine_pairing_result(pairing)),
    )
    Pairing.objects.filter(pk=pairing.pk).exclude(decided_by="").update(
        decided_by=str(result.decided_by),
        is_ruled=is_ruled,
        earlier=[*before, msgspec.to_builtins(replaced)],
    )
    _write_parts(pairing, result)


def rounds_published(stage: Stage) -> int:
    """How many rounds of a stage are published."""
    return stage.rounds.aggregate(last=Max("index"))["last"] or 0


def rounds_paired(stage: Stage) -> int:
    """How many rounds of a stage are published, the beginning of the next stage counted as one."""
    has_successor = StageEntrant.objects.filter(
        stage__tournament=stage.tournament_id, stage__index=stage.index + 1
    ).exists()
    return rounds_published(stage) + has_successor


def cancel_matches(rows: QuerySet[Match]) -> None:
    """Stop those of the matches that are not finished; what is being played is discarded.

    The matches are locked before their attempts, as by whoever records a result.
    """
    MATCH_TRANSITIONS.move(rows, MatchState.CANCELLED, fence=F("fence") + 1, **FREE_FIELDS)
    Attempt.objects.filter(match__in=rows, ending=AttemptEnding.RUNNING).update(
        ending=AttemptEnding.CANCELLED, ended_at=Now()
    )


def _write_parts(pairing: Pairing, result: formats.PairingResult) -> None:
    for part in pairing.entrants.all():
        _set_result(part, result)
        part.save(update_fields=["place", "points", "score_twelfths", "advances"])


def _finish(tournament: Tournament) -> None:
    """Write the final places; from now on the secret is for everybody, unless results are sealed."""
    write_places(tournament)
    ENTRANT_TRANSITIONS.move(
        Entrant.objects.filter(tournament=tournament, seed__isnull=True),
        EntrantState.WITHDRAWN,
        only_from=EntrantState.ACTIVE,
        reason="it entered late, and its trial had not been passed when the last round had been played",
    )
    TOURNAMENT_TRANSITIONS.move_row(tournament, TournamentState.FINISHED, finished_at=Now())
