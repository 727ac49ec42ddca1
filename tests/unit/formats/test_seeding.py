"""The fold order of seeds."""

from __future__ import annotations

import pytest

from engine.formats.seeding import bracket_size, fold_order


@pytest.mark.parametrize(
    ("size", "order"),
    [
        (1, "1"),
        (2, "1 2"),
        (8, "1 8 4 5 2 7 3 6"),
        (16, "1 16 8 9 4 13 5 12 2 15 7 10 3 14 6 11"),
    ],
)
def test_fold_order_is_the_published_one(size, order):
    assert fold_order(size) == [int(seed) for seed in order.split()]


@pytest.mark.parametrize("size", [2, 4, 8, 16, 32, 64, 128])
def test_if_the_better_seed_always_wins_the_best_meet_last(size):
    alive = fold_order(size)
    while len(alive) > 1:
        assert sorted(alive) == list(range(1, len(alive) + 1))
        assert all(a + b == len(alive) + 1 for a, b in zip(alive[::2], alive[1::2], strict=True))
        alive = [min(pair) for pair in zip(alive[::2], alive[1::2], strict=True)]


@pytest.mark.parametrize(
    ("entrants", "size"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (64, 64), (65, 128)]
)
def test_bracket_holds_everyone_and_is_no_larger(entrants, size):
    assert bracket_size(entrants) == size
