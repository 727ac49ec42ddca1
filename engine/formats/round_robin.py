"""Round robin: everyone meets everyone, once or twice.

Rounds follow the Berger tables (FIDE Handbook C.05, annex 1), which balance who is named first. With
an odd number of entrants the highest number is the bye. Keys: ``RR/R2/M1``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

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
from engine.formats.berger import cycle_rounds, plan_line, read_numbers
from engine.formats.options import FormatOption, tie_breaks_option
from engine.formats.results import (
    absent_result,
    check_entrants,
    collect_meetings,
    outcome_result,
)
from engine.outcome import Outcome
from engine.standings import DEFAULT_ORDER, StandingRow, TieBreak, check_order, rank_entrants

MAX_ENTRANTS = 128
"""Beyond it a round robin has more than 8128 matches a cycle."""


class RoundRobinOptions(FormatOptions, frozen=True):
    """The options of a round robin."""

    cycles: int = 1
    tie_breaks: tuple[TieBreak, ...] = DEFAULT_ORDER


class RoundRobin(Format):
    """Everyone meets everyone; the table decides."""

    name: ClassVar[str] = "round_robin"
    title: ClassVar[str] = "Round robin"
    summary: ClassVar[str] = (
        "Everyone meets everyone and a table decides. The fairest, and the most matches."
    )
    options_type: ClassVar[type[FormatOptions]] = RoundRobinOptions
    options: ClassVar[tuple[FormatOption, ...]] = (
        FormatOption(
            name="cycles",
            default=1,
            choices=(1, 2),
            doc="How often each two meet; in the second cycle they swap sides.",
        ),
        tie_breaks_option(),
    )
    pairing_sizes: ClassVar[tuple[int, ...]] = (2,)
    knocks_out: ClassVar[bool] = False

    def check(self, entrants: Sequence[SeededEntrant], options: RoundRobinOptions) -> None:
        """2 to 128 entrants, and tie-breaks that begin with the score."""
        check_entrants(self.title, entrants)
        if len(entrants) > MAX_ENTRANTS:
            matches = self.match_count(len(entrants), options)
            raise FormatError(
                f"a round robin of {len(entrants)} entrants has {matches} matches; it takes at most "
                f"{MAX_ENTRANTS} entrants: limit the entries, or choose another format"
            )
        check_order(options.tie_breaks)

    def round_count(self, entrants: int, options: RoundRobinOptions) -> int:
        """A cycle has n - 1 rounds, n if n is odd."""
        return cycle_rounds(entrants) * options.cycles

    def match_count(self, entrants: int, options: RoundRobinOptions) -> int:
        """One for each two entrants, n(n - 1)/2 a cycle."""
        return entrants * (entrants - 1) // 2 * options.cycles

    def next_round(self, view: StageView) -> Round | None:
        """The next line of the Berger table, with walkovers over who has left.

        It needs no result, so all rounds can be published at once. Who leaves before the first round
        is not in the table at all.
        """
        if not view.rounds and len(view.active) < 2:
            return None
        index = len(view.rounds) + 1
        pairings = plan_line(
            view, _numbers(view), index, view.options.cycles, prefix=f"RR/R{index}"
        )
        return Round(index=index, pairings=pairings) if pairings else None

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
        """The table. A bye is no round here, since everyone has as many."""
        return rank_entrants(
            {entrant.id: entrant.seed for entrant in view.entrants},
            collect_meetings(view, count_byes=False),
            view.options.tie_breaks,
            lot=view.lot,
            notes={entrant.id: "withdrawn" for entrant in view.entrants if not entrant.active},
        )


def _numbers(view: StageView) -> list[int]:
    """The entrants by their numbers in the table: by seed, once a round is published as it has them."""
    if not view.rounds:
        return [entrant.id for entrant in view.active]
    return read_numbers(sorted(view.rounds[0].pairings, key=lambda pairing: pairing.slot))
