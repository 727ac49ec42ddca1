"""Who meets whom at the least cost: a minimum-cost perfect matching whose costs are compared level by level.

The search itself is Edmonds' blossom algorithm of rustworkx, which takes one integer of 128 bits an
edge. So the levels are packed into one: the base of a level exceeds whatever all lower levels of a
whole matching can add up to, which makes the least sum the lexicographically least one. The last
level is a tie-break of our own, a fixed pseudo-random number for each two, so that of several
matchings with equal costs it is the same one that is found everywhere, by whatever version.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

TIE_BITS = 40
"""Bits of the tie-break where there is room: two matchings of equal cost are then told apart but with a
probability of about edges / 2^40 (Mulmuley, Vazirani & Vazirani 1987, the isolating lemma)."""
WEIGHT_BITS = 123
"""Of the solver's 127: its dual variables are twice the weights and add up along a path, for whose
length `match_all` leaves room besides."""

Edge = tuple[int, ...]
"""Two who may meet, the lower index first, then the cost at each level (from 0), the weightiest first."""


def match_all(count: int, edges: Sequence[Edge]) -> list[tuple[int, int]] | None:
    """The pairs that bring 0 … count - 1 together, each once, at the least cost; None if none do.

    Every edge has equally many levels. The pairs come in order of their lower members.
    Raises OverflowError if the levels do not fit into the solver's integers.
    """
    import rustworkx  # brings numpy, which only those who pair a round need wait for

    if not count:
        return []
    if not edges:
        return None
    lower, upper, *levels = zip(*edges, strict=True)
    costs = _pack(count, lower, upper, levels)
    ceiling = max(costs) + 1
    graph = rustworkx.PyGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(
        [(i, j, ceiling - cost) for i, j, cost in zip(lower, upper, costs, strict=True)]
    )
    found = rustworkx.max_weight_matching(graph, max_cardinality=True, weight_fn=int)
    if 2 * len(found) < count:
        return None
    return sorted((i, j) if i < j else (j, i) for i, j in found)


def _pack(
    count: int, lower: Sequence[int], upper: Sequence[int], levels: Sequence[Sequence[int]]
) -> list[int]:
    """One integer an edge: the tie-break, and above it each level times what all below it can add up to."""
    pairs = count // 2
    tallest = [max(level) for level in levels]
    room = WEIGHT_BITS - count.bit_length()
    used = sum((pairs * height + 1).bit_length() for height in tallest if height)
    tie_bits = min(TIE_BITS, room - used - pairs.bit_length())
    if tie_bits < 0:
        raise OverflowError(f"the costs of {count} entrants take more than {room} bits")
    shift, marks = 64 - tie_bits, _marks(count)
    costs = [(marks[i] * marks[j] & _MASK) >> shift for i, j in zip(lower, upper, strict=True)]
    base = (pairs << tie_bits) + 1
    for level, height in zip(reversed(levels), reversed(tallest), strict=True):
        if height:
            costs = [cost + base * step for cost, step in zip(costs, level, strict=True)]
            base *= pairs * height + 1
    return costs


_MASK = (1 << 64) - 1


@functools.lru_cache(maxsize=16)
def _marks(count: int) -> tuple[int, ...]:
    """An odd pseudo-random number of 64 bits for each index, by SplitMix64 (Steele, Lea & Flood 2014)."""
    return tuple(_mix((index + 1) * 0x9E3779B97F4A7C15 & _MASK) | 1 for index in range(count))


def _mix(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return z ^ z >> 31
