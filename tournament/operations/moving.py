"""Moving a site from SQLite to PostgreSQL: every row is copied in one transaction, and proved before its commit.

This process is connected to the new database, as the site will be, so that what proves it runs as it will run
there. The old one is read through an alias of its own, in a transaction that nobody can write beside.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DatabaseError, connection, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Model
from django.utils import timezone

from engine.errors import ArenaError
from engine.record import decode_record
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import Match, Tournament
from tournament.competitions.selectors.bundles import tournament_bundle
from tournament.competitions.services.bundles import NONE
from tournament.leaderboards.selectors import pools
from tournament.leaderboards.services import verify_ratings
from tournament.operations.databases import MOVED_FILE, sqlite_database
from tournament.operations.errors import OperationsError
from tournament.players.models import Player
from tournament.store.errors import BlobError
from tournament.store.models import Pulse
from tournament.store.pulses import DISPATCH
from tournament.store.services import read_packed
from tournament.workers.models import WorkerReport
from tournament.workers.selectors import SILENT_SECONDS

OLD = "moved_from"
"""The alias of the database that is left."""
CHUNK = 2000
"""So many rows are in memory at once."""
QUIET_SECONDS = 10
"""A site whose dispatch has not run for so long is stopped."""
MOST_NAMED = 5
_WRAP = 1 << 256


@dataclass
class TableProof:
    """What a table holds: equal tables have equal ones, whatever the order of their rows."""

    rows: int = 0
    digest: int = 0
    replaced: int = 0
    """Values with a NUL character, which PostgreSQL cannot keep: U+FFFD stands there now."""

    def add(self, values: Sequence[Any]) -> None:
        """Count a row in."""
        text = json.dumps(values, sort_keys=True, default=_spell)
        number = int.from_bytes(hashlib.sha256(text.encode()).digest())
        self.digest = (self.digest + number) % _WRAP
        self.rows += 1

    @property
    def spelled_digest(self) -> str:
        """The digest in hex."""
        return f"{self.digest:064x}"


@dataclass
class MoveReport:
    """What was moved, and what proves it."""

    tables: dict[str, TableProof] = field(default_factory=dict)
    """By name, those without rows too."""
    pools: int = 0
    """Rating pools whose log, replayed, gives what is stored."""
    records: int = 0
    """Records of matches that have the digest which the database says."""
    bundles: int = 0
    """Finished tournaments whose bundle, made anew, has the digest that was told."""

    @property
    def rows(self) -> int:
        """How many there are in all."""
        return sum(proof.rows for proof in self.tables.values())

    @property
    def replaced(self) -> int:
        """In how many values NUL characters were replaced."""
        return sum(proof.replaced for proof in self.tables.values())


def move_database(*, path: Path, tell: Callable[[str], None]) -> MoveReport:
    """Copy the SQLite database at `path` into the site's, which must be an empty PostgreSQL database.

    All rows or none: it is one transaction, and what was copied is proved before it ends. The old home is marked,
    so that no process goes on there. `tell` is given a line for each step. Raises OperationsError if the old site
    still runs or lacks migrations, if the new database is not empty, or if anything in it is not as it was.
    """
    if connection.vendor != "postgresql":
        raise OperationsError(
            "set ARENA_DATABASE to the database that the site is to move to: "
            "postgresql://user:password@host:port/name"
        )
    with _connected_to_old(path), transaction.atomic(using=OLD):  # nobody else writes there now
        _check_old()
        _prepare_new()
        tell("Copying all rows …")
        with _marked_as_moved(path.with_name(MOVED_FILE)), transaction.atomic():
            report = _copy_all(tell)
            tell("Proving that nothing has changed …")
            _prove(report)
    return report


@contextmanager
def _marked_as_moved(marker: Path) -> Iterator[None]:
    """Marks the old home before the rows are committed, so that no kill between the two lets the site go on twice."""
    new = connection.settings_dict
    place = f"{new['HOST'] or 'this machine'}:{new['PORT'] or 5432}, database {new['NAME']}"
    before = marker.read_text(encoding="utf-8") if marker.exists() else None
    try:
        marker.write_text(
            f"PostgreSQL at {place} ({timezone.now():%Y-%m-%d %H:%M} UTC)\n", encoding="utf-8"
        )
        yield
    except BaseException:
        if before is None:
            marker.unlink(missing_ok=True)
        else:
            marker.write_text(before, encoding="utf-8")
        raise


@contextmanager
def _connected_to_old(path: Path) -> Iterator[None]:
    configured = connections.configure_settings({"default": {}, OLD: sqlite_database(path)})
    connections.settings[OLD] = configured[OLD]
    try:
        yield
    finally:
        connections[OLD].close()
        del connections[OLD]
        del connections.settings[OLD]


def _check_old() -> None:
    """Raises OperationsError unless the old site is stopped and of this version."""
    executor = MigrationExecutor(connections[OLD])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        raise OperationsError(
            f"the old database lacks {len(plan)} migrations: without ARENA_DATABASE run manage.py migrate"
        )
    now = timezone.now()
    heard = WorkerReport.objects.using(OLD).filter(
        seen_at__gte=now - timedelta(seconds=SILENT_SECONDS)
    )
    dispatched = Pulse.objects.using(OLD).filter(
        name=DISPATCH, at__gte=now - timedelta(seconds=QUIET_SECONDS)
    )
    if dispatched.exists():
        raise OperationsError("the site still runs: stop web, beat and all workers, then move it")
    if heard.exists():
        names = ", ".join(heard.values_list("name", flat=True)[:MOST_NAMED])
        raise OperationsError(
            f"these workers still ran less than {SILENT_SECONDS} s ago: {names}. Stop them in order, "
            "or wait until they are silent for so long"
        )


def _prepare_new() -> None:
    """Make the tables. Raises OperationsError for a database that holds a site, or anything else."""
    there = set(connection.introspection.table_names())
    foreign = sorted(there - {_table(model) for model in _models()} - {"django_migrations"})
    if foreign:
        raise OperationsError(
            f"the new database is not empty, it holds {', '.join(foreign[:MOST_NAMED])}: make a new one"
        )
    if _table(Player) in there and Player.objects.exists():
        raise OperationsError("the new database holds a site already: make a new one")
    call_command("migrate", interactive=False, verbosity=0)


def _copy_all(tell: Callable[[str], None]) -> MoveReport:
    """Copy every table. Its foreign keys are looked at when all are there, so the order does not matter."""
    report, models = MoveReport(), _models()
    with connection.cursor() as cursor:
        names = ", ".join(connection.ops.quote_name(_table(model)) for model in models)
        cursor.execute(f"TRUNCATE {names}")  # what migrations put there comes from the old one, too
    for model in models:
        try:
            with connection.wrap_database_errors:
                report.tables[_table(model)] = proof = _copy(model)
        except DatabaseError as error:
            raise OperationsError(f"{_table(model)} cannot be moved: {error}") from error
        if proof.rows:
            tell(f"  {_table(model):<40} {proof.rows:>10}  {proof.spelled_digest[:16]}")
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)
        try:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        except DatabaseError as error:
            raise OperationsError(f"a row refers to one that is not there: {error}") from error
    return report


def _copy(model: type[Model]) -> TableProof:
    """Stream a table's rows; what they are."""
    proof, fields = TableProof(), _fields(model)
    columns = ", ".join(connection.ops.quote_name(each.column) for each in fields)
    table = connection.ops.quote_name(_table(model))
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy,
    ):
        for row in _rows(model, OLD):
            values = [without_nul(value) for value in row]
            proof.replaced += sum(new is not old for new, old in zip(values, row, strict=True))
            proof.add(values)
            copy.write_row(
                [
                    each.get_db_prep_save(value, connection)
                    for each, value in zip(fields, values, strict=True)
                ]
            )
    return proof


