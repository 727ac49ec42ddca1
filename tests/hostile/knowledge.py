"""Deals that a seat cannot tell apart, and what it is sent in each of them.

Two deals look alike to a seat if they differ only in tiles that it has not seen and everything that was
done in the open could have been done in both, by the rules alone: who did not follow suit had no such tile, who
drew perforce could not lay, a game that went on was not over. What the seat is *sent* is never asked here
in making such a pair: it is what the pair is made to compare.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest import mock

import msgspec

from engine import referee, wire
from engine.agents import BotSource
from engine.games import get_game
from engine.games.base import Board, Game
from engine.games.podkidnoe import Draw, TopUp
from engine.record import BotRef, EntrantRef, MatchSpec, make_spec
from engine.record.values import BoardsContest, Contest, DealRecord, DealSource
from engine.sandbox.agent import sandbox_factory
from engine.sdk.timecontrol import time_control
from engine.shuffle import Stream, deal_key, local_prk
from engine.tiles import high_to_low
from tests.hostile.puppets import Puppet, PuppetLauncher, greet

PRK = local_prk("what a seat may know")
TOURNAMENT, MATCH_KEY = "a tournament of its own", "M-4711"
MOST_DEALS = 60
SWAPS = 40


class Place(NamedTuple):
    """Where a tile lies when a deal begins."""

    part: str
    """A hand by its seat, or ``dead`` or ``reserve``."""
    index: int


class Taken(NamedTuple):
    """An action of a record."""

    seat: int
    action: str


@dataclass(frozen=True)
class Past:
    """What was done in the open in a deal, which goes on (`is_over` False) or has ended."""

    actions: tuple[Taken, ...]
    is_over: bool

    @classmethod
    def of(cls, deal: DealRecord, length: int | None = None) -> Past:
        """The first `length` actions of a recorded deal; all of them, to its end, if not given."""
        words = [text.split(" ", 1) for text in deal.actions[:length]]
        return cls(tuple(Taken(int(seat), action) for seat, action in words), length is None)


def could_have_been(game: Game, ruleset: Any, board: Board, past: Past) -> bool:
    """Whether by the rules all that can happen on this board."""
    state = game.start(ruleset, board)
    for seat, action in past.actions:
        code = game.encode(game.parse_action(action))
        if state.seat != seat or code not in state.legal():
            return False
        state.apply(code)
    return state.is_over is past.is_over


def alike(
    game: Game, ruleset: Any, board: Board, past: Past, seat: int | None, rng: random.Random
) -> Board:
    """Another board that looks the same to `seat` after `past` (None: to who holds no tiles)."""
    tiles = _tiles_of(board)
    hidden = [place for place in tiles if not _has_seen(game, ruleset, board, past, seat, place)]
    if len(hidden) < 2:
        return board
    for _ in range(SWAPS):
        one, other = rng.sample(hidden, 2)
        swapped = {**tiles, one: tiles[other], other: tiles[one]}
        if could_have_been(game, ruleset, _board_of(board, swapped), past):
            tiles = swapped
    return _board_of(board, tiles)


def _has_seen(
    game: Game, ruleset: Any, board: Board, past: Past, seat: int | None, place: Place
) -> bool:
    if place.part == "reserve":
        takers = _takers(game, ruleset, board, past)
        return place.index < len(takers) and takers[place.index] == seat
    return place.part == str(seat)


def _takers(game: Game, ruleset: Any, board: Board, past: Past) -> list[int]:
    """The seats that have taken tiles from the reserve, in its order: all saw that, one saw the tile."""
    state = game.start(ruleset, board)
    for _, action in past.actions:
        state.apply(game.encode(game.parse_action(action)))
    return [event.seat for event in state.log if isinstance(event.action, Draw | TopUp)]


def _tiles_of(board: Board) -> dict[Place, Any]:
    parts = {**{str(seat): hand for seat, hand in enumerate(board.hands)}}
    parts |= {"dead": board.dead, "reserve": board.reserve}
    return {
        Place(part, index): tile
        for part, tiles in parts.items()
        for index, tile in enumerate(tiles)
    }


def _board_of(board: Board, tiles: dict[Place, Any]) -> Board:
    def part(name: str) -> list[Any]:
        return [tile for place, tile in tiles.items() if place.part == name]

    return msgspec.structs.replace(
        board,
        hands=tuple(high_to_low(part(str(seat))) for seat in range(len(board.hands))),
        dead=tuple(high_to_low(part("dead"))),
        reserve=tuple(part("reserve")),
    )


# What is sent in a match


@dataclass(frozen=True)
class Question:
    """Where a seat was asked."""

    sitting: int
    seat: int
    number: int
    """Of the packets that its puppet heard, the index of this question."""
    deal: int
    action: int


Choice = Callable[[Puppet, wire.Turn[Any]], int | None]
"""The index of a legal action, or None: then the bot crashes."""


class _Reached(Exception):  # noqa: N818 - no error: nothing later is compared
    """The question has been put."""


class Table:
    """Matches on given boards, with every packet to every seat kept."""

    def __init__(
        self, pid: int, game: str, options: dict[str, object], entrants: int, contest: Contest
    ) -> None:
        self.game = get_game(game)
        names = ["Anna", "Boris", "Clara", "Dmitri"][:entrants]
        self.spec: MatchSpec = make_spec(
            game=game,
            entrants=[EntrantRef(name, (BotRef(name.lower(), None, None),)) for name in names],
            contest=contest,
            time_control=time_control("standard"),
            deals=DealSource(PRK, TOURNAMENT, reveal=False),
            options=options,
            match_key=MATCH_KEY,
        )
        self.ruleset = self.spec.ruleset
        self.seats = self.game.seats(entrants)
        self.turns = wire.turns_of(self.game.observation_type)
        self.pid = pid

    def boards(self, rng: random.Random) -> list[Board]:
        """As many freshly dealt boards as a match may need."""
        return [self._board(rng) for _ in range(MOST_DEALS)]

    def _board(self, rng: random.Random) -> Board:
        return self.game.deal(Stream(rng.randbytes(32)), self.ruleset, self.seats)

    def play(self, boards: Sequence[Board], choose: Choice) -> tuple[Any, list[Puppet]]:
        """The played match (None if `choose` raised _Reached) and all puppets."""

        def script(puppet: Puppet, packet: bytes) -> list[bytes]:
            if len(puppet.heard) <= 2:
                return greet(packet)
            request = self.turns.decode(packet)
            if not isinstance(request, wire.Turn):
                return []
            index = choose(puppet, request)
            if index is None:
                return [wire.encode(wire.Crashed(request.turn, "KeyError", False))]
            return [wire.encode(wire.Answer(request.turn, index))]

        launcher = PuppetLauncher(script, self.pid)
        sources = [
            (BotSource(bot=bot.bot, version=None, wheel=None, folder="/usr", entry_point="x"),)
            for entrant in self.spec.entrants
            for bot in entrant.bots
        ]
        with self.given(boards):
            try:
                played = referee.play_match(self.spec, sources, sandbox_factory(launcher))
            except _Reached:
                played = None
        return played, launcher.puppets

    @contextmanager
    def given(self, boards: Sequence[Board]) -> Iterator[None]:
        """Meanwhile the referee deals these boards."""
        of_key = {
            deal_key(PRK, self.spec.game, TOURNAMENT, MATCH_KEY, number): board
            for number, board in enumerate(boards)
        }

        def deal(game, ruleset, entrants, key, *, first=None):
            board = of_key[key]
            return board if first is None else msgspec.structs.replace(board, first=first)

        with mock.patch.object(referee, "deal_board", deal):
            yield

    def questions(self, puppets: Sequence[Puppet]) -> list[Question]:
        """Every question that was put."""
        found = []
        for puppet in puppets:
            for number, packet in enumerate(puppet.heard[2:], start=2):
                request = self.turns.decode(packet)
                if isinstance(request, wire.Turn):
                    sitting, seat = divmod(puppet.number, self.seats)
                    found.append(Question(sitting, seat, number, request.deal, request.action))
        return found

    def find_alike(
        self, record: Any, boards: Sequence[Board], asked: Question, rng: random.Random
    ) -> list[Board]:
        """Boards that look the same to whom is asked; those that it has not met yet are dealt anew.

        In a games match the games before count too, with all tiles hidden.
        """
        others = self.boards(rng)
        for sitting, deals in enumerate(_sittings(record)):
            for deal in deals:
                if sitting == asked.sitting and deal.number <= asked.deal:
                    past = Past.of(deal, asked.action if deal.number == asked.deal else None)
                    seat: int | None = asked.seat
                elif sitting < asked.sitting and not isinstance(self.spec.contest, BoardsContest):
                    past, seat = Past.of(deal), None
                else:
                    continue
                board = msgspec.structs.replace(boards[deal.number], first=deal.first)
                others[deal.number] = alike(self.game, self.ruleset, board, past, seat, rng)
        return others

    def heard_up_to(
        self, record: Any, boards: Sequence[Board], asked: Question, rng: random.Random
    ) -> list[bytes]:
        """What is sent on these boards until the question is put, when all is done as in `record`."""
        _, puppets = self.play(boards, self._repeat(record, asked, rng, stop=_Reached))
        return puppets[asked.sitting * self.seats + asked.seat].heard

    def play_and_crash(
        self, record: Any, boards: Sequence[Board], asked: Question, rng: random.Random
    ) -> Any:
        """The match on these boards, all done as in `record`, when who is asked raises instead of answering."""
        played, _ = self.play(boards, self._repeat(record, asked, rng, stop=None))
        return played

    def _repeat(self, record: Any, asked: Question, rng: random.Random, *, stop: Any) -> Choice:
        """Do all as in `record`, up to the question: there raise `stop`, or crash if there is none.

        But for earlier sittings of a boards match, of which a later one must know nothing: other play there.
        """
        sittings = _sittings(record)
        target = asked.sitting * self.seats + asked.seat

        def choose(puppet: Puppet, turn: wire.Turn[Any]) -> int | None:
            sitting = puppet.number // self.seats
            if puppet.number == target and len(puppet.heard) > asked.number:
                if stop is not None:
                    raise stop
                return None
            legal = turn.observation.legal
            if sitting < asked.sitting and isinstance(self.spec.contest, BoardsContest):
                return rng.randrange(len(legal))
            deal = next(deal for deal in sittings[sitting] if deal.number == turn.deal)
            wanted = deal.actions[turn.action].split(" ", 1)[1]
            return [str(action) for action in legal].index(wanted)

        return choose


def _sittings(record: Any) -> list[list[DealRecord]]:
    """The deals of a record by sitting: in a boards match the rotations, else the games."""
    if record.games[0].board is None:
        return [game.deals for game in record.games]
    rotations = sorted({game.rotation for game in record.games})
    return [
        [deal for game in record.games if game.rotation == rotation for deal in game.deals]
        for rotation in rotations
    ]


def choose_kind_first(rng: random.Random) -> Choice:
    """Any kind of action is as likely as any other: so there are passes, Nel-Os and draws enough."""

    def choose(puppet: Puppet, turn: wire.Turn[Any]) -> int:
        legal = turn.observation.legal
        kind = rng.choice(sorted({type(action).__name__ for action in legal}))
        return rng.choice(
            [index for index, action in enumerate(legal) if type(action).__name__ == kind]
        )

    return choose
