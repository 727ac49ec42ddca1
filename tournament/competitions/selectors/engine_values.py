"""Rows as the frozen values that the engine works on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from django.db.models import F, Prefetch, Q, QuerySet, Subquery

from engine.bundle import ResultPart
from engine.errors import ArenaError
from engine.formats import Format, get_format
from engine.formats import base as formats
from engine.formats.base import SCORE_DENOMINATOR
from engine.formats.stages import StagePlan, split_match_key, stage_lot
from engine.games import get_game
from engine.ratings import Rating
from engine.record import BotRef, Contest, DealSource, EntrantRef, MatchSpec
from engine.sdk.timecontrol import TimeControl
from engine.shuffle import tournament_prk
from tournament.competitions.models import (
    Entrant,
    EntrantBot,
    EntrantState,
    Match,
    Pairing,
    PairingEntrant,
    Round,
    Stage,
    StageEntrant,
    StageState,
    Tournament,
    TournamentSecret,
)

BOTS = Prefetch("bots", EntrantBot.objects.select_related("bot__owner", "version", "tournament"))
"""An entrant's bots with all that belongs to them; so for `PARTS`.

They are joined: Django asks for the rows of foreign keys by a term for each, and SQLite takes no 1000 of them.
"""
PARTS = Prefetch("entrants", PairingEntrant.objects.select_related("entrant"))
"""Who meets in a pairing."""


def stage_format(stage: Stage) -> Format:
    """The format of a stage. Raises FormatError if this code no longer has it."""
    return get_format(stage.format)


def stage_options(stage: Stage) -> Any:
    """The options of the stage's format."""
    return msgspec.convert(stage.options, stage_format(stage).options_type)


def stage_plan(stage: Stage) -> StagePlan:
    """What was planned of a stage, for `engine.formats.stages`."""
    return StagePlan(format=stage.format, options=stage.options, qualifiers=stage.qualifiers)


def running_stage(tournament: Tournament) -> Stage | None:
    """The stage that is being played; None before the start and after the end."""
    rows = tournament.stages.select_related("tournament").filter(state=StageState.RUNNING)
    return rows.order_by("index").first()


def begun_stages(tournament: Tournament) -> list[Stage]:
    """The stages that are or were played, in their order."""
    rows = tournament.stages.select_related("tournament").order_by("index")
    return list(rows.filter(state__in=[StageState.RUNNING, StageState.FINISHED]))


def stage_ruleset(stage: Stage) -> Any:
    """The stage's ruleset, a value of the game's own type."""
    return msgspec.convert(stage.ruleset, get_game(stage.tournament.game).ruleset_type)


def stage_contest(stage: Stage) -> Contest:
    """What a match of the stage is made of."""
    contest: Contest = msgspec.convert(stage.contest, Contest)
    return contest


def stage_time_control(stage: Stage) -> TimeControl:
    """How long bots may think in the stage."""
    return msgspec.convert(stage.time_control, TimeControl)


def seats_at_table(game: str, entrants: int) -> int:
    """How many seats a match of so many entrants has."""
    return get_game(game).seats(entrants)


def tournament_key(tournament: Tournament) -> bytes:
    """The PRK of a sealed tournament. Secret until it is finished. Raises ArenaError before the seal."""
    if not tournament.pub:
        raise ArenaError(f"{tournament.slug} is not sealed: it has no key yet")
    return _sealed_key(tournament.pk, tournament.commitment, tournament.pub)


@lru_cache(maxsize=256)
def _sealed_key(pk: int, commitment: str, pub: str) -> bytes:
    """Kept, since a seal never changes; the commitment makes sure that it is this tournament's."""
    secret = bytes(
        TournamentSecret.objects.values_list("secret", flat=True).get(
            tournament=pk, tournament__commitment=commitment
        )
    )
    return tournament_prk(secret, pub)


def stage_view(stage: Stage, *, for_next: bool = False) -> formats.StageView:
    """All of a stage that its format may know: entrants, published rounds and their results.

    Of a finished stage the entrants are active who were so at its end. Match keys are the format's own. With `for_next` results are those by which the next stage
    was begun, whatever was annulled since.
    """
    rounds = list(whole_rounds(stage).values_list("pk", "index"))
    pairings = _pairings_of(stage, len(rounds) if for_next else None)
    return _view(
        stage,
        _seeded(stage.entrants.all()),
        tuple(formats.Round(index=index, pairings=tuple(pairings[pk])) for pk, index in rounds),
    )