def without_nul(value: Any) -> Any:
    """The value itself, or, if a text in it has NUL characters, one with U+FFFD in their place."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd") if "\0" in value else value
    if isinstance(value, dict | list) and "\\u0000" in json.dumps(value):
        return _without_nul_inside(value)
    return value


def _without_nul_inside(value: Any) -> Any:
    if isinstance(value, dict):
        return {without_nul(key): _without_nul_inside(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_nul_inside(each) for each in value]
    return without_nul(value)


def _prove(report: MoveReport) -> None:
    """Raises OperationsError unless all is there, and says what it said."""
    for model in _models():
        copied, found = report.tables[_table(model)], TableProof()
        for row in _rows(model, connection.alias):
            found.add(row)
        if (found.rows, found.digest) != (copied.rows, copied.digest):
            raise OperationsError(
                f"{_table(model)} is not what it was: {copied.rows} rows with the digest "
                f"{copied.spelled_digest} became {found.rows} with {found.spelled_digest}"
            )
    for pool in pools():
        differences = verify_ratings(game=pool.game, kind=pool.kind)
        if differences:
            raise OperationsError(
                f"{len(differences)} stored ratings of {pool} are not what its log says. If they are so in "
                "the old database, too: there, manage.py ratings rebuild mends them"
            )
        report.pools += 1
    for match in Match.objects.exclude(record_sha256="").iterator(chunk_size=CHUNK):
        _prove_record(match)
        report.records += 1
    for tournament in Tournament.objects.exclude(bundle_digest__in=["", NONE]).order_by("pk"):
        _prove_bundle(tournament)
        report.bundles += 1


def _prove_record(match: Match) -> None:
    try:
        digest = decode_record(read_packed(match.record_sha256)).digest
    except (BlobError, ArenaError) as error:
        raise OperationsError(f"the record of match {match.pk} cannot be read: {error}") from error
    if digest != match.digest:
        raise OperationsError(f"match {match.pk} has a record of the digest {digest}")


def _prove_bundle(tournament: Tournament) -> None:
    try:
        digest = tournament_bundle(tournament).digest
    except (BlobError, ArenaError, TournamentStateError) as error:
        raise OperationsError(f"{tournament.slug} has no bundle any more: {error}") from error
    if digest != tournament.bundle_digest:
        raise OperationsError(f"the bundle of {tournament.slug} has the digest {digest} now")


def _models() -> list[type[Model]]:
    return apps.get_models(include_auto_created=True)


def _table(model: type[Model]) -> str:
    return model._meta.db_table  # noqa: SLF001 Django's name of it


def _fields(model: type[Model]) -> list[Any]:
    return [each for each in model._meta.local_concrete_fields if not each.generated]  # noqa: SLF001 Django's name of it


def _rows(model: type[Model], alias: str) -> Iterator[Sequence[Any]]:
    names = [each.attname for each in _fields(model)]
    rows = model._base_manager.using(alias).order_by()  # noqa: SLF001 Django's name of it
    return iter(rows.values_list(*names).iterator(chunk_size=CHUNK))


def _spell(value: Any) -> str:
    """What JSON cannot say, the same for values of either database."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return str(value)
