"""What depends on the database is tried on PostgreSQL too, in a run of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgresql import private_postgresql

ROOT = Path(__file__).parent.parent.parent
CHOSEN = (
    "tests/integration/test_concurrency.py",
    "tests/integration/test_ratings_at_once.py",
    "tests/unit/tournament/store",
    "tests/unit/tournament/leaderboards/test_log.py",
    "tests/unit/tournament/competitions/test_dispatching.py",
    "tests/unit/tournament/competitions/test_rulings.py",
    "tests/unit/tournament/workers",
    "tests/unit/tournament/scrimmages",
)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_claims_dispatch_and_the_log_hold_on_postgresql():
    with private_postgresql() as address:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CHOSEN],
            cwd=ROOT,
            env={**os.environ, "ARENA_TEST_DATABASE": address},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert " passed" in run.stdout
