"""Put and read blobs, and beat pulses."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import TypeVar

from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models.functions import Now

from tournament.store.clock import in_seconds
from tournament.store.errors import BlobDamagedError, BlobMissingError
from tournament.store.models import Pulse
from tournament.store.storage import BlobStorage

logger = logging.getLogger(__name__)

RowT = TypeVar("RowT")


def put_blob(data: bytes) -> str:
    """Keep `data` and return its SHA-256 in hex. Call it before the row that names the blob is written.

    A blob that is there already counts as written now: as an old one that no row names yet it could
    be swept before the row is written.
    """
    sha256 = hashlib.sha256(data).hexdigest()
    name = _name(sha256)
    storage = _storage()
    if not storage.renew(name):
        storage.save(name, ContentFile(data))
    return sha256


def read_blob(sha256: str) -> bytes:
    """The bytes whose SHA-256 is `sha256`.

    Raises BlobMissingError if there are none, BlobDamagedError if what is stored has another hash.
    """
    try:
        with _storage().open(_name(sha256)) as file:
            data: bytes = file.read()
    except FileNotFoundError:
        raise BlobMissingError(sha256) from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise BlobDamagedError(sha256)
    return data


def sweep(*, keep: Collection[str], older_than: datetime) -> int:
    """Delete the blobs that no row names (`keep` has the hashes of those) and that are old enough.

    Young ones stay, since a blob is written before the row that names it. How many were deleted.
    """
    storage = _storage()
    deleted = 0
    for folder in storage.listdir("")[0]:
        for name in storage.listdir(folder)[1]:
            path = f"{folder}/{name}"
            if f"{folder}{name}" not in keep and storage.get_modified_time(path) < older_than:
                storage.delete(path)
                deleted += 1
    return deleted


@transaction.atomic
def beat(*, name: str, at_least_seconds: float = 0.0) -> bool:
    """Note that `name` happens now; False if it did so less than `at_least_seconds` ago."""
    _, created = Pulse.objects.get_or_create(name=name)
    return created or bool(
        Pulse.objects.filter(name=name, at__lte=in_seconds(-at_least_seconds)).update(at=Now())
    )


def guard_each(rows: Iterable[RowT], act: Callable[[RowT], bool]) -> int:
    """Act on each row, whatever comes of the others; for how many `act` gave True.

    What goes wrong with one is logged and does not stop the others; but a database that does not
    answer stops all. Not inside a transaction: a failed statement would end it for all rows.
    """
    acted = 0
    for row in rows:
        try:
            acted += act(row)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("%r was passed over", row)
    return acted


def drop_broken_connection() -> None:
    """Let the next query connect anew if the connection to the database is broken."""
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


def _storage() -> BlobStorage:
    storage = storages["blobs"]
    assert isinstance(storage, BlobStorage)
    return storage


def _name(sha256: str) -> str:
    if len(sha256) != 64 or not sha256.isalnum():
        raise BlobMissingError(sha256)
    return f"{sha256[:2]}/{sha256[2:]}"
