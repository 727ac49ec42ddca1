"""Tables of a stage: the score, and tie-breaks in a chosen order, each with its working as text.

Everything is exact: fractions and integers, no floats. The module knows no formats: it gets who met
whom and how it came out.

An *unplayed* round (a bye, a walkover, a forfeit) counts in the tie-breaks of the entrant himself as
a dummy opponent with his own final score; the rounds that an entrant misses because he withdrew
count ½ each in his opponents' tie-breaks.
"""

from __future__ import annotations

import functools
import hmac
import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction

import msgspec

from engine.errors import FormatError
from engine.shuffle import pack_items

HALF = Fraction(1, 2)


class TieBreak(StrEnum):
    """The criteria of a table."""

    SCORE = "score"
    """Between two: 1 for a win, ½ for a tie; among k: (beaten + ½ tied) / (k - 1)."""
    DIRECT_ENCOUNTER = "direct_encounter"
    """The score among the tied, if all of them have met in this stage."""
    BUCHHOLZ_CUT_1 = "buchholz_cut_1"
    """Buchholz without the weakest opponent."""
    BUCHHOLZ_MEDIAN = "buchholz_median"
    """Buchholz without the weakest and the strongest opponent."""
    BUCHHOLZ = "buchholz"
    """The sum of the opponents' scores; among k, each match counts their mean."""
    SONNEBORN_BERGER = "sonneborn_berger"
    """The scores of the beaten and half those of the tied; among k, divided by k - 1."""
    WINS = "wins"
    """Matches won by play."""
    POINTS_DIFFERENCE = "points_difference"
    """The sum of the match points."""
    LOT = "lot"
    """A draw that anyone can check."""


TITLES: dict[TieBreak, str] = {
    TieBreak.SCORE: "Score",
    TieBreak.DIRECT_ENCOUNTER: "Direct encounter",
    TieBreak.BUCHHOLZ_CUT_1: "Buchholz cut 1",
    TieBreak.BUCHHOLZ_MEDIAN: "Median Buchholz",
    TieBreak.BUCHHOLZ: "Buchholz",
    TieBreak.SONNEBORN_BERGER: "Sonneborn-Berger",
    TieBreak.WINS: "Wins",
    TieBreak.POINTS_DIFFERENCE: "Points difference",
    TieBreak.LOT: "Lot",
}
"""For people."""

DEFAULT_ORDER = (
    TieBreak.SCORE,
    TieBreak.DIRECT_ENCOUNTER,
    TieBreak.BUCHHOLZ_CUT_1,
    TieBreak.BUCHHOLZ,
    TieBreak.SONNEBORN_BERGER,
    TieBreak.WINS,
    TieBreak.POINTS_DIFFERENCE,
    TieBreak.LOT,
)


class TieBreakValue(msgspec.Struct, frozen=True):
    """One criterion of one row."""

    name: TieBreak
    value: Fraction | None
    """What is compared, the higher the better; None where the criterion does not apply to this tie."""
    working: str
    """How it came about, for people: ``Buchholz 4 = 1 + 2 + 1``."""


class StandingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One entrant's line of the table."""

    entrant: int
    place: int
    """1 is the best; who cannot be told apart shares the place."""
    matches: int = 0
    """Decided by play; wins + ties + losses."""
    wins: int = 0
    """Matches in which nobody did as well."""
    ties: int = 0
    """Matches in which the best place was shared."""
    losses: int = 0
    unplayed: int = 0
    """Rounds without a match: byes, walkovers, forfeits."""
    score: Fraction = Fraction(0)
    points_difference: int = 0
    """The sum of the match points."""
    tie_breaks: tuple[TieBreakValue, ...] = ()
    note: str = ""
    """For people: ``lost in round 2``, ``withdrawn``."""
    group: str = ""
    """Of a stage that is played in groups: the name of the entrant's."""
    group_place: int | None = None
    """Its place in the group."""


class MeetingKind(StrEnum):
    """Whether a meeting took place."""

    PLAYED = "played"
    """A match."""
    UNPLAYED = "unplayed"
    """One entrant's round without a match."""
    WITHDRAWN = "withdrawn"
    """One entrant's round after he withdrew."""


