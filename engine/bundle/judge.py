"""The verdict on a bundle: everything in it recomputed, in the order in which its parts depend on each other."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from engine.bundle.codec import bundle_digest, record_place
from engine.bundle.comparing import compare, spell
from engine.bundle.ratings import NO_RATING, is_rating, judge_ratings, must_be_rated
from engine.bundle.values import (
    RULES,
    Bundle,
    EntrantPart,
    PairingPart,
    ResultPart,
    RoundPart,
    StagePart,
    rating_key,
    result_part,
    standing_part,
)
from engine.errors import ArenaError, BundleError, RecordError, UsageError
from engine.formats import DecidedBy, FormatOptions, forfeit_outcome, get_format, void_result
from engine.formats.base import (
    SCORE_DENOMINATOR,
    Format,
    Pairing,
    PairingResult,
    Round,
    SeededEntrant,
    StageView,
)
from engine.formats.stages import (
    StagePlan,
    check_stages,
    final_places,
    match_key,
    next_stage_entrants,
    stage_lot,
)
from engine.games import get_game
from engine.outcome import Outcome, Termination, places_by
from engine.ratings import Rating
from engine.record import MatchRecord, canonical_json, judge_terms, replay, with_keys
from engine.shuffle import commitment, tournament_prk
from engine.standings import draw_lot

SEEDINGS = ("rating", "hand", "lot")
KINDS = ("mono", "pair", "ffa")
SCORES = frozenset(str(Fraction(part, SCORE_DENOMINATOR)) for part in range(SCORE_DENOMINATOR + 1))
"""What an entrant can score in a pairing, as the document writes it."""
_SLUG = re.compile(r"[-a-zA-Z0-9_]{1,60}")
Show = Callable[[int], None]
"""Is told how many matches have been judged."""


class BundleReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was recomputed and found true."""

    tournament: str
    digest: str
    stages: int
    rounds: int
    pairings: int
    matches: int
    deals: int
    standings: int
    rated: int
    rulings: int
    """Results that an organiser decided or replaced: taken as given."""
    absences: int
    """Entrants that were absent when a round was paired, or a stage ended: taken as given."""
    seeds: str
    """What the seeds followed from; those by ``lot`` are recomputed, others are taken as given."""


def verify_bundle(bundle: Bundle, show: Show = lambda _: None) -> BundleReport:
    """Recompute everything; `show` is told after each match how many have been judged.

    Raises BundleError at the first value that is not what it must be, with its place, for example
    ``stages[0].rounds[1].pairings[0].entrants[1]`` or ``records["SE/R1/M3"].games[0].score[0]``.
    """
    return _Judge(bundle, show).judge()


