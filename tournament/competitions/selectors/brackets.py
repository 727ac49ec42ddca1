"""Brackets as people draw them: every round from the first to the last, those to come included.

What has not been paired yet is drawn from what leads there: who has won it already, else which match
is to be waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.formats.double_elimination import DoubleElimination, drop_order
from engine.formats.elimination import THIRD_PLACE_KEY, SingleElimination
from tournament.competitions.models import DecidedBy
from tournament.competitions.selectors.stages import PairingPart, PairingRow, StagePage


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
    """Empty where nobody comes, since what leads there are byes."""
    note: str = ""
    """What is to be said besides the points: how it was decided, or how far it is."""
    has_page: bool = False


@dataclass(frozen=True, slots=True)
class BracketRound:
    """One column of a bracket."""

    title: str
    matches: tuple[BracketMatch, ...]
    leads: str = ""
    """How its winners go on to the next column: ``joins`` two of them, ``passes`` each on; empty at the end."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """A bracket from its first round to its last."""

    title: str
    rounds: tuple[BracketRound, ...]
    third_place: BracketMatch | None = None


def brackets_of(page: StagePage) -> tuple[Bracket, ...]:
    """The brackets of a knock-out; none of other formats, of a large stage, and before its first round."""
    if not page.rounds or page.is_large:
        return ()
    if page.format == SingleElimination.name:
        return (_single_bracket(page),)
    if page.format == DoubleElimination.name:
        return _double_brackets(page)
    return ()


def is_one_bracket(page: StagePage) -> bool:
    """Whether the stage is one bracket, whose rounds halve from the first to the final."""
    return page.format == SingleElimination.name


def round_title(matches: int, number: int) -> str:
    """What people call a round of a bracket with so many matches: ``Semi-finals``."""
    names = {1: "Final", 2: "Semi-finals", 4: "Quarter-finals"}
    return names.get(matches, f"Round {number}")


def _single_bracket(page: StagePage) -> Bracket:
    drawn = _Drawn(page)
    first = [row for row in page.rounds[0].pairings if row.stage_key != THIRD_PLACE_KEY]
    columns = [
        [
            drawn.match(
                f"SE/R{number}/M{slot}",
                *(
                    drawn.winner(f"SE/R{number - 1}/M{feeder}")
                    for feeder in (2 * slot - 1, 2 * slot)
                ),
            )
            for slot in range(1, count + 1)
        ]
        for number, count in enumerate(_halves(len(first)), 1)
    ]
    third = drawn.rows.get(THIRD_PLACE_KEY)
    return Bracket(
        title="Bracket",
        rounds=_joined(
            [(round_title(len(column), number), column) for number, column in enumerate(columns, 1)]
        ),
        third_place=_bracket_match(third) if third else None,
    )


def _double_brackets(page: StagePage) -> tuple[Bracket, ...]:
    """The winners' bracket, the losers', and the grand finals: one or two."""
    drawn = _Drawn(page)
    size = 2 * len(page.rounds[0].pairings)
    depth = size.bit_length() - 1
    winners = [
        [
            drawn.match(f"W/R{number}/M{slot}", *_winners_feed(drawn, number, slot))
            for slot in range(count)
        ]
        for number, count in enumerate(_halves(size // 2), 1)
    ]
    losers = [
        [
            drawn.match(f"L/R{number}/M{slot}", *_losers_feed(drawn, size, number, slot))
            for slot in range(size >> (number + 1) // 2 + 1)
        ]
        for number in range(1, 2 * depth - 1)
    ]
    return (
        Bracket(
            title="Winners’ bracket",
            rounds=_joined(
                [
                    ("Winners’ final" if len(column) == 1 else f"Round {number}", column)
                    for number, column in enumerate(winners, 1)
                ]
            ),
        ),
        *([_losers_bracket(losers)] if losers else []),
        _grand_final(drawn, depth),
    )


def _winners_feed(drawn: _Drawn, number: int, slot: int) -> list[BracketSide | None]:
    return [drawn.winner(f"W/R{number - 1}/M{feeder}") for feeder in (2 * slot, 2 * slot + 1)]


def _losers_feed(drawn: _Drawn, size: int, number: int, slot: int) -> list[BracketSide | None]:
    """Who meets in slot `slot` of losers' round `number`: see `engine.formats.double_elimination`."""
    if number == 1:
        return [drawn.loser(f"W/R1/M{feeder}") for feeder in (2 * slot, 2 * slot + 1)]
    if number % 2:
        return [drawn.winner(f"L/R{number - 1}/M{feeder}") for feeder in (2 * slot, 2 * slot + 1)]
    winners_round = number // 2 + 1
    dropping = drop_order(size, winners_round)[slot]
    return [
        drawn.loser(f"W/R{winners_round}/M{dropping}"),
        drawn.winner(f"L/R{number - 1}/M{slot}"),
    ]


