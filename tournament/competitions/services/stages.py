"""Stages: begun with the entrants who go on, ended, taken back after a ruling, stopped by their organiser."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from engine.errors import FormatError
from engine.formats.base import SeededEntrant, StageView
from engine.formats.stages import final_places, next_stage_entrants
from engine.ratings import Rating
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    STAGE_TRANSITIONS,
    Entrant,
    EntrantBot,
    EntrantState,
    Match,
    Pairing,
    Stage,
    StageEntrant,
    StageState,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors.engine_values import (
    begun_stages,
    running_stage,
    stage_format,
    stage_options,
    stage_plan,
    stage_view,
)
from tournament.leaderboards.selectors import ratings_to_begin_with
from tournament.store.clock import read_clock

DAY = timedelta(hours=24)


def begin_stage(stage: Stage, entrants: Sequence[SeededEntrant]) -> None:
    """Write who plays a stage and with which seeds; from now on it is the one that is played."""
    frozen = _strengths(stage, [entrant.id for entrant in entrants])
    StageEntrant.objects.bulk_create(
        [_row(stage, entrant, frozen.get(entrant.id)) for entrant in entrants], batch_size=500
    )
    STAGE_TRANSITIONS.move_row(stage, StageState.RUNNING, started_at=Now(), note="")


def join_stage(stage: Stage, entrant: SeededEntrant, first_round: int) -> None:
    """Add who has entered late; from `first_round` on it is paired."""
    row = _row(stage, entrant, _strengths(stage, [entrant.id]).get(entrant.id))
    row.first_round = first_round
    row.save()


def _row(stage: Stage, entrant: SeededEntrant, rating: Rating | None) -> StageEntrant:
    return StageEntrant(
        stage=stage,
        entrant_id=entrant.id,
        seed=entrant.seed,
        mu=rating.mu if rating else None,
        sigma=rating.sigma if rating else None,
    )


def _strengths(stage: Stage, entrants: Sequence[int]) -> dict[int, Rating]:
    """By entrant the rating with which it comes into the stage; nothing if the format does not ask for it.

    Of a pair it is the mean of its bots, as uncertain as their mean is.
    """
    if not stage_format(stage).reads_strengths:
        return {}
    parts = EntrantBot.objects.filter(entrant__in=entrants).select_related("version")
    tournament = stage.tournament
    known = ratings_to_begin_with(
        game=tournament.game,
        kind=tournament.kind,
        versions=[part.version for part in parts if part.version is not None],
    )
    lines: dict[int, list[Rating]] = {}
    for part in parts:
        if part.version_id is not None and part.version_id in known:
            lines.setdefault(part.entrant_id, []).append(known[part.version_id])
    return {entrant: _mean(line) for entrant, line in lines.items()}


def _mean(line: Sequence[Rating]) -> Rating:
    variance = sum(rating.sigma**2 for rating in line) / len(line) ** 2
    return Rating(sum(rating.mu for rating in line) / len(line), variance**0.5)


def end_stage(stage: Stage, view: StageView) -> None:
    """Write that a stage is over, and who was absent at its end."""
    STAGE_TRANSITIONS.move_row(
        stage, StageState.FINISHED, finished_at=Now(), absent=sorted(view.inactive)
    )


def begin_next_stage(stage: Stage, view: StageView) -> Stage | None:
    """Begin the stage after one that is over; None if there is none, or if too few are left for it.

    Then those after it are not played either, and say why.
    """
    following = stage.tournament.stages.select_related("tournament").filter(index__gt=stage.index)
    nxt = following.order_by("index").first()
    if nxt is None:
        return None
    entrants = next_stage_entrants(view, stage_plan(stage))
    try:
        stage_format(nxt).check(entrants, stage_options(nxt))
    except FormatError as error:
        reason = f"of stage {stage.number} {len(entrants)} were left to go on: {error}"
        STAGE_TRANSITIONS.move(
            Stage.objects.filter(pk__in=list(following.values_list("pk", flat=True))),
            StageState.SKIPPED,
            note=reason[:500],
        )
        return None
    begin_stage(nxt, entrants)
    return nxt


def has_other_qualifiers(stage: Stage, nxt: Stage) -> bool:
    """Whether others, or the same in another order, would go on from a stage than those who have."""
    have = list(nxt.entrants.order_by("seed").values_list("entrant", flat=True))
    try:
        wanted = next_stage_entrants(stage_view(stage, for_next=True), stage_plan(stage))
    except FormatError:
        return True  # it is not over any more
    return have != [entrant.id for entrant in wanted]


def reopen_stage(stage: Stage) -> None:
    """Let a stage that was over be played again, or end anew; those after it are to come again."""
    STAGE_TRANSITIONS.move_row(stage, StageState.RUNNING, finished_at=None, absent=[])
    published = stage.rounds.count()
    for pairing in Pairing.objects.filter(round__stage=stage).exclude(earlier=[]):
        for each in pairing.earlier:
            each["until_round"] = min(each["until_round"], published)
        pairing.save(update_fields=["earlier"])
    later = later_stages(stage)
    StageEntrant.objects.filter(stage__in=later).delete()
    STAGE_TRANSITIONS.move(
        Stage.objects.filter(pk__in=list(later.values_list("pk", flat=True))),
        StageState.PENDING,
        started_at=None,
        finished_at=None,
        stopped_at=None,
        note="",
        absent=[],
    )


def later_stages(stage: Stage) -> QuerySet[Stage]:
    """The stages after one, in their order."""
    return Stage.objects.filter(tournament=stage.tournament_id, index__gt=stage.index).order_by(
        "index"
    )


def absent_of(stage: Stage) -> list[int]:
    """The ids of the stage's entrants who do not play any more, as things stand."""
    gone = stage.entrants.exclude(entrant__state=EntrantState.ACTIVE)
    return sorted(gone.values_list("entrant", flat=True))


