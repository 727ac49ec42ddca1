"""Eighty: 42 tiles without blanks, two partnerships, an auction, a trump suit, ten tricks.

The typed values at the top are the door; below it a tile is a kind 0 … 20 and a hand is one integer:
bit k says "has kind k", bit 21+k "has both twins". So the low 21 bits are the distinct plays, and
twins are one action. The numbers after "Eighty" in docstrings are those of ``docs/rules.md``.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import msgspec

from engine.errors import ContestError, IllegalActionError, NotationError, RulesetError, UsageError
from engine.games import base
from engine.outcome import places_by
from engine.shuffle import Stream
from engine.tiles import Tile, format_tiles, tile_set

SEATS: Final = 4
HAND_SIZE: Final = 10
TRICK_POINTS: Final = 2
"""What each trick is worth besides the count tiles in it (Eighty 12)."""
ALL_POINTS: Final = 80
"""Ten tricks and all count tiles; also the highest bid (Eighty 5, 12)."""
LOWEST_BID: Final = 50
"""The lowest bid that any ruleset allows."""
MAX_DEALS: Final = 200
"""A game stops after so many deals (Eighty 6)."""


class Ruleset(base.Ruleset, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Every option of Eighty; make one with `Eighty.make_ruleset`, which checks them together."""

    min_bid: Literal[50, 60]
    """The lowest bid (Eighty 5)."""
    forced_shaker_bid: bool
    """Whether the shaker must bid when the three others passed (Eighty 6)."""
    dead_tiles: Literal["dead"]
    """The two undealt tiles count for nobody (Eighty 2)."""
    twin_winner: Literal["first", "last"]
    """Which of two twins is the higher in a trick (Eighty 11)."""
    scoring: Literal["points", "marks"]
    """Whether a deal scores points or one mark (Eighty 13, 15)."""
    target: int
    """The score that wins the game (Eighty 14)."""
    nello: bool
    """Whether Nel-O can be called (Eighty 16)."""
    nello_value: int
    """What Nel-O ranks as in the auction, and scores (Eighty 16)."""
    nello_doubles: Literal["high", "own_suit", "low"]
    """What doubles are in Nel-O: the highest of their suits, a suit of their own, or the lowest."""


class Pass(base.Action, frozen=True, forbid_unknown_fields=True, tag="pass"):
    """Make no bid."""

    def __str__(self) -> str:
        return "pass"


class Bid(base.Action, frozen=True, forbid_unknown_fields=True, tag="bid"):
    """Bid that your side will take at least so many of the 80 points."""

    points: int
    """From the ruleset's `min_bid` to 80."""

    def __str__(self) -> str:
        return f"bid {self.points}"


class Nello(base.Action, frozen=True, forbid_unknown_fields=True, tag="nello"):
    """Bid to take no trick at all, alone against two and without trumps."""

    def __str__(self) -> str:
        return "nello"


class Trump(base.Action, frozen=True, forbid_unknown_fields=True, tag="trump"):
    """Name the trump suit, after winning the auction and just before leading."""

    suit: int
    """1 … 6."""

    def __str__(self) -> str:
        return f"trump {self.suit}"


class Play(base.Action, frozen=True, forbid_unknown_fields=True, tag="play"):
    """Play a tile to the trick."""

    tile: Tile

    def __str__(self) -> str:
        return f"play {self.tile}"


Action = Pass | Bid | Nello | Trump | Play
"""What a seat can do in Eighty."""


