"""The tiles of a match's deals: from key to board, from board to record, and back."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import msgspec

from engine.errors import ArenaError, NotationError, RecordError
from engine.games import get_game
from engine.games.base import Board, Game
from engine.record.values import BoardsContest, DealRecord, MatchRecord
from engine.shuffle import Stream, deal_key
from engine.tiles import Tile, format_tiles, high_to_low, parse_tile, parse_tiles


def deal_board(
    game: Game, ruleset: Any, entrants: int, key: bytes, *, first: int | None = None
) -> Board:
    """The board that a deal key yields. `first` is given in a games match for all but its first deal."""
    return game.deal(Stream(key), ruleset, game.seats(entrants), first=first)


def write_board(board: Board, *, number: int, key: bytes | None) -> DealRecord:
    """The record of a deal of `board` before its first action, `key` shown if given."""
    return DealRecord(
        number=number,
        key=None if key is None else key.hex(),
        first=board.first,
        hands=[format_tiles(hand) for hand in board.hands],
        dead=format_tiles(board.dead) if board.dead else msgspec.UNSET,
        starter=msgspec.UNSET if board.starter is None else str(board.starter),
        reserve=format_tiles(board.reserve) if board.reserve else msgspec.UNSET,
        actions=[],
        score=None,
    )


def parse_board(game: Game, ruleset: Any, entrants: int, deal: DealRecord, place: str) -> Board:
    """The board that a deal's record describes.

    Raises RecordError, at `place` or below it, if its tiles are not the game's, each once (or twice),
    in hands of the right size, sorted as they should be.
    """
    model = _model_board(game, ruleset, entrants)
    if len(deal.hands) != len(model.hands):
        raise RecordError(f"{place}.hands", f"{len(deal.hands)} hands for {len(model.hands)} seats")
    if not 0 <= deal.first < len(model.hands):
        raise RecordError(f"{place}.first", f"there is no seat {deal.first}")
    board = Board(
        hands=tuple(
            _parse_sorted(hand, len(model.hands[seat]), f"{place}.hands[{seat}]")
            for seat, hand in enumerate(deal.hands)
        ),
        first=deal.first,
        dead=_parse_sorted(
            _present(deal.dead, bool(model.dead), f"{place}.dead"), len(model.dead), f"{place}.dead"
        ),
        starter=_parse_starter(deal.starter, model.starter, f"{place}.starter"),
        reserve=_parse_sized(
            _present(deal.reserve, bool(model.reserve), f"{place}.reserve"),
            len(model.reserve),
            f"{place}.reserve",
        ),
    )
    _compare_sets(board, model, place)
    return board


def show_keys(record: MatchRecord, prk: bytes, tournament_id: str) -> None:
    """Write the deal keys into the record itself, now that the secret is out. The digest stays.

    Whether the deals are those that the keys yield is for `with_keys` and the judge of the record.
    """
    for game in record.games:
        for deal in game.deals:
            key = deal_key(prk, record.game, tournament_id, record.match_key, deal.number)
            deal.key = key.hex()


def with_keys(record: MatchRecord, prk: bytes, tournament_id: str) -> MatchRecord:
    """The record with its deal keys filled in, now that the secret is out. The digest stays.

    Raises RecordError at the first deal that is not the one its key yields.
    """
    keyed = msgspec.convert(msgspec.to_builtins(record), MatchRecord)
    for g, game in enumerate(keyed.games):
        for d, deal in enumerate(game.deals):
            place = f"games[{g}].deals[{d}]"
            key = deal_key(prk, record.game, tournament_id, record.match_key, deal.number)
            if deal.key is not None and deal.key != key.hex():
                raise RecordError(
                    f"{place}.key", "it is not the key that the secret gives this deal"
                )
            deal.key = key.hex()
            check_key(record, deal, place)
    return keyed


def check_key(record: MatchRecord, deal: DealRecord, place: str) -> None:
    """Raise RecordError unless the deal's own key yields its tiles and, where it was drawn, its first seat."""
    key = _parse_key(deal.key or "", f"{place}.key")
    entrants = len(record.entrants)
    drawn = isinstance(record.contest, BoardsContest) or deal.number == 0
    try:
        game = get_game(record.game)
        ruleset = game.make_ruleset(record.ruleset)
        board = deal_board(game, ruleset, entrants, key, first=None if drawn else deal.first)
    except ArenaError as error:
        raise RecordError("ruleset", str(error)) from error
    wanted = write_board(board, number=deal.number, key=key)
    for field in ("hands", "dead", "starter", "reserve", "first"):
        if getattr(wanted, field) != getattr(deal, field):
            raise RecordError(f"{place}.{field}", "the deal's key yields something else")


def _parse_key(text: str, place: str) -> bytes:
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise RecordError(place, "a deal key is 64 hex digits, in lower case")
    return bytes.fromhex(text)


@cache
def _model_board(game: Game, ruleset: Any, entrants: int) -> Board:
    """Some board of the game: it shows how many tiles lie where, and which tiles there are."""
    return deal_board(game, ruleset, entrants, bytes(32), first=0)


def _all_tiles(board: Board) -> Counter[Tile]:
    starter = () if board.starter is None else (board.starter,)
    return Counter(
        tile for part in (*board.hands, board.dead, starter, board.reserve) for tile in part
    )


def _compare_sets(board: Board, model: Board, place: str) -> None:
    found, wanted = _all_tiles(board), _all_tiles(model)
    if found != wanted:
        missing = format_tiles(high_to_low((wanted - found).elements()))
        surplus = format_tiles(high_to_low((found - wanted).elements()))
        raise RecordError(
            f"{place}.hands", f"the tiles are not the set: too few {missing}; too many {surplus}"
        )


def _present(text: str | msgspec.UnsetType, is_wanted: bool, place: str) -> str:
    if isinstance(text, msgspec.UnsetType):
        if is_wanted:
            raise RecordError(place, "it is missing")
        return ""
    if not is_wanted:
        raise RecordError(place, "this game has no such tiles")
    return text


def _parse_sized(text: str, size: int, place: str) -> tuple[Tile, ...]:
    try:
        tiles = parse_tiles(text)
    except NotationError as error:
        raise RecordError(place, str(error)) from error
    if len(tiles) != size:
        raise RecordError(place, f"{len(tiles)} tiles where {size} belong")
    return tiles


def _parse_sorted(text: str, size: int, place: str) -> tuple[Tile, ...]:
    tiles = _parse_sized(text, size, place)
    if tiles != high_to_low(tiles):
        raise RecordError(place, "the tiles must be sorted from high to low")
    return tiles


def _parse_starter(text: str | msgspec.UnsetType, model: Tile | None, place: str) -> Tile | None:
    given = _present(text, model is not None, place)
    if not given and model is None:
        return None
    try:
        return parse_tile(given)
    except NotationError as error:
        raise RecordError(place, str(error)) from error
