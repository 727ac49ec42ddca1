"""Tables of a stage: points, and tie-breaks in a chosen order, each with its working as text.

Everything is exact: fractions and integers, no floats. The module knows no formats: it gets who met
whom and how it came out.
"""

from __future__ import annotations

from fractions import Fraction

import msgspec


class TieBreakValue(msgspec.Struct, frozen=True):
    """One criterion of one row."""

    name: str
    """As in the stage's order of tie-breaks: ``buchholz_cut_1``."""
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
    """Decided by play: byes and walkovers are not counted."""
    wins: int = 0
    """Matches in which nobody did as well."""
    ties: int = 0
    """Matches in which the best place was shared."""
    losses: int = 0
    score: Fraction = Fraction(0)
    points_difference: int = 0
    """The sum of the match points."""
    tie_breaks: tuple[TieBreakValue, ...] = ()
    note: str = ""
    """For people: ``lost in round 2``, ``withdrawn``."""
