"""Gauntlet: each challenger meets everyone of a fixed field; within either side nobody meets.

So a new bot is measured against known ones with as few matches as can be. Rounds turn one side
past the other, so nobody plays twice in a round; who has no opponent in a round just rests. Keys:
``GT/R2/M1``.
"""

from __future__ import annotations

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
from engine.formats.options import FormatOption, tie_breaks_option
from engine.formats.results import (
    absent_result,
    check_entrants,
    collect_meetings,
    outcome_result,
)
from engine.outcome import Outcome
from engine.standings import DEFAULT_ORDER, StandingRow, TieBreak, check_order, rank_entrants

MAX_ENTRANTS = 256
"""A field of 255 makes 255 rounds."""


class GauntletOptions(FormatOptions, frozen=True):
    """The options of a gauntlet."""

    challengers: int = 1
    challenging_seeds: str = "first"
    cycles: int = 1
    tie_breaks: tuple[TieBreak, ...] = DEFAULT_ORDER


class Gauntlet(Format):
    """Challengers against a field."""

    name: ClassVar[str] = "gauntlet"
    title: ClassVar[str] = "Gauntlet"
    summary: ClassVar[str] = (
        "One or a few challengers each meet everyone of a fixed field, and nobody else meets. "
        "Measures a new bot with few matches."
    )
    options_type: ClassVar[type[FormatOptions]] = GauntletOptions
    options: ClassVar[tuple[FormatOption, ...]] = (
        FormatOption(
            name="challengers",
            default=1,
            minimum=1,
            maximum=MAX_ENTRANTS - 1,
            doc="How many challenge; all others are the field.",
        ),
        FormatOption(
            name="challenging_seeds",
            default="first",
            choices=("first", "last"),
            doc="Which seeds challenge: the first, or the last, where new bots stand if seeds go by rating.",
        ),
        FormatOption(
            name="cycles",
            default=1,
            choices=(1, 2),
            doc="How often a challenger meets each of the field; in the second cycle they swap sides.",
        ),
        tie_breaks_option("each of the two tables"),
    )
    pairing_sizes: ClassVar[tuple[int, ...]] = (2,)
    knocks_out: ClassVar[bool] = False

    def check(self, entrants: Sequence[SeededEntrant], options: GauntletOptions) -> None:
        """At least one challenger and one of the field, and tie-breaks that begin with the score."""
        check_entrants(self.title, entrants)
        count = sum(entrant.active for entrant in entrants)
        if options.challengers >= count:
            raise FormatError(
                f"{options.challengers} challengers of {count} entrants leave nobody for the field: "
                "choose fewer challengers, or let more enter"
            )
        if count > MAX_ENTRANTS:
            raise FormatError(
                f"a gauntlet takes at most {MAX_ENTRANTS} entrants, and there are {count}: "
                "limit the entries"
            )
        check_order(options.tie_breaks)

    def round_count(self, entrants: int, options: GauntletOptions) -> int:
        """As many as the larger side has entrants, each cycle."""
        return max(options.challengers, entrants - options.challengers) * options.cycles

    def match_count(self, entrants: int, options: GauntletOptions) -> int:
        """Each challenger against each of the field, each cycle."""
        return options.challengers * (entrants - options.challengers) * options.cycles

    def next_round(self, view: StageView) -> Round | None:
        """The next turn of the sides, with walkovers over who has left; it needs no result.

        Seeds tell the sides, so who left before the first round is in them, too, and walked over.
        """
        challengers, field = _sides(view)
        gone = view.inactive
        if not view.rounds and not all(set(side) - gone for side in (challengers, field)):
            return None
        small, large = sorted((challengers, field), key=len)
        index = len(view.rounds) + 1
        if not small or index > len(large) * view.options.cycles:
            return None
        cycle, turn = divmod(index - 1, len(large))
        pairs = [(each, large[(place + turn) % len(large)]) for place, each in enumerate(small)]
        if (turn + cycle) % 2:
            pairs = [(second, first) for first, second in pairs]
        pairings = [
            Pairing(key=f"GT/R{index}/M{slot}", slot=slot, entrants=pair)
            for slot, pair in enumerate(pairs, start=1)
        ]
        return Round(
            index=index,
            pairings=tuple(
                msgspec.structs.replace(pairing, result=absent_result(view, pairing))
                for pairing in pairings
            ),
        )

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
        """The challengers among themselves, then the field: the two play different numbers of matches."""
        rows = rank_entrants(
            {entrant.id: entrant.seed for entrant in view.entrants},
            collect_meetings(view, count_byes=False),
            view.options.tie_breaks,
            lot=view.lot,
            notes={entrant.id: "withdrawn" for entrant in view.entrants if not entrant.active},
        )
        challengers, field = _sides(view)
        return (
            *_side_rows(rows, set(challengers), "challengers", above=0),
            *_side_rows(rows, set(field), "field", above=len(challengers)),
        )


def _sides(view: StageView) -> tuple[list[int], list[int]]:
    """The challengers and the field, by seed."""
    ids = [entrant.id for entrant in view.by_seed]
    cut = view.options.challengers
    if view.options.challenging_seeds == "last":
        cut = max(len(ids) - cut, 0)
        return ids[cut:], ids[:cut]
    return ids[:cut], ids[cut:]


def _side_rows(
    rows: Sequence[StandingRow], side: set[int], name: str, *, above: int
) -> list[StandingRow]:
    own = [row for row in rows if row.entrant in side]
    places = [1 + sum(other.place < row.place for other in own) for row in own]
    return [
        msgspec.structs.replace(row, place=above + place, group=name, group_place=place)
        for row, place in zip(own, places, strict=True)
    ]
