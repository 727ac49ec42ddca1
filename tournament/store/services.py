"""Put and read blobs, and beat pulses."""

from __future__ import annotations

import hashlib
import logging
import uuid
import zlib
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import datetime
from typing import TypeVar, cast

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import InterfaceError, OperationalError, connection
from django.db.models.functions import Now

from tournament.store.clock import in_seconds
from tournament.store.errors import BlobDamagedError, BlobMissingError
from tournament.store.models import Pulse
from tournament.store.storage import BlobStorage, BlobStore
from tournament.store.tallies import STORE_BYTES, STORE_FILES, measure

logger = logging.getLogger(__name__)

RowT = TypeVar("RowT")
PACKING_LEVEL = 6
PARTS = "0123456789abcdef"
"""How a hash may begin: what concerns all blobs is done in so many parts."""
_GZIP = 31
"""What zlib calls gzip's own head and tail; that head holds no time, so equal bytes pack alike."""
_GZIP_MAGIC = b"\x1f\x8b"


def put_blob(data: bytes) -> str:
    """Keep `data` and return its SHA-256 in hex. Call it before the row that names the blob is written.

    A blob that is there already counts as written now: as an old one that no row names yet it could
    be swept before the row is written.
    """
    sha256 = hashlib.sha256(data).hexdigest()
    name = _name(sha256)
    storage = _storage()
    if not storage.renew(name, len(data)):
        storage.save(name, ContentFile(data))
    return sha256


def read_blob(sha256: str) -> bytes:
    """The bytes whose SHA-256 is `sha256`.

    Raises BlobMissingError if there are none, BlobDamagedError if what is stored has another hash, and
    StoreUnavailableError if the store does not answer.
    """
    try:
        data = _storage().read(_name(sha256))
    except FileNotFoundError:
        raise BlobMissingError(sha256) from None
    if not _is_of(data, sha256):
        raise BlobDamagedError(sha256)
    return data


def read_often(sha256: str) -> bytes:
    """As `read_blob`, for what a machine needs again and again: read from the store once, then from its own disk.

    What is damaged there is read anew. Of a store that is a folder nothing is kept a second time.
    """
    if "nearby" not in settings.STORAGES:
        return read_blob(sha256)
    nearby, name = storages["nearby"], _name(sha256)
    assert isinstance(nearby, BlobStorage)
    with suppress(FileNotFoundError):
        data = nearby.read(name)
        if _is_of(data, sha256):
            nearby.renew(name, len(data))
            return data
    data = read_blob(sha256)
    nearby.save(name, ContentFile(data))
    nearby.shrink(settings.NEARBY_BYTES)
    return data


def put_packed(data: bytes) -> str:
    """As `put_blob`, of what packs well: it is kept packed by gzip, and the hash is that of the packed bytes."""
    return put_blob(zlib.compress(data, PACKING_LEVEL, wbits=_GZIP))


def read_packed(sha256: str) -> bytes:
    """What `put_packed` was given, or what older versions kept unpacked. Raises as `read_blob`."""
    data = read_blob(sha256)
    return zlib.decompress(data, wbits=_GZIP) if data.startswith(_GZIP_MAGIC) else data


def check_store() -> None:
    """Write something, and delete it. Raises OSError or StoreUnavailableError if the store does not take it."""
    storage, name = _storage(), f"00/probe-{uuid.uuid4().hex}"
    storage.save(name, ContentFile(b"Does the store take what is written?"))
    storage.delete(name)


def has_blob(sha256: str) -> bool:
    """Whether the store has something under this hash."""
    return _storage().exists(_name(sha256))


def sweep(*, in_use: Callable[[str], Collection[str]], older_than: datetime) -> int:
    """Delete the blobs that no row names and that are old enough.

    `in_use` gives the hashes that rows name and that begin with a text: it is asked for one of `PARTS` after the
    other, so that of a big site never all of them are in memory. Young ones stay, since a blob is written before the row that names it. How many were deleted; what the others
    take is measured by the way, for the metrics.
    """
    storage = _storage()
    deleted = files = taken = 0
    for part in PARTS:
        keep = in_use(part)
        for blob in storage.listing(part):
            if blob.written < older_than and blob.name.replace("/", "") not in keep:
                storage.delete(blob.name)
                deleted += 1
            else:
                files, taken = files + 1, taken + blob.size
    measure(STORE_FILES, files)
    measure(STORE_BYTES, taken)
    return deleted


def delete_blobs(hashes: Collection[str]) -> int:
    """Delete these blobs now, also what this machine keeps near itself; how many were there.

    Only what no row needs any more.
    """
    names = [_name(sha256) for sha256 in hashes]
    if "nearby" in settings.STORAGES:
        for name in names:
            storages["nearby"].delete(name)
    there = [name for name in names if _storage().exists(name)]
    for name in there:
        _storage().delete(name)
    return len(there)


def beat(*, name: str, at_least_seconds: float = 0.0) -> bool:
    """Note that `name` happens now; False if it did so less than `at_least_seconds` ago."""
    due = Pulse.objects.filter(name=name, at__lte=in_seconds(-at_least_seconds))
    return bool(due.update(at=Now())) or Pulse.objects.get_or_create(name=name)[1]


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
    """Let the next query connect anew if the connection to the database is broken.

    After an error, and where a connection has idled for so long that its server may have been restarted.
    """
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


def _storage() -> BlobStore:
    return cast(BlobStore, storages["blobs"])


def _is_of(data: bytes, sha256: str) -> bool:
    return hashlib.sha256(data).hexdigest() == sha256


def _name(sha256: str) -> str:
    if len(sha256) != 64 or not sha256.isalnum():
        raise BlobMissingError(sha256)
    return f"{sha256[:2]}/{sha256[2:]}"
