"""A whole tournament as one document, and the verdict on it.

A bundle (``arena-bundle/1``) holds what was published of a finished tournament: the commitment, the
secret and `pub`, entrants, stages, rounds and pairings, every match record, the standings and what the
ratings made of it. `verify_bundle` believes none of it: it recomputes the commitment, every deal,
every match, every result, every pairing, the tables and the ratings, with nothing but the rules.

What nobody can recompute is taken as given and counted in the report: an organiser's rulings, who was
absent when a round was paired, seeds that follow from ratings or a hand, and the ratings that entrants
brought along from elsewhere.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, Literal

import msgspec

from engine.errors import ArenaError, BundleError, RecordError, UsageError
from engine.formats import DecidedBy, FormatOptions, get_format
from engine.formats.base import Format, Pairing, PairingResult, Round, SeededEntrant, StageView
from engine.formats.stages import (
    StagePlan,
    final_places,
    match_key,
    next_stage_entrants,
    stage_lot,
)
from engine.ratings import Rating, rate
from engine.record import (
    BotRef,
    Contest,
    MatchRecord,
    canonical_json,
    check_contest_is_whole,
    decode_strictly,
    replay,
    sha256_hex,
    with_keys,
)
from engine.sdk.timecontrol import TimeControl
from engine.shuffle import commitment, tournament_prk
from engine.standings import StandingRow

FORMAT: Final = "arena-bundle/1"


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of the document: no unknown field, nothing optional unless it says so."""


class TournamentPart(Part, frozen=True):
    """What was published of the tournament as a whole."""

    id: str
    """What its deals are derived from: its address."""
    name: str
    game: str
    kind: str
    """``mono``, ``pair`` or ``ffa``."""
    rules: str
    """The rules of games, records and deals that it was played by: ``arena-rules/1``."""
    commitment: str
    secret: str
    """In hex."""
    pub: str
    """As it was published at the close: canonical JSON, as a text."""


class EntrantPart(Part, frozen=True):
    """An entrant; all else in the bundle names it by its index in the list."""

    name: str
    bots: tuple[BotRef, ...]
    seed: int | None
    """In the first stage; None: it was sealed, but did not start."""
    is_late: bool = False
    """It entered after the close, so `pub` does not hold it."""
    place: int | None = None
    """Its final place."""


class ResultPart(Part, frozen=True):
    """How a pairing came out; the tuples follow its entrants."""

    decided_by: str
    places: tuple[int, ...]
    points: tuple[int, ...]
    scores: tuple[str, ...]
    """Fractions as texts: ``1``, ``1/2``."""
    advances: tuple[bool, ...]


class EarlierResult(Part, frozen=True):
    """A result that a ruling replaced later."""

    until_round: int
    """How many rounds of the stage were published when it was replaced: they were paired by it."""
    result: ResultPart


class PairingPart(Part, frozen=True):
    """A pairing of a round."""

    key: str
    """In the tournament: ``SE/R1/M3``, in the second stage ``S2/SE/R1/M3``."""
    slot: int
    entrants: tuple[int, ...]
    is_bye: bool
    result: ResultPart
    is_ruled: bool = False
    """An organiser decided it, against what a match says or without one."""
    earlier: tuple[EarlierResult, ...] = ()
    """In the order in which they were replaced."""


class RoundPart(Part, frozen=True):
    """A round as it was published."""

    index: int
    absent: tuple[int, ...]
    """Who had withdrawn or been disqualified when it was paired."""
    pairings: tuple[PairingPart, ...]


class StageEntrant(Part, frozen=True):
    """An entrant of a stage."""

    entrant: int
    seed: int
    first_round: int = 1
    """The first round that it could play; later than 1 for a late entrant."""
    mu: float | None = None
    sigma: float | None = None
    """The rating with which it came into the stage, where the format asks for it."""


class TieBreakPart(Part, frozen=True):
    """One criterion of one row with its working."""

    name: str
    value: str | None
    working: str


class StandingPart(Part, frozen=True):
    """A row of a stage's final table."""

    entrant: int
    place: int
    matches: int
    wins: int
    ties: int
    losses: int
    unplayed: int
    score: str
    points_difference: int
    tie_breaks: tuple[TieBreakPart, ...]
    note: str
    group: str
    group_place: int | None


