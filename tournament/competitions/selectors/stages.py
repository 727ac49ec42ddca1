"""Stages as pages show them: rounds with their pairings, the table, who goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import msgspec
from django.db.models import Count, Q, QuerySet

from engine.formats import Format
from engine.formats.stages import split_match_key
from engine.standings import StandingRow
from tournament.competitions.models import (
    Match,
    Pairing,
    Round,
    RoundState,
    Stage,
    StageEntrant,
    StageState,
    Tournament,
)
from tournament.competitions.selectors.engine_values import (
    PARTS,
    stage_format,
    stage_view,
    whole_rounds,
)

LARGE_STAGE = 500
"""A page shows of a stage with more pairings one round alone, and draws no bracket or cross table."""
BATCHES_A_PAGE = 25


@dataclass(frozen=True, slots=True)
class Seal:
    """The first round whose results are sealed."""

    stage: int
    """The stage's index."""
    round: int

    @property
    def stage_number(self) -> int:
        """As people count, from 1."""
        return self.stage + 1

    def shows(self, key: str, round_index: int) -> bool:
        """Whether a match of this key and round stands before it."""
        return (split_match_key(key)[0], round_index) < (self.stage, self.round)


@dataclass(frozen=True, slots=True)
class PairingPart:
    """An entrant's part in a pairing."""

    entrant: int
    name: str
    seed: int | None
    score: Fraction | None
    points: int | None
    place: int | None
    advances: bool | None


@dataclass(frozen=True, slots=True)
class PairingRow:
    """A pairing as brackets and tables show it."""

    key: str
    """In the tournament."""
    slot: int
    is_bye: bool
    decided_by: str
    decided_label: str
    parts: tuple[PairingPart, ...]
    match_state: str
    """Empty where there is no match."""
    match_label: str
    termination: str
    termination_label: str
    rated: bool

    @property
    def stage_key(self) -> str:
        """Its key in its stage."""
        return split_match_key(self.key)[1]


@dataclass(frozen=True, slots=True)
class RoundRow:
    """A round with its pairings in the order of their slots; of a large stage most come without them."""

    index: int
    state: str
    state_label: str
    pairings: tuple[PairingRow, ...]
    is_sealed: bool = False
    """Whether its results are for organisers alone."""
    pairing_count: int = 0
    """How many pairings it has, here or not."""

    @property
    def is_complete(self) -> bool:
        """Whether it is decided, and all before it are."""
        return self.state == RoundState.COMPLETE


@dataclass(frozen=True, slots=True)
class StagePage:
    """A stage of a tournament's page."""

    stage: Stage
    number: int
    """From 1."""
    format: str
    format_title: str
    summary: str
    """What its format is, in a sentence or two."""
    knocks_out: bool
    is_continuous: bool
    state: str
    state_label: str
    note: str
    """Why it was not played, or why it was stopped."""
    is_shown: bool
    """Whether its pairings are here; its table is unless it is large and not shown."""
    seeds: Mapping[int, int]
    """By entrant the seed in this stage; empty until it begins."""
    rounds: tuple[RoundRow, ...]
    standings: tuple[StandingRow, ...]
    """Empty before it begins; `entrant` is the EntrantRow's pk."""
    going_on: frozenset[int]
    """Who plays the next stage."""
    hidden_from: int | None
    """The first of its rounds whose results the reader does not see."""

    @property
    def is_large(self) -> bool:
        """Whether it is too large to be drawn."""
        return sum(each.pairing_count for each in self.rounds) > LARGE_STAGE


def first_seal(tournament: Tournament) -> Seal | None:
    """From where on results of a tournament are sealed; None if none are."""
    sealed = Round.objects.filter(stage__tournament=tournament, published_at__isnull=True)
    first = sealed.order_by("stage__index", "index").values_list("stage__index", "index").first()
    return Seal(*first) if first else None


def stage_pages(
    tournament: Tournament,
    hidden: Seal | None,
    *,
    stage: int | None = None,
    round_index: int | None = None,
) -> tuple[StagePage, ...]:
    """The stages of a tournament, as far as the reader may see them.

    With `stage` as in `pages.tournament_page`. The number of queries does not depend on how many rounds
    and entrants there are.
    """
    stages = _stages_of(tournament)
    chosen = None if stage is None else _choose(stages, hidden, stage)
    return tuple(
        _stage_page(
            row,
            hidden,
            is_shown=chosen is None or row is chosen,
            is_bounded=stage is not None,
            round_index=round_index,
        )
        for row in stages
    )


def _stages_of(tournament: Tournament) -> list[Stage]:
    stages = list(tournament.stages.all())
    for row in stages:
        row.tournament = tournament
    return stages


def stage_heads(tournament: Tournament, hidden: Seal | None) -> tuple[StagePage, ...]:
    """The stages as `stage_pages` has them, without seeds, tables and pairings; rounds tell how many they have."""
    return tuple(
        _stage_page(row, hidden, is_shown=True, has_pairings=False, has_table=False)
        for row in _stages_of(tournament)
    )


