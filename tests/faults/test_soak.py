"""Everything that can go wrong, at random and at once.

ARENA_SOAK says how much of it, ``MATCHES KILLS``: by default what two cores play in about a hundred
seconds; `make soak` asks for thousands. ARENA_FAULTS_SEED chooses other chaos than that of the seed 1.
"""

from __future__ import annotations

import os

import pytest

from tests.faults.chaos import Chaos, Plan
from tests.faults.cups import make_event
from tests.faults.harness import Site

pytestmark = [
    pytest.mark.faults,
    pytest.mark.stack,
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.exhaustive,
]
SEED = int(os.environ.get("ARENA_FAULTS_SEED", "1"))
MATCHES, KILLS = map(int, os.environ.get("ARENA_SOAK", "180 16").split())
BOTS, A_CUP = (25, 300) if MATCHES >= 1000 else (10, 45)
"""How many meet in a round robin, and in how many matches."""


def test_random_faults_lose_no_match(site: Site):
    event = make_event(site, cups=-(-MATCHES // A_CUP), bots=BOTS)
    workers = site.start(workers=4, processes=2)
    plan = Plan(
        kills=KILLS,
        freezes=max(1, KILLS // 8),
        floods=max(1, KILLS // 8),
        broker_crashes=max(1, KILLS // 40),
        database_crashes=max(1, KILLS // 40),
    )
    Chaos(site, workers, SEED).rage(event, plan, seconds=20 * MATCHES)
    event.judge(site)