class Meeting(msgspec.Struct, frozen=True, kw_only=True):
    """One match, or one entrant's round without one; the tuples follow `entrants`."""

    kind: MeetingKind
    entrants: tuple[int, ...]
    """One where nothing was played, else two or more."""
    scores: tuple[Fraction, ...]
    points: tuple[int, ...] = ()
    places: tuple[int, ...] = ()


def check_order(order: Sequence[str]) -> tuple[TieBreak, ...]:
    """`order` as tie-breaks. Raises FormatError for unknown or repeated ones; the score comes first."""
    known = ", ".join(TieBreak)
    for name in order:
        if name not in frozenset(TieBreak):
            raise FormatError(f"there is no tie-break {name!r}; there are: {known}")
        if list(order).count(name) > 1:
            raise FormatError(f"the tie-break {name!r} is given twice: leave one out")
    if not order or order[0] != TieBreak.SCORE:
        raise FormatError("the tie-breaks must begin with 'score'")
    return tuple(TieBreak(name) for name in order)


def draw_lot(lot: bytes, label: str) -> bytes:
    """32 bytes for one use of a stage's lot: HMAC-SHA256(lot, LP("dt/lot/v1", label))."""
    return hmac.digest(lot, pack_items("dt/lot/v1", label), "sha256")


def rank_entrants(
    seeds: Mapping[int, int],
    meetings: Sequence[Meeting],
    order: Sequence[TieBreak] = DEFAULT_ORDER,
    *,
    lot: bytes = b"",
    notes: Mapping[int, str] | None = None,
) -> tuple[StandingRow, ...]:
    """The table of the entrants in `seeds` (id → seed), the best first.

    Who is still equal after all of `order` shares the place; among them the better seed is named
    first. `lot` decides the lots: each entrant's is `draw_lot(lot, "table/SEED")`.
    """
    table = _Table(seeds, meetings, lot)
    rows: list[StandingRow] = []
    for group in table.split(sorted(seeds, key=seeds.__getitem__), tuple(order)):
        place = len(rows) + 1
        rows.extend(
            _make_row(table, entrant, place, order, (notes or {}).get(entrant, ""))
            for entrant in group
        )
    return tuple(rows)


def _make_row(
    table: _Table, entrant: int, place: int, order: Sequence[TieBreak], note: str
) -> StandingRow:
    played = table.played[entrant]
    best = [line.places.count(1) for line, own in played if line.places[own] == 1]
    wins = best.count(1)
    return StandingRow(
        entrant=entrant,
        place=place,
        matches=len(played),
        wins=wins,
        ties=len(best) - wins,
        losses=len(played) - len(best),
        unplayed=len(table.lines[entrant]) - len(played),
        score=Fraction(table.scores[entrant], table.unit),
        points_difference=table.points[entrant],
        tie_breaks=tuple(table.values[entrant][name] for name in order),
        note=note,
    )


_Line = tuple[Meeting, int]
"""A meeting of an entrant, and his index in it."""


