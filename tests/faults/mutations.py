"""Shows that the failure tests see what they guard: ``python -m tests.faults.mutations``.

For each guard of the site, the test named for it passes; and with that guard taken away, in a run of its
own, it fails. ARENA_FAULTS_DISABLED tells such a run, and the workers that it starts, which one is to go:
this module is their Celery app then. The site itself knows nothing of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import django

DISABLED = "ARENA_FAULTS_DISABLED"
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Guard:
    """Something that the site must not go without."""

    take_away: Callable[[], None]
    test: str
    """Fails without it."""
    sign: str
    """What its failure says then; any other would show nothing."""


def forget_the_fence() -> None:
    """Let anyone who ever claimed a row write to it."""
    from tournament.store import leases

    leases.held = lambda rows, lease: rows.filter(pk=lease.pk)


def renew_no_lease() -> None:
    """Let a lease end although its holder plays on."""
    from tournament.store import leases

    leases.Heartbeat.__call__ = lambda _self: None


def publish_before_commit() -> None:
    """Send the messages from within the transaction that chooses the matches."""
    from django.db import transaction

    from tournament import tasks
    from tournament.competitions.services import dispatching

    choose = dispatching.queue_matches

    @transaction.atomic
    def choose_and_publish(**options: object) -> tuple[tuple[int, ...], ...]:
        for block in choose(**options):
            tasks.publish(tasks.play_matches, list(block), queue="matches")
        return ()

    dispatching.queue_matches = choose_and_publish


GUARDS = {
    "fence": Guard(
        forget_the_fence,
        "test_workers.py::test_result_of_a_worker_frozen_for_longer_than_its_lease_writes_nothing",
        sign="['lost', 'running']",
    ),
    "renewal": Guard(
        renew_no_lease,
        "test_workers.py::test_match_that_lasts_longer_than_its_lease_is_played_once",
        sign="'lost' == 'recorded'",
    ),
    "publish-after-commit": Guard(
        publish_before_commit,
        "test_broker.py::test_message_is_sent_only_when_its_row_is_committed",
        sign="{'pending'}",
    ),
}


def take_away(name: str) -> None:
    """Take a guard from this process. Raises KeyError for one that there is not."""
    django.setup()
    GUARDS[name].take_away()


def main(names: Sequence[str]) -> int:
    """Run the test of each guard (of those in `names`) with and without it; 1 if one shows nothing."""
    blind = []
    for name in names or GUARDS:
        guard = GUARDS[name]
        status, output = run(guard.test)
        if status != 0:
            print(output)
            return say(f"{guard.test} fails with every guard in its place")
        say(f"{name}: {guard.test} passes")
        status, output = run(guard.test, without=name)
        told = [line for line in output.splitlines() if guard.sign in line and line.startswith("E")]
        if status == 1 and told:
            say(f"{name}: without it, it fails: {told[0].removeprefix('E').strip()}")
        else:
            print(output)
            say(f"{name}: WITHOUT IT, IT DOES NOT FAIL AS IT SHOULD")
            blind.append(name)
    return say(f"{', '.join(blind)}: nothing is shown") if blind else 0


def run(test: str, *, without: str = "") -> tuple[int, str]:
    """Run a test in a process of its own; its exit status and what it said."""
    options = ("-q", "--tb=short", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"tests/faults/{test}"],
        cwd=ROOT,
        env={**os.environ, DISABLED: without},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def say(text: str) -> int:
    """Tell, and stand for failure."""
    print(text, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

if os.environ.get(DISABLED):  # as the Celery app of a worker, or in pytest's process
    import tournament.celery

    app = tournament.celery.app
    take_away(os.environ[DISABLED])
