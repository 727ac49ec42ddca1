"""Backups of a site: its database, its secret key and the blobs that its rows name, in one file; and back.

The database is read first, by one consistent look at it while the site goes on; then the blobs that it names. A
blob is written before the row that names it and never changed, so all of them are there. A backup is a tar file::

    about.json       what it is a backup of: format, database, migrations
    database/…       SQLite's file; or of PostgreSQL a file a table, as its COPY writes them
    secret_key       signs sessions
    blobs/ab/cdef…   each under its SHA-256
    manifest.json    what must be there; the last, so that a file that was cut is known by its absence

Restoring checks every hash, and puts the database in place when all else is there. Names of blobs are gone through in
order and a part at a time, so that a site of any size takes no more memory than that.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import os
import shutil
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

import msgspec
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tournament.competitions.services import blobs_in_use
from tournament.moderation.services import erasures_file, repeat_erasures
from tournament.moderation.services.erasure import read_list
from tournament.operations.errors import OperationsError
from tournament.scrimmages.selectors import blobs_in_use as scrimmage_blobs
from tournament.store.errors import BlobError
from tournament.store.services import PARTS, has_blob, put_blob, read_blob

FORMAT = "arena-backup/2"
OLD_FORMAT = "arena-backup/1"
"""Its manifest has a list of all blobs."""
ABOUT, MANIFEST, SECRET_KEY, DATABASE, BLOBS = (
    "about.json", "manifest.json", "secret_key", "database", "blobs",
)  # fmt: skip
SQLITE_MEMBER = f"{DATABASE}/arena.sqlite3"
_CHUNK = 1 << 20
_UNFINISHED = ".unfinished-"
_DAY_SECONDS = 86_400
_SCHEMA = "arena_restoring"
"""In which PostgreSQL's tables are made; no site looks there."""


class About(msgspec.Struct, frozen=True):
    """What is in a backup, so that it can be refused before it is read."""

    format: str
    made_at: float
    """Seconds since 1970, UTC."""
    version: str
    """Of this project."""
    vendor: str
    """``sqlite`` or ``postgresql``."""
    migrations: list[tuple[str, str]]
    """App and name of all that were applied."""
    tables: dict[str, list[str]]
    """Of PostgreSQL: the columns of each table, in the order of its file."""


class _Digest(NamedTuple):
    """What tells one list of hashes from another."""

    blobs: int
    sha256: str
    """Of the hashes in their order, a line each."""


def _digest_of(hashes: Iterable[str]) -> _Digest:
    count, digest = 0, hashlib.sha256()
    for sha256 in hashes:
        count += 1
        digest.update(f"{sha256}\n".encode())
    return _Digest(count, digest.hexdigest())


class Manifest(msgspec.Struct, frozen=True):
    """What must be in a backup."""

    members: dict[str, str]
    """The SHA-256 of each file of the database and of the key."""
    blobs: int | list[str]
    """How many, or in the form of old their hashes in order."""
    absent: list[str]
    """Blobs that rows name and the store had lost, or had let go meanwhile."""
    holds_blobs: bool
    """Whether they are in it, or are kept safe by other means."""
    blobs_sha256: str = ""
    """The `_Digest` of their hashes."""

    @property
    def digest(self) -> _Digest:
        """What the names of the blobs come to."""
        if isinstance(self.blobs, int):
            return _Digest(self.blobs, self.blobs_sha256)
        return _digest_of(self.blobs)


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What was written."""

    path: Path
    size: int
    blobs: int
    lost: tuple[str, ...]
    """The hashes of blobs that rows name and that the store does not have, or has damaged."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was put back."""

    made_at: float
    blobs: int
    lost: tuple[str, ...]
    """The hashes of blobs that rows name and that are nowhere."""
    erased: tuple[str, ...]
    """Who was removed again: their names now."""
    kept_key: bool
    """Whether the secret key is another one, since ``ARENA_SECRET_KEY_FILE`` names one."""


