"""Where blobs lie: what a store has to do, and a folder that does it. Another is `tournament.store.s3`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from django.core.files import File
from django.core.files.storage import FileSystemStorage

from tournament.store.errors import StoreUnavailableError


class StoredBlob(NamedTuple):
    """A blob as a listing tells it."""

    name: str
    written: datetime
    """Since when it is there, or was renewed."""
    size: int
    """Bytes."""


class BlobStore(Protocol):
    """What a Django storage must be able to do to hold blobs, each under a name made from its hash.

    Each raises StoreUnavailableError if the store does not answer, or OSError.
    """

    def renew(self, name: str, size: int) -> bool:
        """Let a blob be as young as a new one; False if there is none, or one of another size."""
        ...

    def save(self, name: str, content: File[Any]) -> str:
        """Write a blob, whole or not at all; an equal one may be there."""
        ...

    def read(self, name: str) -> bytes:
        """All of a blob. Raises FileNotFoundError."""
        ...

    def exists(self, name: str) -> bool:
        """Whether there is such a blob."""
        ...

    def delete(self, name: str) -> None:
        """Let go of a blob; nothing happens if there is none."""
        ...

    def listing(self, start: str = "") -> Iterator[StoredBlob]:
        """All blobs whose name begins with `start`, of two characters at most."""
        ...


class BlobStorage(FileSystemStorage):
    """Files that only this user can read, each put in place by a rename after it is on the disk.

    A folder that `must_be_there` is not made, and while it is away nothing is said to be missing in it: several
    machines may mount it, and what was written into the place of a mount would be nowhere later.
    """

    def __init__(self, location: str, *, must_be_there: bool = False) -> None:
        super().__init__(
            location=location, file_permissions_mode=0o600, directory_permissions_mode=0o700
        )
        self._must_be_there = must_be_there

    def url(self, name: str | None) -> str:
        """Blobs have no address: views decide who may read them. Raises ValueError."""
        raise ValueError(f"the blob {name} is private and has no URL")

    def _save(self, name: str, content: File[Any]) -> str:
        self._refuse_if_away()
        target = Path(self.path(name))
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                for chunk in content.chunks():
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return name

    def renew(self, name: str, size: int) -> bool:
        """Let a file be as young as a new one; False if there is none, or one of another size."""
        try:
            if Path(self.path(name)).stat().st_size != size:
                return False
            os.utime(self.path(name))
        except FileNotFoundError:
            return False
        return True

    def _refuse_if_away(self) -> None:
        if self._must_be_there and not Path(self.location).is_dir():
            raise StoreUnavailableError(
                f"the folder {self.location} is not there; make it, or mount it"
            )

    def read(self, name: str) -> bytes:
        """All of a file. Raises FileNotFoundError."""
        try:
            return Path(self.path(name)).read_bytes()
        except FileNotFoundError:
            self._refuse_if_away()
            raise

    def listing(self, start: str = "") -> Iterator[StoredBlob]:
        """All files whose name begins so; what a write that was killed has left is among them, so it is swept."""
        root = Path(self.location)
        for path in root.glob(f"{start}{'?' * (2 - len(start))}/*"):
            with suppress(FileNotFoundError):  # another deletes it
                status = path.stat()
                written = datetime.fromtimestamp(status.st_mtime, UTC)
                yield StoredBlob(path.relative_to(root).as_posix(), written, status.st_size)

    def shrink(self, most_bytes: int) -> None:
        """Delete files until they have at most so many bytes together, those first that were renewed longest ago."""
        found = []
        for path in Path(self.location).glob("??/*"):
            with suppress(FileNotFoundError):  # another shrinks it too
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        excess = sum(size for _, size, _ in found) - most_bytes
        for _, size, path in sorted(found):
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """The name itself: equal names have equal contents."""
        del max_length
        return name