class _Judge:
    """Walks through a bundle in the order in which its parts depend on each other."""

    def __init__(self, bundle: Bundle, show: Show) -> None:
        self.bundle = bundle
        self.show = show
        self.prk = b""
        self.deals = 0
        self.rulings = 0
        self.digests: dict[str, str] = {}
        """Of the records that have been judged, by match key."""
        self.rated: dict[str, PairingPart] = {}
        """By its key in the log each pairing that must be rated."""

    def judge(self) -> BundleReport:
        bundle = self.bundle
        self._judge_seal()
        self._judge_entrants()
        views = self._judge_stages()
        for key in bundle.records:
            if key not in self.digests:
                raise BundleError(record_place(key), "there is no pairing that was played so")
        self._judge_places(views)
        judge_ratings(bundle, self.rated)
        digests = {key: self.digests[key] for key in bundle.records}
        if bundle.digest != (digest := bundle_digest(bundle, digests)):
            raise BundleError("digest", f"it must be {digest}")
        return self._report()

    def _report(self) -> BundleReport:
        bundle = self.bundle
        rounds = [each for stage in bundle.stages for each in stage.rounds]
        return BundleReport(
            tournament=bundle.tournament.id,
            digest=bundle.digest,
            stages=len(bundle.stages),
            rounds=len(rounds),
            pairings=sum(len(each.pairings) for each in rounds),
            matches=len(bundle.records),
            deals=self.deals,
            standings=sum(len(stage.standings) for stage in bundle.stages),
            rated=len(bundle.ratings),
            rulings=self.rulings,
            absences=sum(len(each.absent) for each in rounds)
            + sum(len(stage.absent) for stage in bundle.stages),
            seeds=bundle.tournament.seeding,
        )

    def _judge_seal(self) -> None:
        """The commitment fits the secret, and `pub` the entrants."""
        tournament = self.bundle.tournament
        compare(tournament.rules, RULES, "tournament.rules")
        if not _SLUG.fullmatch(tournament.id):
            raise BundleError("tournament.id", "it must be 1 to 60 letters, digits, - and _")
        try:
            get_game(tournament.game)
        except UsageError as error:
            raise BundleError("tournament.game", str(error)) from error
        for field, allowed in (("kind", KINDS), ("seeding", SEEDINGS)):
            if getattr(tournament, field) not in allowed:
                raise BundleError(f"tournament.{field}", f"it must be one of {', '.join(allowed)}")
        try:
            secret = bytes.fromhex(tournament.secret)
        except ValueError:
            secret = b""
        if len(secret) != 32 or secret.hex() != tournament.secret:
            raise BundleError("tournament.secret", "it must be 32 bytes in lower-case hex")
        if tournament.commitment != (wanted := commitment(tournament.id, secret)):
            raise BundleError("tournament.commitment", f"the secret gives {wanted}")
        self._judge_pub()
        self.prk = tournament_prk(secret, tournament.pub)

    def _judge_pub(self) -> None:
        pub = self.bundle.tournament.pub
        document = _read_canonical(pub, {"close": str, "entrants": list}, "tournament.pub")
        sealed = sorted(
            wheel
            for entrant in self.bundle.entrants
            if not entrant.addendum
            for wheel in _wheels(entrant)
        )
        for i, (told, known) in enumerate(itertools.zip_longest(document["entrants"], sealed)):
            if told != known:
                raise BundleError(
                    "tournament.pub",
                    f"its line {i} is {spell(told)}, and the entrants give {spell(known)}",
                )

    def _judge_entrants(self) -> None:
        """Seeds are 1, 2, 3 …, late entrants have the last ones, and those by lot are drawn again."""
        entrants = self.bundle.entrants
        seated = [each for each in entrants if each.seed is not None]
        seats = 2 if self.bundle.tournament.kind == "pair" else 1
        names: set[str] = set()
        for index, entrant in enumerate(entrants):
            if entrant.name in names:
                raise BundleError(f"entrants[{index}].name", "another entrant has it")
            names.add(entrant.name)
            if len(entrant.bots) != seats:
                raise BundleError(f"entrants[{index}].bots", f"it must be {seats} of them")
            if entrant.addendum:
                self._judge_addendum(index, entrant)
        starters = [each for each in seated if not each.addendum]
        late = [each for each in seated if each.addendum]
        late.sort(key=lambda each: each.seed or 0)
        if self.bundle.tournament.seeding == "lot":
            lot = stage_lot(self.prk, self.bundle.tournament.id, 0)
            starters.sort(key=lambda each: draw_lot(lot, f"seed/{each.name}"))
        else:
            starters.sort(key=lambda each: each.seed or 0)
        seeds = {id(each): seed for seed, each in enumerate((*starters, *late), 1)}
        for index, entrant in enumerate(entrants):
            compare(entrant.seed, seeds.get(id(entrant)), f"entrants[{index}].seed")

    def _judge_addendum(self, index: int, entrant: EntrantPart) -> None:
        place = f"entrants[{index}].addendum"
        fields = {"entered": str, "entrants": list, "round": int}
        told = _read_canonical(entrant.addendum, fields, place)
        compare(told["entrants"], sorted(_wheels(entrant)), place)
        stage = self.bundle.stages[0] if self.bundle.stages else None
        for each in stage.entrants if stage else ():
            if each.entrant == index:
                compare(told["round"], each.first_round, place)

    def _judge_stages(self) -> list[tuple[Format, StageView]]:
        """The stages that were played, each as it stands at its end."""
        views: list[tuple[Format, StageView]] = []
        going_on = self._starters()
        for number, (stage, (fmt, options)) in enumerate(
            zip(self.bundle.stages, self._judge_plans(), strict=True)
        ):
            place = f"stages[{number}]"
            if number and not _can_play(fmt, options, going_on):
                self._judge_skipped(stage, place)
                going_on = ()
                continue
            self._judge_stage_entrants(number, stage, going_on, place)
            view, at_its_end = self._judge_stage(number, stage, fmt, options)
            views.append((fmt, view))
            going_on = () if stage.qualifiers is None else _going_on(stage, at_its_end, place)
        return views

    def _judge_plans(self) -> list[tuple[Format, FormatOptions]]:
        """By stage its format and options: those who started could play the stages so."""
        stages, game = self.bundle.stages, get_game(self.bundle.tournament.game)
        read = []
        for number, stage in enumerate(stages):
            read.append(_read_format(stage, f"stages[{number}]"))
            try:
                judge_terms(game, stage.ruleset, stage.contest, stage.time_control)
            except RecordError as error:
                raise BundleError(f"stages[{number}].{error.place}", error.message) from error
        for number, stage in enumerate(stages, start=1):
            if (number == len(stages)) != (stage.qualifiers is None):
                place = f"stages[{number - 1}].qualifiers"
                raise BundleError(place, "all but the last stage must say how many")
        started = [each for each in self.bundle.entrants if each.seed and not each.addendum]
        try:
            check_stages(len(started), [_plan(stage) for stage in stages])
        except UsageError as error:
            raise BundleError("stages", str(error)) from error
        return read

    def _starters(self) -> tuple[SeededEntrant, ...]:
        """The entrants of the first stage by seed."""
        seeded = [
            SeededEntrant(id=index, seed=entrant.seed)
            for index, entrant in enumerate(self.bundle.entrants)
            if entrant.seed is not None
        ]
        return tuple(sorted(seeded, key=lambda each: each.seed))

    def _judge_skipped(self, stage: StagePart, place: str) -> None:
        """A stage for which too few were left."""
        for field in ("entrants", "rounds", "absent", "standings"):
            if getattr(stage, field):
                raise BundleError(f"{place}.{field}", "too few were left to play this stage")

    def _judge_stage(
        self, number: int, stage: StagePart, fmt: Format, options: Any
    ) -> tuple[StageView, StageView]:
        """The stage at its end, with the results that hold and with those by which the next one was begun."""
        place = f"stages[{number}]"
        lot = stage_lot(self.prk, self.bundle.tournament.id, number)
        past = _Past(number, stage, fmt)
        for r, part in enumerate(stage.rounds):
            here = f"{place}.rounds[{r}]"
            view = _view(stage, options, lot, r, part.absent, here)
            basis = past.as_it_was(r, part.awaited, here)
            planned = _planned(fmt, msgspec.structs.replace(view, rounds=basis), here)
            self._judge_round(number, part, planned, here)
            for p, pairing in enumerate(part.pairings):
                _check_form(pairing, f"{here}.pairings[{p}]")
            past.add(part)
            view = msgspec.structs.replace(view, rounds=past.rounds)
            for p, pairing in enumerate(part.pairings):
                self._judge_result(number, fmt, view, pairing, f"{here}.pairings[{p}]")
        view = _view(stage, options, lot, len(stage.rounds), stage.absent, place)
        then = past.as_it_was(len(stage.rounds), (), place)
        at_its_end = msgspec.structs.replace(view, rounds=then)
        if not fmt.is_continuous and _next_round(fmt, at_its_end, place) is not None:
            raise BundleError(f"{place}.rounds", "there is a round to come: it is not over")
        view = msgspec.structs.replace(view, rounds=past.rounds)
        self._judge_standings(fmt, view, stage, place)
        return view, at_its_end

    def _judge_stage_entrants(
        self, number: int, stage: StagePart, wanted: Sequence[SeededEntrant], place: str
    ) -> None:
        found = [(each.entrant, each.seed) for each in stage.entrants]
        compare(found, [(each.id, each.seed) for each in wanted], f"{place}.entrants")
        for i, each in enumerate(stage.entrants):
            is_late = number == 0 and bool(self.bundle.entrants[each.entrant].addendum)
            if not is_late:
                compare(each.first_round, 1, f"{place}.entrants[{i}].first_round")
            if (each.mu, each.sigma) != (None, None) and not is_rating(each.mu, each.sigma):
                raise BundleError(f"{place}.entrants[{i}].sigma", NO_RATING)

    def _judge_round(self, number: int, part: RoundPart, planned: Round, place: str) -> None:
        if part.index != planned.index:
            raise BundleError(f"{place}.index", f"it must be {planned.index}")
        if len(part.pairings) != len(planned.pairings):
            raise BundleError(
                f"{place}.pairings", f"the format makes {len(planned.pairings)} pairings here"
            )
        for p, (found, wanted) in enumerate(zip(part.pairings, planned.pairings, strict=True)):
            here = f"{place}.pairings[{p}]"
            compare(found.key, match_key(number, wanted.key), f"{here}.key")
            compare(found.slot, wanted.slot, f"{here}.slot")
            compare(found.entrants, wanted.entrants, f"{here}.entrants")
            compare(found.is_bye, wanted.is_bye, f"{here}.is_bye")
            is_changed = found.is_ruled or bool(found.earlier)
            if wanted.is_bye and is_changed:
                raise BundleError(f"{here}.is_ruled", "no ruling changes a bye")
            if wanted.result is not None and not is_changed:
                compare(found.result, result_part(wanted.result), f"{here}.result")

    def _judge_result(
        self, number: int, fmt: Format, view: StageView, pairing: PairingPart, place: str
    ) -> None:
        """The result follows from the match, from an absence, or from a ruling."""
        record = self._record_of(number, pairing)
        is_changed = pairing.is_ruled or bool(pairing.earlier)
        self.rulings += is_changed
        if record is not None and must_be_rated(self.bundle, number, pairing, record):
            self.rated[rating_key(pairing)] = pairing
        if pairing.is_bye:
            return
        plain = Pairing(
            key=_own_key(pairing.key, number), slot=pairing.slot, entrants=pairing.entrants
        )
        possible = list(self._possible_results(number, fmt, view, plain, record))
        before: ResultPart | None = None
        for where, result, is_ruled in _results_in_turn(pairing, place):
            could = list(possible)
            if is_ruled:
                could = [*_ruled_results(fmt, view, plain, result, before), *could]
            if not could and is_ruled:
                raise BundleError(f"{where}.decided_by", "no ruling decides so without a match")
            if not could:
                raise BundleError(record_place(pairing.key), "the record of this match is missing")
            if result not in could:
                compare(result, could[0], where)
            before = result

    def _record_of(self, number: int, pairing: PairingPart) -> MatchRecord | None:
        """The record of the pairing's match, judged; None if it has none."""
        if pairing.key not in self.bundle.records:
            return None
        record = self.bundle.records[pairing.key]
        self._judge_record(number, pairing, record)
        self.digests[pairing.key] = record.digest
        self.show(len(self.digests))
        return record

    def _possible_results(
        self,
        number: int,
        fmt: Format,
        view: StageView,
        pairing: Pairing,
        record: MatchRecord | None,
    ) -> Iterator[ResultPart]:
        """What a pairing came to without a ruling: by its match, or by who left before it was played."""
        if record is not None:
            yield result_part(fmt.decide(view, pairing, record.outcome))
            return
        stage = self.bundle.stages[number]
        later = stage.rounds[len(view.rounds) :]
        left = view.inactive.union(stage.absent, *(each.absent for each in later))
        could = [entrant for entrant in pairing.entrants if entrant in left]
        alone = _only(view, pairing.entrants)
        for size in range(1, len(could) + 1):
            for gone in itertools.combinations(could, size):
                walkover = fmt.walkover(_without(alone, gone), pairing)
                if walkover is not None:
                    yield result_part(walkover)

    def _judge_record(self, number: int, pairing: PairingPart, record: MatchRecord) -> None:
        """The record is true, is of this match, and was dealt from the secret."""
        stage, tournament = self.bundle.stages[number], self.bundle.tournament
        entrants = [self.bundle.entrants[index] for index in pairing.entrants]
        claims = (
            ("game", record.game, tournament.game),
            ("match_key", record.match_key, pairing.key),
            ("ruleset", record.ruleset, stage.ruleset),
            ("contest", record.contest, stage.contest),
            ("time_control", record.time_control, stage.time_control),
            (
                "entrants",
                record.entrants,
                [{"name": each.name, "bots": each.bots} for each in entrants],
            ),
        )
        for field, found, wanted in claims:
            compare(found, wanted, record_place(pairing.key, field))
        try:
            with_keys(record, self.prk, tournament.id)
            self.deals += len(replay(record).deals)
        except RecordError as error:
            raise BundleError(record_place(pairing.key, error.place), error.message) from error
        for g, game in enumerate(record.games):
            for d, deal in enumerate(game.deals):
                if deal.key is None:
                    place = record_place(pairing.key, f"games[{g}].deals[{d}].key")
                    raise BundleError(place, "the tournament is over: the key must be shown")

    def _judge_standings(self, fmt: Format, view: StageView, stage: StagePart, place: str) -> None:
        index = {each.id: each.id for each in view.entrants}
        rows = [standing_part(row, index) for row in fmt.standings(view)]
        compare(stage.standings, rows, f"{place}.standings")

    def _judge_places(self, views: Sequence[tuple[Format, StageView]]) -> None:
        places = final_places(views)
        for index, entrant in enumerate(self.bundle.entrants):
            compare(entrant.place, places.get(index), f"entrants[{index}].place")


