"""Single elimination: who loses is out.

The bracket is seeded by the fold order; the places that no entrant fills are byes, and they fall to
the top seeds. Two neighbouring slots of a round feed one slot of the next. Keys: ``SE/R2/M1`` is the
first slot of round 2, ``SE/P3/M1`` the match for the third place, played in the round of the final.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from engine.formats.base import (
    Format,
    FormatOptions,
    Pairing,
    PairingResult,
    Round,
    SeededEntrant,
    StageView,
)
from engine.formats.knockout import losers_of, plan_match, winner_of
from engine.formats.options import FormatOption
from engine.formats.results import (
    absent_result,
    check_entrants,
    collect_meetings,
    knock_out,
    outcome_result,
    require_complete,
)
from engine.formats.seeding import bracket_size, fold_order
from engine.outcome import Outcome
from engine.standings import StandingRow, TieBreak, rank_entrants

THIRD_PLACE_KEY = "SE/P3/M1"


class SingleEliminationOptions(FormatOptions, frozen=True):
    """The options of single elimination."""

    third_place: bool = False


class SingleElimination(Format):
    """Single elimination, with a match for the third place or a shared third place."""

    name: ClassVar[str] = "single_elimination"
    title: ClassVar[str] = "Single elimination"
    summary: ClassVar[str] = (
        "A bracket: who loses a match is out. The fewest matches; the top seeds may have a bye."
    )
    options_type: ClassVar[type[FormatOptions]] = SingleEliminationOptions
    options: ClassVar[tuple[FormatOption, ...]] = (
        FormatOption(
            name="third_place",
            default=False,
            choices=(True, False),
            doc="Whether the losers of the semi-finals play for the third place; else they share it.",
        ),
    )
    pairing_sizes: ClassVar[tuple[int, ...]] = (2,)
    knocks_out: ClassVar[bool] = True

    def check(self, entrants: Sequence[SeededEntrant], options: SingleEliminationOptions) -> None:
        """Two entrants are enough; a match for the third place needs four."""
        check_entrants(self.title, entrants)
        if options.third_place:
            check_entrants("a match for the third place", entrants, at_least=4)

    def round_count(self, entrants: int, options: SingleEliminationOptions) -> int:  # noqa: ARG002 - Format's signature
        """⌈log2 n⌉."""
        return bracket_size(entrants).bit_length() - 1

    def match_count(self, entrants: int, options: SingleEliminationOptions) -> int:
        """One match for each entrant who is knocked out, and the one for the third place."""
        return entrants - 1 + (options.third_place and entrants > 3)

    def next_round(self, view: StageView) -> Round | None:
        """The first round of the bracket, or who won against who won."""
        require_complete(view)
        if not view.rounds:
            return _first_round(view)
        last = _bracket(view.rounds[-1])
        if len(last) == 1:
            return None
        index = view.rounds[-1].index + 1
        winners = [winner_of(pairing) for pairing in last]
        pairings = [
            plan_match(view, f"SE/R{index}/M{slot}", slot, pair)
            for slot, pair in enumerate(zip(winners[::2], winners[1::2], strict=True), start=1)
        ]
        losers = [loser for pairing in last for loser in losers_of(pairing)]
        if len(pairings) == 1 and len(losers) == 2 and view.options.third_place:
            pairings.append(plan_match(view, THIRD_PLACE_KEY, 2, losers))
        return Round(index=index, pairings=tuple(pairings))

    def decide(self, view: StageView, pairing: Pairing, outcome: Outcome) -> PairingResult:
        """The winner goes on; a tie goes to the lot, a double forfeit to the better seed."""
        return knock_out(view, pairing, outcome_result(outcome))

    def walkover(self, view: StageView, pairing: Pairing) -> PairingResult | None:
        """Who is still active goes on; if nobody is, the better seed, to be walked over in turn."""
        result = absent_result(view, pairing)
        return None if result is None else knock_out(view, pairing, result)

    def standings(self, view: StageView) -> tuple[StandingRow, ...]:
        """By how far each came: who lost in the same round shares the place."""
        reached = {entrant.id: _Reach(0, "not in the bracket") for entrant in view.entrants}
        for published in view.rounds:
            is_final = len(_bracket(published)) == 1
            for pairing in published.pairings:
                reached.update(_reach(pairing, published.index, is_final=is_final))
        rows = rank_entrants(
            {entrant.id: entrant.seed for entrant in view.entrants},
            collect_meetings(view, count_byes=True),
            (TieBreak.SCORE,),
        )
        known = view.by_id
        levels = Counter(reach.level for reach in reached.values())
        return tuple(
            msgspec.structs.replace(
                row,
                place=1
                + sum(levels[level] for level in levels if level > reached[row.entrant].level),
                tie_breaks=(),
                note=_note(reached[row.entrant], known[row.entrant]),
            )
            for row in sorted(
                rows, key=lambda row: (-reached[row.entrant].level, known[row.entrant].seed)
            )
        )


def _first_round(view: StageView) -> Round | None:
    entrants = [entrant.id for entrant in view.active]
    if len(entrants) < 2:
        return None
    order = fold_order(bracket_size(len(entrants)))
    pairings = tuple(
        plan_match(
            view, f"SE/R1/M{slot}", slot, [entrants[s - 1] for s in pair if s <= len(entrants)]
        )
        for slot, pair in enumerate(zip(order[::2], order[1::2], strict=True), start=1)
    )
    return Round(index=1, pairings=pairings)


def _bracket(published: Round) -> list[Pairing]:
    """The pairings of a round that lead to the final, by slot."""
    pairings = [pairing for pairing in published.pairings if pairing.key != THIRD_PLACE_KEY]
    return sorted(pairings, key=lambda pairing: pairing.slot)


class _Reach(msgspec.Struct, frozen=True):
    """How far an entrant came: a level to compare, and words.

    Round r is worth 2r to its loser and to who still plays it, 2r + 1 to its winner. So between the
    losers of the semi-finals and of the final there is room for the match for the third place.
    """

    level: int
    words: str


def _reach(pairing: Pairing, index: int, *, is_final: bool) -> dict[int, _Reach]:
    """What a pairing of round `index` tells of its entrants."""
    if pairing.key == THIRD_PLACE_KEY:
        lost = _Reach(2 * index - 2, "fourth" if pairing.result else "plays for the third place")
        won = _Reach(2 * index - 1, "third")
    elif is_final:
        lost = _Reach(2 * index, "lost the final" if pairing.result else "plays the final")
        won = _Reach(2 * index + 1, "won the final")
    else:
        lost = _Reach(2 * index, f"{'lost in' if pairing.result else 'plays in'} round {index}")
        won = _Reach(2 * index + 1, f"reached round {index + 1}")
    reach = dict.fromkeys(pairing.entrants, lost)
    if pairing.result is not None:
        reach[winner_of(pairing)] = won
    return reach


def _note(reach: _Reach, entrant: SeededEntrant) -> str:
    return reach.words if entrant.active else f"{reach.words}, withdrawn"
