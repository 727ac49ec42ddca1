"""Podkidnoe: one double-six set, 2-4 players, a line that grows at one end, runs of tiles.

The typed values at the top are the door; below it a tile is a kind 0 … 27 and a hand is a mask of
kinds. The numbers after "Podkidnoe" in docstrings are those of ``docs/rules.md``.
"""

from __future__ import annotations

import random
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import msgspec

from engine.errors import ContestError, IllegalActionError, NotationError, RulesetError, UsageError
from engine.games import base
from engine.outcome import places_by
from engine.shuffle import Stream
from engine.tiles import Tile, format_tiles, high_to_low, tile_set

HAND_SIZE: Final = 5


class Ruleset(base.Ruleset, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Every option of Podkidnoe; make one with `Podkidnoe.make_ruleset`, which checks them together."""

    voluntary_pass: bool
    """Whether a player who can lay may pass, or end a turn without laying (Podkidnoe 4)."""
    voluntary_draw: bool
    """Whether a player who can lay may draw (Podkidnoe 4)."""
    max_draws: Literal[2, 1] | None
    """How many tiles may be drawn in one turn; None: no limit (Podkidnoe 4)."""
    penalise_successful_draw: bool
    """Whether draws cost a point even in a turn that then lays a tile (Podkidnoe 4)."""
    top_up: Literal["end_of_circuit", "off"]
    """Whether short hands take a tile for free at the end of a circuit (Podkidnoe 5)."""
    empty_hand: Literal["skip", "top_up", "end_game"]
    """What becomes of a player without tiles (Podkidnoe 6)."""


class Lay(base.Action, frozen=True, forbid_unknown_fields=True, tag="lay"):
    """Lay a tile on the open end, for 1 point. The first tile laid also chooses which end is open."""

    tile: Tile

    def __str__(self) -> str:
        return f"lay {self.tile}"


class Draw(base.Action, frozen=True, forbid_unknown_fields=True, tag="draw"):
    """Take a tile from the reserve, for 1 penalty; only before anything is laid in the turn."""

    def __str__(self) -> str:
        return "draw"


class End(base.Action, frozen=True, forbid_unknown_fields=True, tag="end"):
    """End a turn in which something was laid or drawn; costs nothing more."""

    def __str__(self) -> str:
        return "end"


class Pass(base.Action, frozen=True, forbid_unknown_fields=True, tag="pass"):
    """Neither lay nor draw in this turn, for 1 penalty."""

    def __str__(self) -> str:
        return "pass"


Action = Lay | Draw | End | Pass
"""What a seat can do in Podkidnoe."""


class TopUp(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="top_up"):
    """A tile taken from the reserve for free at the end of a circuit. No action: the rules do it."""

    def __str__(self) -> str:
        return "top-up"


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Something that everybody saw a seat do. Which tile was drawn or topped up, nobody else saw."""

    seat: int
    action: Lay | Draw | End | Pass | TopUp


class Observation(base.Observation, frozen=True, kw_only=True):
    """All that one seat may know of a deal of Podkidnoe, when it has to act.

    A turn is a sequence of single actions: draws, then lays, then `End`; or one `Pass`.
    """

    legal: tuple[Action, ...]
    """What the rules allow; answer with one of these."""
    hand: tuple[Tile, ...]
    """Your tiles, from 6-6 down."""
    first: int
    """The seat that had the first turn; circuits are counted from it."""
    starter: Tile
    """The tile turned at the beginning."""
    line: tuple[Tile, ...]
    """The tiles laid on the starter, in order."""
    open_ends: tuple[int, ...]
    """The pips to lay on: one number; both of the starter's, the higher first, until a tile is laid."""
    reserve_size: int
    """How many tiles are left to draw."""
    hand_sizes: tuple[int, ...]
    """How many tiles each seat holds."""
    points: tuple[int, ...]
    """The tiles that each seat has laid."""
    penalties: tuple[int, ...]
    """The penalty points of each seat; the result is points minus penalties."""
    log: tuple[Event, ...]
    """Everything that was done in the open, in order."""
    draws: int
    """How many tiles you have drawn in this turn."""
    lays: int
    """How many tiles you have laid in this turn."""
    circuit: int
    """How many times the turn has been round the table."""
    circuit_place: int
    """How many seats before you were served in this circuit; those without tiles count."""
    circuit_is_quiet: bool
    """Whether nobody has laid or drawn in this circuit so far: a quiet circuit ends the game."""


# Codes: kinds 0 … 27 are lays.

_KINDS: Final = tile_set(0)
_KIND_OF: Final = {tile: kind for kind, tile in enumerate(_KINDS)}
_DRAW: Final = 28
_END: Final = 29
_PASS: Final = 30
_TOP_UP: Final = 31

_ACTION_OF: Final[dict[int, Action]] = {
    **{kind: Lay(tile) for kind, tile in enumerate(_KINDS)},
    _DRAW: Draw(),
    _END: End(),
    _PASS: Pass(),
}
_CODE_OF: Final = {action: code for code, action in _ACTION_OF.items()}
_ACTION_NAMED: Final = {str(action): action for action in _ACTION_OF.values()}
_EVENT_OF: Final[dict[int, Action | TopUp]] = {**_ACTION_OF, _TOP_UP: TopUp()}

_BITS: Final = [1 << kind for kind in range(len(_KINDS))]
_DRAW_BIT: Final = 1 << _DRAW
_END_BIT: Final = 1 << _END
_PASS_BIT: Final = 1 << _PASS

_HAS: Final = [sum(1 << k for k, tile in enumerate(_KINDS) if tile.has(pip)) for pip in range(7)]
"""The kinds with such an end."""
_OTHER: Final = [[tile.other(pip) for tile in _KINDS] for pip in range(7)]
_MOST_MASKS: Final = 1 << 13
_codes_of_masks: dict[int, list[int]] = {}
"""The codes in a mask, as met so far: after the first lay of a game no more than 7 × 2⁷ × 6 differ."""


def _codes_in(mask: int) -> list[int]:
    """The codes in a mask, ascending; remembered, within bounds."""
    if len(_codes_of_masks) >= _MOST_MASKS:
        _codes_of_masks.clear()
    codes = [code for code in range(mask.bit_length()) if mask >> code & 1]
    _codes_of_masks[mask] = codes
    return codes


class PodkidnoeState(base.State):
    """The play of one deal of Podkidnoe."""

    __slots__ = (
        "_allowed",
        "_circuit",
        "_draws",
        "_events",
        "_fits",
        "_hands",
        "_is_quiet",
        "_lays",
        "_log",
        "_max_draws",
        "_may_always_draw",
        "_may_always_pass",
        "_open_end",
        "_penalties",
        "_points",
        "_refunds_draws",
        "_reserve",
        "_ruleset",
        "_seats",
        "_served",
        "first",
        "seat",
        "starter",
    )

    first: int
    """The seat that had the first turn."""
    starter: Tile
    """The tile turned at the beginning."""

    def __init__(
        self, ruleset: Ruleset, hands: list[int], starter: Tile, reserve: list[int], first: int
    ) -> None:
        self._ruleset = ruleset
        self._may_always_pass = ruleset.voluntary_pass
        self._may_always_draw = ruleset.voluntary_draw
        self._max_draws = len(_KINDS) if ruleset.max_draws is None else ruleset.max_draws
        self._refunds_draws = not ruleset.penalise_successful_draw
        self._seats = len(hands)
        self._hands = hands
        self.starter = starter
        self._reserve = reserve[::-1]  # the next tile last
        self._open_end = -1  # not chosen yet
        self._fits = _HAS[starter.high] | _HAS[starter.low]
        self._points = [0] * self._seats
        self._penalties = [0] * self._seats
        self._draws = 0
        self._lays = 0
        self.first = first
        self.seat = first
        self._circuit = 0
        self._served = 0
        self._is_quiet = True
        self._log: list[tuple[int, int]] = []
        self._events: list[Event] = []
        self._allowed = self._allowed_before_laying()

    def legal(self) -> list[int]:
        """The codes of the legal actions, ascending; empty when the deal is over."""
        mask = self._allowed
        return (_codes_of_masks.get(mask) or _codes_in(mask)).copy()

    def apply(self, code: int) -> None:
        """Play a code. Raises IllegalActionError, and changes nothing, for what is not legal here."""
        if code < 0 or not self._allowed >> code & 1:
            raise IllegalActionError(
                str(_ACTION_OF.get(code, f"code {code}")),
                [str(_ACTION_OF[legal]) for legal in self.legal()],
            )
        self._log.append((self.seat, code))
        if code >= _END:
            self._close_turn(code)
            return
        if code == _DRAW:
            self._draw()
            return
        # Podkidnoe 2, 3: a tile laid scores a point; the first one chooses the starter's open end.
        seat = self.seat
        if self._refunds_draws and self._lays == 0:
            self._penalties[seat] -= self._draws
        end = self._open_end
        if end < 0:
            high, low = self.starter
            end = high if _HAS[high] >> code & 1 else low
        self._open_end = end = _OTHER[end][code]
        self._fits = fits = _HAS[end]
        self._points[seat] += 1
        self._lays += 1
        self._hands[seat] = hand = self._hands[seat] ^ 1 << code
        self._allowed = hand & fits | _END_BIT

    def _draw(self) -> None:
        """Podkidnoe 4: a penalty a tile."""
        seat = self.seat
        self._hands[seat] |= 1 << self._reserve.pop()
        self._penalties[seat] += 1
        self._draws += 1
        self._allowed = self._allowed_before_laying()

    def _allowed_before_laying(self) -> int:
        """Podkidnoe 4. Never nothing: who cannot lay may always pass or end."""
        allowed = playable = self._hands[self.seat] & self._fits
        draws = self._draws
        if self._may_always_pass or not playable:
            allowed |= _END_BIT if draws else _PASS_BIT
        may_draw = self._reserve and draws < self._max_draws
        if may_draw and (self._may_always_draw or not playable):
            allowed |= _DRAW_BIT
        return allowed

    def _close_turn(self, code: int) -> None:
        seat = self.seat
        if code == _PASS:
            self._penalties[seat] += 1
        else:
            self._is_quiet = False
        self._draws = self._lays = 0
        may_be_last = not (self._reserve and self._hands[seat])
        if (may_be_last and self._is_finished()) or not self._next_turn():
            self.seat = -1
            self._allowed = 0

    def _is_finished(self) -> bool:
        """Podkidnoe 6, 7, but for the quiet circuit. With a reserve, only an empty hand can end it."""
        hands = self._hands
        empty_hand = self._ruleset.empty_hand
        if empty_hand == "end_game" and not all(hands):
            return True
        if self._reserve:
            return empty_hand != "top_up" and not any(hands)
        fits = self._fits
        for hand in hands:  # noqa: SIM110 - any() of a generator takes three times as long
            if hand & fits:
                return False
        return True

    def _next_turn(self) -> bool:
        """Pass the turn to the next seat that has tiles; False if the game ends on the way there."""
        while True:
            self._served += 1
            if self._served == self._seats:
                if self._is_quiet or (self._top_up() and self._is_finished()):
                    return False
                self._circuit += 1
                self._served = 0
                self._is_quiet = True
            self.seat = seat = (self.first + self._served) % self._seats
            if self._hands[seat]:
                self._allowed = self._allowed_before_laying()
                return True

    def _top_up(self) -> bool:
        """Podkidnoe 5, 6: from who had the last turn backwards; whether anybody took a tile.

        Counting from the circuit's last seat comes to the same: seats that were skipped have no
        tile and take none, or the reserve was empty already.
        """
        if self._ruleset.top_up == "off":
            return False
        before = len(self._log)
        hands = self._hands
        fewest = 0 if self._ruleset.empty_hand == "top_up" else 1
        for back in range(1, self._seats + 1):
            seat = (self.first - back) % self._seats
            if self._reserve and fewest <= hands[seat].bit_count() <= 1:
                hands[seat] |= 1 << self._reserve.pop()
                self._log.append((seat, _TOP_UP))
        return len(self._log) > before

    @property
    def reserve_size(self) -> int:
        """How many tiles are left to draw."""
        return len(self._reserve)

    @property
    def declaring_side(self) -> None:
        """None: nobody bids in Podkidnoe."""
        return

    @property
    def points(self) -> tuple[int, ...]:
        """The tiles that each seat has laid."""
        return tuple(self._points)

    @property
    def penalties(self) -> tuple[int, ...]:
        """The penalty points of each seat."""
        return tuple(self._penalties)

    @property
    def hands(self) -> tuple[tuple[Tile, ...], ...]:
        """What each seat holds, high to low."""
        return tuple(_unpack(hand) for hand in self._hands)

    @property
    def open_ends(self) -> tuple[int, ...]:
        """The pips to lay on: both ends of the starter until a tile is laid, then one."""
        if self._open_end >= 0:
            return (self._open_end,)
        high, low = self.starter
        return (high,) if high == low else (high, low)

    @property
    def line(self) -> tuple[Tile, ...]:
        """The tiles laid on the starter, in order."""
        return tuple([_KINDS[code] for _, code in self._log if code < _DRAW])

    @property
    def log(self) -> tuple[Event, ...]:
        """Everything that was done in the open, in order."""
        for seat, code in self._log[len(self._events) :]:
            self._events.append(Event(seat, _EVENT_OF[code]))
        return tuple(self._events)

    def score(self) -> tuple[int, ...]:
        """Points minus penalties by seat (Podkidnoe 8). Raises UsageError before the end."""
        if self.seat >= 0:
            raise UsageError("the deal is not over, so it has no score yet")
        return tuple(map(int.__sub__, self._points, self._penalties))

    def observe(self, clock_ms: int, history: Sequence[int] = ()) -> Observation:
        """What the seat that has to act may know. `history` says nothing here: a game is one deal."""
        del history
        if self.seat < 0:
            raise UsageError("the deal is over, so no seat has to act")
        return Observation(
            seat=self.seat,
            clock_ms=clock_ms,
            legal=tuple([_ACTION_OF[code] for code in self.legal()]),
            hand=_unpack(self._hands[self.seat]),
            first=self.first,
            starter=self.starter,
            line=self.line,
            open_ends=self.open_ends,
            reserve_size=len(self._reserve),
            hand_sizes=tuple([hand.bit_count() for hand in self._hands]),
            points=self.points,
            penalties=self.penalties,
            log=self.log,
            draws=self._draws,
            lays=self._lays,
            circuit=self._circuit,
            circuit_place=self._served,
            circuit_is_quiet=self._is_quiet and not (self._draws or self._lays),
        )


def _pack(tiles: Iterable[Tile]) -> int:
    """A hand as a mask of kinds."""
    return sum([1 << _KIND_OF[tile] for tile in tiles])


_TILE_IN: Final = high_to_low(_KINDS)
_PLACE_OF: Final = [_TILE_IN.index(tile) for tile in _KINDS]
"""By kind, its place from high to low."""


def _unpack(hand: int) -> tuple[Tile, ...]:
    """The tiles of a hand, high to low."""
    places = []
    while hand:
        lowest = hand & -hand
        places.append(_PLACE_OF[lowest.bit_length() - 1])
        hand ^= lowest
    return tuple([_TILE_IN[place] for place in sorted(places)])


class Podkidnoe(base.Game):
    """The rules of Podkidnoe, «Подкидное домино»."""

    name: ClassVar[str] = "podkidnoe"
    title: ClassVar[str] = "Podkidnoe"
    entrant_counts: ClassVar[tuple[int, ...]] = (2, 3, 4)
    ruleset_type: ClassVar[type[base.Ruleset]] = Ruleset
    observation_type: ClassVar[type[base.Observation]] = Observation
    action_type: ClassVar[Any] = Action
    # Each tile is drawn or laid by a seat once; and a circuit, in which each seat ends its turn once, is
    # quiet or takes one of all draws and lays.
    most_questions: ClassVar[int] = 4 * len(_KINDS) + 1
    options: ClassVar[tuple[base.Option, ...]] = (
        base.Option(
            name="voluntary_pass",
            default=True,
            choices=(True, False),
            doc="a player who can lay may pass, or end a turn without laying",
        ),
        base.Option(
            name="voluntary_draw",
            default=True,
            choices=(True, False),
            doc="a player who can lay may draw",
        ),
        base.Option(
            name="max_draws",
            default=2,
            choices=(2, 1, None),
            doc="how many tiles may be drawn in a turn; null: no limit",
        ),
        base.Option(
            name="penalise_successful_draw",
            default=True,
            choices=(True, False),
            doc="draws cost a point even in a turn that then lays a tile",
        ),
        base.Option(
            name="top_up",
            default="end_of_circuit",
            choices=("end_of_circuit", "off"),
            doc="who holds one tile at the end of a circuit takes one for free",
        ),
        base.Option(
            name="empty_hand",
            default="skip",
            choices=("skip", "top_up", "end_game"),
            doc="who has no tiles sits out, joins in the top-up, or ends the game",
        ),
    )

    def seats(self, entrants: int) -> int:
        """As many as entrants. Raises ContestError unless they are 2 to 4."""
        if entrants not in self.entrant_counts:
            raise ContestError(f"podkidnoe is played by 2 to 4 entrants, not by {entrants}")
        return entrants

    def side_of(self, seat: int) -> int:
        """The seat: everybody plays alone."""
        return seat

    def make_ruleset(self, options: Mapping[str, object] | None = None) -> Ruleset:
        """The ruleset with these options and the defaults for the rest. Raises RulesetError."""
        values: dict[str, Any] = base.check_options(self.name, self.options, options)
        if values["top_up"] == "off" and values["empty_hand"] == "top_up":
            raise RulesetError(
                self.name,
                "empty_hand",
                "empty_hand=top_up needs top_up=end_of_circuit; with top_up=off "
                "allowed are empty_hand=skip and empty_hand=end_game",
            )
        return Ruleset(**values)

    def deal(
        self, stream: Stream, ruleset: base.Ruleset, seats: int, first: int | None = None
    ) -> base.Board:
        """Shuffle and deal: five tiles to each seat in turn, the starter, the reserve."""
        del ruleset  # no option changes the deal
        self.seats(seats)
        tiles = [_KINDS[number] for number in stream.permutation(len(_KINDS))]
        dealt = seats * HAND_SIZE
        return base.Board(
            hands=tuple(
                high_to_low(tiles[place : place + HAND_SIZE])
                for place in range(0, dealt, HAND_SIZE)
            ),
            starter=tiles[dealt],
            reserve=tuple(tiles[dealt + 1 :]),
            first=stream.below(seats) if first is None else first,
        )

    def start(self, ruleset: Ruleset, board: base.Board) -> PodkidnoeState:
        """Begin to play `board`. Raises UsageError if its tiles are not the 28 of a double-six set."""
        starter = _check_board(board)
        return PodkidnoeState(
            ruleset,
            [_pack(hand) for hand in board.hands],
            starter,
            [_KIND_OF[tile] for tile in board.reserve],
            board.first,
        )

    def random_state(self, ruleset: Ruleset, seats: int, rng: random.Random) -> PodkidnoeState:
        """Begin a freshly shuffled deal for simulations: fast, but not verifiable as `deal` is."""
        self.seats(seats)
        keys = [rng.random() for _ in _KINDS]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        dealt = seats * HAND_SIZE
        hands = [
            sum(map(_BITS.__getitem__, order[place : place + HAND_SIZE]))
            for place in range(0, dealt, HAND_SIZE)
        ]
        starter, reserve = _KINDS[order[dealt]], order[dealt + 1 :]
        return PodkidnoeState(ruleset, hands, starter, reserve, rng.randrange(seats))

    def game_places(
        self, ruleset: Ruleset, totals: Sequence[int], deals_played: int, last: base.State
    ) -> tuple[int, ...]:
        """Podkidnoe 8: highest first, equal results share the place; a game is one deal."""
        del ruleset, deals_played, last
        return places_by(list(totals))

    def decode(self, code: int) -> Action:
        """The typed action of a code. Raises UsageError for a number that is no code."""
        try:
            return _ACTION_OF[code]
        except KeyError:
            raise UsageError(f"{code} is no code of an action of Podkidnoe") from None

    def encode(self, action: Action) -> int:
        """The code of a typed action. Raises UsageError for what is no action of Podkidnoe."""
        try:
            return _CODE_OF[action]
        except (KeyError, TypeError):  # TypeError: not even hashable
            raise UsageError(f"{action} is no action of Podkidnoe") from None

    def parse_action(self, text: str) -> Action:
        """Read ``lay 4-3``, ``draw``, ``end`` or ``pass``. Raises NotationError."""
        try:
            return _ACTION_NAMED[text]
        except KeyError:
            raise NotationError(
                text,
                "an action of Podkidnoe: draw, end, pass, or lay and a tile such as 6-4 "
                "(high end first)",
            ) from None

    def draw(
        self, ruleset: Ruleset, board: base.Board, actions: Sequence[tuple[int, Action]]
    ) -> str:
        """The deal as text for people, at most 78 columns wide; it may break off anywhere."""
        state = self.start(ruleset, board)
        turns = _draw_turns(state, self._turns(state, board, actions))
        return "\n".join([*_draw_hands(board), "", *turns])

    def _turns(
        self, state: PodkidnoeState, board: base.Board, actions: Sequence[tuple[int, Action]]
    ) -> Iterator[_Turn]:
        """Play the actions and yield each turn, a broken off one too, with the top-ups after it."""
        reserve = iter(board.reserve)
        turn = _Turn(board.first)
        for seat, action in actions:
            seen = len(state.log)
            self.apply_action(state, seat, action)
            turn.seat = seat
            for event in state.log[seen:]:
                turn.add(event, reserve)
            if isinstance(action, End | Pass):
                yield turn
                turn = _Turn(state.seat)
        if turn.words:
            yield turn


PODKIDNOE: Final = Podkidnoe()


def _check_board(board: base.Board) -> Tile:
    """The starter. Raises UsageError unless these are 2-4 hands of five and each tile once."""
    seats = len(board.hands)
    if not 2 <= seats <= 4 or any(len(hand) != HAND_SIZE for hand in board.hands) or board.dead:
        raise UsageError("a board of Podkidnoe is 2 to 4 hands of 5 tiles, a starter and a reserve")
    if not 0 <= board.first < seats:
        raise UsageError(f"the first player is a seat from 0 to {seats - 1}, not {board.first}")
    if board.starter is None:
        raise UsageError("a board of Podkidnoe needs a starter")
    tiles = [tile for hand in board.hands for tile in hand]
    if sorted([*tiles, board.starter, *board.reserve]) != sorted(_KINDS):
        raise UsageError("a board of Podkidnoe holds each tile of a double-six set exactly once")
    return board.starter


class _Turn:
    """A turn in words, for drawing."""

    __slots__ = ("seat", "top_ups", "words")

    def __init__(self, seat: int) -> None:
        self.seat = seat
        self.words: list[str] = []
        self.top_ups: list[str] = []

    def add(self, event: Event, reserve: Iterator[Tile]) -> None:
        match event.action:
            case Lay(tile):
                self.words.append(str(tile))
            case Draw():
                self.words.append(f"({next(reserve)})")
            case TopUp():
                self.top_ups.append(f"seat {event.seat} ({next(reserve)})")
            case End() | Pass():
                self.words.append(str(event.action))


_WORDS_WIDTH: Final = 34


def _draw_hands(board: base.Board) -> list[str]:
    hands = [f"  seat {seat}   {format_tiles(hand)}" for seat, hand in enumerate(board.hands)]
    head = f"Podkidnoe: seat {board.first} begins, starter {board.starter}"
    return [head, *hands, f"  reserve  {format_tiles(board.reserve)}"]


def _draw_turns(state: PodkidnoeState, turns: Iterable[_Turn]) -> list[str]:
    """One row a turn; `state` moves on as `turns` is read. A tile in brackets was drawn."""
    seats = "".join(f"{f'seat {seat}':>7}" for seat in range(len(state.points)))
    lines = [f"turn seat  {'tiles, (drawn)':<{_WORDS_WIDTH}} open{seats}"]
    for number, turn in enumerate(turns, start=1):
        first, *more = textwrap.wrap(" ".join(turn.words), _WORDS_WIDTH)
        open_ends = " ".join(map(str, state.open_ends))
        lines.append(
            f"{number:>4} {turn.seat:>4}  {first:<{_WORDS_WIDTH}} {open_ends:>4}{_draw_scores(state)}"
        )
        lines.extend(f"{'':11}{words}" for words in more)
        if turn.top_ups:
            lines.append(f"{'':11}top-up: {', '.join(turn.top_ups)}")
    if state.is_over:
        results = "".join(f"{result:>+7d}" for result in state.score())
        lines.append(f"{'Score':<{_WORDS_WIDTH + 16}}{results}")
    return lines


def _draw_scores(state: PodkidnoeState) -> str:
    pairs = zip(state.points, state.penalties, strict=True)
    return "".join(f"{f'{points}/{penalties}':>7}" for points, penalties in pairs)
