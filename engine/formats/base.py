"""What the rest of the house knows of a tournament format: Format and the frozen values it works on.

A format is a pure function of what has been published and decided so far. It never looks at a
clock or a database, and it never computes a published round again: `Format.next_round` reads the
rounds it is given and only adds to them, so a changed seed or a withdrawal cannot rewrite history.

How a stage runs::

    options = fmt.make_options({"third_place": True})
    fmt.check(entrants, options)                       # FormatError tells the organiser what to change
    view = StageView(entrants=entrants, options=options, lot=lot)
    while (planned := fmt.next_round(view)) is not None:
        ...                                            # publish it; play each pairing without a result
        fmt.decide(view, pairing, outcome)             # → PairingResult, kept with the pairing
    fmt.standings(view)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import msgspec

from engine.errors import FormatError
from engine.formats.options import FormatOption, check_options
from engine.outcome import Outcome
from engine.ratings import Rating
from engine.standings import StandingRow

SCORE_DENOMINATOR = 12
"""Every score of a pairing is a multiple of 1/12 (2, 4 or 6 divide it), so it can be stored as an integer."""


class DecidedBy(StrEnum):
    """What decided a pairing."""

    PLAY = "play"
    """The places of its match."""
    LOT = "lot"
    """Its match was tied, extra boards included; someone had to advance, and the verifiable lot chose."""
    FAULT = "fault"
    """A bot's fault: the offenders lost to the others."""
    FORFEIT = "forfeit"
    """An organiser's decision."""
    DOUBLE_FORFEIT = "double_forfeit"
    """Everyone was at fault: nobody scores; where someone must advance, it is the better seed, as by a bye."""
    WALKOVER = "walkover"
    """Who was withdrawn or disqualified did not play; never a match, never rated."""
    BYE = "bye"
    """There was no opponent; never a match, never rated."""
    VOID = "void"
    """Annulled by an organiser afterwards: it counts for nothing, but who advanced has advanced."""


class SeededEntrant(msgspec.Struct, frozen=True):
    """An entrant of a stage. `seed` 1 is the strongest; seeds are unique in a stage."""

    id: int
    seed: int
    active: bool = True
    """False once withdrawn or disqualified: its open and later pairings are walkovers."""


class PairingResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a pairing came out; all tuples follow the order of its entrants."""

    decided_by: DecidedBy
    places: tuple[int, ...]
    """1 is the best; ties share the place. What is rated, where a match was played."""
    points: tuple[int, ...]
    """The match's points (`engine.outcome.Outcome.points`); zeros where nothing was played."""
    scores: tuple[Fraction, ...]
    """What the stage's table counts: (beaten + ½ tied) / (entrants - 1), so 1, ½ or 0 between two."""
    advances: tuple[bool, ...]
    """Who goes on from here (in a final: who wins it), in formats that knock out; all False elsewhere."""


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """One pairing of a round, planned or stored."""

    key: str
    """The match key, unique and deterministic in the stage: ``SE/R1/M3``."""
    slot: int
    """Its place in the round, from 1; in a bracket two neighbours feed one slot of the next round."""
    entrants: tuple[int, ...]
    """Entrant ids, 1 to 4; the first named sits first (in Eighty on seats 0 and 2)."""
    is_bye: bool = False
    result: PairingResult | None = None
    """None while open. A planned pairing that needs no match (bye, walkover) has its result at once."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One round, planned or stored."""

    index: int
    """From 1, in the order of publication."""
    pairings: tuple[Pairing, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every pairing has its result."""
        return all(pairing.result is not None for pairing in self.pairings)


class StageView(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All that a format may know of a stage.

    What follows from the fields is computed once: formats ask for it pairing by pairing.
    """

    entrants: tuple[SeededEntrant, ...]
    """Everyone who ever took part, the inactive too; in any order."""
    options: Any
    """A value of the format's `options_type`, from `Format.make_options`."""
    rounds: tuple[Round, ...] = ()
    """The published rounds in their order."""
    lot: bytes = b""
    """The stage's verifiable lot: bytes that nobody could choose, from which every lot follows."""
    strengths: Mapping[int, Rating] = msgspec.field(default_factory=dict)
    """By entrant id, the ratings with which they came into the stage, where a format asks for them (the
    ladder does); who is not in it is a newcomer. Frozen: what the stage itself taught is in its rounds."""

    @cached_property
    def active(self) -> tuple[SeededEntrant, ...]:
        """Who still plays, the best seed first."""
        return tuple(entrant for entrant in self.by_seed if entrant.active)

    @cached_property
    def inactive(self) -> frozenset[int]:
        """The ids of who has withdrawn or was disqualified."""
        return frozenset(entrant.id for entrant in self.entrants if not entrant.active)

    @cached_property
    def by_seed(self) -> tuple[SeededEntrant, ...]:
        """Everyone, the best seed first."""
        return tuple(sorted(self.entrants, key=lambda entrant: entrant.seed))

    @cached_property
    def by_id(self) -> dict[int, SeededEntrant]:
        """Everyone by id."""
        return {entrant.id: entrant for entrant in self.entrants}


class FormatOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The options of a format with their values; `msgspec.to_builtins` of it is what a stage stores."""


class Format(ABC):
    """One tournament format. Instances hold no state."""

    name: ClassVar[str]
    """As stored and on the command line: ``single_elimination``."""
    title: ClassVar[str]
    """For people: ``Single elimination``."""
    summary: ClassVar[str]
    """One sentence for the organiser who chooses."""
    options_type: ClassVar[type[FormatOptions]]
    options: ClassVar[tuple[FormatOption, ...]]
    pairing_sizes: ClassVar[tuple[int, ...]]
    """How many entrants its matches bring together: (2,) or (3, 4)."""
    knocks_out: ClassVar[bool]
    """Whether a match must have a winner: then ties are broken by extra boards, at last by lot."""
    is_continuous: ClassVar[bool] = False
    """Whether its rounds are batches: each may be published while others are open, and is closed and rated
    as soon as it is decided, whatever became of those before it. It has no `round_count`."""
    takes_late_entries: ClassVar[bool] = False
    """Whether an entrant may join when rounds are published: he comes in with `late_entrant`."""
    reads_strengths: ClassVar[bool] = False
    """Whether it asks with which ratings the entrants came in: `StageView.strengths`."""
    spares_rematches: ClassVar[bool] = False
    """Whether two meet again only where there is no other way, and nobody rests again before all have."""

    def make_options(self, given: Mapping[str, object] | None = None) -> Any:
        """The options with these values and the defaults for the rest; texts are read as their option's kind.

        Raises FormatError for an unknown option or a value that it does not take, naming what is allowed.
        """
        return self.options_type(**check_options(self.name, self.options, given))

    def sizes(self, options: Any) -> tuple[int, ...]:  # noqa: ARG002 - some formats look at them
        """How many entrants its matches bring together with these options, of `pairing_sizes`."""
        return self.pairing_sizes

    def ends(self, options: Any) -> bool:  # noqa: ARG002 - some formats look at them
        """Whether the stage comes to an end by itself with these options, so that another can follow."""
        return True

    @abstractmethod
    def check(self, entrants: Sequence[SeededEntrant], options: Any) -> None:
        """Raise FormatError if this stage cannot be run so; the message says what to change."""

    @abstractmethod
    def round_count(self, entrants: int, options: Any) -> int | None:
        """How many rounds a stage of so many entrants has; None where it has no end of its own."""

    @abstractmethod
    def match_count(self, entrants: int, options: Any) -> int | None:
        """How many matches it has if nobody withdraws, the most if that varies; None as in `round_count`."""

    def late_entrant(self, view: StageView, entrant: int) -> SeededEntrant:
        """`entrant` as he joins a stage whose first round is published: with the last seed.

        Add him to `StageView.entrants`; the next round pairs him, and for those before it he has no
        score. Raises FormatError if the format takes nobody late, if he is in the stage already, and
        if no round is left to be published.
        """
        if not self.takes_late_entries:
            raise FormatError(
                f"{self.title} takes no late entries, since its pairings depend on who was there at the "
                "start; enter before it begins, or choose a format that takes them"
            )
        if entrant in view.by_id:
            raise FormatError(f"entrant {entrant} is in this stage already")
        total = self.round_count(len(view.entrants), view.options)
        if total is not None and len(view.rounds) >= total:
            raise FormatError("no round is left to be paired: it is too late to enter this stage")
        return SeededEntrant(id=entrant, seed=max((e.seed for e in view.entrants), default=0) + 1)

    @abstractmethod
    def next_round(self, view: StageView) -> Round | None:
        """The round to publish next; None when the stage is over.

        Byes, and walkovers over who is no longer active, come with their results.
        Raises FormatError while a published round that the next one needs is still open. What a format
        plans before earlier rounds are decided it would plan afterwards, too: it pairs ahead only where
        results make no difference.
        """

    @abstractmethod
    def decide(self, view: StageView, pairing: Pairing, outcome: Outcome) -> PairingResult:
        """What a match's outcome means for its pairing.

        For a format that knocks out, exactly those who go on get `advances`: a tie goes to the
        lot, a double forfeit to the better seed. An organiser's decision is an outcome too: see
        `engine.formats.results.forfeit_outcome`. Of the stage `view` need tell no more than the pairing's
        own entrants, the options and the lot.
        """

    @abstractmethod
    def walkover(self, view: StageView, pairing: Pairing) -> PairingResult | None:
        """The result of an open pairing that needs no match any more; None if it must be played.

        Call it for the open pairings of an entrant who has just become inactive, with a view as for `decide`.
        """

    @abstractmethod
    def standings(self, view: StageView) -> tuple[StandingRow, ...]:
        """The table as it stands, the best first, each entrant once; final when the stage is over."""

    def qualify(self, view: StageView, count: int) -> tuple[int, ...]:
        """The ids of the `count` who go on from a stage that is over, the best seed of the next one first.

        By default they are the first of the standings who are still active. Where the cut runs through a
        shared place, those with the better seeds go on, as they stand first in the standings: nothing else
        told them apart, the lot included if it is among the tie-breaks.

        Raises FormatError while the stage goes on, and if fewer are left than are asked for.
        """
        check_qualifiers(self, view, count)
        gone = view.inactive
        return tuple(row.entrant for row in self.standings(view) if row.entrant not in gone)[:count]


def check_qualifiers(fmt: Format, view: StageView, count: int) -> None:
    """Raise FormatError unless `count` can go on from the stage: it is over, and so many are left."""
    if fmt.next_round(view) is not None or not all(each.is_complete for each in view.rounds):
        raise FormatError("nobody goes on before the stage is over: play its other matches first")
    left = len(view.active)
    if not 1 <= count <= left:
        raise FormatError(
            f"{count} cannot go on from this stage: choose a number from 1 to {left}, "
            "the entrants who are left"
        )
