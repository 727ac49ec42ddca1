"""A tournament's published rounds as people read them: outcomes and cross tables; a record as drawn deals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from engine.record import MatchRecord, encode_record, replay
from tournament.competitions.models import DecidedBy, Tournament
from tournament.competitions.selectors.stages import PairingRow, RoundRow, StagePage


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