def stage_table(tournament: Tournament, hidden: Seal | None, number: int = 0) -> StagePage | None:
    """A stage with its seeds and its table, without pairings; None if there is none of this number.

    With 0 the last that has begun, as far as the reader may see it.
    """
    stages = _stages_of(tournament)
    if not 0 <= number <= len(stages):
        return None
    chosen = _choose(stages, hidden, number)
    return _stage_page(chosen, hidden, is_shown=True, has_pairings=False)


@dataclass(frozen=True, slots=True)
class PublishedPairing:
    """A pairing and where it stands."""

    stage: int
    """The stage's number, from 1."""
    round: int
    row: PairingRow


def published_pairings(
    tournament: Tournament,
    hidden: Seal | None,
    *,
    stage: int | None = None,
    round_index: int | None = None,
    first: int = 0,
    count: int,
) -> list[PublishedPairing]:
    """Some of the pairings in the order of stages, rounds and slots, as far as the reader may see them.

    Narrowed by the number of a stage and by a round if given; from number `first` on, `count` of them.
    """
    rows = Pairing.objects.filter(round__stage__tournament=tournament)
    if hidden is not None:
        rows = rows.filter(
            Q(round__stage__index__lt=hidden.stage)
            | Q(round__stage__index=hidden.stage, round__index__lte=hidden.round)
        )
    if stage is not None:
        rows = rows.filter(round__stage__index=stage - 1)
    if round_index is not None:
        rows = rows.filter(round__index=round_index)
    found = list(
        rows.select_related("round__stage")
        .prefetch_related(PARTS)
        .order_by("round__stage__index", "round__index", "slot")[first : first + count]
    )
    matches = Match.objects.filter(pairing__in=[row.pk for row in found]).in_bulk(
        field_name="pairing_id"
    )
    return [
        PublishedPairing(
            stage=row.round.stage.number,
            round=row.round.index,
            row=_hidden_row(row, {})
            if hidden and (row.round.stage.index, row.round.index) == (hidden.stage, hidden.round)
            else _row(row, matches.get(row.pk), {}),
        )
        for row in found
    ]


def _choose(stages: Sequence[Stage], hidden: Seal | None, number: int) -> Stage:
    """The stage of that number, else the last that has begun, as far as is to be seen."""
    for row in stages:
        if row.number == number:
            return row
    begun = [
        row
        for row in stages
        if row.state in {StageState.RUNNING, StageState.FINISHED} and not _is_hidden(row, hidden)
    ]
    return begun[-1] if begun else stages[0]


def _is_hidden(stage: Stage, hidden: Seal | None) -> bool:
    """Whether even who plays it would tell something."""
    return hidden is not None and stage.index > hidden.stage


def _stage_page(
    stage: Stage,
    hidden: Seal | None,
    *,
    is_shown: bool,
    is_bounded: bool = True,
    round_index: int | None = None,
    has_pairings: bool = True,
    has_table: bool = True,
) -> StagePage:
    fmt = stage_format(stage)
    is_hidden = _is_hidden(stage, hidden)
    hidden_from = hidden.round if hidden and stage.index == hidden.stage else None
    has_begun = stage.state in {StageState.RUNNING, StageState.FINISHED} and not is_hidden
    rounds: tuple[RoundRow, ...] = ()
    seeds: dict[int, int] = {}
    if has_begun and is_shown:
        seeds = dict(stage.entrants.values_list("entrant", "seed")) if has_table else {}
        rounds = _rounds(
            stage,
            fmt,
            hidden_from,
            seeds,
            round_index,
            is_bounded=is_bounded,
            has_pairings=has_pairings,
        )
    has_table &= has_begun and (bool(rounds) or not (is_shown or _is_large(stage)))
    state, label = _spell_state(stage, is_hidden=is_hidden, hidden_from=hidden_from)
    return StagePage(
        stage=stage,
        number=stage.number,
        format=stage.format,
        format_title=fmt.title,
        summary=fmt.summary,
        knocks_out=fmt.knocks_out,
        is_continuous=fmt.is_continuous,
        state=state,
        state_label=label,
        note="" if is_hidden else stage.note,
        is_shown=is_shown,
        seeds=seeds,
        rounds=rounds,
        standings=_standings(stage, fmt, hidden_from) if has_table else (),
        going_on=_going_on(stage) if has_table and hidden_from is None else frozenset(),
        hidden_from=hidden_from,
    )


def _is_large(stage: Stage) -> bool:
    return Pairing.objects.filter(round__stage=stage).count() > LARGE_STAGE


def _spell_state(stage: Stage, *, is_hidden: bool, hidden_from: int | None) -> tuple[str, str]:
    if is_hidden:
        return StageState.PENDING, str(StageState.PENDING.label)
    if hidden_from is not None:
        return StageState.RUNNING, "sealed"
    return stage.state, stage.get_state_display()