class Call(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One seat's call in the auction."""

    seat: int
    action: Pass | Bid | Nello


class Contract(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """The call that won the auction."""

    seat: int
    """The bidder."""
    bid: int
    """The points to take; after `nello` the ruleset's `nello_value`."""
    nello: bool
    """Whether the bidder must take no trick; then nobody has a trump and his partner sits out."""
    trump: int | None
    """The trump suit; None until it is named, and in Nel-O."""


class Played(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A tile in a trick, and the seat that played it."""

    seat: int
    tile: Tile


class Trick(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """A finished trick, its tiles in the order in which they were played; the first one led."""

    plays: tuple[Played, ...]
    winner: int
    """The seat that took it, and leads the next."""
    points: int
    """2 and its count tiles; 0 in Nel-O, where tricks have no points."""

    @property
    def leader(self) -> int:
        """The seat that led."""
        return self.plays[0].seat


class Observation(base.Observation, frozen=True, kw_only=True):
    """All that one seat may know of a deal of Eighty, when it has to act.

    In the auction `contract` is None. Then the bidder sees `contract.trump` None and names the trump
    suit (but in Nel-O); from then on tiles are played.
    """

    legal: tuple[Action, ...]
    """What the rules allow; answer with one of these. Twins are one action."""
    hand: tuple[Tile, ...]
    """Your tiles, from 6-6 down; a twin pair stands twice."""
    shaker: int
    """The seat that dealt; it calls last."""
    calls: tuple[Call, ...]
    """The auction so far, from the seat after the shaker on."""
    contract: Contract | None
    """The winning call; None during the auction."""
    tricks: tuple[Trick, ...]
    """The finished tricks in order."""
    trick: tuple[Played, ...]
    """The tiles of the trick being played, the led one first; empty when you lead."""
    points: tuple[int, int]
    """What the sides (seats 0+2, seats 1+3) have taken in this deal; zeros in Nel-O."""
    scores: tuple[int, int]
    """The sides' scores in this game before this deal; zeros where a deal is a game of its own."""


# Codes: kinds 0 … 20 are plays, then the calls; a bid's code is its points.

_KINDS: Final = tile_set(1)
_KIND_OF: Final[dict[Tile, int]] = {tile: kind for kind, tile in enumerate(_KINDS)}
_ONE_EACH: Final = (1 << len(_KINDS)) - 1
_TWIN_SHIFT: Final = len(_KINDS)
_TRUMP_BASE: Final = 20
_PASS: Final = 30
_NELLO: Final = 31

_ACTION_OF: Final[dict[int, Action]] = {
    **{kind: Play(tile) for kind, tile in enumerate(_KINDS)},
    **{_TRUMP_BASE + suit: Trump(suit) for suit in range(1, 7)},
    _PASS: Pass(),
    _NELLO: Nello(),
    **{points: Bid(points) for points in range(LOWEST_BID, ALL_POINTS + 1)},
}
_CODE_OF: Final = {action: code for code, action in _ACTION_OF.items()}
_ACTION_NAMED: Final = {str(action): action for action in _ACTION_OF.values()}

_TRUMP_CODES: Final = sum(1 << (_TRUMP_BASE + suit) for suit in range(1, 7))
_BIDS_ABOVE: Final = [
    sum(1 << points for points in range(max(highest + 1, LOWEST_BID), ALL_POINTS + 1))
    for highest in range(ALL_POINTS + 1)
]

# Suits (Eighty 8-11, 16). A mode is the trump suit 1 … 6, or one of the ways to play without trumps.

_NO_TRUMP: Final = 0
_DOUBLES_OWN_SUIT: Final = 7
_DOUBLES_LOW: Final = 8
_MODES: Final = range(9)
_NELLO_MODE: Final = {
    "high": _NO_TRUMP,
    "own_suit": _DOUBLES_OWN_SUIT,
    "low": _DOUBLES_LOW,
}
_DOUBLES: Final = 7
"""The suit of the doubles, where they have one of their own."""


def _is_trump(mode: int, tile: Tile) -> bool:
    return tile.has(mode)  # no tile has 0, 7 or 8 pips at an end


def _led_suit(mode: int, tile: Tile) -> int:
    """Eighty 9: trumps if the led tile is one, else its higher end."""
    if _is_trump(mode, tile):
        return mode
    if mode == _DOUBLES_OWN_SUIT and tile.is_double:
        return _DOUBLES
    return tile.high


def _belongs(mode: int, tile: Tile, suit: int) -> bool:
    """Eighty 8: a trump belongs to trumps only, any other tile to both its ends."""
    if _is_trump(mode, tile):
        return suit == mode
    if mode == _DOUBLES_OWN_SUIT and tile.is_double:
        return suit == _DOUBLES
    return tile.has(suit)


def _rank(mode: int, tile: Tile, suit: int) -> int:
    """Eighty 8: in a suit the double is highest, the others rank by the other end."""
    if suit == _DOUBLES:
        return tile.high
    if tile.is_double:
        return 0 if mode == _DOUBLES_LOW else 7
    return tile.other(suit)


def _strength(mode: int, led: int, tile: Tile) -> int:
    """Eighty 11: trumps above the led suit above all else, which is 0. Only twins are equal."""
    if _is_trump(mode, tile):
        return 11 + _rank(mode, tile, mode)
    return 1 + _rank(mode, tile, led) if _belongs(mode, tile, led) else 0


def _count(tile: Tile) -> int:
    """Eighty 12: 5-5 and 6-4 are worth 10, 4-1 and 3-2 are worth 5."""
    return tile.pips if tile.pips % 5 == 0 else 0


def _consequences(mode: int, led: int) -> tuple[int, list[int]]:
    """What a led suit asks for (a mask of kinds), and each kind's strength in that trick."""
    follow = sum(1 << kind for kind, tile in enumerate(_KINDS) if _belongs(mode, tile, led))
    return follow, [_strength(mode, led, tile) for tile in _KINDS]


# Tables, made from the rules above.

_BIT: Final = [1 << kind for kind in range(len(_KINDS))]
_TWIN_BIT: Final = [bit << _TWIN_SHIFT for bit in _BIT]
_POINTS: Final = [_count(tile) for tile in _KINDS]
_LEAD: Final = [[_consequences(mode, _led_suit(mode, tile)) for tile in _KINDS] for mode in _MODES]
"""By mode and led kind: the mask of the kinds that follow, and each kind's strength."""
_LOW_KINDS: Final = [[k for k in range(11) if mask >> k & 1] for mask in range(1 << 11)]
_HIGH_KINDS: Final = [[k + 11 for k in range(10) if mask >> k & 1] for mask in range(1 << 10)]
"""The kinds in the low eleven bits of a mask, and in the ten above."""
_LEFT_OF: Final = (1, 2, 3, 0)
_LEFT_OF_WITHOUT: Final = tuple(
    tuple((s + 2) % 4 if (s + 1) % 4 == out else (s + 1) % 4 for s in range(4)) for out in range(4)
)
"""The next seat when one sits out."""


def _kinds_in(mask: int) -> list[int]:
    return _LOW_KINDS[mask & 2047] + _HIGH_KINDS[mask >> 11]


@functools.cache
def _codes_in(mask: int) -> tuple[int, ...]:
    return tuple(code for code in range(mask.bit_length()) if mask >> code & 1)


class EightyState(base.State):
    """The play of one deal of Eighty."""

    __slots__ = (
        "_allowed",
        "_best",
        "_bid",
        "_bidder",
        "_call_values",
        "_calls",
        "_follow",
        "_hands",
        "_is_nello",
        "_leader",
        "_leads",
        "_mode",
        "_next",
        "_plays",
        "_ruleset",
        "_strengths",
        "_taken",
        "_tie",
        "_tricks",
        "_winner",
        "_winners",
        "seat",
        "shaker",
    )

    shaker: int
    """The seat that dealt."""

    def __init__(self, ruleset: Ruleset, hands: list[int], shaker: int) -> None:
        self._ruleset = ruleset
        self._hands = hands
        self.shaker = shaker
        self.seat = _LEFT_OF[shaker]
        self._calls: list[int] = []
        self._call_values: list[Call] = []
        self._bidder = -1
        self._bid = ruleset.min_bid - 1  # what the next bid has to beat
        self._is_nello = False
        self._mode = -1  # no trump named yet
        self._next: tuple[int, ...] = _LEFT_OF
        self._leader = -1
        self._leads: list[tuple[int, list[int]]] = []  # by led kind: the mask to follow, strengths
        self._follow = 0  # nothing led
        self._strengths: list[int] = []
        self._best = 0
        self._winner = -1
        self._tie = 1 if ruleset.twin_winner == "last" else 0
        self._plays: list[int] = []
        self._winners: list[int] = []
        self._taken = [0, 0]
        self._tricks: list[Trick] = []
        self._allowed = self._allowed_calls()

    def legal(self) -> list[int]:
        """The codes of the legal actions, ascending; empty when the deal is over."""
        mask = self._allowed
        if mask <= _ONE_EACH:
            return _LOW_KINDS[mask & 2047] + _HIGH_KINDS[mask >> 11]
        return list(_codes_in(mask))

    def apply(self, code: int) -> None:
        """Play a code. Raises IllegalActionError, and changes nothing, for what is not legal here."""
        if code < 0 or not self._allowed >> code & 1:
            raise IllegalActionError(
                str(_ACTION_OF.get(code, f"code {code}")),
                [str(_ACTION_OF[legal]) for legal in self.legal()],
            )
        if code >= _PASS:
            self._call(code)
            return
        if code >= _TWIN_SHIFT:
            self._name_trump(code - _TRUMP_BASE)
            return
        # A play, nine tenths of all actions: written out here rather than called, for speed.
        seat = self.seat
        hands = self._hands
        hand = hands[seat]
        twin = _TWIN_BIT[code]
        hands[seat] = hand ^ twin if hand & twin else hand ^ _BIT[code]
        self._plays.append(code)
        follow = self._follow
        if not follow:
            follow, strengths = self._leads[code]
            self._follow = follow
            self._strengths = strengths
            self._best = strengths[code]
            self._winner = seat
        else:
            strength = self._strengths[code]
            if strength + self._tie > self._best:
                self._best = strength
                self._winner = seat
        self.seat = seat = self._next[seat]
        if seat == self._leader:
            self._take_trick()
        else:
            hand = hands[seat]
            self._allowed = hand & follow or hand & _ONE_EACH

    def _allowed_calls(self) -> int:
        """Eighty 4-6, 16: a pass, or what ranks above every earlier call."""
        rules = self._ruleset
        allowed = _BIDS_ABOVE[self._bid]
        if rules.nello and rules.nello_value > self._bid:
            allowed |= 1 << _NELLO
        must_bid = rules.forced_shaker_bid and self._bidder < 0 and self.seat == self.shaker
        return allowed if must_bid else allowed | 1 << _PASS

    def _call(self, code: int) -> None:
        self._calls.append(code)
        if code != _PASS:
            self._bidder = self.seat
            self._is_nello = code == _NELLO
            self._bid = self._ruleset.nello_value if self._is_nello else code
        if self.seat != self.shaker:
            self.seat = _LEFT_OF[self.seat]
            self._allowed = self._allowed_calls()
        elif self._bidder < 0:
            self._end()
        elif self._is_nello:
            self._begin_nello()
        else:
            self.seat = self._bidder
            self._allowed = _TRUMP_CODES

    def _begin_nello(self) -> None:
        """Eighty 16: no trumps, the bidder leads, his partner sits out."""
        self._mode = _NELLO_MODE[self._ruleset.nello_doubles]
        self._next = _LEFT_OF_WITHOUT[self._bidder ^ 2]
        self._begin_play()

    def _name_trump(self, suit: int) -> None:
        self._mode = suit
        self._begin_play()

    def _begin_play(self) -> None:
        self._leads = _LEAD[self._mode]
        self.seat = self._leader = self._bidder
        self._allowed = self._hands[self._bidder] & _ONE_EACH

    def _take_trick(self) -> None:
        """Eighty 11, 12, 16: the deal ends with the last tile, or when the Nel-O bidder takes a trick."""
        winner = self._winner
        self._winners.append(winner)
        if not self._is_nello:
            a, b, c, d = self._plays[-SEATS:]
            points = _POINTS[a] + _POINTS[b] + _POINTS[c] + _POINTS[d]
            self._taken[winner & 1] += TRICK_POINTS + points
        hand = self._hands[winner]
        if hand and not (self._is_nello and winner == self._bidder):
            self.seat = self._leader = winner
            self._follow = 0
            self._allowed = hand & _ONE_EACH
        else:
            self._end()

    def _end(self) -> None:
        self.seat = -1
        self._allowed = 0

    @property
    def declaring_side(self) -> int | None:
        """The side of the highest call so far; None before the first bid or when thrown in."""
        return None if self._bidder < 0 else self._bidder & 1

    @property
    def points(self) -> tuple[int, int]:
        """What the sides have taken in tricks; zeros in Nel-O."""
        return self._taken[0], self._taken[1]

    @property
    def contract(self) -> Contract | None:
        """The winning call; None during the auction and when thrown in."""
        if len(self._calls) < SEATS or self._bidder < 0:
            return None
        trump = self._mode if 1 <= self._mode <= 6 else None
        return Contract(seat=self._bidder, bid=self._bid, nello=self._is_nello, trump=trump)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The auction so far."""
        made = self._call_values
        for turn in range(len(made), len(self._calls)):
            action = _ACTION_OF[self._calls[turn]]
            made.append(Call((self.shaker + 1 + turn) % SEATS, action))  # type: ignore[arg-type]
        return tuple(made)

    @property
    def tricks(self) -> tuple[Trick, ...]:
        """The finished tricks."""
        for number in range(len(self._tricks), len(self._winners)):
            plays = self._plays_of(number)
            points = 0 if self._is_nello else TRICK_POINTS + sum(_count(p.tile) for p in plays)
            self._tricks.append(Trick(plays=plays, winner=self._winners[number], points=points))
        return tuple(self._tricks)

    @property
    def trick(self) -> tuple[Played, ...]:
        """The tiles of the trick being played."""
        return self._plays_of(len(self._winners))

    def _plays_of(self, number: int) -> tuple[Played, ...]:
        size = SEATS - 1 if self._is_nello else SEATS
        start = number * size
        seat = self._winners[number - 1] if number else self._bidder
        plays = []
        for kind in self._plays[start : start + size]:
            plays.append(Played(seat, _KINDS[kind]))
            seat = self._next[seat]
        return tuple(plays)

    @property
    def is_made(self) -> bool:
        """Whether the bidders of this finished deal did what they had bid (Eighty 13, 16)."""
        if self._is_nello:
            return self._bidder not in self._winners
        return self._bidder >= 0 and self._taken[self._bidder & 1] >= self._bid

    def score(self) -> tuple[int, int]:
        """What the finished deal scores, by side (Eighty 13, 15, 16). Raises UsageError before its end."""
        if self.seat >= 0:
            raise UsageError("the deal is not over, so it has no score yet")
        if self._bidder < 0:
            return 0, 0
        side = self._bidder & 1
        is_made = self.is_made
        if self._ruleset.scoring == "marks":
            return _to_side(side if is_made else 1 - side, 1)
        if self._is_nello:
            return _to_side(side if is_made else 1 - side, self._bid)
        if is_made:
            return self.points
        return _to_side(1 - side, self._bid + self._taken[1 - side])

    def observe(self, clock_ms: int, history: Sequence[int] = ()) -> Observation:
        """What the seat that has to act may know. `history`: the sides' scores before this deal."""
        if self.seat < 0:
            raise UsageError("the deal is over, so no seat has to act")
        return Observation(
            seat=self.seat,
            clock_ms=clock_ms,
            legal=tuple([_ACTION_OF[code] for code in self.legal()]),
            hand=_unpack(self._hands[self.seat]),
            shaker=self.shaker,
            calls=self.calls,
            contract=self.contract,
            tricks=self.tricks,
            trick=self.trick,
            points=self.points,
            scores=(history[0], history[1]) if history else (0, 0),
        )


def _to_side(side: int, score: int) -> tuple[int, int]:
    return (score, 0) if side == 0 else (0, score)


def _pack(tiles: Iterable[Tile]) -> int:
    """A hand as one integer."""
    hand = 0
    for tile in tiles:
        bit = 1 << _KIND_OF[tile]
        hand |= bit << _TWIN_SHIFT if hand & bit else bit
    return hand


_HIGH_TO_LOW: Final = sorted(range(len(_KINDS)), key=lambda kind: _KINDS[kind], reverse=True)
_NUMBERS_HIGH_TO_LOW: Final = [2 * kind + twin for kind in _HIGH_TO_LOW for twin in (0, 1)]
_PLACE_OF: Final = [_NUMBERS_HIGH_TO_LOW.index(number) for number in range(2 * len(_KINDS))]
_TILE_IN: Final = [_KINDS[number // 2] for number in _NUMBERS_HIGH_TO_LOW]


def _tiles_at(numbers: Iterable[int]) -> tuple[Tile, ...]:
    """Tiles by their numbers in the full set, where twins are adjacent; from high to low."""
    return tuple([_TILE_IN[place] for place in sorted([_PLACE_OF[n] for n in numbers])])


def _unpack(hand: int) -> tuple[Tile, ...]:
    """The tiles of a hand, high to low."""
    kinds = _kinds_in(hand & _ONE_EACH) + _kinds_in(hand >> _TWIN_SHIFT)
    return _tiles_at([2 * kind for kind in kinds])


class Eighty(base.Game):
    """The rules of Eighty, «Восемьдесят»."""

    name: ClassVar[str] = "eighty"
    title: ClassVar[str] = "Eighty"
    entrant_counts: ClassVar[tuple[int, ...]] = (2,)
    stops_when_decided: ClassVar[bool] = True
    most_questions: ClassVar[int] = 2 + HAND_SIZE  # a call, the trump, the tiles
    most_deals: ClassVar[int] = MAX_DEALS
    ruleset_type: ClassVar[type[base.Ruleset]] = Ruleset
    observation_type: ClassVar[type[base.Observation]] = Observation
    action_type: ClassVar[Any] = Action
    options: ClassVar[tuple[base.Option, ...]] = (
        base.Option(name="min_bid", default=50, choices=(50, 60), doc="the lowest bid"),
        base.Option(
            name="forced_shaker_bid",
            default=False,
            choices=(False, True),
            doc="the shaker must bid when the three others passed",
        ),
        base.Option(
            name="dead_tiles",
            default="dead",
            choices=("dead",),
            doc="the two undealt tiles count for nobody",
        ),
        base.Option(
            name="twin_winner",
            default="first",
            choices=("first", "last"),
            doc="which of two twins is the higher in a trick",
        ),
        base.Option(
            name="scoring",
            default="points",
            choices=("points", "marks"),
            doc="a deal scores points, or one mark",
        ),
        base.Option(
            name="target",
            default=250,
            minimum=1,
            maximum=2**53 - 1,  # the largest integer that every JSON reader holds exactly
            doc="the score that wins the game; 10 unless given when scoring=marks",
        ),
        base.Option(
            name="nello", default=True, choices=(True, False), doc="whether Nel-O can be called"
        ),
        base.Option(
            name="nello_value",
            default=80,
            minimum=LOWEST_BID,
            maximum=ALL_POINTS,
            doc="what Nel-O ranks as in the auction, and scores; not below min_bid",
        ),
        base.Option(
            name="nello_doubles",
            default="high",
            choices=("high", "own_suit", "low"),
            doc="in Nel-O a double is its suit's highest, in a suit of doubles, or its suit's lowest",
        ),
    )

    def seats(self, entrants: int) -> int:
        """Four. Raises ContestError unless two entrants meet."""
        if entrants != 2:
            raise ContestError(f"eighty is played by 2 entrants, one a side, not by {entrants}")
        return SEATS

    def side_of(self, seat: int) -> int:
        """0 for seats 0 and 2, 1 for seats 1 and 3."""
        return seat & 1

    def make_ruleset(self, options: Mapping[str, object] | None = None) -> Ruleset:
        """The ruleset with these options and the defaults for the rest. Raises RulesetError."""
        values: dict[str, Any] = base.check_options(self.name, self.options, options)
        if values["scoring"] == "marks" and "target" not in (options or {}):
            values["target"] = 10
        if values["nello_value"] < values["min_bid"]:
            raise RulesetError(
                self.name,
                "nello_value",
                f"nello_value={values['nello_value']} is below min_bid={values['min_bid']}; "
                f"allowed: an integer from {values['min_bid']} to {ALL_POINTS}",
            )
        return Ruleset(**values)

    def deal(
        self, stream: Stream, ruleset: base.Ruleset, seats: int, first: int | None = None
    ) -> base.Board:
        """Shuffle and deal: ten tiles to each seat in turn, two dead. `first`: the shaker."""
        del ruleset  # no option changes the deal
        _check_seats(seats)
        order = stream.permutation(2 * len(_KINDS))
        places = range(0, SEATS * HAND_SIZE, HAND_SIZE)
        return base.Board(
            hands=tuple(_tiles_at(order[place : place + HAND_SIZE]) for place in places),
            dead=_tiles_at(order[SEATS * HAND_SIZE :]),
            first=stream.below(SEATS) if first is None else first,
        )

    def start(self, ruleset: Ruleset, board: base.Board) -> EightyState:
        """Begin to play `board`. Raises UsageError if its tiles are not the 42 of Eighty."""
        _check_board(board)
        return EightyState(ruleset, [_pack(hand) for hand in board.hands], board.first)

    def dealt_state(
        self, stream: Stream, ruleset: Ruleset, seats: int, first: int | None = None
    ) -> EightyState:
        """Begin the deal that `deal` would deal: straight from the shuffled numbers to masks."""
        _check_seats(seats)
        bits = [_BIT_OF_NUMBER[number] for number in stream.permutation(2 * len(_KINDS))]
        hands = [
            _join_twins(sum(bits[place : place + HAND_SIZE]))
            for place in range(0, SEATS * HAND_SIZE, HAND_SIZE)
        ]
        return EightyState(ruleset, hands, stream.below(SEATS) if first is None else first)

    def random_state(self, ruleset: Ruleset, seats: int, rng: random.Random) -> EightyState:
        """Begin a freshly shuffled deal for simulations: fast, but not verifiable as `deal` is."""
        _check_seats(seats)
        keys = [rng.random() for _ in _NUMBER_BITS]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        hands = [
            _join_twins(sum(map(_NUMBER_BITS.__getitem__, order[place : place + HAND_SIZE])))
            for place in range(0, SEATS * HAND_SIZE, HAND_SIZE)
        ]
        return EightyState(ruleset, hands, rng.randrange(SEATS))

    def game_places(
        self, ruleset: Ruleset, totals: Sequence[int], deals_played: int, last: base.State
    ) -> tuple[int, ...] | None:
        """Eighty 14, 6: first to the target; both there: the side with the bid; 200 deals: the higher."""
        there = [total >= ruleset.target for total in totals]
        if all(there) and last.declaring_side is not None:
            return (1, 2) if last.declaring_side == 0 else (2, 1)
        if any(there) or deals_played >= MAX_DEALS:
            return places_by(list(totals))
        return None

    def decode(self, code: int) -> Action:
        """The typed action of a code. Raises UsageError for a number that is no code."""
        try:
            return _ACTION_OF[code]
        except KeyError:
            raise UsageError(f"{code} is no code of an action of Eighty") from None

    def encode(self, action: Action) -> int:
        """The code of a typed action. Raises UsageError for what is no action of Eighty."""
        try:
            return _CODE_OF[action]
        except (KeyError, TypeError):  # TypeError: not even hashable
            raise UsageError(f"{action} is no action of Eighty") from None

    def parse_action(self, text: str) -> Action:
        """Read ``pass``, ``bid 55``, ``nello``, ``trump 4`` or ``play 4-1``. Raises NotationError."""
        try:
            return _ACTION_NAMED[text]
        except KeyError:
            raise NotationError(
                text,
                f"an action of Eighty: pass, bid {LOWEST_BID} … bid {ALL_POINTS}, nello, "
                "trump 1 … trump 6, or play and a tile such as 6-4 (high end first, no blanks)",
            ) from None

    def draw(
        self, ruleset: Ruleset, board: base.Board, actions: Sequence[tuple[int, Action]]
    ) -> str:
        """The deal as text for people, at most 78 columns wide; it may break off anywhere."""
        state = self.start(ruleset, board)
        for seat, action in actions:
            self.apply_action(state, seat, action)
        return "\n".join([*_draw_hands(board), *_draw_auction(state), *_draw_tricks(state)])


EIGHTY: Final = Eighty()


_NUMBER_BITS: Final = [1 << kind + twin * _TWIN_SHIFT for kind in _HIGH_TO_LOW for twin in (0, 1)]
"""Each tile of the full set by a bit of its own: the first twins below, the second above."""


_BIT_OF_NUMBER: Final = [
    1 << (number >> 1) + (number & 1) * _TWIN_SHIFT for number in range(2 * len(_KINDS))
]
"""The same, by a tile's number in the deck that `deal` shuffles, where twins are adjacent."""


def _join_twins(tiles: int) -> int:
    """The hand that holds these tiles of the full set."""
    first, second = tiles & _ONE_EACH, tiles >> _TWIN_SHIFT
    return first | second | (first & second) << _TWIN_SHIFT


_UNIT: Final = {tile: 1 << (4 * kind) for tile, kind in _KIND_OF.items()}
_FULL_SET: Final = 2 * sum(_UNIT.values())


def _check_seats(seats: int) -> None:
    if seats != SEATS:
        raise ContestError(f"eighty has {SEATS} seats, not {seats}")


def _check_board(board: base.Board) -> None:
    """Raises UsageError unless these are four hands of ten, two dead tiles, a shaker, and each tile twice."""
    sizes = [len(hand) for hand in board.hands]
    if sizes != [HAND_SIZE] * SEATS or len(board.dead) != 2 or board.starter or board.reserve:
        raise UsageError(
            "a board of Eighty is four hands of 10 tiles, 2 dead tiles and nothing else"
        )
    if not 0 <= board.first < SEATS:
        raise UsageError(f"the shaker is a seat from 0 to {SEATS - 1}, not {board.first}")
    tiles = itertools.chain(*board.hands, board.dead)
    try:
        counted = sum(map(_UNIT.__getitem__, tiles))
    except KeyError as unknown:
        raise UsageError(f"there is no tile {unknown.args[0]} in Eighty") from None
    if counted != _FULL_SET:
        raise UsageError("a board of Eighty holds each tile without blanks exactly twice")


def _draw_hands(board: base.Board) -> list[str]:
    hands = [f"  seat {seat}    {format_tiles(hand)}" for seat, hand in enumerate(board.hands)]
    head = f"Eighty: seat {board.first} shakes, partners are 0+2 and 1+3"
    return [head, *hands, f"  dead      {format_tiles(board.dead)}"]


def _draw_auction(state: EightyState) -> list[str]:
    if not state.calls:
        return []
    lines = ["", "Auction     " + "   ".join(f"{call.seat} {call.action}" for call in state.calls)]
    contract = state.contract
    if contract is None:
        return [*lines, "Thrown in   all passed, the next seat shakes"] if state.is_over else lines
    if contract.nello:
        what = "Nel-O: no trumps, no trick to take"
    elif contract.trump is None:
        what = f"{contract.bid}, trump not named yet"
    else:
        what = f"{contract.bid}, trump {contract.trump}"
    return [*lines, f"Contract    seat {contract.seat}, {what}"]


def _draw_tricks(state: EightyState) -> list[str]:
    if not (state.tricks or state.trick):
        return []
    lines = ["", "trick   seat 0  seat 1  seat 2  seat 3   taken by   points    0+2    1+3"]
    taken = [0, 0]
    for number, trick in enumerate(state.tricks, start=1):
        taken[trick.winner & 1] += trick.points
        won = f"   seat {trick.winner}     {trick.points:>6}   {taken[0]:>4}   {taken[1]:>4}"
        lines.append(_draw_plays(number, trick.plays) + won)
    if state.trick:
        lines.append(_draw_plays(len(state.tricks) + 1, state.trick).rstrip())
    return [*lines, "   * led", *_draw_score(state)]


def _draw_plays(number: int, plays: tuple[Played, ...]) -> str:
    cells = ["        "] * SEATS
    for place, played in enumerate(plays):
        cells[played.seat] = f"{'*' if place == 0 else ' '}{played.tile}    "
    return f"{number:>5}   {''.join(cells)}"


def _draw_score(state: EightyState) -> list[str]:
    contract = state.contract
    if not state.is_over or contract is None:
        return []
    score = state.score()
    side = ("0+2", "1+3")[contract.seat & 1]
    bid = "Nel-O" if contract.nello else f"{contract.bid}"
    verdict = "made" if state.is_made else "set"
    return ["", f"Score       {side} {verdict} on {bid}   0+2: {score[0]:+d}   1+3: {score[1]:+d}"]