def _losers_bracket(columns: Sequence[Sequence[BracketMatch]]) -> Bracket:
    return Bracket(
        title="Losers’ bracket",
        rounds=_joined(
            [
                ("Losers’ final" if number == len(columns) else f"Round {number}", column)
                for number, column in enumerate(columns, 1)
            ]
        ),
    )


def _grand_final(drawn: _Drawn, depth: int) -> Bracket:
    first = drawn.match(
        "GF/1",
        _named(drawn.winner(f"W/R{depth}/M0"), "winners’ champion"),
        _named(
            drawn.winner(f"L/R{2 * depth - 2}/M0") if depth > 1 else drawn.loser("W/R1/M0"),
            "losers’ champion",
        ),
    )
    second = drawn.rows.get("GF/2")
    columns = [("Grand final", [first])]
    if second is not None:
        columns.append(("Second grand final", [_bracket_match(second)]))
    return Bracket(title="Grand final", rounds=_joined(columns))


def _named(side: BracketSide | None, unknown: str) -> BracketSide | None:
    """The side, called `unknown` until it is known who it is."""
    return side if side is None or side.is_known else BracketSide(unknown, is_known=False)


def _halves(count: int) -> list[int]:
    """How many matches the rounds of a bracket have that begins with so many."""
    return [count >> number for number in range(count.bit_length())]


def _joined(columns: Sequence[tuple[str, Sequence[BracketMatch]]]) -> tuple[BracketRound, ...]:
    """The columns, each with how it leads to the next one."""
    following = [len(matches) for _, matches in columns[1:]]
    leads = [
        "passes" if count == len(columns[i][1]) else "joins" for i, count in enumerate(following)
    ]
    return tuple(
        BracketRound(title=title, matches=tuple(matches), leads=lead)
        for (title, matches), lead in zip(columns, [*leads, ""], strict=True)
    )


class _Drawn:
    """What a stage has published, by key, and the boxes that are drawn from left to right."""

    def __init__(self, page: StagePage) -> None:
        self.rows: Mapping[str, PairingRow] = {
            row.stage_key: row for each in page.rounds for row in each.pairings
        }
        self._boxes: dict[str, BracketMatch] = {}

    def match(self, key: str, *feeders: BracketSide | None) -> BracketMatch:
        """The box of a slot; before it is paired, with who comes there. None: nobody comes from there."""
        row = self.rows.get(key)
        if row is not None:
            box = _bracket_match(row)
        else:
            sides = tuple(side for side in feeders if side is not None)
            box = BracketMatch(key=key, sides=(*sides, _BYE) if len(sides) == 1 else sides)
        self._boxes[key] = box
        return box

    def winner(self, key: str) -> BracketSide | None:
        """Who goes on from a slot; None where nobody comes."""
        row = self.rows.get(key)
        if row is not None:
            return _gone_on(row, row.parts[0] if row.is_bye else None, advances=True)
        sides = self._boxes[key].sides if key in self._boxes else ()
        if len(sides) == 2 and sides[1] is _BYE:
            return sides[0]
        return _to_come("winner", key) if sides else None

    def loser(self, key: str) -> BracketSide | None:
        """Who loses in a slot; None where nobody does."""
        row = self.rows.get(key)
        if row is not None:
            return None if row.is_bye else _gone_on(row, None, advances=False)
        sides = self._boxes[key].sides if key in self._boxes else ()
        return None if not sides or sides[1] is _BYE else _to_come("loser", key)


_BYE = BracketSide(name="bye", is_known=False)


def _to_come(role: str, key: str) -> BracketSide:
    return BracketSide(name=f"{role} of {key.removeprefix('SE/')}", is_known=False)


def _gone_on(row: PairingRow, sure: PairingPart | None, *, advances: bool) -> BracketSide:
    """Who has won or lost a pairing; until it is decided, what is to be waited for."""
    found = sure or next((part for part in row.parts if part.advances is advances), None)
    if found is None or not (row.decided_by or sure):
        return _to_come("winner" if advances else "loser", row.stage_key)
    return BracketSide(name=found.name, seed=found.seed)


def _bracket_match(row: PairingRow) -> BracketMatch:
    sides = tuple(_bracket_side(row, part) for part in row.parts)
    if row.is_bye:
        sides = (*sides, _BYE)
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
