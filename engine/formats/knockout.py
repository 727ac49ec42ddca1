"""Pairings of formats that knock out: planned with their byes and walkovers, and who went on."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import msgspec

from engine.formats.base import Pairing, StageView
from engine.formats.results import absent_result, bye_result, knock_out


def plan_match(view: StageView, key: str, slot: int, entrants: Iterable[int]) -> Pairing:
    """The pairing of one or two entrants; a bye or a walkover has its result at once."""
    pairing = Pairing(key=key, slot=slot, entrants=tuple(entrants))
    if len(pairing.entrants) == 1:
        result = bye_result(Fraction(1), advances=True)
        return msgspec.structs.replace(pairing, is_bye=True, result=result)
    walkover = absent_result(view, pairing)
    if walkover is None:
        return pairing
    return msgspec.structs.replace(pairing, result=knock_out(view, pairing, walkover))


def winner_of(pairing: Pairing) -> int:
    """Who went on from a decided pairing."""
    assert pairing.result is not None
    return pairing.entrants[pairing.result.advances.index(True)]


def losers_of(pairing: Pairing) -> list[int]:
    """Who did not: one of two, nobody of a bye."""
    winner = winner_of(pairing)
    return [entrant for entrant in pairing.entrants if entrant != winner]
