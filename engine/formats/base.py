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
from typing import Any, ClassVar

import msgspec

from engine.errors import FormatError
from engine.outcome import Fault, Outcome, Termination
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


PLAYED = frozenset({DecidedBy.PLAY, DecidedBy.LOT, DecidedBy.FAULT})
"""What decides a pairing whose match was begun; only such pairings count as meetings."""


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
    """Who goes on from here, in formats that knock out; all False elsewhere."""


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


class StageView(msgspec.Struct, frozen=True, kw_only=True):
    """All that a format may know of a stage."""

    entrants: tuple[SeededEntrant, ...]
    """Everyone who ever took part, the inactive too; in any order."""
    options: Any
    """A value of the format's `options_type`, from `Format.make_options`."""
    rounds: tuple[Round, ...] = ()
    """The published rounds in their order."""
    lot: bytes = b""
    """The stage's verifiable lot: bytes that nobody could choose, from which every lot follows."""

    @property
    def active(self) -> tuple[SeededEntrant, ...]:
        """Who still plays, the best seed first."""
        return tuple(entrant for entrant in self.by_seed if entrant.active)

    @property
    def by_seed(self) -> tuple[SeededEntrant, ...]:
        """Everyone, the best seed first."""
        return tuple(sorted(self.entrants, key=lambda entrant: entrant.seed))

    @property
    def by_id(self) -> dict[int, SeededEntrant]:
        """Everyone by id."""
        return {entrant.id: entrant for entrant in self.entrants}


class FormatOption(msgspec.Struct, frozen=True, kw_only=True):
    """One option of a format, described well enough to build a form or an error message from."""

    name: str
    default: object
    choices: tuple[object, ...] = ()
    """The values it takes; empty where any integer from `minimum` to `maximum` will do."""
    minimum: int | None = None
    maximum: int | None = None
    doc: str = ""


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

    def make_options(self, given: Mapping[str, object] | None = None) -> Any:
        """The options with these values and the defaults for the rest; texts are read as their option's kind.

        Raises FormatError for an unknown option or a value that it does not take, naming what is allowed.
        """
        return self.options_type(**check_options(self.name, self.options, given))

    @abstractmethod
    def check(self, entrants: Sequence[SeededEntrant], options: Any) -> None:
        """Raise FormatError if this stage cannot be run so; the message says what to change."""

    @abstractmethod
    def round_count(self, entrants: int, options: Any) -> int | None:
        """How many rounds a stage of so many entrants has; None where it has no end of its own."""

    @abstractmethod
    def match_count(self, entrants: int, options: Any) -> int | None:
        """How many matches it has if nobody withdraws, the most if that varies; None as in `round_count`."""

    @abstractmethod
    def next_round(self, view: StageView) -> Round | None:
        """The round to publish next; None when the stage is over.

        Byes, and walkovers over who is no longer active, come with their results.
        Raises FormatError while a published round that the next one needs is still open.
        """

    @abstractmethod
    def decide(self, view: StageView, pairing: Pairing, outcome: Outcome) -> PairingResult:
        """What a match's outcome means for its pairing.

        For a format that knocks out, exactly those who go on get `advances`: a tie goes to the
        lot, a double forfeit to the better seed. An organiser's decision is an outcome too: see
        `forfeit_outcome`.
        """

    @abstractmethod
    def walkover(self, view: StageView, pairing: Pairing) -> PairingResult | None:
        """The result of an open pairing that needs no match any more; None if it must be played.

        Call it for the open pairings of an entrant who has just become inactive.
        """

    @abstractmethod
    def standings(self, view: StageView) -> tuple[StandingRow, ...]:
        """The table as it stands, the best first, each entrant once; final when the stage is over."""


def forfeit_outcome(entrants: int, offenders: Sequence[int], detail: str) -> Outcome:
    """The outcome of an organiser's decision against `offenders` (indexes in the pairing)."""
    guilty = frozenset(offenders)
    if not guilty or not guilty <= frozenset(range(entrants)):
        raise FormatError(
            f"name at least one offender by its index, 0 to {entrants - 1}; got {sorted(guilty)}"
        )
    innocent = entrants - len(guilty)
    return Outcome(
        termination=Termination.FORFEIT,
        faults=tuple(
            Fault(entrant=index, seat=None, kind=Termination.FORFEIT, detail=detail)
            for index in sorted(guilty)
        ),
        points=(0,) * entrants,
        places=tuple(innocent + 1 if index in guilty else 1 for index in range(entrants)),
    )


def bye_result(score: Fraction, *, advances: bool) -> PairingResult:
    """The result of a bye; `score` is what the format's table gives for it."""
    return PairingResult(
        decided_by=DecidedBy.BYE, places=(1,), points=(0,), scores=(score,), advances=(advances,)
    )


def void_result(result: PairingResult) -> PairingResult:
    """`result` annulled: no scores and no points. Who advanced has advanced: rounds stay published."""
    count = len(result.places)
    return PairingResult(
        decided_by=DecidedBy.VOID,
        places=(1,) * count,
        points=(0,) * count,
        scores=(Fraction(0),) * count,
        advances=result.advances,
    )


