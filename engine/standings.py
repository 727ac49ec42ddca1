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
    wins = sum(_is_won(meeting, entrant) for meeting in played)
    ties = sum(_is_shared(meeting, entrant) for meeting in played)
    return StandingRow(
        entrant=entrant,
        place=place,
        matches=len(played),
        wins=wins,
        ties=ties,
        losses=len(played) - wins - ties,
        unplayed=len(table.lines[entrant]) - len(played),
        score=table.scores[entrant],
        points_difference=table.points[entrant],
        tie_breaks=tuple(table.values[entrant][name] for name in order),
        note=note,
    )


class _Table:
    """Who met whom, the sums over it, and the values found so far."""

    def __init__(self, seeds: Mapping[int, int], meetings: Sequence[Meeting], lot: bytes) -> None:
        self.seeds = seeds
        self.lot = lot
        self.lines: dict[int, list[Meeting]] = {entrant: [] for entrant in seeds}
        for meeting in meetings:
            for entrant in meeting.entrants:
                self.lines[entrant].append(meeting)
        self.played = {
            entrant: [line for line in lines if line.kind is MeetingKind.PLAYED]
            for entrant, lines in self.lines.items()
        }
        self.scores = {
            entrant: sum((_score_in(line, entrant) for line in lines), Fraction(0))
            for entrant, lines in self.lines.items()
        }
        self.adjusted = {
            entrant: self.scores[entrant]
            + HALF * sum(line.kind is MeetingKind.WITHDRAWN for line in lines)
            for entrant, lines in self.lines.items()
        }
        self.points = {
            entrant: sum(line.points[line.entrants.index(entrant)] for line in lines)
            for entrant, lines in self.played.items()
        }
        self.values: dict[int, dict[TieBreak, TieBreakValue]] = {entrant: {} for entrant in seeds}
        self._opposition: dict[int, list[Fraction]] = {}

    def split(self, tied: Sequence[int], order: tuple[TieBreak, ...]) -> list[list[int]]:
        """`tied` in groups that no criterion of `order` can tell apart, the best group first."""
        if not order:
            return [list(tied)]
        for entrant in tied:
            self.values[entrant][order[0]] = _CRITERIA[order[0]](self, entrant, tied)
        by_value: dict[Fraction, list[int]] = {}
        for entrant in tied:
            value = self.values[entrant][order[0]].value
            by_value.setdefault(Fraction(0) if value is None else value, []).append(entrant)
        return [
            group
            for value in sorted(by_value, reverse=True)
            for group in self.split(by_value[value], order[1:])
        ]

    def opposition(self, entrant: int) -> list[Fraction]:
        """The strength met in each round: the opponents' mean score, the own one where none was met."""
        if entrant not in self._opposition:
            self._opposition[entrant] = [
                self._strength(line, entrant) for line in self.lines[entrant]
            ]
        return self._opposition[entrant]

    def _strength(self, line: Meeting, entrant: int) -> Fraction:
        if line.kind is not MeetingKind.PLAYED:
            return self.scores[entrant]
        first, *others = [other for other in line.entrants if other != entrant]
        if not others:
            return self.adjusted[first]
        return sum((self.adjusted[other] for other in others), self.adjusted[first]) / (
            1 + len(others)
        )


def _score(table: _Table, entrant: int, _: Sequence[int]) -> TieBreakValue:
    parts = [_score_in(line, entrant) for line in table.lines[entrant]]
    return _sum_value(TieBreak.SCORE, table.scores[entrant], [show(part) for part in parts])


def _direct_encounter(table: _Table, entrant: int, tied: Sequence[int]) -> TieBreakValue:
    name = TieBreak.DIRECT_ENCOUNTER
    if len(tied) == 1:
        return TieBreakValue(name, None, "no tie to break")
    if not _all_met(table, tied):
        return TieBreakValue(name, None, "not all of the tied have met")
    parts = [
        _duel(line, entrant, rival)
        for line in table.played[entrant]
        for rival in line.entrants
        if rival != entrant and rival in tied
    ]
    return _sum_value(name, sum(parts, Fraction(0)), [show(part) for part in parts])


def _all_met(table: _Table, tied: Sequence[int]) -> bool:
    for entrant in tied:
        met = {other for line in table.played[entrant] for other in line.entrants}
        if not met >= set(tied):
            return False
    return True


def _buchholz(table: _Table, entrant: int, _: Sequence[int]) -> TieBreakValue:
    parts = table.opposition(entrant)
    return _sum_value(TieBreak.BUCHHOLZ, sum(parts, Fraction(0)), [show(part) for part in parts])


