"""A site for breaking: its own PostgreSQL database, Valkey, workers and beat, each a process of its own.

Every process is started by the product's own command line, leads its own session and is ended by the id
it was started with. What kills, freezes or floods counts in the site's `Tally`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, connections
from django.test import override_settings

from tests import databases
from tests.faults.mutations import DISABLED
from tests.faults.oracle import Verdict
from tests.postgresql import PostgresqlServer
from tournament.competitions.models import Match, MatchState, Tournament, TournamentState
from tournament.operations.broker import find_server
from tournament.operations.databases import read_postgresql
from tournament.operations.stack import (
    beat_command,
    playing_command,
    web_command,
    worker_command,
)
from tournament.operations.supervisor import Child, ChildSpec, clear_away, has_ended, spawn
from tournament.store.queues import CONTROL

ROOT = Path(__file__).parents[2]
LEASE_SECONDS = 3
BOOTSTRAP = "tests.faults.mutations"
"""The Celery app of such workers."""
T = TypeVar("T")


def connected_to(address: str) -> contextlib.AbstractContextManager[None]:
    """Let this process's Django use the database at `address` instead of its own."""
    return databases.connected_to(read_postgresql(address, sys.argv))


def administer(server: PostgresqlServer, statement: str) -> None:
    """Run a statement that makes or drops a database."""
    import psycopg

    with psycopg.connect(server.address(), autocommit=True) as connection:
        connection.execute(statement.encode())


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Tally:
    """What a test did to its site, and what came of it; a row of the table at the end of a run."""

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        self.verdicts: list[Verdict] = []

    def fault(self, kind: str, times: int = 1) -> None:
        """Count what was done to the site."""
        self.faults[kind] += times

    def judged(self, verdict: Verdict) -> None:
        """Count what the oracle found. Raises AssertionError unless all is well."""
        self.verdicts.append(verdict)
        verdict.check()


class Program:
    """A process of the site, with what it starts itself: kept, killed, frozen by its id."""

    def __init__(self, spec: ChildSpec, tally: Tally) -> None:
        self._child, self._tally = Child(spec), tally

    @property
    def pid(self) -> int:
        """Of its main process."""
        assert self._child.process is not None, f"{self._child.spec.name} is not started"
        return self._child.process.pid

    @property
    def is_running(self) -> bool:
        """Whether the main process is there."""
        return self._child.process is not None and not has_ended(self._child.process)

    def start(self) -> Program:
        """Start it, unless it runs."""
        if not self.is_running:
            self._clear_away()
            spawn(self._child)
        return self

    def children(self) -> list[int]:
        """The processes of its pool."""
        listing = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in listing.read_text().split()] if listing.exists() else []

    def kill(self) -> None:
        """SIGKILL it with all that it started: the machine is gone."""
        os.killpg(self.pid, signal.SIGKILL)
        self._clear_away()
        self._tally.fault("kill -9")

    def kill_main(self) -> None:
        """SIGKILL its main process alone; its pool is left without it."""
        os.kill(self.pid, signal.SIGKILL)
        self._tally.fault("kill -9")

    def freeze(self) -> None:
        """SIGSTOP it with all that it started."""
        os.killpg(self.pid, signal.SIGSTOP)
        self._tally.fault("SIGSTOP")

    def thaw(self) -> None:
        """SIGCONT what `freeze` stopped."""
        os.killpg(self.pid, signal.SIGCONT)

    def ask_to_stop(self) -> None:
        """SIGTERM to its main process."""
        os.kill(self.pid, signal.SIGTERM)

    def wait(self, seconds: float = 60) -> int:
        """Its status, once it has ended."""
        process = self._child.process
        assert process is not None
        wait_until(lambda: has_ended(process), seconds=seconds, what="its end")
        return self._clear_away()

    def end(self) -> None:
        """Leave nothing of it, in whatever state it is."""
        if self.is_running:
            os.killpg(self.pid, signal.SIGKILL)
        self._clear_away()

    def log(self) -> str:
        """What it has said so far."""
        path = self._child.spec.log
        return path.read_text(errors="replace") if path.exists() else ""

    def _clear_away(self) -> int:
        process, self._child.process = self._child.process, None
        return 0 if process is None else clear_away(process)