class _Past:
    """The rounds of a stage that are judged, with the results that held at a time."""

    def __init__(self, number: int, stage: StagePart, fmt: Format) -> None:
        self.number, self.stage, self.fmt = number, stage, fmt
        self.rounds: tuple[Round, ...] = ()
        """With the results that hold at the end."""
        self.parts: dict[str, int] = {}
        """By key of a pairing the index of its round in the list."""
        self.replaced: set[int] = set()
        """The rounds in which a result was replaced when others were published already."""

    def add(self, part: RoundPart) -> None:
        """One more is judged."""
        here = len(self.rounds)
        self.rounds = (*self.rounds, _round(part, self.number))
        self.parts.update({pairing.key: here for pairing in part.pairings})
        if any(pairing.earlier for pairing in part.pairings):
            self.replaced.add(here)

    def as_it_was(self, count: int, awaited: Sequence[str], place: str) -> tuple[Round, ...]:
        """The rounds as they were when what follows `count` of them was paired, these matches being open."""
        named: set[str] = set()
        for i, key in enumerate(awaited):
            if key not in self.parts or key in named or not self.fmt.is_continuous:
                raise BundleError(f"{place}.awaited[{i}]", "no such match was open then")
            named.add(key)
        rounds = list(self.rounds)
        for r in self.replaced.union(self.parts[key] for key in awaited):
            rounds[r] = _round(self.stage.rounds[r], self.number, up_to=count, awaited=named)
        return tuple(rounds)


