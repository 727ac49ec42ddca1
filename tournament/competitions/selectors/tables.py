"""A tournament's published rounds as people draw them: brackets and cross tables; a record as drawn deals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from engine.formats.double_elimination import DoubleElimination
from engine.formats.elimination import THIRD_PLACE_KEY, SingleElimination
from engine.record import MatchRecord, encode_record, replay
from tournament.competitions.models import DecidedBy, Tournament
from tournament.competitions.selectors.stages import (
    PairingPart,
    PairingRow,
    RoundRow,
    StagePage,
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
    """A bracket from its first round to its last, those to come included where it is known who comes there."""

    title: str
    rounds: tuple[BracketRound, ...]
    halves: bool = False
    """Whether each round is half as long as the one before: then lines join them."""
    third_place: BracketMatch | None = None


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


def brackets_of(page: StagePage) -> tuple[Bracket, ...]:
    """The brackets of a knock-out; none of other formats, of a large stage, and before its first round."""
    if not page.rounds or page.is_large:
        return ()
    if page.format == SingleElimination.name:
        return (_single_bracket(page),)
    if page.format == DoubleElimination.name:
        return _double_brackets(page)
    return ()


def _single_bracket(page: StagePage) -> Bracket:
    third = [
        row for each in page.rounds for row in each.pairings if row.stage_key == THIRD_PLACE_KEY
    ]
    columns = [
        [_bracket_match(row) for row in each.pairings if row.stage_key != THIRD_PLACE_KEY]
        for each in page.rounds
    ]
    _add_coming(columns, lambda number, slot: f"winner of R{number}/M{slot}", first_slot=1)
    return Bracket(
        title="Bracket",
        rounds=tuple(
            BracketRound(title=round_title(len(column), number), matches=tuple(column))
            for number, column in enumerate(columns, 1)
        ),
        halves=True,
        third_place=_bracket_match(third[0]) if third else None,
    )


def _add_coming(
    columns: list[list[BracketMatch]], feeder: Callable[[int, int], str], *, first_slot: int
) -> None:
    """Add the rounds to come, each half as long as the one before."""
    while len(columns[-1]) > 1:
        number = len(columns)
        columns.append(
            [
                BracketMatch(
                    key="",
                    sides=tuple(
                        BracketSide(name=feeder(number, 2 * slot + side), is_known=False)
                        for side in (first_slot, first_slot + 1)
                    ),
                )
                for slot in range(len(columns[-1]) // 2)
            ]
        )


def _double_brackets(page: StagePage) -> tuple[Bracket, ...]:
    """The winners' bracket, the losers', and the grand finals: one or two."""
    by_part: dict[str, dict[int, list[PairingRow]]] = {"W": {}, "L": {}, "GF": {}}
    for each in page.rounds:
        for row in each.pairings:
            part, _, rest = row.stage_key.partition("/")
            number = int(rest.partition("/")[0].removeprefix("R"))
            by_part[part].setdefault(number, []).append(row)
    columns = [[_bracket_match(row) for row in by_part["W"][key]] for key in sorted(by_part["W"])]
    _add_coming(columns, lambda number, slot: f"winner of W/R{number}/M{slot}", first_slot=0)
    winners = Bracket(
        title="Winners’ bracket",
        rounds=tuple(
            BracketRound(
                title="Winners’ final" if len(column) == 1 else f"Round {number}",
                matches=tuple(column),
            )
            for number, column in enumerate(columns, 1)
        ),
        halves=True,
    )
    losers = Bracket(
        title="Losers’ bracket",
        rounds=tuple(
            BracketRound(
                title=f"Round {number}",
                matches=tuple(_bracket_match(row) for row in by_part["L"][number]),
            )
            for number in sorted(by_part["L"])
        ),
    )
    return (winners, *((losers,) if losers.rounds else ()), _grand_final(by_part["GF"]))


def _grand_final(rows: Mapping[int, Sequence[PairingRow]]) -> Bracket:
    titles = {1: "Grand final", 2: "Second grand final"}
    rounds = tuple(
        BracketRound(
            title=titles.get(number, f"Grand final {number}"),
            matches=tuple(_bracket_match(row) for row in rows[number]),
        )
        for number in sorted(rows)
    )
    coming = BracketMatch(
        key="",
        sides=(
            BracketSide(name="winner of the winners’ bracket", is_known=False),
            BracketSide(name="winner of the losers’ bracket", is_known=False),
        ),
    )
    return Bracket(
        title="Grand final",
        rounds=rounds or (BracketRound(title="Grand final", matches=(coming,)),),
    )


def is_one_bracket(page: StagePage) -> bool:
    """Whether the stage is one bracket, whose rounds halve from the first to the final."""
    return page.format == SingleElimination.name


def round_title(matches: int, number: int) -> str:
    """What people call a round of a bracket with so many matches: ``Semi-finals``."""
    names = {1: "Final", 2: "Semi-finals", 4: "Quarter-finals"}
    return names.get(matches, f"Round {number}")


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


def cross_table_of(
    page: StagePage, names: Mapping[int, str], group: str = ""
) -> tuple[CrossRow, ...]:
    """Everyone (of a group) against everyone, in the order of the table; empty where it would tell nothing.

    That is in a knock-out, on a ladder, among more than `CROSS_TABLE_MAX`, and before the start.
    """
    rows = [row for row in page.standings if row.group == group]
    is_drawn = not (page.knocks_out or page.is_continuous or page.is_large)
    if not is_drawn or not page.rounds or not 1 < len(rows) <= CROSS_TABLE_MAX:
        return ()
    results = _results_between(page.rounds)
    order = [row.entrant for row in rows]
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
        for number, row in enumerate(rows, 1)
    )


CROSS_TABLE_MAX = 40
"""A cross table of more entrants fits no screen; the standings and the rounds tell the same."""


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