class StagePart(Part, frozen=True):
    """A stage: what it was to be, and what happened."""

    format: str
    options: dict[str, Any]
    qualifiers: int | None
    ruleset: dict[str, bool | int | str | None]
    contest: Contest
    time_control: TimeControl
    entrants: tuple[StageEntrant, ...]
    rounds: tuple[RoundPart, ...]
    absent: tuple[int, ...]
    """Who had withdrawn or been disqualified at the end."""
    standings: tuple[StandingPart, ...]


class RatedMember(Part, frozen=True):
    """A version's line before and after a rated match."""

    bot: str
    version: str
    mu_before: float
    sigma_before: float
    matches_before: int
    mu: float
    sigma: float
    matches: int


class RatedTeamPart(Part, frozen=True):
    """One entrant of a rated match."""

    place: int
    members: tuple[RatedMember, ...]


class RatedMatch(Part, frozen=True):
    """What the ratings made of a match."""

    key: str
    teams: tuple[RatedTeamPart, ...]


class Bundle(Part, frozen=True):
    """The document. Read it with `decode_bundle`, write it with `encode_bundle`."""

    format: Literal["arena-bundle/1"]
    tournament: TournamentPart
    entrants: tuple[EntrantPart, ...]
    stages: tuple[StagePart, ...]
    records: dict[str, MatchRecord]
    """By match key, deal keys revealed."""
    ratings: tuple[RatedMatch, ...]
    """Of the matches that were rated, in the order of the log."""
    digest: str
    """`bundle_digest`."""


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
    """Results that an organiser decided: taken as given."""


def encode_bundle(bundle: Bundle) -> bytes:
    """The bundle as a UTF-8 JSON document."""
    return msgspec.json.encode(bundle) + b"\n"


def decode_bundle(data: bytes) -> Bundle:
    """Read a document strictly. Raises BundleError with the place; whether it is true says `verify_bundle`."""
    try:
        bundle, document = decode_strictly(data, Bundle)
    except RecordError as error:
        place = "bundle" if error.place == "record" else error.place
        raise BundleError(place, error.message) from error
    for place, contest in itertools.chain(
        ((f"stages[{i}].contest", stage["contest"]) for i, stage in enumerate(document["stages"])),
        ((_record(key, "contest"), each["contest"]) for key, each in document["records"].items()),
    ):
        try:
            check_contest_is_whole(contest, place)
        except RecordError as error:
            raise BundleError(error.place, error.message) from error
    return bundle


def bundle_digest(bundle: Bundle) -> str:
    """``sha256:`` and the hex SHA-256 of the canonical JSON without digest and ratings.

    Of each record only its own digest goes in. So a tournament of deterministic bots that is played
    again from the same secret has the same digest, whenever and wherever that is.
    """
    document = msgspec.to_builtins(bundle)
    del document["digest"], document["ratings"]
    document["records"] = {key: record.digest for key, record in bundle.records.items()}
    return "sha256:" + sha256_hex(canonical_json(document))


def seal_bundle(bundle: Bundle) -> Bundle:
    """`bundle` with its digest."""
    return msgspec.structs.replace(bundle, digest=bundle_digest(bundle))


def result_part(result: PairingResult) -> ResultPart:
    """A result as the document has it."""
    return ResultPart(
        decided_by=str(result.decided_by),
        places=result.places,
        points=result.points,
        scores=tuple(map(str, result.scores)),
        advances=result.advances,
    )


def standing_part(row: StandingRow, index: Mapping[int, int]) -> StandingPart:
    """A row of a table as the document has it; `index` gives the entrant's index by its id."""
    return StandingPart(
        entrant=index[row.entrant],
        place=row.place,
        matches=row.matches,
        wins=row.wins,
        ties=row.ties,
        losses=row.losses,
        unplayed=row.unplayed,
        score=str(row.score),
        points_difference=row.points_difference,
        tie_breaks=tuple(
            TieBreakPart(
                name=str(each.name),
                value=None if each.value is None else str(each.value),
                working=each.working,
            )
            for each in row.tie_breaks
        ),
        note=row.note,
        group=row.group,
        group_place=row.group_place,
    )


def verify_bundle(bundle: Bundle) -> BundleReport:
    """Recompute everything.

    Raises BundleError at the first value that is not what it must be, with its place, for example
    ``stages[0].rounds[1].pairings[0].entrants[1]`` or ``records["SE/R1/M3"].games[0].score[0]``.
    """
    return _Judge(bundle).judge()


