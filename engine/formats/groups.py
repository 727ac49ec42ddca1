"""Groups: each is a round robin of its own; the best of each may go on to a knock-out.

Seeds go into the groups as a snake: of four groups, A gets 1, 8, 9, B gets 2, 7, 10, and so on. The
rounds of all groups are published together; a smaller group may have fewer. Keys: ``RR/A/R2/M1``.

Who goes on is ordered so that a single elimination of them, whose seeds stand in fold order, crosses
the groups (A1-B2, B1-A2) and keeps rivals of one group apart as long as can be: see `cross_groups`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from string import ascii_uppercase
from typing import ClassVar

import msgspec

from engine.errors import FormatError
from engine.formats.base import (
    Format,
    FormatOptions,
    Pairing,
    PairingResult,
    Round,
    SeededEntrant,
    StageView,
    check_qualifiers,
)
from engine.formats.berger import cycle_rounds, plan_line, read_numbers
from engine.formats.options import FormatOption, tie_breaks_option
from engine.formats.results import (
    absent_result,
    check_entrants,
    collect_meetings,
    outcome_result,
)
from engine.formats.seeding import bracket_size, fold_order
from engine.outcome import Outcome
from engine.standings import DEFAULT_ORDER, StandingRow, TieBreak, check_order, rank_entrants

MAX_GROUPS = len(ascii_uppercase)
MAX_GROUP_SIZE = 128
"""Beyond it a group has more than 8128 matches a cycle."""


class GroupsOptions(FormatOptions, frozen=True):
    """The options of groups."""

    groups: int = 2
    cycles: int = 1
    tie_breaks: tuple[TieBreak, ...] = DEFAULT_ORDER


class Groups(Format):
    """Several round robins side by side, of entrants as strong as each other's."""

    name: ClassVar[str] = "groups"
    title: ClassVar[str] = "Groups"
    summary: ClassVar[str] = (
        "Several round robins side by side. With a knock-out of the best of each as the next stage: "
        "everyone plays several matches, and the end is a final."
    )
    options_type: ClassVar[type[FormatOptions]] = GroupsOptions
    options: ClassVar[tuple[FormatOption, ...]] = (
        FormatOption(
            name="groups",
            default=2,
            minimum=2,
            maximum=MAX_GROUPS,
            doc="How many groups; each gets at least two entrants.",
        ),
        FormatOption(
            name="cycles",
            default=1,
            choices=(1, 2),
            doc="How often each two of a group meet; in the second cycle they swap sides.",
        ),
        tie_breaks_option("the table of a group"),
    )
    pairing_sizes: ClassVar[tuple[int, ...]] = (2,)
    knocks_out: ClassVar[bool] = False

    def check(self, entrants: Sequence[SeededEntrant], options: GroupsOptions) -> None:
        """Two entrants a group, at most 128, and tie-breaks that begin with the score."""
        check_entrants(self.title, entrants)
        count = sum(entrant.active for entrant in entrants)
        if count < 2 * options.groups:
            raise FormatError(
                f"{options.groups} groups need at least {2 * options.groups} entrants, two each, and "
                f"there are {count}: choose fewer groups, or let more enter"
            )
        largest = _sizes(count, options.groups)[0]
        if largest > MAX_GROUP_SIZE:
            raise FormatError(
                f"{count} entrants in {options.groups} groups make groups of {largest}, and a group "
                f"takes at most {MAX_GROUP_SIZE}: choose more groups, or limit the entries"
            )
        check_order(options.tie_breaks)

    def round_count(self, entrants: int, options: GroupsOptions) -> int:
        """As many as the largest group has."""
        return cycle_rounds(_sizes(entrants, options.groups)[0]) * options.cycles

    def match_count(self, entrants: int, options: GroupsOptions) -> int:
        """One for each two of a group."""
        pairs = sum(size * (size - 1) // 2 for size in _sizes(entrants, options.groups))
        return pairs * options.cycles

    def next_round(self, view: StageView) -> Round | None:
        """The next line of every group's table, with walkovers over who has left; it needs no result."""
        if not view.rounds and len(view.active) < 2:
            return None
        index = len(view.rounds) + 1
        pairings: list[Pairing] = []
        for name, numbers in _groups(view).items():
            pairings += plan_line(
                view,
                numbers,
                index,
                view.options.cycles,
                prefix=f"RR/{name}/R{index}",
                slot=len(pairings) + 1,
            )
        return Round(index=index, pairings=tuple(pairings)) if pairings else None

    def decide(
        self,
        view: StageView,  # noqa: ARG002 - Format's signature
        pairing: Pairing,  # noqa: ARG002 - Format's signature
        outcome: Outcome,
    ) -> PairingResult:
        """The match's places, as they are: ties stay ties, a double forfeit scores nothing."""
        return outcome_result(outcome)

    def walkover(self, view: StageView, pairing: Pairing) -> PairingResult | None:
        """Who is still active scores 1."""
        return absent_result(view, pairing)

    def standings(self, view: StageView) -> tuple[StandingRow, ...]:
        """All by their places in their groups: the winners of the groups share the first, and so on.

        A row names its group and the place in it. Who was in no group stands last.
        """
        known = view.by_id
        rows = [row for table in _tables(view).values() for row in table]
        in_group = {row.entrant for row in rows}
        rows += [
            StandingRow(entrant=entrant.id, place=0, note="withdrawn, in no group")
            for entrant in view.entrants
            if entrant.id not in in_group
        ]
        last = len(rows) + 1
        levels = [row.group_place or last for row in rows]
        return tuple(
            msgspec.structs.replace(
                row, place=1 + sum(level < (row.group_place or last) for level in levels)
            )
            for row in sorted(
                rows, key=lambda row: (row.group_place or last, row.group, known[row.entrant].seed)
            )
        )

    def qualify(self, view: StageView, count: int) -> tuple[int, ...]:
        """As many of each group as can be; the rest are the best of those next in their groups.

        Those next in their groups are compared by their score a round, then by points difference a
        round, then by seed. For the order, see `cross_groups`.
        """
        check_qualifiers(self, view, count)
        gone, known = view.inactive, view.by_id
        tables = [
            [row for row in table if row.entrant not in gone] for table in _tables(view).values()
        ]
        blocks: list[list[StandingRow]] = []
        missing = count
        for place in range(max(len(table) for table in tables)):
            if not missing:
                break
            block = [table[place] for table in tables if len(table) > place]
            if missing < len(block):
                best = sorted(block, key=lambda row: (_merit(row), known[row.entrant].seed))
                block = [row for row in block if row in best[:missing]]
            missing -= len(block)
            blocks.append(block)
        crossed = cross_groups([[row.group for row in block] for block in blocks])
        return tuple(
            next(row.entrant for row in block if row.group == group)
            for block, order in zip(blocks, crossed, strict=True)
            for group in order
        )


def snake(entrants: Sequence[int], groups: int) -> list[list[int]]:
    """`entrants` (by seed) in so many groups: there, back, there again."""
    filled: list[list[int]] = [[] for _ in range(groups)]
    for index, entrant in enumerate(entrants):
        lap, place = divmod(index, groups)
        filled[groups - 1 - place if lap % 2 else place].append(entrant)
    return filled


def _sizes(entrants: int, groups: int) -> list[int]:
    """How many each group gets, the largest first."""
    return sorted((len(group) for group in snake(range(entrants), groups)), reverse=True)


def _groups(view: StageView) -> dict[str, list[int]]:
    """The entrants of each group by their numbers in its table: as drawn, or as published."""
    if not view.rounds:
        drawn = snake([entrant.id for entrant in view.active], view.options.groups)
        return {
            name: numbers for name, numbers in zip(ascii_uppercase, drawn, strict=False) if numbers
        }
    published: dict[str, list[Pairing]] = {}
    for pairing in sorted(view.rounds[0].pairings, key=lambda pairing: pairing.slot):
        published.setdefault(_group_of(pairing), []).append(pairing)
    return {name: read_numbers(pairings) for name, pairings in published.items()}


def _group_of(pairing: Pairing) -> str:
    return pairing.key.split("/")[1]


def _tables(view: StageView) -> dict[str, tuple[StandingRow, ...]]:
    """Each group's table. A bye is no round, since everyone of a group has as many."""
    known = view.by_id
    meetings = collect_meetings(view, count_byes=False)
    return {
        name: tuple(
            msgspec.structs.replace(row, group=name, group_place=row.place)
            for row in rank_entrants(
                {entrant: known[entrant].seed for entrant in numbers},
                [meeting for meeting in meetings if meeting.entrants[0] in numbers],
                view.options.tie_breaks,
                lot=view.lot,
                notes={entrant: "withdrawn" for entrant in numbers if not known[entrant].active},
            )
        )
        for name, numbers in _groups(view).items()
    }


def _merit(row: StandingRow) -> tuple[Fraction, Fraction]:
    """To compare those of different groups, the best first: groups may differ in size."""
    rounds = max(row.matches + row.unplayed, 1)
    return -row.score / rounds, Fraction(-row.points_difference, rounds)


def cross_groups(blocks: Sequence[Sequence[str]]) -> list[list[str]]:
    """In what order those of each block (the first of all groups, the second, …) are seeded.

    The first of the groups keep their order. The others stand so that in a bracket in fold order two of
    one group meet as late as can be: with two of each group in opposite halves, A1 against B2 and B1
    against A2; with up to four in different quarters. Where the number of groups is a power of two
    that is exact; else those of a block change places as long as it puts rivals further apart.
    """
    bracket = _Bracket([len(block) for block in blocks])
    ordered = [list(block) for block in blocks]
    groups = len(ordered[0])
    if groups & (groups - 1) == 0 and all(len(block) == groups for block in ordered[:-1]):
        ordered = [_mirror(bracket, ordered, number) for number in range(len(ordered))]
    bracket.improve(ordered)
    return ordered


def _mirror(bracket: _Bracket, blocks: list[list[str]], number: int) -> list[str]:
    """Block `number` of 2^k groups: each in another part of the bracket than the better of its group.

    Around each of the first of the groups the fold order puts one of every block. There goes whose first
    stands in the opposite half (second block), in the other quarter of the same half (third), and so on.
    """
    first, block = blocks[0], blocks[number]
    groups = len(first)
    width = max(bracket.size // groups, 1)
    shift = sum(groups >> (bit + 1) for bit in range(groups.bit_length() - 1) if number >> bit & 1)
    by_part = {bracket.positions[0][index] // width: name for index, name in enumerate(first)}
    wanted = [by_part[(position // width) ^ shift] for position in bracket.positions[number]]
    rest = [name for name in block if name not in wanted]
    return [name if name in block else rest.pop(0) for name in wanted]


class _Bracket:
    """The places of blocks of seeds in the fold order, and how close rivals come there."""

    def __init__(self, sizes: Sequence[int]) -> None:
        count = sum(sizes)
        self.size = bracket_size(count)
        place_of = {seed: place for place, seed in enumerate(fold_order(self.size))}
        seeds = iter(range(1, count + 1))
        self.positions = [[place_of[next(seeds)] for _ in range(size)] for size in sizes]
        self.weights = [(count * count) ** rounds for rounds in range(self.size.bit_length())]

    def closeness(self, positions: Iterable[int]) -> int:
        """The cost of rivals at these places: one pair that meets a round earlier outweighs all others."""
        return sum(
            self.weights[self.size.bit_length() - 1 - (a ^ b).bit_length()]
            for a, b in combinations(positions, 2)
        )

    def improve(self, blocks: list[list[str]]) -> None:
        """Swap within the blocks after the first until no swap puts rivals further apart."""
        places: dict[str, list[int | None]] = {name: [] for block in blocks for name in block}
        for block, positions in zip(blocks, self.positions, strict=True):
            here = dict(zip(block, positions, strict=True))
            for name, taken in places.items():
                taken.append(here.get(name))
        has_swapped = True
        while has_swapped:
            has_swapped = False
            for number in range(1, len(blocks)):
                for i, j in combinations(range(len(blocks[number])), 2):
                    has_swapped |= self._swap(blocks[number], places, number, i, j)

    def _swap(
        self, block: list[str], places: dict[str, list[int | None]], number: int, i: int, j: int
    ) -> bool:
        """Swap two of a block if that is better; whether it was."""
        a, b = block[i], block[j]
        before = self._cost(places[a]) + self._cost(places[b])
        _exchange(places[a], places[b], number)
        if self._cost(places[a]) + self._cost(places[b]) < before:
            block[i], block[j] = b, a
            return True
        _exchange(places[a], places[b], number)
        return False

    def _cost(self, taken: list[int | None]) -> int:
        return self.closeness(place for place in taken if place is not None)


def _exchange(a: list[int | None], b: list[int | None], number: int) -> None:
    a[number], b[number] = b[number], a[number]
