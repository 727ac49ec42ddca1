"""Rounds: published from what the formats plan, closed in their order, their results rated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from fractions import Fraction

from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.db.models.functions import Now

from engine.errors import FormatError
from engine.formats import base as formats
from engine.formats.base import SCORE_DENOMINATOR
from engine.record import BoardsContest
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    MATCH_TRANSITIONS,
    PLAYED,
    ROUND_TRANSITIONS,
    TOURNAMENT_TRANSITIONS,
    Attempt,
    AttemptEnding,
    Entrant,
    Match,
    MatchState,
    Pairing,
    PairingEntrant,
    Round,
    RoundState,
    Stage,
    SupersededMatch,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors.engine_values import (
    stage_contest,
    stage_format,
    stage_options,
    stage_view,
)
from tournament.competitions.services.planning import MIN_RATED_BOARDS
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

    Whether anything changed. The tournament's row is locked, so many that finish a round's last match
    at once make one next round. Harmless at any time.
    """
    tournament = Tournament.objects.select_for_update().get(pk=tournament.pk)
    if tournament.state != TournamentState.RUNNING:
        return False
    stage = tournament.stages.select_related("tournament").get()
    changed = False
    while True:
        changed |= _close_rounds(stage)
        if not _may_go_on(stage):
            return changed
        view = stage_view(stage)
        planned = _plan_round(stage, view)
        if planned is None:
            if not all(published.is_complete for published in view.rounds):
                return changed
            if stage.rounds.filter(is_partial=True).exists():
                raise FormatError("the rounds after a ruling cannot be paired again")
            if stage.rounds.exclude(state=RoundState.COMPLETE).exists():
                continue  # decided since we looked: it has to be closed first
            _finish(tournament, stage, view)
            return True
        _publish(stage, planned)
        changed = True


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
        .prefetch_related("pairing__entrants__entrant__bots__version__bot")
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
    undecided = Pairing.objects.filter(round__stage=stage, decided_by="").count()
    if not undecided or undecided >= MAX_OPEN_PAIRINGS:
        return not undecided
    players = stage.tournament.entrants.filter(seed__isnull=False).count()
    all_rounds = stage_format(stage).round_count(players, stage_options(stage))
    return all_rounds is None or stage.rounds.count() < all_rounds


def _publish(stage: Stage, planned: formats.Round) -> None:
    tournament = stage.tournament
    is_sealed = tournament.results_at is not None and tournament.results_at > read_clock()
    published, created = Round.objects.get_or_create(
        stage=stage,
        index=planned.index,
        defaults={
            "state": RoundState.OPEN,
            "opened_at": Now(),
            "published_at": None if is_sealed else Now(),
        },
    )
    missing = planned.pairings if created else _missing(published, planned)
    _add_pairings(stage, published, missing)


def _missing(published: Round, planned: formats.Round) -> tuple[formats.Pairing, ...]:
    """The pairings that a ruling took from a round; from now on it has all again."""
    if not published.is_partial:
        return ()
    Round.objects.filter(pk=published.pk).update(is_partial=False)
    kept = {
        pairing.key: tuple(part.entrant_id for part in pairing.entrants.all())
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
    editions = _last_editions(tournament, [pairing.key for pairing in planned])
    pairings = Pairing.objects.bulk_create(
        [
            Pairing(
                tournament=tournament,
                round=published,
                key=pairing.key,
                slot=pairing.slot,
                is_bye=pairing.is_bye,
                edition=1 + editions.get(pairing.key, 0),
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
    """Whether matches of the stage are rated: if the organiser says so and they have 8 boards or more."""
    contest = stage_contest(stage)
    return (
        stage.tournament.rated
        and isinstance(contest, BoardsContest)
        and contest.boards >= MIN_RATED_BOARDS
    )


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


def replace_result(pairing: Pairing, result: formats.PairingResult) -> None:
    """Write another result over that of a decided pairing, in the caller's transaction."""
    Pairing.objects.filter(pk=pairing.pk).exclude(decided_by="").update(
        decided_by=str(result.decided_by)
    )
    _write_parts(pairing, result)


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


def _finish(tournament: Tournament, stage: Stage, view: formats.StageView) -> None:
    """Write the final places; from now on the secret is for everybody, unless results are sealed."""
    write_places(tournament, stage, view)
    TOURNAMENT_TRANSITIONS.move_row(tournament, TournamentState.FINISHED, finished_at=Now())


def write_places(tournament: Tournament, stage: Stage, view: formats.StageView) -> None:
    """Write the places of a finished tournament."""
    places = {row.entrant: row.place for row in stage_format(stage).standings(view)}
    entrants = list(tournament.entrants.filter(pk__in=places))
    for entrant in entrants:
        entrant.place = places[entrant.pk]
    Entrant.objects.bulk_update(entrants, ["place"], batch_size=500)