def _read_format(stage: StagePart, place: str) -> tuple[Format, FormatOptions]:
    try:
        fmt = get_format(stage.format)
    except UsageError as error:
        raise BundleError(f"{place}.format", str(error)) from error
    try:
        options = msgspec.convert(stage.options, fmt.options_type)
        fmt.make_options(msgspec.to_builtins(options))
    except (UsageError, msgspec.ValidationError) as error:
        raise BundleError(f"{place}.options", str(error)) from error
    compare(stage.options, options, f"{place}.options")
    return fmt, options


def _can_play(fmt: Format, options: Any, entrants: Sequence[SeededEntrant]) -> bool:
    try:
        fmt.check(entrants, options)
    except UsageError:
        return False
    return True


def _plan(stage: StagePart) -> StagePlan:
    return StagePlan(format=stage.format, options=stage.options, qualifiers=stage.qualifiers)


def _going_on(stage: StagePart, view: StageView, place: str) -> tuple[SeededEntrant, ...]:
    """Who goes on to the next stage."""
    try:
        return next_stage_entrants(view, _plan(stage))
    except UsageError as error:
        raise BundleError(f"{place}.qualifiers", str(error)) from error


def _view(
    stage: StagePart, options: Any, lot: bytes, before: int, absent: Sequence[int], place: str
) -> StageView:
    """The stage as it was when `before` rounds were published and these entrants were absent."""
    present = [each for each in stage.entrants if each.first_round <= before + 1]
    known = {each.entrant for each in present}
    for i, index in enumerate(absent):
        if index not in known:
            raise BundleError(f"{place}.absent[{i}]", "it names no entrant of this stage")
        if i and index <= absent[i - 1]:
            raise BundleError(f"{place}.absent[{i}]", "they stand in ascending order, each once")
    gone = frozenset(absent)
    return StageView(
        entrants=tuple(
            SeededEntrant(id=each.entrant, seed=each.seed, active=each.entrant not in gone)
            for each in present
        ),
        options=options,
        lot=lot,
        strengths={
            each.entrant: Rating(each.mu, each.sigma)
            for each in present
            if each.mu is not None and each.sigma is not None
        },
    )


