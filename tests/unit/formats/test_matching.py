"""The least matching: compared level by level, against every matching there is."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.formats.matching import _pack, match_all


def every_matching(members: list[int]) -> Iterator[list[tuple[int, int]]]:
    """All ways to pair `members` (an even number of them)."""
    if not members:
        yield []
        return
    first, *others = members
    for other in others:
        rest = [member for member in others if member != other]
        for matching in every_matching(rest):
            yield [(first, other), *matching]


def total(matching: list[tuple[int, int]], costs: dict) -> tuple[int, ...]:
    return tuple(sum(level) for level in zip(*(costs[pair] for pair in matching), strict=True))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, dict[tuple[int, int], tuple[int, ...]]]:
    count = draw(st.sampled_from([2, 4, 6, 8]))
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    kept = [pair for pair in pairs if draw(st.integers(0, 4))]
    levels = st.tuples(st.integers(0, 1), st.integers(0, 1000), st.integers(0, 2))
    return count, {pair: draw(levels) for pair in kept}


@given(graphs())
def test_no_matching_is_less_level_by_level(graph):
    count, costs = graph
    possible = [m for m in every_matching(list(range(count))) if set(m) <= set(costs)]
    found = match_all(count, [(i, j, *levels) for (i, j), levels in costs.items()])
    if not possible:
        assert found is None
        return
    assert sorted(member for pair in found for member in pair) == list(range(count))
    assert total(found, costs) == min(total(matching, costs) for matching in possible)


@given(st.integers(2, 12), st.randoms(use_true_random=False), st.integers(0, 2))
def test_result_does_not_depend_on_the_order_in_which_edges_are_searched(half, rng, spread):
    edges = [
        (i, j, rng.randint(0, spread)) for i in range(2 * half) for j in range(i + 1, 2 * half)
    ]
    found = match_all(2 * half, edges)
    for _ in range(3):
        rng.shuffle(edges)
        assert match_all(2 * half, edges) == found


def test_equal_costs_are_told_apart_in_every_small_graph():
    # with all costs equal the tie-break alone chooses: it must find one least matching, never two
    edges = [(i, j) for i in range(10) for j in range(i + 1, 10)]
    lower, upper = zip(*edges, strict=True)
    ties = dict(zip(edges, _pack(10, lower, upper, []), strict=True))
    sums = sorted(sum(ties[pair] for pair in m) for m in every_matching(list(range(10))))
    assert len(set(sums)) == len(sums) == 945


def test_first_level_outweighs_any_sum_of_the_later_ones():
    # 0-1 2-3 costs (0, 2 million), the others (1, 0): one step of the first level is more
    edges = [(0, 1, 0, 10**6), (2, 3, 0, 10**6), (0, 2, 0, 0), (1, 3, 1, 0), (0, 3, 1, 0)]
    assert match_all(4, edges) == [(0, 1), (2, 3)]


def test_levels_that_cannot_be_packed_are_refused():
    with pytest.raises(OverflowError, match="of 4 entrants"):
        match_all(4, [(i, j, 2**62, 2**62) for i in range(4) for j in range(i + 1, 4)])


@pytest.mark.parametrize(
    ("count", "edges", "expected"),
    [
        pytest.param(0, [], [], id="nobody"),
        pytest.param(2, [], None, id="two who may not meet"),
        pytest.param(4, [(0, 1, 0), (0, 2, 0), (0, 3, 0)], None, id="all want the same one"),
        pytest.param(2, [(0, 1)], [(0, 1)], id="no level at all"),
    ],
)
def test_smallest_cases(count, edges, expected):
    assert match_all(count, edges) == expected


def test_large_costs_are_exact():
    # differences of one at the very bottom beside levels of 2^40
    rng = random.Random(7)
    high = {(i, j): rng.randint(0, 2**40) for i in range(6) for j in range(i + 1, 6)}
    costs = {pair: (value, rng.randint(0, 1)) for pair, value in high.items()}
    found = match_all(6, [(i, j, *levels) for (i, j), levels in costs.items()])
    assert total(found, costs) == min(total(m, costs) for m in every_matching(list(range(6))))


@pytest.mark.parametrize(
    ("count", "highest"),
    [
        # rematch, its round, bye, (score difference in half points)², floats, clash, fold
        pytest.param(258, [1, 128, 257, 256**2, 2, 1, 2 * 258], id="most rounds, rematches forced"),
        pytest.param(16_384, [256**2, 2, 1, 2 * 16_384], id="all windows joined into one"),
    ],
)
def test_largest_swiss_stages_can_be_packed(count, highest):
    edges = [tuple(highest), tuple(height - 1 for height in highest)]
    dearer, cheaper = _pack(count, [0, 0], [1, 2], list(zip(*edges, strict=True)))
    assert cheaper < dearer < 2 ** (123 - count.bit_length())
