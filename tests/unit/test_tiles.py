"""Tiles and their notation."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import NotationError
from engine.tiles import (
    Tile,
    format_tiles,
    high_to_low,
    make_tile,
    parse_tile,
    parse_tiles,
    tile_set,
)

ANY_TILES = st.lists(st.sampled_from(tile_set(0)), max_size=20)


@given(st.integers(0, 6), st.integers(0, 6))
def test_a_tile_is_the_same_from_either_end(a, b):
    tile = make_tile(a, b)
    assert tile == make_tile(b, a)
    assert tile.high >= tile.low
    assert tile.other(a) == b
    assert tile.has(a)
    assert tile.pips == a + b
    assert tile.is_double == (a == b)


def test_a_tile_has_no_other_pips():
    assert [pip for pip in range(7) if Tile(6, 4).has(pip)] == [4, 6]


@given(ANY_TILES)
def test_notation_round_trips(tiles):
    assert parse_tiles(format_tiles(tiles)) == tuple(tiles)


@pytest.mark.parametrize(
    "text",
    [
        "4-6",  # the high end stands first
        "7-0",  # no such pips
        "6-",
        "6",
        "64",
        "6:4",
        " 6-4",
        "6-4 ",
        "-6-4",
        "６-4",  # a digit, but no ASCII one
        "",
    ],
)
def test_other_texts_are_no_tiles(text):
    with pytest.raises(NotationError, match="high end first"):
        parse_tile(text)


@pytest.mark.parametrize("text", ["6-4  6-5", "6-4 ", " 6-4", "6-4,6-5"])
def test_tiles_have_one_space_between(text):
    with pytest.raises(NotationError):
        parse_tiles(text)


@given(ANY_TILES)
def test_hands_are_written_from_the_highest_down(tiles):
    ordered = high_to_low(tiles)
    assert sorted(ordered) == sorted(tiles)
    assert all(a >= b for a, b in itertools.pairwise(ordered))


@pytest.mark.parametrize(
    ("lowest", "size"),
    [
        (0, 28),  # double six
        (1, 21),  # without blanks
    ],
)
def test_sets_hold_each_tile_once_in_the_order_of_the_shuffle(lowest, size):
    tiles = tile_set(lowest)
    assert len(tiles) == len(set(tiles)) == size
    assert [(tile.low, tile.high) for tile in tiles] == sorted(
        (tile.low, tile.high) for tile in tiles
    )
    assert all(lowest <= tile.low <= tile.high <= 6 for tile in tiles)