def scores_by_places(
    places: Sequence[int], offenders: frozenset[int] = frozenset()
) -> tuple[Fraction, ...]:
    """(beaten + ½ tied) / (k - 1) for each of k entrants; an offender scores 0."""
    others = len(places) - 1
    return tuple(
        Fraction(0)
        if index in offenders
        else Fraction(
            2 * sum(place < other for other in places)
            + sum(place == other for other in places)
            - 1,
            2 * others,
        )
        for index, place in enumerate(places)
    )


def outcome_result(outcome: Outcome) -> PairingResult:
    """The result of a match by its places alone, with nobody advancing."""
    offenders = frozenset(fault.entrant for fault in outcome.faults)
    return PairingResult(
        decided_by=_decider(outcome, offenders),
        places=outcome.places,
        points=outcome.points,
        scores=scores_by_places(outcome.places, offenders),
        advances=(False,) * len(outcome.places),
    )


def _decider(outcome: Outcome, offenders: frozenset[int]) -> DecidedBy:
    if len(offenders) == len(outcome.places):
        return DecidedBy.DOUBLE_FORFEIT
    if outcome.termination is Termination.FORFEIT:
        return DecidedBy.FORFEIT
    return DecidedBy.FAULT if offenders else DecidedBy.PLAY


def walkover_result(active: Sequence[bool]) -> PairingResult:
    """The result of a pairing that the inactive do not play: the only active one wins, or nobody scores."""
    absent = sum(not present for present in active)
    present = len(active) - absent
    places = tuple(1 if here else present + 1 for here in active)
    return PairingResult(
        decided_by=DecidedBy.WALKOVER,
        places=places,
        points=(0,) * len(active),
        scores=scores_by_places(
            places, frozenset(index for index, here in enumerate(active) if not here)
        ),
        advances=(False,) * len(active),
    )


def describe_option(
    name: str,
    default: object,
    doc: str,
    *,
    choices: tuple[object, ...] = (),
    minimum: int | None = None,
    maximum: int | None = None,
) -> FormatOption:
    """A `FormatOption`; the choices of a boolean follow from its default."""
    if isinstance(default, bool):
        choices = (True, False)
    return FormatOption(
        name=name, default=default, choices=choices, minimum=minimum, maximum=maximum, doc=doc
    )


def check_options(
    name: str, options: tuple[FormatOption, ...], given: Mapping[str, object] | None
) -> dict[str, object]:
    """Every option with its given or default value. Raises FormatError naming what is allowed."""
    known = {option.name: option for option in options}
    for unknown in sorted(set(given or {}) - set(known)):
        raise FormatError(
            f"{name} has no option {unknown!r}; it has: {', '.join(sorted(known)) or 'none'}"
        )
    return {
        option.name: _check_value(name, option, given[option.name])
        if given and option.name in given
        else option.default
        for option in options
    }


_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "none": None}


def _check_value(name: str, option: FormatOption, value: object) -> object:
    if isinstance(value, str):
        value = _read_text(option, value.strip().lower()) if value.strip() else value
    if option.choices:
        for choice in option.choices:
            if type(choice) is type(value) and choice == value:
                return choice
        allowed = ", ".join(map(_spell, option.choices))
    else:
        low, high = option.minimum, option.maximum
        if type(value) is int and (low is None or value >= low) and (high is None or value <= high):
            return value
        if value is None and option.default is None:
            return None
        allowed = f"a whole number from {low}" + ("" if high is None else f" to {high}")
    raise FormatError(f"{option.name}={_spell(value)} is not allowed in {name}; allowed: {allowed}")


def _read_text(option: FormatOption, text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if text.isascii() and text.lstrip("-").isdecimal() and len(text) < 19:
        return int(text)
    for choice in option.choices:
        if isinstance(choice, str) and choice.lower() == text:
            return choice
    return text


def _spell(value: object) -> str:
    return (
        str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)
    )


def check_entrants(title: str, entrants: Sequence[SeededEntrant], *, at_least: int = 2) -> None:
    """Raise FormatError for too few entrants or for ids or seeds that occur twice."""
    if len(entrants) < at_least:
        have = {0: "nobody has", 1: "only one has"}.get(len(entrants), f"only {len(entrants)} have")
        raise FormatError(
            f"{title} needs at least {at_least} entrants, and {have} entered: "
            "keep the registration open longer, or cancel the tournament"
        )
    for what, values in (
        ("id", [entrant.id for entrant in entrants]),
        ("seed", [entrant.seed for entrant in entrants]),
    ):
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise FormatError(f"{what} {twice[0]} is given to more than one entrant")


def require_complete(view: StageView) -> None:
    """Raise FormatError, naming the open matches, unless every published round is complete."""
    waiting = [p.key for r in view.rounds for p in r.pairings if p.result is None]
    if waiting:
        raise FormatError(
            f"the next round cannot be paired before these are decided: {', '.join(waiting[:10])}"
            + (" …" if len(waiting) > 10 else "")
        )
