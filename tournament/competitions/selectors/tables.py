"""A tournament's published rounds as people draw them: brackets and cross tables; a record as drawn deals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from engine.formats.elimination import THIRD_PLACE_KEY, SingleElimination
from engine.record import MatchRecord, encode_record, replay
from engine.standings import StandingRow
from tournament.competitions.models import DecidedBy, Tournament
from tournament.competitions.selectors.pages import (
    EntrantRow,
    PairingPart,
    PairingRow,
    RoundRow,
    TournamentPage,
)


@dataclass(frozen=True, slots=True)
class BracketSide:
    """One of the two lines of a bracket's match."""

    name: str
    """Whose line it is, or who will come there."""
    seed: int | None = None
    points: int | None = None
    won: bool = False
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class BracketMatch:
    """One box of a bracket."""

    key: str
    sides: tuple[BracketSide, ...]
    note: str = ""
    """What is to be said besides the points: how it was decided, or how far it is."""
    has_page: bool = False


@dataclass(frozen=True, slots=True)
class BracketRound:
    """One column of a bracket."""

    title: str
    matches: tuple[BracketMatch, ...]


@dataclass(frozen=True, slots=True)
class Bracket:
    """A knock-out from its first round to the final, those to come included."""

    rounds: tuple[BracketRound, ...]
    third_place: BracketMatch | None


@dataclass(frozen=True, slots=True)
class CrossResult:
    """What one entrant scored against another in one match."""

    key: str
    score: Fraction | None
    """None until it is decided."""
    has_page: bool


@dataclass(frozen=True, slots=True)
class CrossRow:
    """One entrant's line of a cross table: its results against each in the table's order."""

    number: int
    entrant: int
    name: str
    score: Fraction
    cells: tuple[tuple[CrossResult, ...] | None, ...]
    """None on the diagonal."""


@dataclass(frozen=True, slots=True)
class DrawnDeal:
    """One deal of a record as text."""

    heading: str
    """What it shares with the deals beside it: its board, or its game."""
    title: str
    seats: str
    """Who sits where."""
    score: str
    """By side or seat; empty for the deal that a fault cut."""
    text: str