def opens_no_more(stage: Stage, now: datetime) -> bool:
    """Whether a stage without an end of its own has been stopped."""
    return stage.stopped_at is not None or (stage.stops_at is not None and stage.stops_at <= now)


def rests(stage: Stage, now: datetime) -> bool:
    """Whether a continuous stage has opened all matches that it may in 24 hours."""
    if stage.matches_a_day is None or not stage_format(stage).is_continuous:
        return False
    opened = Match.objects.filter(
        pairing__round__stage=stage, pairing__round__opened_at__gt=now - DAY
    )
    return opened.count() >= stage.matches_a_day


@transaction.atomic
def stop_stage(*, tournament: Tournament, reason: str) -> Stage:
    """Let a stage without an end of its own end: it opens no more matches; those that are open still count.

    Raises TournamentStateError if none is being played, or the one that is ends by itself, or without a
    reason.
    """
    if not reason.strip():
        raise TournamentStateError("give a reason: the players will read it")
    tournament = Tournament.objects.select_for_update().get(pk=tournament.pk)
    stage = running_stage(tournament) if tournament.state == TournamentState.RUNNING else None
    if stage is None:
        raise TournamentStateError(f"{tournament.name} is {tournament.get_state_display()}")
    if stage_format(stage).ends(stage_options(stage)):
        raise TournamentStateError(
            f"stage {stage.number} ends by itself: cancel the tournament if it shall not"
        )
    if opens_no_more(stage, read_clock()):
        raise TournamentStateError(f"stage {stage.number} opens no more matches already")
    Stage.objects.filter(pk=stage.pk).update(stopped_at=Now(), note=reason.strip()[:500])
    stage.refresh_from_db()
    return stage


def write_places(tournament: Tournament) -> None:
    """Write the final places, by all stages that were played; the digest of its bundle is to be told anew."""
    places = final_places(
        [(stage_format(stage), stage_view(stage)) for stage in begun_stages(tournament)]
    )
    entrants = list(tournament.entrants.filter(pk__in=places))
    for entrant in entrants:
        entrant.place = places[entrant.pk]
    Entrant.objects.bulk_update(entrants, ["place"], batch_size=500)
    Tournament.objects.filter(pk=tournament.pk).update(bundle_digest="")
