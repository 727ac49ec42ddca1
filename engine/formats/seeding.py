"""Where the seeds stand in a bracket."""

from __future__ import annotations


def bracket_size(entrants: int) -> int:
    """The smallest power of two that holds so many entrants."""
    return 1 << max(entrants - 1, 0).bit_length()


def fold_order(size: int) -> list[int]:
    """The seeds 1 … size from the top of a bracket to its bottom, so that the best meet last.

    [1] is unfolded: at size m each seed s becomes the pair (s, 2m + 1 - s). `size` is a power of two.
    """
    order = [1]
    while len(order) < size:
        total = 2 * len(order) + 1
        order = [seed for first in order for seed in (first, total - first)]
    return order
