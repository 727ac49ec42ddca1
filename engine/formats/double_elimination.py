"""Double elimination: who loses twice is out.

The winners' bracket of 2^k places is seeded by the fold order, like a single elimination; its free
places are byes. Who loses there drops into the losers' bracket:

- the losers of winners' round 1 meet their neighbours in losers' round 1;
- for r ≥ 2 the losers of winners' round r enter losers' round 2r - 2, each against a survivor of the
  losers' round before it, in an order that keeps those apart who have met (`drop_order`);
- losers' round 2r - 1 brings neighbouring survivors together.

A slot that a bye should have fed is a bye in turn; a bye is never a loss. The champions of both
brackets meet in the grand final; if the losers' champion wins it, each has lost once, and a second
one decides. So n entrants play 2n - 2 matches, or 2n - 1.

Keys: ``W/R2/M1`` and ``L/R4/M0`` are slots of a bracket's round, counted from 0; ``GF/1`` and ``GF/2``
are the grand finals. Winners' round r ≥ 2 is published with losers' round 2r - 3, so nobody waits
longer than the others need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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

MAX_ENTRANTS = 1024
"""As far as the orders of the drops are known to keep rematches late."""

FINAL_KEY, SECOND_FINAL_KEY = "GF/1", "GF/2"

DROP_ORDERS: dict[int, tuple[str, ...]] = {
    2: (),
    4: ("natural",),
    8: ("reversed", "natural"),
    16: ("reversed", "reversed", "natural"),
    32: ("reversed", "rotated", "reversed", "natural"),
    64: ("halves_reversed", "reversed", "rotated", "reversed", "natural"),
    128: ("halves_reversed", "reversed", "rotated", "natural", "reversed", "natural"),
    256: ("reversed", "rotated", "halves_reversed", "natural", "reversed", "natural", "natural"),
    512: (
        *("halves_reversed", "reversed", "rotated", "natural"),
        *("halves_reversed", "reversed", "natural", "natural"),
    ),
    1024: (
        *("reversed", "rotated", "halves_reversed", "natural"),
        *("reversed", "rotated", "halves_reversed", "reversed", "natural"),
    ),
}
"""By the bracket's size, how the losers of winners' rounds 2, 3, … are ordered as they drop.

Up to 64 they are the customary ones. Beyond, of all combinations of these four orders, one with the
fewest expected rematches between equals in the earliest losers' round that can have one, then in the
next, and so on; `tests/unit/formats/test_double_elimination.py` computes them.
"""


class DoubleEliminationOptions(FormatOptions, frozen=True):
    """The options of double elimination."""

    second_final: bool = True


class DoubleElimination(Format):
    """Double elimination, with a second grand final if the losers' champion wins the first."""

    name: ClassVar[str] = "double_elimination"
    title: ClassVar[str] = "Double elimination"
    summary: ClassVar[str] = (
        "A bracket with a second chance: who loses two matches is out. One bad match ends nobody's "
        "tournament, for twice the matches of a single elimination."
    )
    options_type: ClassVar[type[FormatOptions]] = DoubleEliminationOptions
    options: ClassVar[tuple[FormatOption, ...]] = (
        FormatOption(
            name="second_final",
            default=True,
            choices=(True, False),
            doc=(
                "Whether a second grand final is played if the champion of the losers' bracket wins "
                "the first; else the first decides, though its loser has lost but once."
            ),
        ),
    )
    pairing_sizes: ClassVar[tuple[int, ...]] = (2,)
    knocks_out: ClassVar[bool] = True

    def check(self, entrants: Sequence[SeededEntrant], options: DoubleEliminationOptions) -> None:  # noqa: ARG002 - Format's signature
        """2 to 1024 entrants."""
        check_entrants(self.title, entrants)
        if len(entrants) > MAX_ENTRANTS:
            raise FormatError(
                f"a double elimination takes at most {MAX_ENTRANTS} entrants, and there are "
                f"{len(entrants)}: limit the entries, or choose another format"
            )

    def round_count(self, entrants: int, options: DoubleEliminationOptions) -> int:
        """Twice the rounds of a single elimination, and the second grand final if there may be one."""
        return 2 * _depth(bracket_size(entrants)) + options.second_final

    def match_count(self, entrants: int, options: DoubleEliminationOptions) -> int:
        """2n - 2, or 2n - 1 with a second grand final."""
        return 2 * entrants - 2 + options.second_final

    def next_round(self, view: StageView) -> Round | None:
        """The rounds of both brackets whose turn it is, or a grand final."""
        require_complete(view)
        if not view.rounds:
            return _first_round(view)
        known = _Known(view)
        index = view.rounds[-1].index + 1
        planned = _plan_turn(view, known, index)
        return Round(index=index, pairings=planned) if planned else None

    def decide(self, view: StageView, pairing: Pairing, outcome: Outcome) -> PairingResult:
        """The winner goes on; a tie goes to the lot, a double forfeit to the better seed."""
        return knock_out(view, pairing, outcome_result(outcome))

    def walkover(self, view: StageView, pairing: Pairing) -> PairingResult | None:
        """Who is still active goes on; if nobody is, the better seed, to be walked over in turn."""
        result = absent_result(view, pairing)
        return None if result is None else knock_out(view, pairing, result)

    def standings(self, view: StageView) -> tuple[StandingRow, ...]:
        """By the match of the last defeat: who was knocked out in the same round shares the place."""
        reached = _reached(view)
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
                note=reached[row.entrant].words
                + ("" if known[row.entrant].active else ", withdrawn"),
            )
            for row in sorted(
                rows,
                key=lambda row: (-reached[row.entrant].level, known[row.entrant].seed),
            )
        )