class Site:
    """A whole site in `folder`, whose parts a test starts and breaks."""

    def __init__(self, server: PostgresqlServer, database: str, folder: Path, tally: Tally) -> None:
        self.server, self.database, self.folder, self.tally = server, database, folder, tally
        self.programs: dict[str, Program] = {}
        self.slots = 2
        self.stop_seconds = 30
        self.store = folder / "blobs"
        self.store.mkdir(mode=0o700)
        self._broker_port = free_port()
        self._far: dict[str, tuple[int, int]] = {}
        self._copies: list[str] = []
        self.disabled = os.environ.get(DISABLED, "")

    # Its parts

    def start_broker(self) -> Program:
        """Valkey on a port, which forgets all when it ends."""
        command = [
            *(str(find_server()), "--port", str(self._broker_port), "--bind", "127.0.0.1"),
            *("--dir", str(self.folder), "--save", "", "--appendonly", "no"),
            *("--maxmemory-policy", "noeviction", "--loglevel", "warning"),
        ]
        program = self._program("broker", command).start()
        wait_until(self._broker_answers, what="the broker")
        return program

    def start_control(self, host: str = "web", name: str = "control") -> Program:
        """The worker that dispatches."""
        return self._celery(name, host, worker_command(name, CONTROL, "solo"))

    def start_beat(self, host: str = "web", name: str = "beat") -> Program:
        """What ticks dispatch."""
        schedule = ("--schedule", str(self.home(host) / f"{name}-schedule"))
        return self._celery(name, host, [*beat_command(), *schedule])

    def start_worker(
        self, name: str = "worker", *, host: str = "web", processes: int = 1
    ) -> Program:
        """A worker that plays so many matches at once."""
        return self._celery(name, host, playing_command(name, processes))

    def start(self, workers: int = 1, processes: int = 1) -> list[Program]:
        """Start all that plays; the workers."""
        self.slots = workers * processes
        self.start_broker()
        self.start_control()
        self.start_beat()
        return [self.start_worker(f"worker{n}", processes=processes) for n in range(workers)]

    def start_web(self) -> str:
        """Start the web server; its address."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port: int = listener.getsockname()[1]
            listener.set_inheritable(True)
            command = web_command(listener.fileno())
            self._program("web", command, pass_fds=[listener.fileno()]).start()
        return f"127.0.0.1:{port}"

    def connect(self, host: str) -> list[Program]:
        """Let a host reach PostgreSQL and Valkey over lines of its own, which a test can cut; those lines."""
        self._far[host] = (free_port(), free_port())
        lines = zip(self._far[host], (self.server.port, self._broker_port), strict=True)
        return [
            self._program(
                f"line{number} of {host}",
                [sys.executable, "-m", "tests.faults.line", str(source), str(target)],
                host,
            ).start()
            for number, (source, target) in enumerate(lines)
        ]

    def home(self, host: str) -> Path:
        """The home of a host; hosts share the store of blobs and nothing else in it."""
        home = self.folder / host
        if not home.exists():
            home.mkdir(mode=0o700)
            (home / "blobs").symlink_to(self.store)
        return home

    def environ(self, host: str = "web") -> dict[str, str]:
        """What the processes of a host get."""
        database, broker = self._far.get(host, (self.server.port, self._broker_port))
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ARENA_", "DJANGO_", "PYTEST_"))
        }
        return {
            **kept,
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "tournament.settings",
            "ARENA_HOME": str(self.home(host)),
            "ARENA_SECRET_KEY_FILE": str(self.folder / "secret_key"),
            "ARENA_DATABASE": self.server.address(self.database, port=database),
            "ARENA_BROKER_URL": f"redis://127.0.0.1:{broker}/0",
            "ARENA_LEASE_SECONDS": str(LEASE_SECONDS),
            "ARENA_STOP_SECONDS": str(self.stop_seconds),
            "ARENA_WORKER_SLOTS": str(self.slots),
            "ARENA_ALLOWED_HOSTS": "127.0.0.1",
            **({DISABLED: self.disabled} if self.disabled else {}),
        }

    def flush_broker(self) -> None:
        """FLUSHALL: every message is gone."""
        self._tell_broker(b"FLUSHALL\r\n")
        self.tally.fault("FLUSHALL")

    def crash_broker(self) -> None:
        """Kill the broker and start it again, empty."""
        self.programs["broker"].kill()
        self.programs["broker"].start()
        wait_until(self._broker_answers, what="the broker")

    def restart_database(self) -> None:
        """Crash PostgreSQL and start it again: every connection and every open transaction is gone."""
        self.server.stop(signal.SIGQUIT)
        self.tally.fault("PostgreSQL crash")
        self.server.start()

    # What it does

    def running_match(self, *, pk: int | None = None, beyond: int = 0) -> Match:
        """A match that is being played (the match `pk`) under a fence above `beyond`; waits for one."""
        rows = Match.objects.filter(state=MatchState.RUNNING, fence__gt=beyond)
        chosen = rows if pk is None else rows.filter(pk=pk)
        return self.wait_until(chosen.first, what="a running match")

    def player_of(self, match: Match) -> int:
        """The id of the process that plays a running match."""
        return int(match.lease_owner.rpartition(":")[2])

    def read(self, question: Callable[[], T]) -> T:
        """What `question` gives; a database that is away is asked until it is back."""

        def ask() -> tuple[T] | None:
            try:
                return (question(),)
            except (DatabaseError, InterfaceError):
                connections["default"].close()
                return None

        return wait_until(ask, what="the database")[0]

    def wait_until(
        self, condition: Callable[[], T | None], *, seconds: float = 60, what: str = "it"
    ) -> T:
        """What `condition` gives once it gives something. Raises AssertionError if it does not in time."""
        asked = partial(self.read, condition)
        return wait_until(asked, seconds=seconds, what=what, explain=self._explain)

    def play_out(self, tournaments: Sequence[Tournament], *, seconds: float = 240) -> None:
        """Wait until these are finished. Raises AssertionError as `are_finished` does."""
        self.wait_until(partial(self.are_finished, tournaments), seconds=seconds, what="the end")

    def are_finished(self, tournaments: Sequence[Tournament]) -> bool:
        """Whether these are. Raises AssertionError once one of them is paused: it would never be."""
        rows = Tournament.objects.filter(pk__in=[each.pk for each in tournaments])
        unfinished = rows.exclude(state=TournamentState.FINISHED)
        assert not unfinished.exclude(paused_reason="").exists(), self._explain()
        return not unfinished.exists()

    def copy(self) -> str:
        """The address of a copy of the database as it is now; nobody may be connected to it."""
        connections["default"].close()
        name = f"{self.database}_copy{len(self._copies)}"
        administer(self.server, f"CREATE DATABASE {name} TEMPLATE {self.database}")
        self._copies.append(name)
        return self.server.address(name)

    @contextlib.contextmanager
    def entered(self) -> Iterator[Site]:
        """Let this process's Django be of this site; all that was started is gone afterwards."""
        with connected_to(self.server.address(self.database)), settled(self.store, self.slots):
            try:
                yield self
            finally:
                for program in reversed(self.programs.values()):
                    program.end()
        for name in (*self._copies, self.database):
            administer(self.server, f"DROP DATABASE {name} WITH (FORCE)")

    def _celery(self, name: str, host: str, command: Sequence[str]) -> Program:
        if self.disabled:
            command = [part.replace("tournament.celery", BOOTSTRAP) for part in command]
        return self._program(name, command, host).start()

    def _program(
        self, name: str, command: Sequence[str], host: str = "web", pass_fds: Sequence[int] = ()
    ) -> Program:
        spec = ChildSpec(
            name=name,
            command=command,
            environ=self.environ(host),
            log=self.home(host) / f"{name}.log",
            pass_fds=pass_fds,
        )
        if name in self.programs:
            self.programs[name].end()
        self.programs[name] = Program(spec, self.tally)
        return self.programs[name]

    def _broker_answers(self) -> bool:
        try:
            return self._tell_broker(b"PING\r\n").startswith(b"+PONG")
        except OSError:
            return False

    def _tell_broker(self, command: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self._broker_port), timeout=5) as connection:
            connection.sendall(command)
            return connection.recv(64)

    def _explain(self) -> str:
        try:
            states = Counter(Match.objects.values_list("state", flat=True))
            paused = list(Tournament.objects.values_list("slug", "state", "paused_reason"))
        except DatabaseError as error:
            states, paused = Counter(), [error]
        tails = (
            f"--- {name} {'' if program.is_running else '(ended)'}\n{program.log()[-1500:]}"
            for name, program in self.programs.items()
        )
        return "\n".join([f"{dict(states)} {paused}", *tails])


@contextlib.contextmanager
def settled(store: Path, slots: int = 2) -> Iterator[None]:
    """Let this process use a store of blobs, and leases as short as the site's."""
    from django.conf import settings

    blobs = {**settings.STORAGES["blobs"], "OPTIONS": {"location": str(store)}}
    with override_settings(
        STORAGES={**settings.STORAGES, "blobs": blobs},
        WHEEL_CACHE=store.with_name("wheels"),
        ARENA_LEASE_SECONDS=LEASE_SECONDS,
        ARENA_WORKER_SLOTS=slots,
    ):
        yield


def wait_until(
    condition: Callable[[], T | None],
    *,
    seconds: float = 60,
    what: str = "it",
    explain: Callable[[], str] = str,
) -> T:
    """What `condition` gives once it gives something. Raises AssertionError if it does not in time."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for {what}\n{explain()}")
        time.sleep(0.05)
    return value


def copy_store(store: Path, name: str) -> Path:
    """A copy of a store as it is now."""
    copy = store.with_name(name)
    shutil.copytree(store, copy)
    return copy


if sys.platform != "linux":  # processes are looked up in /proc
    raise ImportError("the failure tests need Linux")