def write_backup(target: Path, *, with_blobs: bool = True) -> BackupReport:
    """Write a backup of the running site into the file `target`, at once or not at all; only this user can read it.

    Without blobs it names them only: for a store that is kept safe by other means. Raises OSError if it cannot
    be written, and StoreUnavailableError.
    """
    members: dict[str, str] = {}
    absent: list[str] = []
    with ExitStack() as stack:
        file = stack.enter_context(_new_file(target))
        before = stack.enter_context(tempfile.TemporaryFile("w+", dir=target.parent))
        tar = stack.enter_context(tarfile.open(fileobj=file, mode="w"))
        before.writelines(f"{sha256}\n" for sha256 in _named_blobs())
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=_UNFINISHED) as folder:
            about = _dump(Path(folder))
            _add(tar, ABOUT, msgspec.json.encode(about))
            for path in sorted(Path(folder).iterdir()):
                members[f"{DATABASE}/{path.name}"] = _add_file(tar, f"{DATABASE}/{path.name}", path)
        key = settings.SECRET_KEY.encode()
        _add(tar, SECRET_KEY, key)
        members[SECRET_KEY] = _sha256(key)
        before.seek(0)
        named = _merged(_lines(before), _named_blobs())
        written = _digest_of(_add_blobs(tar, named, absent) if with_blobs else named)
        manifest = Manifest(members, written.blobs, absent, with_blobs, written.sha256)
        _add(tar, MANIFEST, msgspec.json.encode(manifest))
    lost = tuple(_common(_named_blobs(), iter(absent))) if absent else ()
    return BackupReport(target, target.stat().st_size, written.blobs, lost)


def restore_backup(source: Path, *, erasures: Path | None = None) -> RestoreReport:
    """Put the backup `source` into this site, which must have no database yet; bring it to the newest tables.

    Whoever stands on the list `erasures` (by default the one in the home) is removed again. Raises OperationsError,
    with what to change, for a site that is there, and for a file that is no backup, is cut, damaged, or
    of another kind of database or a newer version, and ErasureListError; the database is as empty then as it was.
    """
    _refuse_if_taken()
    list(read_list(erasures or erasures_file()))  # one that cannot be read would bring people back
    home = settings.ARENA_HOME
    with (
        tempfile.TemporaryDirectory(dir=home, prefix=".restoring-") as folder,
        tempfile.TemporaryFile("w+", dir=home) as there,
    ):
        about, manifest, key = _read(source, Path(folder), there)
        kept_key = bool(os.environ.get("ARENA_SECRET_KEY_FILE"))
        with _new_database():
            _load(about, Path(folder))
            call_command("migrate", interactive=False, verbosity=0)
            if not kept_key:
                _write_key(home / SECRET_KEY, key)
                settings.SECRET_KEY = key.decode()  # it signed the sessions of who is erased again
            erased = repeat_erasures(path=erasures)
        there.seek(0)
        missing = _without(_named_blobs(), _lines(there))
        lost = tuple(sha256 for sha256 in missing if not has_blob(sha256))
    return RestoreReport(about.made_at, manifest.digest.blobs, lost, erased, kept_key)


# Hashes, always in order


def _named_blobs() -> Iterator[str]:
    """The hashes of all blobs that rows name, in order."""
    for part in PARTS:
        yield from sorted((blobs_in_use(part) | scrimmage_blobs(part)) - {""})


def _lines(file: Iterable[str]) -> Iterator[str]:
    return (line.rstrip("\n") for line in file)


def _merged(first: Iterator[str], second: Iterator[str]) -> Iterator[str]:
    """What is in either, once."""
    last = None
    for sha256 in heapq.merge(first, second):
        if sha256 != last:
            yield sha256
        last = sha256


def _without(first: Iterator[str], second: Iterator[str]) -> Iterator[str]:
    """What is in the first alone."""
    other = next(second, None)
    for sha256 in first:
        while other is not None and other < sha256:
            other = next(second, None)
        if sha256 != other:
            yield sha256


def _common(first: Iterator[str], second: Iterator[str]) -> Iterator[str]:
    """What is in both."""
    other = next(second, None)
    for sha256 in first:
        while other is not None and other < sha256:
            other = next(second, None)
        if sha256 == other:
            yield sha256


# Writing


@contextmanager
def _new_file(target: Path) -> Iterator[IO[bytes]]:
    _clear_away(target.parent)
    descriptor, unfinished = tempfile.mkstemp(dir=target.parent, prefix=_UNFINISHED)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(unfinished).replace(target)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise


def _clear_away(folder: Path) -> None:
    """Delete what backups left that were killed: no backup takes a day."""
    for left in folder.glob(f"{_UNFINISHED}*"):
        if left.stat().st_mtime > time.time() - _DAY_SECONDS:
            continue
        if left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink()


def _dump(folder: Path) -> About:
    """Write the database as it is at one moment into files; what they are."""
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        copy = sqlite3.connect(folder / PurePosixPath(SQLITE_MEMBER).name)
        try:
            connection.connection.backup(copy)
            rows = copy.execute("SELECT app, name FROM django_migrations ORDER BY id").fetchall()
        finally:
            copy.close()
        return _about(rows, {})
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        tables = {table: _columns(cursor, table) for table in _tables(cursor)}
        for table, columns in tables.items():
            with (
                (folder / table).open("wb") as file,
                cursor.copy(f"COPY {_listed(table, columns)} TO STDOUT") as rows,
            ):
                for part in rows:
                    file.write(part)
        applied = MigrationRecorder(connection).applied_migrations()
    return _about(list(applied), tables)