def drop_order(size: int, winners_round: int) -> list[int]:
    """The slots of winners' round `winners_round` ≥ 2 of a bracket, in the order in which their losers drop.

    The i-th of them meets survivor i of the losers' round before.
    """
    slots = list(range(size >> winners_round))
    half = len(slots) // 2
    return {
        "natural": slots,
        "reversed": slots[::-1],
        "rotated": slots[half:] + slots[:half],
        "halves_reversed": slots[:half][::-1] + slots[half:][::-1],
    }[DROP_ORDERS[size][winners_round - 2]]


def _depth(size: int) -> int:
    """The k of a bracket of 2^k places."""
    return size.bit_length() - 1


def _first_round(view: StageView) -> Round | None:
    entrants = [entrant.id for entrant in view.active]
    if len(entrants) < 2:
        return None
    order = fold_order(bracket_size(len(entrants)))
    pairings = tuple(
        plan_match(
            view,
            f"W/R1/M{slot}",
            slot + 1,
            [entrants[seed - 1] for seed in pair if seed <= len(entrants)],
        )
        for slot, pair in enumerate(zip(order[::2], order[1::2], strict=True))
    )
    return Round(index=1, pairings=pairings)


class _Known:
    """The published pairings by key, and who came out of them."""

    def __init__(self, view: StageView) -> None:
        self.pairings = {
            pairing.key: pairing for published in view.rounds for pairing in published.pairings
        }
        self.size = 2 * len(view.rounds[0].pairings)
        self.depth = _depth(self.size)

    def winner(self, key: str) -> int | None:
        """Who went on from this slot; None where nobody came."""
        return winner_of(self.pairings[key]) if key in self.pairings else None

    def loser(self, key: str) -> int | None:
        """Who lost in this slot; None where nobody did."""
        lost = losers_of(self.pairings[key]) if key in self.pairings else []
        return lost[0] if lost else None


def _plan_turn(view: StageView, known: _Known, turn: int) -> tuple[Pairing, ...]:
    """What is played in a turn: winners' round r in turn 2r - 2, losers' round j in turn j + 1, the finals."""
    if turn >= 2 * known.depth:
        return _plan_final(view, known, turn)
    brackets = [("L", turn - 1, _losers_slots(known, turn - 1))]
    if turn % 2 == 0:
        winners_round = turn // 2 + 1
        brackets.insert(0, ("W", winners_round, _winners_slots(known, winners_round)))
    keyed = [
        (f"{bracket}/R{number}/M{index}", present)
        for bracket, number, slots in brackets
        for index, pair in enumerate(slots)
        if (present := [entrant for entrant in pair if entrant is not None])
    ]
    return tuple(
        plan_match(view, key, slot, entrants) for slot, (key, entrants) in enumerate(keyed, start=1)
    )


_Slot = tuple[int | None, int | None]


def _winners_slots(known: _Known, number: int) -> list[_Slot]:
    came = [known.winner(f"W/R{number - 1}/M{slot}") for slot in range(known.size >> (number - 1))]
    return list(zip(came[::2], came[1::2], strict=True))


