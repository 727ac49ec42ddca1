"""Berger tables: who meets whom in which round, if everyone is to meet everyone.

FIDE Handbook C.05, annex 1. They balance who is named first; with an odd number of entrants the highest
number has the bye.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from engine.formats.base import Pairing, StageView
from engine.formats.results import absent_result, bye_result


def berger_round(entrants: int, index: int) -> list[tuple[int, int]]:
    """Round `index` (from 0) of the Berger table, as pairs of numbers 1 … n, the first named first.

    An odd number is made even by one more, whose opponent has the bye.
    """
    n = entrants + entrants % 2
    x = index * n // 2 % (n - 1)
    pairs = [(x + 1, n) if index % 2 == 0 else (n, x + 1)]
    pairs += [((x + k) % (n - 1) + 1, (x - k) % (n - 1) + 1) for k in range(1, n // 2)]
    return pairs


def cycle_rounds(entrants: int) -> int:
    """How many rounds it takes until everyone has met everyone: n - 1, n if n is odd."""
    return entrants - 1 + entrants % 2


def read_numbers(first_round: Sequence[Pairing]) -> list[int]:
    """The entrants by their numbers in the table, read from its published first round, in order of slot."""
    count = sum(len(pairing.entrants) for pairing in first_round)
    entrant_of = {
        number: entrant
        for pair, pairing in zip(
            _with_byes_last(berger_round(count, 0), count), first_round, strict=True
        )
        for number, entrant in zip(pair, pairing.entrants, strict=True)
    }
    return [entrant_of[number] for number in sorted(entrant_of)]


def plan_line(
    view: StageView, numbers: Sequence[int], index: int, cycles: int, *, prefix: str, slot: int = 1
) -> tuple[Pairing, ...]:
    """Round `index` (from 1) of the table of `numbers`, the bye last; none if its cycles are over.

    The second cycle swaps who is named first. Keys: `prefix` and ``/M1``, ``/M2``, …; slots from `slot`.
    """
    per_cycle = cycle_rounds(len(numbers))
    if index > per_cycle * cycles:
        return ()
    line = berger_round(len(numbers), (index - 1) % per_cycle)
    if (index - 1) // per_cycle % 2:
        line = [(second, first) for first, second in line]
    return tuple(
        _plan(view, f"{prefix}/M{match}", slot + match - 1, tuple(numbers[n - 1] for n in pair))
        for match, pair in enumerate(_with_byes_last(line, len(numbers)), start=1)
    )


def _with_byes_last(line: Sequence[tuple[int, int]], count: int) -> list[tuple[int, ...]]:
    """A line without the number that nobody has; the bye comes last."""
    real = [tuple(number for number in pair if number <= count) for pair in line]
    return sorted(real, key=lambda pair: len(pair) == 1)


def _plan(view: StageView, key: str, slot: int, entrants: tuple[int, ...]) -> Pairing:
    pairing = Pairing(key=key, slot=slot, entrants=entrants)
    if len(entrants) == 1:
        result = bye_result(Fraction(0), advances=False)
        return msgspec.structs.replace(pairing, is_bye=True, result=result)
    return msgspec.structs.replace(pairing, result=absent_result(view, pairing))