class _Table:
    """Who met whom, the sums over it, and the values found so far.

    Scores and strengths are integers here, in parts of 1/`unit`, into which every score, every half
    of one and every mean of one over a match divides evenly.
    """

    def __init__(self, seeds: Mapping[int, int], meetings: Sequence[Meeting], lot: bytes) -> None:
        self.seeds = seeds
        self.lot = lot
        self.lines: dict[int, list[_Line]] = {entrant: [] for entrant in seeds}
        for meeting in meetings:
            for own, entrant in enumerate(meeting.entrants):
                self.lines[entrant].append((meeting, own))
        self.played = {
            entrant: [line for line in lines if line[0].kind is MeetingKind.PLAYED]
            for entrant, lines in self.lines.items()
        }
        self.unit = 2 * math.lcm(
            *{score.denominator for meeting in meetings for score in meeting.scores}
        )
        self.unit *= math.lcm(*{max(len(meeting.entrants) - 1, 1) for meeting in meetings})
        self.scores = {
            entrant: sum(self.score_in(*line) for line in lines)
            for entrant, lines in self.lines.items()
        }
        self.adjusted = {
            entrant: self.scores[entrant]
            + self.unit // 2 * sum(line.kind is MeetingKind.WITHDRAWN for line, _ in lines)
            for entrant, lines in self.lines.items()
        }
        self.points = {
            entrant: sum(line.points[own] for line, own in lines)
            for entrant, lines in self.played.items()
        }
        self.values: dict[int, dict[TieBreak, TieBreakValue]] = {entrant: {} for entrant in seeds}
        self._opposition: dict[int, list[int]] = {}
        self._shown: dict[int, str] = {}

    def split(self, tied: Sequence[int], order: tuple[TieBreak, ...]) -> list[list[int]]:
        """`tied` in groups that no criterion of `order` can tell apart, the best group first."""
        if not order:
            return [list(tied)]
        by_value: dict[Fraction, list[int]] = {}
        found = _CRITERIA[order[0]](self, tied)
        for entrant, value in zip(tied, found, strict=True):
            self.values[entrant][order[0]] = value
            by_value.setdefault(value.value or _ZERO, []).append(entrant)
        return [
            group
            for value in sorted(by_value, reverse=True)
            for group in self.split(by_value[value], order[1:])
        ]

    def score_in(self, line: Meeting, own: int) -> int:
        """What that entrant scored there."""
        score = line.scores[own]
        return score.numerator * (self.unit // score.denominator)

    def opposition(self, entrant: int) -> list[int]:
        """The strength met in each round: the opponents' mean score, the own one where none was met."""
        if entrant not in self._opposition:
            self._opposition[entrant] = [
                self._strength(line, entrant) for line, _ in self.lines[entrant]
            ]
        return self._opposition[entrant]

    def _strength(self, line: Meeting, entrant: int) -> int:
        if line.kind is not MeetingKind.PLAYED:
            return self.scores[entrant]
        others = [self.adjusted[other] for other in line.entrants if other != entrant]
        return sum(others) // len(others)

    def show(self, amount: int) -> str:
        """`amount`, in parts of 1/`unit`, for people."""
        if amount not in self._shown:
            self._shown[amount] = show(Fraction(amount, self.unit))
        return self._shown[amount]

    def sum_value(self, name: TieBreak, parts: Sequence[int]) -> TieBreakValue:
        """The sum of `parts`, in parts of 1/`unit`, with its working."""
        total = sum(parts)
        return TieBreakValue(
            name,
            Fraction(total, self.unit),
            _working(name, self.show(total), [self.show(part) for part in parts]),
        )


_Criterion = Callable[[_Table, Sequence[int]], list[TieBreakValue]]
"""The values of those who are tied so far, in their order."""


def _each(criterion: Callable[[_Table, int], TieBreakValue]) -> _Criterion:
    """A criterion that looks at one entrant at a time, whoever is tied with him."""
    return lambda table, tied: [criterion(table, entrant) for entrant in tied]


def _score(table: _Table, entrant: int) -> TieBreakValue:
    return table.sum_value(TieBreak.SCORE, [table.score_in(*line) for line in table.lines[entrant]])


def _direct_encounter(table: _Table, tied: Sequence[int]) -> list[TieBreakValue]:
    name = TieBreak.DIRECT_ENCOUNTER
    if len(tied) == 1:
        return [TieBreakValue(name, None, "no tie to break")]
    rivals = frozenset(tied)
    if not all(_has_met(table, entrant, rivals) for entrant in tied):
        return [TieBreakValue(name, None, "not all of the tied have met")] * len(tied)
    return [
        table.sum_value(
            name,
            [
                _duel(table, line, own, other)
                for line, own in table.played[entrant]
                for other, rival in enumerate(line.entrants)
                if other != own and rival in rivals
            ],
        )
        for entrant in tied
    ]


def _has_met(table: _Table, entrant: int, rivals: frozenset[int]) -> bool:
    return rivals <= {other for line, _ in table.played[entrant] for other in line.entrants}


def _buchholz(table: _Table, entrant: int) -> TieBreakValue:
    return table.sum_value(TieBreak.BUCHHOLZ, table.opposition(entrant))


def _buchholz_cut_1(table: _Table, entrant: int) -> TieBreakValue:
    return _cut(table, TieBreak.BUCHHOLZ_CUT_1, entrant, highest=0)


def _buchholz_median(table: _Table, entrant: int) -> TieBreakValue:
    return _cut(table, TieBreak.BUCHHOLZ_MEDIAN, entrant, highest=1)


def _cut(table: _Table, name: TieBreak, entrant: int, *, highest: int) -> TieBreakValue:
    """Buchholz without the lowest, and without so many of the highest."""
    ordered = sorted(table.opposition(entrant))
    end = max(1, len(ordered) - highest)
    value = table.sum_value(name, ordered[1:end])
    dropped = ordered[:1] + ordered[end:]
    if not dropped:
        return value
    without = " and ".join(table.show(part) for part in dropped)
    return TieBreakValue(name, value.value, f"{value.working} (without {without})")


def _sonneborn_berger(table: _Table, entrant: int) -> TieBreakValue:
    terms: list[tuple[int, int]] = []
    for line, own in table.lines[entrant]:
        if line.kind is not MeetingKind.PLAYED:
            terms.append((table.score_in(line, own), table.scores[entrant]))
            continue
        share = len(line.entrants) - 1
        terms += [
            (_duel(table, line, own, other) // share, table.adjusted[rival])
            for other, rival in enumerate(line.entrants)
            if other != own
        ]
    value = Fraction(sum(won * strength for won, strength in terms), table.unit * table.unit)
    texts = [f"{table.show(won)}×{table.show(strength)}" for won, strength in terms]
    name = TieBreak.SONNEBORN_BERGER
    return TieBreakValue(name, value, _working(name, show(value), texts))


def _wins(table: _Table, entrant: int) -> TieBreakValue:
    played = table.played[entrant]
    won = sum(line.places[own] == 1 and line.places.count(1) == 1 for line, own in played)
    return TieBreakValue(TieBreak.WINS, Fraction(won), f"{won} of {len(played)} matches won")


def _points_difference(table: _Table, entrant: int) -> TieBreakValue:
    name = TieBreak.POINTS_DIFFERENCE
    total = Fraction(table.points[entrant])
    parts = [_show_whole(line.points[own]) for line, own in table.played[entrant]]
    return TieBreakValue(name, total, _working(name, show(total), parts))


def _lot(table: _Table, entrant: int) -> TieBreakValue:
    drawn = draw_lot(table.lot, f"table/{table.seeds[entrant]}")[:4]
    return TieBreakValue(
        TieBreak.LOT,
        Fraction(int.from_bytes(drawn, "big")),
        f"Lot {drawn.hex()}, the highest first",
    )


_CRITERIA: dict[TieBreak, _Criterion] = {
    TieBreak.SCORE: _each(_score),
    TieBreak.DIRECT_ENCOUNTER: _direct_encounter,
    TieBreak.BUCHHOLZ_CUT_1: _each(_buchholz_cut_1),
    TieBreak.BUCHHOLZ_MEDIAN: _each(_buchholz_median),
    TieBreak.BUCHHOLZ: _each(_buchholz),
    TieBreak.SONNEBORN_BERGER: _each(_sonneborn_berger),
    TieBreak.WINS: _each(_wins),
    TieBreak.POINTS_DIFFERENCE: _each(_points_difference),
    TieBreak.LOT: _each(_lot),
}

_ZERO = Fraction(0)


def _working(name: TieBreak, total: str, parts: Sequence[str]) -> str:
    working = f"{TITLES[name]} {total}"
    if len(parts) > 1:
        working += " = " + " + ".join(parts).replace("+ −", "− ")
    return working


def _duel(table: _Table, line: Meeting, own: int, other: int) -> int:
    """1 if the first beat the other in this match, ½ if they tied, else 0; who scored nothing beat nobody."""
    if not line.scores[own]:
        return 0
    if line.places[own] == line.places[other]:
        return table.unit // 2
    return table.unit if line.places[own] < line.places[other] else 0


def _show_whole(value: int) -> str:
    return f"−{-value}" if value < 0 else str(value)


_GLYPHS = {Fraction(1, 4): "¼", HALF: "½", Fraction(3, 4): "¾"}


@functools.lru_cache(maxsize=4096)
def show(value: Fraction) -> str:
    """`value` for people: ``2½``, ``-4``, ``7/6``."""
    sign, size = ("−" if value < 0 else ""), abs(value)
    whole, rest = divmod(size, 1)
    if rest == 0:
        return f"{sign}{whole}"
    if rest in _GLYPHS:
        return f"{sign}{whole or ''}{_GLYPHS[rest]}"
    return f"{sign}{size}"