def _about(migrations: list[tuple[str, str]], tables: dict[str, list[str]]) -> About:
    return About(
        FORMAT, time.time(), version("domino-arena"), connection.vendor, migrations, tables
    )


def _tables(cursor: Any) -> list[str]:
    names = connection.introspection.table_names(cursor)
    return sorted(name for name in names if name != "django_migrations")


def _columns(cursor: Any, table: str) -> list[str]:
    cursor.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() "
        "AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position",
        [table],
    )
    return [name for (name,) in cursor.fetchall()]


def _listed(table: str, columns: list[str]) -> str:
    quote = connection.ops.quote_name
    return f"{quote(table)} ({', '.join(map(quote, columns))})"


def _add_blobs(tar: tarfile.TarFile, hashes: Iterator[str], absent: list[str]) -> Iterator[str]:
    """Add the blobs of these hashes; those that were added. The others are noted in `absent`."""
    for sha256 in hashes:
        try:
            data = read_blob(sha256)
        except BlobError:
            absent.append(sha256)
            continue
        _add(tar, f"{BLOBS}/{sha256[:2]}/{sha256[2:]}", data)
        yield sha256


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), 0o600, int(time.time())
    tar.addfile(info, io.BytesIO(data))
    tar.members.clear()  # type: ignore[attr-defined] # it would remember each file, for who looks one up later


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> str:
    """Add a file; its SHA-256."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = path.stat().st_size, 0o600, int(time.time())
    with path.open("rb") as file:
        tar.addfile(info, file)
    return _sha256_of(path)


# Reading


def _refuse_if_taken() -> None:
    """Raises OperationsError if there is a database with anything in it."""
    if connection.vendor == "sqlite":
        path = Path(connection.settings_dict["NAME"])
        taken = [path.name] if path.exists() and path.stat().st_size else []
        place = f"the home {settings.ARENA_HOME}"
    else:
        taken = connection.introspection.table_names()
        place = f"the database {connection.settings_dict['NAME']}"
    if taken:
        raise OperationsError(
            f"{place} is not empty (it has {taken[0]}): restore into a new one, and change over to it when you "
            "have looked at it"
        )


def _read(source: Path, folder: Path, there: IO[str]) -> tuple[About, Manifest, bytes]:
    """Check everything, put the blobs into the store, their hashes into `there`, the database's files into `folder`."""
    about: About | None = None
    manifest: Manifest | None = None
    members: dict[str, str] = {}
    key = b""
    try:
        with source.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            for info in _each(tar):
                place = PurePosixPath(info.name)
                if about is None:
                    about = _accepted(info, _content(tar, info))
                elif info.name == MANIFEST:
                    manifest = msgspec.json.decode(_content(tar, info), type=Manifest)
                elif info.name == SECRET_KEY:
                    key = _content(tar, info)
                    members[SECRET_KEY] = _sha256(key)
                elif place.parts[0] == DATABASE and len(place.parts) == 2:
                    members[info.name] = _extract(tar, info, folder / place.name)
                elif place.parts[0] == BLOBS and len(place.parts) == 3:
                    sha256 = _put(_content(tar, info), place.parts[1] + place.parts[2], source)
                    there.write(f"{sha256}\n")
                else:
                    raise OperationsError(f"{source} is no backup of a site: it has {info.name}")
    except (tarfile.TarError, msgspec.MsgspecError, EOFError) as error:
        raise OperationsError(f"{source} is no whole backup of a site: {error}") from error
    if about is None or manifest is None:
        raise OperationsError(f"{source} was cut: its end is missing; take another backup")
    damaged = sorted(name for name, _ in members.items() ^ manifest.members.items())
    if damaged:
        raise OperationsError(f"{source} is damaged: {damaged[0]} is not what it was")
    there.seek(0)
    found, wanted = (
        _digest_of(_lines(there)),
        manifest.digest if manifest.holds_blobs else _digest_of(()),
    )
    if found != wanted:
        raise OperationsError(
            f"{source} is damaged: it has {found.blobs} blobs, and not the {wanted.blobs} that belong to it"
        )
    return about, manifest, key