class _Judge:
    """Walks through a bundle in the order in which its parts depend on each other."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.prk = b""
        self.deals = 0
        self.rulings = 0
        self.records: dict[str, MatchRecord] = dict(bundle.records)
        self.used: set[str] = set()

    def judge(self) -> BundleReport:
        bundle = self.bundle
        self._judge_seal()
        views: list[tuple[Format, StageView]] = []
        for number, stage in enumerate(bundle.stages):
            views.append(self._judge_stage(number, stage, views))
        for key in self.records:
            if key not in self.used:
                raise BundleError(_record(key), "there is no pairing that was played so")
        self._judge_places(views)
        self._judge_ratings()
        if bundle.digest != (digest := bundle_digest(bundle)):
            raise BundleError("digest", f"it must be {digest}")
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
        )

    def _judge_seal(self) -> None:
        """The commitment fits the secret, and `pub` the entrants."""
        tournament = self.bundle.tournament
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
        sealed = sorted(
            [ref.bot, (ref.wheel or "").removeprefix("sha256:")]
            for entrant in self.bundle.entrants
            if not entrant.is_late
            for ref in entrant.bots
        )
        try:
            document = json.loads(pub)
            is_canonical = canonical_json(document).decode() == pub
        except (ValueError, RecursionError):
            is_canonical = False
        if not is_canonical or set(document) != {"close", "entrants"}:
            raise BundleError("tournament.pub", "it must be canonical JSON of close and entrants")
        for i, (told, known) in enumerate(itertools.zip_longest(document["entrants"], sealed)):
            if told != known:
                raise BundleError(
                    "tournament.pub", f"its line {i} is {told}, and the entrants give {known}"
                )

    def _judge_stage(
        self, number: int, stage: StagePart, before: Sequence[tuple[Format, StageView]]
    ) -> tuple[Format, StageView]:
        place = f"stages[{number}]"
        fmt, options = _read_format(stage, place)
        lot = stage_lot(self.prk, self.bundle.tournament.id, number)
        self._judge_stage_entrants(number, stage, before, place)
        published: tuple[Round, ...] = ()
        for r, part in enumerate(stage.rounds):
            here = f"{place}.rounds[{r}]"
            view = _view(stage, options, lot, r, part.absent, here)
            basis = tuple(_round(each, number, up_to=r) for each in stage.rounds[:r])
            planned = _planned(fmt, msgspec.structs.replace(view, rounds=basis), here)
            self._judge_round(number, part, planned, here)
            published = (*published, _round(part, number))
            view = msgspec.structs.replace(view, rounds=published)
            for p, pairing in enumerate(part.pairings):
                self._judge_result(number, fmt, view, pairing, f"{here}.pairings[{p}]")
        view = _view(stage, options, lot, len(stage.rounds), stage.absent, place)
        view = msgspec.structs.replace(view, rounds=published)
        if not fmt.is_continuous and _next_round(fmt, view, place) is not None:
            raise BundleError(f"{place}.rounds", "there is a round to come: it is not over")
        self._judge_standings(fmt, view, stage, place)
        return fmt, view

    def _judge_stage_entrants(
        self,
        number: int,
        stage: StagePart,
        before: Sequence[tuple[Format, StageView]],
        place: str,
    ) -> None:
        if number == 0:
            wanted = [
                (index, entrant.seed)
                for index, entrant in enumerate(self.bundle.entrants)
                if entrant.seed is not None
            ]
        else:
            previous = self.bundle.stages[number - 1]
            plan = StagePlan(
                format=previous.format,
                options=previous.options,
                qualifiers=previous.qualifiers,
            )
            try:
                going_on = next_stage_entrants(before[-1][1], plan)
            except UsageError as error:
                raise BundleError(f"stages[{number - 1}].qualifiers", str(error)) from error
            wanted = [(each.id, each.seed) for each in going_on]
        found = [(each.entrant, each.seed) for each in stage.entrants]
        _compare(found, sorted(wanted, key=lambda each: each[1]), f"{place}.entrants")

    def _judge_round(self, number: int, part: RoundPart, planned: Round, place: str) -> None:
        if part.index != planned.index:
            raise BundleError(f"{place}.index", f"it must be {planned.index}")
        if len(part.pairings) != len(planned.pairings):
            raise BundleError(
                f"{place}.pairings", f"the format makes {len(planned.pairings)} pairings here"
            )
        for p, (found, wanted) in enumerate(zip(part.pairings, planned.pairings, strict=True)):
            here = f"{place}.pairings[{p}]"
            _compare(found.key, match_key(number, wanted.key), f"{here}.key")
            _compare(found.slot, wanted.slot, f"{here}.slot")
            _compare(found.entrants, wanted.entrants, f"{here}.entrants")
            _compare(found.is_bye, wanted.is_bye, f"{here}.is_bye")
            first = found.earlier[0].result if found.earlier else found.result
            if wanted.result is not None and not (found.is_ruled and not found.earlier):
                _compare(first, result_part(wanted.result), f"{here}.result")

    def _judge_result(
        self, number: int, fmt: Format, view: StageView, pairing: PairingPart, place: str
    ) -> None:
        """The result follows from the match, from an absence, or from a ruling."""
        _check_sizes(pairing, place)
        record = self.records.get(pairing.key)
        if record is not None:
            self._judge_record(number, pairing, record)
        if pairing.is_ruled:
            self.rulings += 1
        if pairing.is_bye:
            return
        if pairing.is_ruled and not pairing.earlier:
            return
        plain = Pairing(
            key=_own_key(pairing.key, number), slot=pairing.slot, entrants=pairing.entrants
        )
        possible = list(self._possible_results(number, fmt, view, plain, record))
        found = pairing.earlier[0].result if pairing.earlier else pairing.result
        where = "earlier[0].result" if pairing.earlier else "result"
        if not possible:
            raise BundleError(_record(pairing.key), "the record of this match is missing")
        if found not in possible:
            _compare(found, possible[0], f"{place}.{where}")

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
        for size in range(1, len(could) + 1):
            for gone in itertools.combinations(could, size):
                walkover = fmt.walkover(_without(view, gone), pairing)
                if walkover is not None:
                    yield result_part(walkover)

    def _judge_record(self, number: int, pairing: PairingPart, record: MatchRecord) -> None:
        """The record is true, is of this match, and was dealt from the secret."""
        self.used.add(pairing.key)
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
            _compare(found, wanted, _record(pairing.key, field))
        try:
            with_keys(record, self.prk, tournament.id)
            self.deals += len(replay(record).deals)
        except RecordError as error:
            raise BundleError(_record(pairing.key, error.place), error.message) from error
        for g, game in enumerate(record.games):
            for d, deal in enumerate(game.deals):
                if deal.key is None:
                    place = _record(pairing.key, f"games[{g}].deals[{d}].key")
                    raise BundleError(place, "the tournament is over: the key must be shown")

    def _judge_standings(self, fmt: Format, view: StageView, stage: StagePart, place: str) -> None:
        index = {each.id: each.id for each in view.entrants}
        rows = [standing_part(row, index) for row in fmt.standings(view)]
        _compare(stage.standings, rows, f"{place}.standings")

    def _judge_places(self, views: Sequence[tuple[Format, StageView]]) -> None:
        places = final_places(views)
        for index, entrant in enumerate(self.bundle.entrants):
            _compare(entrant.place, places.get(index), f"entrants[{index}].place")

    def _judge_ratings(self) -> None:
        """Each step follows from the ratings before it, and these from the step before."""
        pairings = {
            pairing.key: pairing
            for stage in self.bundle.stages
            for each in stage.rounds
            for pairing in each.pairings
        }
        known: dict[tuple[str, str], RatedMember] = {}
        seen: set[str] = set()
        for e, event in enumerate(self.bundle.ratings):
            place = f"ratings[{e}]"
            pairing = pairings.get(event.key)
            if pairing is None or event.key in seen or event.key not in self.records:
                raise BundleError(f"{place}.key", "there is no such match, or it was rated before")
            seen.add(event.key)
            self._judge_teams(event, pairing, place)
            self._judge_members(event, known, place)

    def _judge_teams(self, event: RatedMatch, pairing: PairingPart, place: str) -> None:
        entrants = [self.bundle.entrants[index] for index in pairing.entrants]
        found = [
            (team.place, [(each.bot, each.version) for each in team.members])
            for team in event.teams
        ]
        wanted = [
            (rank, [(ref.bot, ref.version) for ref in entrant.bots])
            for rank, entrant in zip(pairing.result.places, entrants, strict=True)
        ]
        _compare(found, wanted, f"{place}.teams")

    def _judge_members(
        self, event: RatedMatch, known: dict[tuple[str, str], RatedMember], place: str
    ) -> None:
        try:
            rated = rate(
                [
                    [Rating(m.mu_before, m.sigma_before) for m in team.members]
                    for team in event.teams
                ],
                [team.place for team in event.teams],
            )
        except (UsageError, ArithmeticError, ValueError) as error:
            raise BundleError(place, str(error)) from error
        for t, (team, ratings) in enumerate(zip(event.teams, rated, strict=True)):
            for m, (member, rating) in enumerate(zip(team.members, ratings, strict=True)):
                here = f"{place}.teams[{t}].members[{m}]"
                _compare(member.mu, rating.mu, f"{here}.mu")
                _compare(member.sigma, rating.sigma, f"{here}.sigma")
                _compare(member.matches, member.matches_before + 1, f"{here}.matches")
                last = known.get((member.bot, member.version))
                if last is not None and last.matches == member.matches_before:
                    _compare(member.mu_before, last.mu, f"{here}.mu_before")
                    _compare(member.sigma_before, last.sigma, f"{here}.sigma_before")
                elif last is not None and last.matches > member.matches_before:
                    raise BundleError(
                        f"{here}.matches_before", f"it had {last.matches} matches before"
                    )
                known[member.bot, member.version] = member


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
    _compare(stage.options, options, f"{place}.options")
    return fmt, options


def _view(
    stage: StagePart, options: Any, lot: bytes, before: int, absent: Iterable[int], place: str
) -> StageView:
    """The stage as it was when `before` rounds were published and these entrants were absent."""
    gone = frozenset(absent)
    present = [each for each in stage.entrants if each.first_round <= before + 1]
    for i, index in enumerate(gone):
        if index not in {each.entrant for each in present}:
            raise BundleError(f"{place}.absent[{i}]", "it names no entrant of this stage")
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


def _round(part: RoundPart, stage: int, up_to: int | None = None) -> Round:
    """A published round; with the results that held when `up_to` rounds were published."""
    return Round(
        index=part.index,
        pairings=tuple(
            Pairing(
                key=_own_key(pairing.key, stage),
                slot=pairing.slot,
                entrants=pairing.entrants,
                is_bye=pairing.is_bye,
                result=_read_result(_result_then(pairing, up_to), pairing),
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


def _read_result(part: ResultPart, pairing: PairingPart) -> PairingResult:
    place = f"the result of {pairing.key}"
    try:
        return PairingResult(
            decided_by=DecidedBy(part.decided_by),
            places=part.places,
            points=part.points,
            scores=tuple(Fraction(score) for score in part.scores),
            advances=part.advances,
        )
    except (ValueError, ZeroDivisionError) as error:
        raise BundleError(place, str(error)) from error


def _check_sizes(pairing: PairingPart, place: str) -> None:
    for field in ("places", "points", "scores", "advances"):
        if len(getattr(pairing.result, field)) != len(pairing.entrants):
            raise BundleError(f"{place}.result.{field}", "it must have one value for each entrant")


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


def _without(view: StageView, gone: Sequence[int]) -> StageView:
    return msgspec.structs.replace(
        view,
        entrants=tuple(
            msgspec.structs.replace(each, active=each.active and each.id not in gone)
            for each in view.entrants
        ),
    )


def _record(key: str, place: str = "") -> str:
    """A place in a record: ``records["SE/R1/M3"].games[0].score``."""
    return f'records["{key}"]' + (f".{place}" if place else "")


def _compare(found: Any, wanted: Any, place: str) -> None:
    """Raise BundleError at the innermost value that differs."""
    _compare_plain(msgspec.to_builtins(found), msgspec.to_builtins(wanted), place)


def _compare_plain(found: Any, wanted: Any, place: str) -> None:
    if isinstance(found, dict) and isinstance(wanted, dict) and found.keys() == wanted.keys():
        for name, value in found.items():
            _compare_plain(value, wanted[name], f"{place}.{name}")
    elif _is_list(found) and _is_list(wanted) and len(found) == len(wanted):
        for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
            _compare_plain(one, other, f"{place}[{i}]")
    elif type(found) is not type(wanted) or found != wanted:
        raise BundleError(place, f"it must be {wanted!r}, not {found!r}")


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)
