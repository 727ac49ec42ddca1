"""Tiles, sets of tiles, and their notation: `6-4`, high end first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.errors import NotationError


class Tile(NamedTuple):
    """One domino tile, high end first. `str(Tile(6, 4))` is ``6-4``."""

    high: int
    low: int

    def __str__(self) -> str:
        return f"{self.high}-{self.low}"

    @property
    def is_double(self) -> bool:
        """Whether both ends show the same number of pips."""
        return self.high == self.low

    @property
    def pips(self) -> int:
        """The pips of both ends together."""
        return self.high + self.low

    def has(self, pip: int) -> bool:
        """Whether one of the ends shows `pip`."""
        return pip in (self.high, self.low)

    def other(self, pip: int) -> int:
        """The end opposite to the one that shows `pip`."""
        return self.low if pip == self.high else self.high


def make_tile(a: int, b: int) -> Tile:
    """The tile with ends `a` and `b`, in either order."""
    return Tile(a, b) if a >= b else Tile(b, a)


def parse_tile(text: str) -> Tile:
    """Read `6-4`. Raises NotationError for anything else, also for `4-6` (the high end stands first)."""
    if len(text) == 3 and text[1] == "-" and text[0] in "0123456" and text[2] in "0123456":
        high, low = int(text[0]), int(text[2])
        if high >= low:
            return Tile(high, low)
    raise NotationError(text, "a tile such as 6-4 (pips 0-6, high end first)")


def parse_tiles(text: str) -> tuple[Tile, ...]:
    """Read tiles with one space between; the empty text is no tiles."""
    return tuple(parse_tile(part) for part in text.split(" ")) if text else ()


def format_tiles(tiles: Iterable[Tile]) -> str:
    """Write tiles in their order with one space between."""
    return " ".join(map(str, tiles))


def high_to_low(tiles: Iterable[Tile]) -> tuple[Tile, ...]:
    """The tiles as hands are written: sorted from 6-6 down."""
    return tuple(sorted(tiles, reverse=True))


def tile_set(lowest: int, highest: int = 6) -> tuple[Tile, ...]:
    """Every tile once, in the order (low pip, high pip) in which sets are shuffled."""
    return tuple(
        Tile(high, low) for low in range(lowest, highest + 1) for high in range(low, highest + 1)
    )
