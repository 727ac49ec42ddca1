"""Who is winning a trick of Eighty: rules that every bot needs, so that none has to write them again.

All of it follows from public knowledge, the contract and the tiles on the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.games.eighty import Contract, Played, Ruleset
from engine.tiles import Tile

DOUBLES = 7
"""The suit of the doubles in Nel-O, where the ruleset gives them one of their own."""

_ABOVE_LED_SUIT = 20


def count_points(tile: Tile) -> int:
    """What a tile adds to the trick it is in: 10 for 5-5 and 6-4, 5 for 4-1 and 3-2, else 0."""
    return tile.pips if tile.pips in (5, 10) else 0


def led_suit(led: Tile, contract: Contract, ruleset: Ruleset) -> int:
    """The suit that a led tile asks for: trumps, the led tile's higher end, or `DOUBLES`."""
    if contract.trump is not None and led.has(contract.trump):
        return contract.trump
    if led.is_double and contract.nello and ruleset.nello_doubles == "own_suit":
        return DOUBLES
    return led.high


def strength(tile: Tile, suit: int, contract: Contract, ruleset: Ruleset) -> int:
    """How high `tile` stands in a trick where `suit` was led; 0 for a tile that cannot take it.

    Only twins are equal.
    """
    trump = contract.trump
    if trump is not None and tile.has(trump):
        return _ABOVE_LED_SUIT + _rank(tile, trump)
    if not contract.nello or not tile.is_double:
        return _rank(tile, suit) if tile.has(suit) else 0
    if ruleset.nello_doubles == "own_suit":
        return tile.high if suit == DOUBLES else 0
    if not tile.has(suit):
        return 0
    return _rank(tile, suit) if ruleset.nello_doubles == "high" else 1


def winning_play(trick: Sequence[Played], contract: Contract, ruleset: Ruleset) -> Played:
    """The play that would take `trick` (not empty) if it ended now."""
    suit = led_suit(trick[0].tile, contract, ruleset)
    best, highest = trick[0], 0
    for play in trick:
        height = strength(play.tile, suit, contract, ruleset)
        if height > highest or (height == highest > 0 and ruleset.twin_winner == "last"):
            best, highest = play, height
    return best


def would_win(tile: Tile, trick: Sequence[Played], contract: Contract, ruleset: Ruleset) -> bool:
    """Whether `tile`, played now, would be winning `trick`; a led tile always is."""
    mine = Played(-1, tile)
    return winning_play((*trick, mine), contract, ruleset) is mine


def _rank(tile: Tile, suit: int) -> int:
    """Within a suit: its double, then by the other end; 2 and up."""
    return 8 if tile.is_double else 1 + tile.other(suit)