def _each(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """What is in it, one after the other, and none remembered."""
    while (info := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]
        if not info.isreg():
            raise OperationsError(f"{info.name} in the backup is no file")
        yield info


def _accepted(info: tarfile.TarInfo, data: bytes) -> About:
    """What the backup is. Raises OperationsError if it cannot be restored here."""
    about = msgspec.json.decode(data, type=About) if info.name == ABOUT else None
    if about is None or about.format not in {FORMAT, OLD_FORMAT}:
        raise OperationsError(f"this is no backup of a site in the form {FORMAT}")
    if about.vendor != connection.vendor:
        raise OperationsError(
            f"this is a backup of a {about.vendor} database, and ARENA_DATABASE names a {connection.vendor} one; "
            "restore it into its own kind, then manage.py move-database takes it from SQLite to PostgreSQL"
        )
    unknown = set(about.migrations) - MigrationLoader(None).disk_migrations.keys()
    if unknown:
        app, name = min(unknown)
        raise OperationsError(
            f"this backup is of the version {about.version}, newer than this one: it knows the migration "
            f"{app}.{name}. Restore it with that version"
        )
    return about


def _content(tar: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(info)
    assert file is not None  # `_each` gives regular files alone
    data = file.read()
    if len(data) != info.size:
        raise EOFError(f"{info.name} was cut")
    return data


def _extract(tar: tarfile.TarFile, info: tarfile.TarInfo, path: Path) -> str:
    """Write a member to `path`; its SHA-256."""
    file = tar.extractfile(info)
    assert file is not None  # `_each` gives regular files alone
    with path.open("wb") as target:
        while part := file.read(_CHUNK):
            target.write(part)
    return _sha256_of(path)


def _put(data: bytes, sha256: str, source: Path) -> str:
    if _sha256(data) != sha256:
        raise OperationsError(f"{source} is damaged: the blob {sha256} is not what it was")
    return put_blob(data)


@contextmanager
def _new_database() -> Iterator[None]:
    """In it the database is made, which is empty before: the site's once all has gone well, and empty again otherwise.

    PostgreSQL's tables are made in a schema of their own and change over at the end, so that not even a process that is
    killed leaves any.
    """
    if connection.vendor == "sqlite":
        try:
            yield
        except BaseException:
            connection.close()
            _delete_sqlite()
            raise
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        (home,) = cursor.fetchone()
        cursor.execute(f"DROP SCHEMA IF EXISTS {_SCHEMA} CASCADE")  # of one that was killed
        cursor.execute(f"CREATE SCHEMA {_SCHEMA}")
        cursor.execute(f"SET search_path TO {_SCHEMA}")
    try:
        yield
        with transaction.atomic(), connection.cursor() as cursor:
            quote = connection.ops.quote_name
            for table in connection.introspection.table_names(cursor):
                cursor.execute(f"ALTER TABLE {quote(table)} SET SCHEMA {quote(home)}")
            cursor.execute(f"DROP SCHEMA {_SCHEMA}")
    except BaseException:
        connection.close()
        with (
            suppress(DatabaseError),
            connection.cursor() as cursor,
        ):  # if it is away, the next try does it
            cursor.execute(f"DROP SCHEMA {_SCHEMA} CASCADE")
        raise
    connection.close()  # the next one looks for the tables where they are now


def _load(about: About, folder: Path) -> None:
    """Make the database of the files in `folder`."""
    if connection.vendor == "sqlite":
        connection.close()
        target = _delete_sqlite()  # what is left beside a database that is gone
        copy = folder / PurePosixPath(SQLITE_MEMBER).name
        copy.chmod(0o600)
        copy.replace(target)
        return
    _make_tables(about)  # not in a transaction: some migrations cannot be
    with transaction.atomic(), connection.cursor() as cursor:
        tables = ", ".join(map(connection.ops.quote_name, about.tables))
        cursor.execute(f"TRUNCATE {tables}")  # what migrations put there is in the backup, too
        for table, columns in about.tables.items():
            with (
                (folder / table).open("rb") as file,
                cursor.copy(f"COPY {_listed(table, columns)} FROM STDIN") as rows,
            ):
                while part := file.read(_CHUNK):
                    rows.write(part)
        for statement in connection.ops.sequence_reset_sql(no_style(), _models(about)):
            cursor.execute(statement)


def _delete_sqlite() -> Path:
    """Delete the file of the database and what belongs to it; where it was."""
    path = Path(connection.settings_dict["NAME"])
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)
    return path


def _make_tables(about: About) -> None:
    """The tables as they were when the backup was made."""
    executor = MigrationExecutor(connection)
    applied, squashed = set(about.migrations), executor.loader.replacements
    if all(applied.issuperset(migration.replaces) for migration in squashed.values()):
        applied.update(squashed)
    else:  # it is older than what they make at once
        executor.loader = MigrationLoader(connection, replace_migrations=False)
        applied.difference_update(squashed)
    nodes = executor.loader.graph.node_map
    applied.intersection_update(nodes)
    executor.migrate(
        sorted(key for key in applied if not {child.key for child in nodes[key].children} & applied)
    )


def _models(about: About) -> list[Any]:
    return [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.db_table in about.tables  # noqa: SLF001 Django's name of it
    ]


def _write_key(path: Path, key: bytes) -> None:
    with suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key + b"\n")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