def _round(
    part: RoundPart, stage: int, up_to: int | None = None, awaited: Collection[str] = ()
) -> Round:
    """A published round; with the results that held when `up_to` rounds were published.

    The matches whose keys are `awaited` have none.
    """
    return Round(
        index=part.index,
        pairings=tuple(
            Pairing(
                key=_own_key(pairing.key, stage),
                slot=pairing.slot,
                entrants=pairing.entrants,
                is_bye=pairing.is_bye,
                result=None
                if pairing.key in awaited
                else _read_result(_result_then(pairing, up_to)),
            )
            for pairing in part.pairings
        ),
    )


def _result_then(pairing: PairingPart, up_to: int | None) -> ResultPart:
    """The result by which the round after `up_to` published ones was paired."""
    for earlier in pairing.earlier:
        if up_to is not None and up_to < earlier.until_round:
            return earlier.result
    return pairing.result


def _read_result(part: ResultPart) -> PairingResult:
    """A result whose form is right."""
    return PairingResult(
        decided_by=DecidedBy(part.decided_by),
        places=part.places,
        points=part.points,
        scores=tuple(map(Fraction, part.scores)),
        advances=part.advances,
    )


def _results_in_turn(pairing: PairingPart, place: str) -> Iterator[tuple[str, ResultPart, bool]]:
    """The results of a pairing, the first one first: where each stands, and whether an organiser decided it."""
    for e, each in enumerate(pairing.earlier):
        yield f"{place}.earlier[{e}].result", each.result, each.is_ruled
    yield f"{place}.result", pairing.result, pairing.is_ruled


