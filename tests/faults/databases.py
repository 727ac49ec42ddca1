"""A real database of each kind with something to play in it, copied for each of many trials.

What is played here needs no worker and no broker: the tasks are called by the test, or by processes that
it forks, and their messages wait in a list.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from django.db import connections
from django.db.models.functions import Now

from engine.runner import run_match
from tests.databases import connected_to
from tests.faults.harness import administer, settled
from tests.postgresql import PostgresqlServer
from tests.tournament_factories import make_bot, make_player, make_tournament, start
from tournament import tasks
from tournament.competitions.models import Match, MatchState, Tournament, TournamentState
from tournament.competitions.services import playing
from tournament.operations.databases import read_database
from tournament.store.clock import in_seconds
from tournament.store.queues import Capacity

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Database:
    """A database and its store of blobs, both as they were when it was made."""

    folder: Path
    server: PostgresqlServer | None = None
    """None: SQLite, as a site on one machine has it."""
    name: str = ""
    """On the server."""

    @property
    def store(self) -> Path:
        """Where its blobs lie."""
        return self.folder / "blobs"

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Let this process, and those that it forks, use it."""
        self.store.mkdir(parents=True, exist_ok=True)
        address = self.server.address(self.name) if self.server else ""
        database = read_database(address, self.folder, sys.argv)
        with connected_to(database), settled(self.store):
            yield

    def copy(self) -> Database:
        """Another one with the same in it; nobody may be connected."""
        number = next(_numbers)
        copied = Database(
            self.folder.with_name(f"copy{number}"), self.server, f"arena_copy{number}"
        )
        copied.folder.mkdir()
        if self.server:
            administer(self.server, f"CREATE DATABASE {copied.name} TEMPLATE {self.name}")
        else:
            shutil.copy(self.folder / "arena.sqlite3", copied.folder)
        if self.store.exists():
            shutil.copytree(self.store, copied.store)
        return copied

    def drop(self) -> None:
        """Leave nothing of it."""
        if self.server:
            administer(self.server, f"DROP DATABASE {self.name} WITH (FORCE)")
        shutil.rmtree(self.folder)

    @contextlib.contextmanager
    def tried(self) -> Iterator[Database]:
        """A copy, entered, and gone afterwards."""
        copied = self.copy()
        try:
            with copied.entered():
                yield copied
                connections.close_all()
        finally:
            copied.drop()


@dataclass(slots=True)
class Messages:
    """The broker: a list of what the tasks have published."""

    waiting: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def publish(self, task: Any, *args: Any, queue: str | None = None, **kwargs: Any) -> bool:
        """Take a message, for whatever queue."""
        self.waiting.append((task, args, kwargs))
        return True

    def deliver(self) -> None:
        """Deliver what waits, one after the other."""
        sent, self.waiting[:] = list(self.waiting), []
        for task, args, kwargs in sent:
            task(*args, **kwargs)


@contextlib.contextmanager
def published_here() -> Iterator[Messages]:
    """Let tasks publish into a list, and play without walls as if there were some: results count as usual.

    To dispatch this process is a worker that it has heard of, so messages that were lost are sent again.
    """
    messages = Messages()

    def play_here(*arguments: Any, **options: Any) -> Any:
        return run_match(*arguments, **{**options, "trusted": True})

    with (
        mock.patch.object(tasks, "publish", messages.publish),
        mock.patch.object(tasks.workers, "capacity", Capacity.by_settings),
        mock.patch.object(playing, "run_match", play_here),
    ):
        yield messages


def make_cup(*, bots: int = 4, **changes: Any) -> Tournament:
    """A running tournament of quick bots."""
    owner = make_player()
    field = [make_bot(f"bot{number}", owner) for number in range(bots)]
    return start(make_tournament(field, organiser=owner, time_control="fast", **changes))


def let_time_pass() -> None:
    """As if leases had run out, backoffs were over and lost messages had been missed."""
    Match.objects.filter(state=MatchState.RUNNING).update(lease_until=in_seconds(-1))
    Match.objects.filter(state=MatchState.PENDING).update(run_after=Now())
    Match.objects.filter(state=MatchState.QUEUED).update(queued_at=in_seconds(-3600))


def play_on(tournaments: Sequence[Tournament]) -> None:
    """Go on until these have ended, as dispatch and the workers would, however long that takes them."""
    rows = Tournament.objects.filter(pk__in=[each.pk for each in tournaments])
    with published_here() as messages:
        for _ in range(100):
            if not rows.filter(state=TournamentState.RUNNING).exists():
                return
            let_time_pass()
            tasks.dispatch(rung=True)
            messages.deliver()
    raise AssertionError(f"no end: {list(rows.values_list('slug', 'paused_reason'))}")