def whole_rounds(stage: Stage) -> QuerySet[Round]:
    """The rounds in their order, as far as no ruling has taken pairings out of them."""
    rounds = stage.rounds.order_by("index")
    broken = rounds.filter(is_partial=True).values("index")[:1]
    return rounds.annotate(_broken=Subquery(broken)).filter(
        Q(_broken__isnull=True) | Q(index__lt=F("_broken"))
    )


def pairing_view(stage: Stage, pairing: Pairing) -> formats.StageView:
    """As much of a stage as it takes to decide a pairing: no rounds, which may be many, and its entrants alone."""
    return _view(stage, _seeded(stage.entrants.filter(entrant__pairings__pairing=pairing)), ())


def match_view(match: Match) -> formats.StageView:
    """As `pairing_view`, of a row of `match_to_play` and as it was loaded: nothing more is asked."""
    stage = match.pairing.round.stage
    rows = [
        _SeededRow(entrant.pk, entry.seed, entrant.state, entry.mu, entry.sigma)
        for entrant in (part.entrant for part in match.pairing.entrants.all())
        for entry in entrant.stage_entries.all()
        if entry.stage_id == stage.pk
    ]
    return _view(stage, sorted(rows, key=attrgetter("seed")), ())


class _SeededRow(NamedTuple):
    """An entrant as its stage has it."""

    entrant: int
    seed: int
    state: str
    mu: float | None
    sigma: float | None


def _seeded(entrants: QuerySet[StageEntrant]) -> list[_SeededRow]:
    columns = ("entrant", "seed", "entrant__state", "mu", "sigma")
    return list(map(_SeededRow._make, entrants.order_by("seed").values_list(*columns)))


def _view(
    stage: Stage, rows: Sequence[_SeededRow], rounds: tuple[formats.Round, ...]
) -> formats.StageView:
    tournament = stage.tournament
    absent = frozenset(stage.absent) if stage.state == StageState.FINISHED else None
    return formats.StageView(
        entrants=tuple(
            formats.SeededEntrant(
                id=pk,
                seed=seed,
                active=state == EntrantState.ACTIVE if absent is None else pk not in absent,
            )
            for pk, seed, state, _, _ in rows
        ),
        options=stage_options(stage),
        rounds=rounds,
        lot=stage_lot(tournament_key(tournament), tournament.slug, stage.index),
        strengths={
            pk: Rating(mu, sigma)
            for pk, _, _, mu, sigma in rows
            if mu is not None and sigma is not None
        },
    )


def _pairings_of(stage: Stage, paired: int | None) -> dict[int, list[formats.Pairing]]:
    """The stage's pairings by round, each in the order of its slots.

    With the results that hold; or if `paired` is given those by which the next stage was begun, when so
    many rounds were published.

    The pairings are read before their entrants: a match that is recorded in between is then still open
    here, while in the other order it would be decided without a result.
    """
    pairings = list(
        Pairing.objects.filter(round__stage=stage)
        .order_by("round", "slot")
        .values_list("pk", "round", "key", "slot", "is_bye", "decided_by", "earlier")
    )
    parts: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for pairing, *part in (
        PairingEntrant.objects.filter(pairing__round__stage=stage)
        .order_by("pairing", "index")
        .values_list("pairing", "entrant", "place", "points", "score_twelfths", "advances")
    ):
        parts[pairing].append(tuple(part))
    by_round: dict[int, list[formats.Pairing]] = defaultdict(list)
    for pk, round_id, key, slot, is_bye, decided_by, earlier in pairings:
        found = _pairing(key, slot, decided_by, parts[pk], is_bye=is_bye)
        if paired is not None and earlier:
            found = msgspec.structs.replace(found, result=_result_then(found, earlier, paired))
        by_round[round_id].append(found)
    return by_round


def _result_then(
    pairing: formats.Pairing, earlier: list[dict[str, Any]], paired: int
) -> formats.PairingResult | None:
    """The result by which was paired what followed when `paired` rounds were published."""
    for each in earlier:
        if paired < each["until_round"]:
            return _read_result(msgspec.convert(each["result"], ResultPart))
    return pairing.result


def _read_result(part: ResultPart) -> formats.PairingResult:
    return formats.PairingResult(
        decided_by=formats.DecidedBy(part.decided_by),
        places=part.places,
        points=part.points,
        scores=tuple(map(Fraction, part.scores)),
        advances=part.advances,
    )


def engine_pairing(pairing: Pairing) -> formats.Pairing:
    """One stored pairing, with its key in its stage."""
    parts = [
        (part.entrant_id, part.place, part.points, part.score_twelfths, part.advances)
        for part in pairing.entrants.all()
    ]
    return _pairing(pairing.key, pairing.slot, pairing.decided_by, parts, is_bye=pairing.is_bye)


