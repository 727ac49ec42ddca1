"""What the rest of the house knows of a game: Game, State, Board, Observation, Action, Ruleset.

Inside a game everything is integers and bitmasks; the typed values here are its door. A game knows
no other game, no bot, no match: it deals one board, plays it, and says what a finished deal scores.
"""

from __future__ import annotations

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from engine.errors import IllegalActionError, RulesetError
from engine.shuffle import Stream
from engine.tiles import Tile


class Ruleset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Every option of a game with its value; written whole into each record."""


class Action(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One thing a seat can do. `str(action)` is its notation, e.g. ``play 6-4``."""


class Observation(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """What one seat may know when it has to act; subclasses add the game's own fields."""

    seat: int
    """The seat that has to act."""
    clock_ms: int
    """CPU time that this seat has left for the game, in milliseconds."""


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One option of a ruleset, described well enough to build a form or an error message from."""

    name: str
    default: object
    choices: tuple[object, ...] = ()
    """The values it takes; empty where any integer from `minimum` to `maximum` will do."""
    minimum: int | None = None
    maximum: int | None = None
    """None: no upper bound."""
    doc: str = ""


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """The cards and the first seat of a deal, which several plays may share.

    `hands[s]` is sorted high to low. `dead` (Eighty) is sorted too; `reserve` (Podkidnoe) stands in
    the order in which it is drawn.
    """

    hands: tuple[tuple[Tile, ...], ...]
    first: int
    """Eighty: the shaker. Podkidnoe: the first player."""
    dead: tuple[Tile, ...] = ()
    starter: Tile | None = None
    reserve: tuple[Tile, ...] = ()


class State(ABC):
    """The play of one board. Mutable: `apply` moves it on. Actions are small integers ("codes") inside."""

    __slots__ = ()

    seat: int
    """The seat that has to act; -1 when the deal is over."""

    @abstractmethod
    def legal(self) -> list[int]:
        """The codes of the legal actions, in a fixed order; empty when the deal is over."""

    @abstractmethod
    def apply(self, code: int) -> None:
        """Play a code. Raises IllegalActionError, and changes nothing, for what is not legal here."""

    @abstractmethod
    def observe(self, clock_ms: int, history: Sequence[int] = ()) -> Any:
        """The game's Observation for the seat that has to act.

        `history`: the sides' scores in this game before this deal (empty: zeros).
        Raises UsageError when the deal is over.
        """

    @abstractmethod
    def score(self) -> tuple[int, ...]:
        """What the finished deal scores: by side in Eighty, by seat in Podkidnoe.

        Raises UsageError before its end.
        """

    @property
    @abstractmethod
    def declaring_side(self) -> int | None:
        """The side that had the bid, in a game that has one; None else or when thrown in."""

    @property
    def is_over(self) -> bool:
        """Whether the deal has ended."""
        return self.seat < 0


class Game(ABC):
    """The rules of one game."""

    name: ClassVar[str]
    """As in records and on the command line: ``eighty``."""
    title: ClassVar[str]
    """For people: ``Eighty``."""
    entrant_counts: ClassVar[tuple[int, ...]]
    """How many entrants can meet in a match: (2,) in Eighty (the sides), (2, 3, 4) in Podkidnoe."""
    options: ClassVar[tuple[Option, ...]]
    stops_when_decided: ClassVar[bool] = False
    """Whether a match of N games stops when one entrant has won more than N/2, or plays them all."""
    most_questions: ClassVar[int]
    """How often a seat can have a choice in one deal at most, whatever the ruleset; rather too many."""
    most_deals: ClassVar[int] = 1
    """How many deals a game has at most."""
    ruleset_type: ClassVar[type[Ruleset]]
    observation_type: ClassVar[type[Observation]]
    action_type: ClassVar[Any]
    """The union of the game's action structs, each with its msgspec tag."""

    @abstractmethod
    def seats(self, entrants: int) -> int:
        """How many seats a match of so many entrants has. Raises ContestError if so many cannot meet."""

    @abstractmethod
    def side_of(self, seat: int) -> int:
        """The side a seat belongs to; scores of a deal are by side."""

    @abstractmethod
    def make_ruleset(self, options: Mapping[str, object] | None = None) -> Any:
        """The frozen ruleset with these options and the defaults for the rest.

        Raises RulesetError for an unknown option, a value it does not take, or a contradiction;
        the message names the allowed ones. Values may be given as text, as on a command line.
        """

    @abstractmethod
    def deal(self, stream: Stream, ruleset: Any, seats: int, first: int | None = None) -> Board:
        """Shuffle and deal from `stream`; then draw the first seat from it, unless `first` is given."""

    @abstractmethod
    def start(self, ruleset: Any, board: Board) -> State:
        """Begin to play `board`. Raises UsageError if its tiles are not those of the game."""

    def dealt_state(
        self, stream: Stream, ruleset: Any, seats: int, first: int | None = None
    ) -> State:
        """Begin the deal that `deal` would deal: the same play, for those who do not need its board."""
        return self.start(ruleset, self.deal(stream, ruleset, seats, first))

    @abstractmethod
    def random_state(self, ruleset: Any, seats: int, rng: random.Random) -> State:
        """Begin a freshly shuffled deal for simulations: fast, but not verifiable as `deal` is."""

    @abstractmethod
    def game_places(
        self, ruleset: Any, totals: Sequence[int], deals_played: int, last: State
    ) -> tuple[int, ...] | None:
        """Places by side once the game is over after the deal `last`; None while it goes on."""

    def apply_action(self, state: State, seat: int, action: Any) -> None:
        """Play a typed action. Raises IllegalActionError, also if it is not that seat's turn."""
        if seat != state.seat:
            whose = "the deal is over" if state.is_over else f"it is the turn of seat {state.seat}"
            raise IllegalActionError(f"seat {seat}: {action} ({whose})", ())
        state.apply(self.encode(action))

    @abstractmethod
    def decode(self, code: int) -> Any:
        """The typed action of a code. Raises UsageError for a number that is no code."""

    @abstractmethod
    def encode(self, action: Any) -> int:
        """The code of a typed action. Raises UsageError for what is no action of the game."""

    @abstractmethod
    def parse_action(self, text: str) -> Any:
        """Read an action's notation. Raises NotationError."""

    @abstractmethod
    def draw(self, ruleset: Any, board: Board, actions: Sequence[tuple[int, Any]]) -> str:
        """One deal drawn as text for people: hands, each action in its place, and the score."""


def check_options(
    game: str, options: tuple[Option, ...], given: Mapping[str, object] | None
) -> dict[str, object]:
    """Every option of `options` with its given or default value, each checked by itself.

    Texts are read as the option's own kind of value. Raises RulesetError, naming what is allowed.
    """
    known = {option.name: option for option in options}
    for name in given or {}:
        if name not in known:
            raise RulesetError(
                game, name, f"{game} has no option {name!r}; it has: {', '.join(sorted(known))}"
            )
    return {
        name: _check_value(game, option, given[name]) if given and name in given else option.default
        for name, option in known.items()
    }


_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}


def _check_value(game: str, option: Option, value: object) -> object:
    if isinstance(value, str):
        if value in _WORDS and _WORDS[value] in option.choices:
            value = _WORDS[value]
        elif re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value):
            value = int(value)
    if option.choices:
        for choice in option.choices:
            if type(choice) is type(value) and choice == value:
                return value
        allowed = ", ".join(_spell(choice) for choice in option.choices)
    else:
        low, high = option.minimum, option.maximum
        if type(value) is int and (low is None or value >= low) and (high is None or value <= high):
            return value
        allowed = f"an integer from {low}" + ("" if high is None else f" to {high}")
    raise RulesetError(
        game,
        option.name,
        f"{option.name}={_spell(value)} is not allowed in {game}; allowed: {allowed}",
    )


def _spell(value: object) -> str:
    return (
        {True: "true", False: "false", None: "null"}.get(value, str(value))
        if (value is None or isinstance(value, bool))
        else str(value)
    )