def bracket_of(page: TournamentPage) -> Bracket | None:
    """The bracket of a single elimination; None for other formats and before the first round."""
    if not is_one_bracket(page) or not page.rounds:
        return None
    columns = [_bracket_column(published) for published in page.rounds]
    while len(columns[-1]) > 1:
        columns.append(_coming_column(len(columns) + 1, len(columns[-1]) // 2))
    rounds = tuple(
        BracketRound(title=round_title(len(column), number), matches=tuple(column))
        for number, column in enumerate(columns, 1)
    )
    return Bracket(rounds=rounds, third_place=_third_place(page.rounds))


def is_one_bracket(page: TournamentPage) -> bool:
    """Whether the stage is one bracket, whose rounds halve from the first to the final."""
    return page.stage.format == SingleElimination.name


def round_title(matches: int, number: int) -> str:
    """What people call a round of a bracket with so many matches: ``Semi-finals``."""
    names = {1: "Final", 2: "Semi-finals", 4: "Quarter-finals"}
    return names.get(matches, f"Round {number}")


def _bracket_column(published: RoundRow) -> list[BracketMatch]:
    return [_bracket_match(row) for row in published.pairings if row.key != THIRD_PLACE_KEY]


def _coming_column(number: int, matches: int) -> list[BracketMatch]:
    return [
        BracketMatch(
            key=f"SE/R{number}/M{slot}",
            sides=tuple(
                BracketSide(name=f"winner of R{number - 1}/M{feeder}", is_known=False)
                for feeder in (2 * slot - 1, 2 * slot)
            ),
        )
        for slot in range(1, matches + 1)
    ]


def _third_place(rounds: Sequence[RoundRow]) -> BracketMatch | None:
    for published in rounds:
        for row in published.pairings:
            if row.key == THIRD_PLACE_KEY:
                return _bracket_match(row)
    return None


def _bracket_match(row: PairingRow) -> BracketMatch:
    sides = tuple(_bracket_side(row, part) for part in row.parts)
    if row.is_bye:
        sides = (*sides, BracketSide(name="bye", is_known=False))
    return BracketMatch(
        key=row.key, sides=sides, note=pairing_note(row), has_page=bool(row.match_state)
    )


def _bracket_side(row: PairingRow, part: PairingPart) -> BracketSide:
    shows_points = row.decided_by in {DecidedBy.PLAY, DecidedBy.LOT}
    return BracketSide(
        name=part.name,
        seed=part.seed,
        points=part.points if shows_points else None,
        won=bool(part.advances),
    )


def pairing_note(row: PairingRow) -> str:
    """What is to be said of a pairing besides its points; empty for an ordinary result."""
    if row.is_bye:
        return ""
    if not row.decided_by:
        return row.match_label
    if row.decided_by == DecidedBy.PLAY:
        return ""
    if row.decided_by == DecidedBy.FAULT:
        return f"by {row.termination_label}"
    return f"by {row.decided_label}"


def pairing_outcome(row: PairingRow) -> str:
    """How a pairing stands, in words."""
    if row.is_bye:
        return "bye"
    if not row.decided_by:
        return row.match_label or "not decided"
    if row.decided_by == DecidedBy.PLAY:
        return row.termination_label
    return f"decided by {row.termination_label if row.decided_by == DecidedBy.FAULT else row.decided_label}"


def cross_table_of(page: TournamentPage) -> tuple[CrossRow, ...]:
    """Everyone against everyone, in the order of the standings; empty for a knock-out and before the start."""
    if page.knocks_out or not page.rounds:
        return ()
    results = _results_between(page.rounds)
    names = {entrant.pk: entrant.name for entrant in page.entrants}
    order = [row.entrant for row in page.standings]
    return tuple(
        CrossRow(
            number=number,
            entrant=row.entrant,
            name=names[row.entrant],
            score=row.score,
            cells=tuple(
                None if other == row.entrant else tuple(results[row.entrant, other])
                for other in order
            ),
        )
        for number, row in enumerate(page.standings, 1)
    )


def _results_between(rounds: Sequence[RoundRow]) -> dict[tuple[int, int], list[CrossResult]]:
    results: dict[tuple[int, int], list[CrossResult]] = defaultdict(list)
    for published in rounds:
        for row in published.pairings:
            for part in row.parts:
                for other in row.parts:
                    if other is not part:
                        results[part.entrant, other.entrant].append(
                            CrossResult(
                                key=row.key,
                                score=part.score if row.decided_by else None,
                                has_page=bool(row.match_state),
                            )
                        )
    return results


def standings_named(
    standings: Sequence[StandingRow], entrants: Sequence[EntrantRow]
) -> tuple[tuple[str, StandingRow], ...]:
    """The standings, each line with its entrant's name."""
    names = {entrant.pk: entrant.name for entrant in entrants}
    return tuple((names[row.entrant], row) for row in standings)


def drawn_deals(record: MatchRecord) -> Iterator[DrawnDeal]:
    """Every deal of a record, drawn by its game. Raises RecordError if the record is not true."""
    found = replay(record)
    for deal in found.deals:
        entry = record.games[deal.game]
        seats = ", ".join(
            f"seat {seat} {record.entrants[entrant].name}"
            for seat, entrant in enumerate(entry.seating)
        )
        if entry.board is None:
            heading, title = f"Game {deal.game + 1}", f"Deal {deal.deal + 1}"
        else:
            heading, title = f"Board {entry.board + 1}", f"Rotation {entry.rotation + 1}"
        yield DrawnDeal(
            heading=heading,
            title=title,
            seats=seats,
            score="" if deal.score is None else " : ".join(map(str, deal.score)),
            text=found.game.draw(found.ruleset, deal.board, deal.actions).rstrip("\n"),
        )


def fault_words(record: MatchRecord) -> list[str]:
    """What the bots of a record did wrong, a sentence each."""
    return [
        f"{record.entrants[fault.entrant].name}"
        f"{'' if fault.seat is None else f' on seat {fault.seat}'}: "
        f"{_FAULT_WORDS.get(fault.kind, fault.kind)}. {fault.detail}"
        for fault in record.outcome.faults
    ]


_FAULT_WORDS = {
    "illegal_action": "answered with an action that was not legal",
    "time": "used up its time",
    "crash": "crashed",
    "protocol": "sent something that is no answer",
    "memory": "asked for more memory than it may have",
}


def record_file(tournament: Tournament, record: MatchRecord) -> tuple[str, bytes]:
    """A record as a file: its name and its bytes."""
    return record_name(tournament, record.match_key), encode_record(record)


def record_name(tournament: Tournament, match_key: str) -> str:
    """The name of a record's file."""
    return f"{tournament.slug}-{match_key.replace('/', '-')}.json"
