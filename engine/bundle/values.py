"""The document: what was published of a finished tournament, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from engine.formats import PairingResult
from engine.record import BotRef, Contest, MatchRecord
from engine.sdk.timecontrol import TimeControl
from engine.standings import StandingRow

FORMAT: Final = "arena-bundle/1"
RULES: Final = "arena-rules/1"
"""The rules of games, records and deals that this code judges by."""


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
    rated: bool
    """Whether its matches were to be rated."""
    seeding: str
    """What the seeds of the first stage followed from: ``rating``, ``hand`` or ``lot``."""


class EntrantPart(Part, frozen=True):
    """An entrant; all else in the bundle names it by its index in the list."""

    name: str
    bots: tuple[BotRef, ...]
    seed: int | None
    """In the first stage; None: it was sealed, but did not start."""
    addendum: str = ""
    """Of who entered after the close, so that `pub` does not hold it: what was published then, canonical
    JSON of the moment, the wheels and the first round."""
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
    """How many rounds of the stage were published when it was replaced, and stayed: they were paired by it.
    One more than there are if by it the next stage was begun, and that stayed."""
    result: ResultPart
    is_ruled: bool = False
    """An organiser had decided it, too."""


class PairingPart(Part, frozen=True):
    """A pairing of a round."""

    key: str
    """In the tournament: ``SE/R1/M3``, in the second stage ``S2/SE/R1/M3``."""
    slot: int
    entrants: tuple[int, ...]
    is_bye: bool
    result: ResultPart
    edition: int = 1
    """How often it was played or paired under this key: more than 1 after a ruling."""
    is_sandboxed: bool = True
    """Whether its bots were held by a sandbox; if not, it is not rated."""
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
    awaited: tuple[str, ...] = ()
    """Of a continuous format: the keys of the matches that were open when this batch was picked."""


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
    """As in the log of the ratings, without the tournament's id: ``SE/R1/M3``, and ``SE/R1/M3~2`` for
    its second edition."""
    teams: tuple[RatedTeamPart, ...]


class Bundle(Part, frozen=True):
    """The document. Read it with `decode_bundle`, write it with `encode_bundle`."""

    format: Literal["arena-bundle/1"]
    tournament: TournamentPart
    entrants: tuple[EntrantPart, ...]
    stages: tuple[StagePart, ...]
    records: Mapping[str, MatchRecord]
    """By match key, deal keys revealed. Of a bundle that was read each is decoded when it is asked for."""
    ratings: tuple[RatedMatch, ...]
    """Of the matches that were rated, in the order of the log."""
    digest: str
    """`bundle_digest`."""


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


def rating_key(pairing: PairingPart) -> str:
    """The pairing's key in the log of the ratings, without the tournament's id."""
    return f"{pairing.key}~{pairing.edition}" if pairing.edition > 1 else pairing.key
