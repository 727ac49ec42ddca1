"""How large a random sample is: small in each run, and large where all that only widens one is run."""

from __future__ import annotations

import os


def examples(usual: int, *, exhaustive: int) -> int:
    """So many examples for hypothesis; with ``ARENA_EXHAUSTIVE=1`` the larger number."""
    return exhaustive if os.environ.get("ARENA_EXHAUSTIVE") == "1" else usual