def engine_pairing_result(pairing: Pairing) -> formats.PairingResult:
    """How a decided pairing came out. Raises ArenaError for one that is open."""
    result = engine_pairing(pairing).result
    if result is None:
        raise ArenaError(f"{pairing.key} is not decided")
    return result


def _pairing(
    key: str, slot: int, decided_by: str, parts: list[tuple[Any, ...]], *, is_bye: bool
) -> formats.Pairing:
    result = None
    if decided_by:
        result = formats.PairingResult(
            decided_by=formats.DecidedBy(decided_by),
            places=tuple(place for _, place, _, _, _ in parts),
            points=tuple(points for _, _, points, _, _ in parts),
            scores=tuple(Fraction(score, SCORE_DENOMINATOR) for _, _, _, score, _ in parts),
            advances=tuple(advances for _, _, _, _, advances in parts),
        )
    return formats.Pairing(
        key=split_match_key(key)[1],
        slot=slot,
        entrants=tuple(entrant for entrant, *_ in parts),
        is_bye=is_bye,
        result=result,
    )


def match_to_play(pk: int) -> Match:
    """A match with all that its spec needs loaded. Raises Match.DoesNotExist."""
    try:
        return matches_to_play([pk])[pk]
    except KeyError:
        raise Match.DoesNotExist(f"there is no match {pk}") from None


def matches_to_play(pks: Collection[int]) -> dict[int, Match]:
    """These matches, as far as they are there, with all that their specs need loaded, by id."""
    rows = (
        Match.objects.filter(pk__in=pks)
        .select_related("pairing__round__stage__tournament")
        .prefetch_related(
            Prefetch("pairing__entrants", PairingEntrant.objects.select_related("entrant")),
            "pairing__entrants__entrant__stage_entries",
        )
    )
    found = {match.pk: match for match in rows}
    for match in found.values():
        match.tournament = match.pairing.round.stage.tournament  # the same row, joined once
    return found


def time_controls_of_matches(matches: Collection[int]) -> dict[int, str]:
    """By match the name of the time control that it is played with."""
    rows = Match.objects.filter(pk__in=matches)
    return dict(rows.values_list("pk", "pairing__round__stage__time_control__name"))


def match_spec(match: Match) -> MatchSpec:
    """What is asked of a match of a sealed tournament; the record does not show its deal keys.

    Wants a row of `match_to_play`.
    """
    tournament = match.tournament
    stage = match.pairing.round.stage
    return MatchSpec(
        game=tournament.game,
        ruleset=stage_ruleset(stage),
        match_key=match.pairing.key,
        contest=stage_contest(stage),
        time_control=stage_time_control(stage),
        entrants=tuple(sealed.ref for sealed in _sealed_of(match)),
        deals=DealSource(
            prk=tournament_key(tournament), tournament_id=tournament.slug, reveal=False
        ),
    )


def versions_of(match: Match) -> list[tuple[int, ...]]:
    """By entrant, in the order of the match, the ids of the versions that play for it, each in its bot's place.

    Wants a row of `match_to_play`.
    """
    return [sealed.versions for sealed in _sealed_of(match)]


class _Sealed(NamedTuple):
    """A seeded entrant: frozen, so nothing of it changes any more."""

    ref: EntrantRef
    versions: tuple[int, ...]


def _sealed_of(match: Match) -> list[_Sealed]:
    tournament = match.tournament
    entrants = [part.entrant_id for part in match.pairing.entrants.all()]
    sealed = _sealed_entrants(tournament.pk, tournament.commitment)
    if not sealed.keys() >= set(entrants):  # somebody has entered late
        _sealed_entrants.cache_clear()
        sealed = _sealed_entrants(tournament.pk, tournament.commitment)
    return [sealed[entrant] for entrant in entrants]


@lru_cache(maxsize=64)
def _sealed_entrants(pk: int, commitment: str) -> dict[int, _Sealed]:
    """The seeded entrants by id; kept, since each is frozen when it has its seed."""
    entrants = Entrant.objects.filter(
        tournament=pk, tournament__commitment=commitment, seed__isnull=False
    ).prefetch_related(BOTS)
    return {
        entrant.pk: _Sealed(
            entrant_ref(entrant),
            tuple(part.version_id for part in entrant.bots.all() if part.version_id is not None),
        )
        for entrant in entrants
    }


def entrant_ref(entrant: Entrant) -> EntrantRef:
    """An entrant as records name it; wants its bots and their versions loaded."""
    return EntrantRef(
        name=entrant.name,
        bots=tuple(
            BotRef(
                bot=part.bot.name,
                version=part.version.version,
                wheel=f"sha256:{part.version.wheel_sha256}",
            )
            for part in entrant.bots.all()
            if part.version is not None
        ),
    )