def _standings(stage: Stage, fmt: Format, hidden_from: int | None) -> tuple[StandingRow, ...]:
    if hidden_from == 1:
        return ()
    view = stage_view(stage)
    if hidden_from is not None:
        known = tuple(each for each in view.rounds if each.index < hidden_from)
        view = msgspec.structs.replace(view, rounds=known)
    return fmt.standings(view)


def _going_on(stage: Stage) -> frozenset[int]:
    following = StageEntrant.objects.filter(
        stage__tournament=stage.tournament_id, stage__index=stage.index + 1
    )
    return frozenset(following.values_list("entrant", flat=True))


def _rounds(
    stage: Stage,
    fmt: Format,
    hidden_from: int | None,
    seeds: Mapping[int, int],
    round_index: int | None,
    *,
    is_bounded: bool,
    has_pairings: bool,
) -> tuple[RoundRow, ...]:
    """The rounds that the reader may see; of a large stage only those asked for with their pairings, or none."""
    rows: QuerySet[Round] = whole_rounds(stage).annotate(pairing_count=Count("pairings"))
    if hidden_from is not None:
        rows = rows.filter(index__lte=hidden_from)
    published = list(rows)
    is_large = is_bounded and sum(_count_of(each) for each in published) > LARGE_STAGE
    wanted = _wanted(published, fmt, round_index) if is_large else published
    pairings = _pairings(wanted, seeds) if has_pairings else {}
    return tuple(
        RoundRow(
            index=each.index,
            state=RoundState.OPEN if each.index == hidden_from else each.state,
            state_label="sealed" if each.index == hidden_from else each.get_state_display(),
            pairings=tuple(
                _hidden_row(pairing, seeds) if each.index == hidden_from else row
                for pairing, row in pairings.get(each.pk, ())
            ),
            is_sealed=each.published_at is None,
            pairing_count=_count_of(each),
        )
        for each in published
    )


def _count_of(published: Any) -> int:
    count: int = published.pairing_count
    return count


def _wanted(rounds: Sequence[Round], fmt: Format, asked: int | None) -> list[Round]:
    """Of a large stage the round asked for, else the first that is not complete, else the last.

    Of a continuous one as many batches as a page takes, up to the one asked for or the last.
    """
    if fmt.is_continuous:
        last = asked or len(rounds)
        return [each for each in rounds if last - BATCHES_A_PAGE < each.index <= last]
    for each in rounds:
        if each.index == asked:
            return [each]
    is_open = (each for each in rounds if each.state != RoundState.COMPLETE)
    return [next(is_open, rounds[-1])] if rounds else []


def _pairings(
    rounds: Sequence[Round], seeds: Mapping[int, int]
) -> dict[int, list[tuple[Pairing, PairingRow]]]:
    """By round its pairings."""
    ids = [each.pk for each in rounds]
    matches = Match.objects.filter(pairing__round__in=ids).in_bulk(field_name="pairing_id")
    found: dict[int, list[tuple[Pairing, PairingRow]]] = {}
    rows = Pairing.objects.filter(round__in=ids).prefetch_related(PARTS)
    for pairing in rows.order_by("round", "slot"):
        row = _row(pairing, matches.get(pairing.pk), seeds)
        found.setdefault(pairing.round_id, []).append((pairing, row))
    return found


def _hidden_row(pairing: Pairing, seeds: Mapping[int, int]) -> PairingRow:
    """Who meets in a round whose results are sealed: it follows from what is public."""
    return PairingRow(
        key=pairing.key,
        slot=pairing.slot,
        is_bye=pairing.is_bye,
        decided_by="",
        decided_label="",
        parts=tuple(
            PairingPart(
                entrant=part.entrant_id,
                name=part.entrant.name,
                seed=seeds.get(part.entrant_id, part.entrant.seed),
                score=None,
                points=None,
                place=None,
                advances=None,
            )
            for part in pairing.entrants.all()
        ),
        match_state="",
        match_label="sealed",
        termination="",
        termination_label="",
        rated=False,
    )


def pairing_row(match: Match) -> PairingRow:
    """A match's pairing; wants `matches_of_bot`'s rows."""
    return _row(match.pairing, match, {})


def _row(pairing: Pairing, match: Match | None, seeds: Mapping[int, int]) -> PairingRow:
    return PairingRow(
        key=pairing.key,
        slot=pairing.slot,
        is_bye=pairing.is_bye,
        decided_by=pairing.decided_by,
        decided_label=pairing.get_decided_by_display() if pairing.decided_by else "",
        parts=tuple(
            PairingPart(
                entrant=part.entrant_id,
                name=part.entrant.name,
                seed=seeds.get(part.entrant_id, part.entrant.seed),
                score=part.score,
                points=part.points,
                place=part.place,
                advances=part.advances,
            )
            for part in pairing.entrants.all()
        ),
        match_state=match.state if match else "",
        match_label=match.get_state_display() if match else "",
        termination=match.termination if match else "",
        termination_label=match.get_termination_display() if match and match.termination else "",
        rated=match.rated if match else False,
    )