def _buchholz_cut_1(table: _Table, entrant: int, _: Sequence[int]) -> TieBreakValue:
    return _cut(TieBreak.BUCHHOLZ_CUT_1, table.opposition(entrant), lowest=1, highest=0)


def _buchholz_median(table: _Table, entrant: int, _: Sequence[int]) -> TieBreakValue:
    return _cut(TieBreak.BUCHHOLZ_MEDIAN, table.opposition(entrant), lowest=1, highest=1)


def _cut(name: TieBreak, parts: Sequence[Fraction], *, lowest: int, highest: int) -> TieBreakValue:
    ordered = sorted(parts)
    kept = ordered[lowest : max(lowest, len(ordered) - highest)]
    dropped = ordered[:lowest] + ordered[max(lowest, len(ordered) - highest) :]
    value = _sum_value(name, sum(kept, Fraction(0)), [show(part) for part in kept])
    if not dropped:
        return value
    without = " and ".join(show(part) for part in dropped)
    return TieBreakValue(name, value.value, f"{value.working} (without {without})")


def _sonneborn_berger(table: _Table, entrant: int, _: Sequence[int]) -> TieBreakValue:
    value = Fraction(0)
    texts: list[str] = []
    for line in table.lines[entrant]:
        if line.kind is not MeetingKind.PLAYED:
            terms = [(_score_in(line, entrant), table.scores[entrant])]
        else:
            share = len(line.entrants) - 1
            terms = [
                (won if share == 1 else won / share, table.adjusted[rival])
                for rival in line.entrants
                if rival != entrant
                for won in (_duel(line, entrant, rival),)
            ]
        value += sum((won * strength for won, strength in terms if won), Fraction(0))
        texts += [f"{show(won)}×{show(strength)}" for won, strength in terms]
    return _sum_value(TieBreak.SONNEBORN_BERGER, value, texts)


def _wins(table: _Table, entrant: int, _: Sequence[int]) -> TieBreakValue:
    value = Fraction(sum(_is_won(line, entrant) for line in table.played[entrant]))
    return TieBreakValue(
        TieBreak.WINS, value, f"{show(value)} of {len(table.played[entrant])} matches won"
    )


def _points_difference(table: _Table, entrant: int, _: Sequence[int]) -> TieBreakValue:
    parts = [
        show(Fraction(line.points[line.entrants.index(entrant)])) for line in table.played[entrant]
    ]
    return _sum_value(TieBreak.POINTS_DIFFERENCE, Fraction(table.points[entrant]), parts)


def _lot(table: _Table, entrant: int, _: Sequence[int]) -> TieBreakValue:
    drawn = draw_lot(table.lot, f"table/{table.seeds[entrant]}")[:4]
    return TieBreakValue(
        TieBreak.LOT,
        Fraction(int.from_bytes(drawn, "big")),
        f"Lot {drawn.hex()}, the highest first",
    )


_CRITERIA: dict[TieBreak, Callable[[_Table, int, Sequence[int]], TieBreakValue]] = {
    TieBreak.SCORE: _score,
    TieBreak.DIRECT_ENCOUNTER: _direct_encounter,
    TieBreak.BUCHHOLZ_CUT_1: _buchholz_cut_1,
    TieBreak.BUCHHOLZ_MEDIAN: _buchholz_median,
    TieBreak.BUCHHOLZ: _buchholz,
    TieBreak.SONNEBORN_BERGER: _sonneborn_berger,
    TieBreak.WINS: _wins,
    TieBreak.POINTS_DIFFERENCE: _points_difference,
    TieBreak.LOT: _lot,
}


def _sum_value(name: TieBreak, value: Fraction, parts: Sequence[str]) -> TieBreakValue:
    working = f"{TITLES[name]} {show(value)}"
    if len(parts) > 1:
        working += " = " + " + ".join(parts).replace("+ −", "− ")
    return TieBreakValue(name, value, working)


def _score_in(line: Meeting, entrant: int) -> Fraction:
    return line.scores[line.entrants.index(entrant)]


def _duel(line: Meeting, entrant: int, rival: int) -> Fraction:
    """1 if `entrant` beat `rival` in this match, ½ if they tied, else 0; who scored nothing beat nobody."""
    own, other = line.entrants.index(entrant), line.entrants.index(rival)
    if not line.scores[own]:
        return Fraction(0)
    if line.places[own] == line.places[other]:
        return HALF
    return Fraction(line.places[own] < line.places[other])


def _is_won(line: Meeting, entrant: int) -> bool:
    return line.places[line.entrants.index(entrant)] == 1 and line.places.count(1) == 1


def _is_shared(line: Meeting, entrant: int) -> bool:
    return line.places[line.entrants.index(entrant)] == 1 and line.places.count(1) > 1


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