def _check_form(pairing: PairingPart, place: str) -> None:
    """Its results can be read: each has a value for each entrant, and says what a result can say."""
    for where, result, _ in _results_in_turn(pairing, place):
        if result.decided_by not in frozenset(DecidedBy):
            raise BundleError(f"{where}.decided_by", f"it must be one of {', '.join(DecidedBy)}")
        for field in ("places", "points", "scores", "advances"):
            if len(getattr(result, field)) != len(pairing.entrants):
                raise BundleError(f"{where}.{field}", "it must have one value for each entrant")
        for i, score in enumerate(result.scores):
            if score not in SCORES:
                message = f"a score is a fraction from 0 to 1 in lowest terms, not {spell(score)}"
                raise BundleError(f"{where}.scores[{i}]", message)


def _ruled_results(
    fmt: Format,
    view: StageView,
    pairing: Pairing,
    result: ResultPart,
    before: ResultPart | None,
) -> Iterator[ResultPart]:
    """What `result` can be if an organiser decided it: the result before annulled, or its places by forfeit.

    They were given as they are, or follow from who was at fault.
    """
    if result.decided_by == DecidedBy.VOID and before is not None:
        yield result_part(void_result(_read_result(before)))
    if result.decided_by not in {DecidedBy.FORFEIT, DecidedBy.DOUBLE_FORFEIT}:
        return
    places = places_by([-place for place in result.places])
    is_double = result.decided_by == DecidedBy.DOUBLE_FORFEIT
    if not is_double:
        given = Outcome(Termination.FORFEIT, (), (0,) * len(places), places)
        yield result_part(fmt.decide(view, pairing, given))
    offenders = [index for index, place in enumerate(places) if is_double or place > 1]
    if offenders:
        yield result_part(fmt.decide(view, pairing, forfeit_outcome(len(places), offenders, "")))


def _planned(fmt: Format, view: StageView, place: str) -> Round:
    planned = _next_round(fmt, view, place)
    if planned is None:
        raise BundleError(place, "the stage was over before this round")
    return planned


def _next_round(fmt: Format, view: StageView, place: str) -> Round | None:
    try:
        return fmt.next_round(view)
    except ArenaError as error:
        raise BundleError(place, str(error)) from error


def _own_key(key: str, stage: int) -> str:
    return key.removeprefix(match_key(stage, ""))


def _only(view: StageView, entrants: Collection[int]) -> StageView:
    known = view.by_id
    return msgspec.structs.replace(view, entrants=tuple(known[each] for each in entrants))


def _without(view: StageView, gone: Sequence[int]) -> StageView:
    return msgspec.structs.replace(
        view,
        entrants=tuple(
            msgspec.structs.replace(each, active=each.active and each.id not in gone)
            for each in view.entrants
        ),
    )


def _wheels(entrant: EntrantPart) -> list[list[str]]:
    return [[ref.bot, (ref.wheel or "").removeprefix("sha256:")] for ref in entrant.bots]


def _read_canonical(text: str, fields: Mapping[str, type], place: str) -> dict[str, Any]:
    """What was published as canonical JSON: an object of these fields, each of its kind."""
    try:
        document = json.loads(text)
        is_canonical = canonical_json(document).decode() == text
    except (ValueError, RecursionError):
        is_canonical = False
    if not is_canonical or not isinstance(document, dict) or document.keys() != fields.keys():
        raise BundleError(place, f"it must be canonical JSON of {', '.join(sorted(fields))}")
    for field, kind in fields.items():
        if type(document[field]) is not kind:
            raise BundleError(place, f"its {field} is no {_JSON_KINDS[kind]}")
    return document


_JSON_KINDS = {str: "text", list: "list", int: "whole number"}