def _losers_slots(known: _Known, number: int) -> list[_Slot]:
    if number == 1:
        lost = [known.loser(f"W/R1/M{slot}") for slot in range(known.size // 2)]
        return list(zip(lost[::2], lost[1::2], strict=True))
    survivors = [
        known.winner(f"L/R{number - 1}/M{slot}") for slot in range(known.size >> (number + 2) // 2)
    ]
    if number % 2:
        return list(zip(survivors[::2], survivors[1::2], strict=True))
    winners_round = number // 2 + 1
    dropped = [
        known.loser(f"W/R{winners_round}/M{slot}") for slot in drop_order(known.size, winners_round)
    ]
    return list(zip(dropped, survivors, strict=True))


def _plan_final(view: StageView, known: _Known, turn: int) -> tuple[Pairing, ...]:
    if turn == 2 * known.depth:
        return (plan_match(view, FINAL_KEY, 1, _champions(known)),)
    unbeaten = _champions(known)[0]
    is_over = SECOND_FINAL_KEY in known.pairings or known.winner(FINAL_KEY) == unbeaten
    if is_over or not view.options.second_final:
        return ()
    return (plan_match(view, SECOND_FINAL_KEY, 1, _champions(known)[::-1]),)


def _champions(known: _Known) -> list[int]:
    """Of the winners' bracket, then of the losers'; of two entrants, the loser of their one match."""
    last = f"W/R{known.depth}/M0"
    losers_champion = (
        known.winner(f"L/R{2 * known.depth - 2}/M0") if known.depth > 1 else known.loser(last)
    )
    both = [known.winner(last), losers_champion]
    return [champion for champion in both if champion is not None]


class _Reach(msgspec.Struct, frozen=True):
    """How far an entrant came: a level to compare, and words.

    Who is out has the number of the losers' round that knocked him out; all who are still in stand
    above, those without a defeat first.
    """

    level: int
    words: str


_ABSENT = _Reach(0, "not in the bracket")
_ONE_DEFEAT, _UNBEATEN, _LOST_FINAL, _WON_FINAL = 1000, 1001, 1002, 1003


def _reached(view: StageView) -> dict[int, _Reach]:
    reached = {entrant.id: _ABSENT for entrant in view.entrants}
    for published in view.rounds:
        for pairing in published.pairings:
            for entrant in pairing.entrants:
                reached[entrant] = _reach(pairing, entrant, view)
    return reached


def _reach(pairing: Pairing, entrant: int, view: StageView) -> _Reach:
    """What an entrant's pairing tells of it, if it is the last one."""
    bracket, _, rest = pairing.key.partition("/")
    has_lost = pairing.result is not None and winner_of(pairing) != entrant
    if bracket == "GF":
        return _reach_in_final(pairing, entrant, view, has_lost=has_lost)
    number = int(rest.split("/")[0][1:])
    if bracket == "W":
        if has_lost:
            return _Reach(_ONE_DEFEAT, f"lost in winners' round {number}, plays on")
        return _Reach(_UNBEATEN, _on_the_way("winners'", pairing, number))
    if has_lost:
        return _Reach(number, f"lost in losers' round {number}")
    return _Reach(_ONE_DEFEAT, _on_the_way("losers'", pairing, number))


def _on_the_way(bracket: str, pairing: Pairing, number: int) -> str:
    if pairing.result is None:
        return f"plays in {bracket} round {number}"
    return (
        f"won {bracket} round {number}"
        if not pairing.is_bye
        else f"bye in {bracket} round {number}"
    )


def _reach_in_final(pairing: Pairing, entrant: int, view: StageView, *, has_lost: bool) -> _Reach:
    is_unbeaten = pairing.key == FINAL_KEY and entrant == pairing.entrants[0]
    if pairing.result is None:
        return _Reach(_UNBEATEN if is_unbeaten else _ONE_DEFEAT, "plays the grand final")
    if pairing.key == FINAL_KEY and has_lost == is_unbeaten and view.options.second_final:
        return _Reach(_ONE_DEFEAT, "plays the second grand final")
    return (
        _Reach(_LOST_FINAL, "lost the grand final")
        if has_lost
        else _Reach(_WON_FINAL, "won the grand final")
    )
