"""The errors of the store.

::

    StoreError
    ├── BlobError                a blob that cannot be read
    │   ├── BlobMissingError     there is no blob with this hash
    │   └── BlobDamagedError     what is stored under this hash is something else
    └── StoreUnavailableError    the store does not answer, or refuses

To a match each of them is a failure of our own: it is played again, and never a forfeit.
"""

from __future__ import annotations


class StoreError(Exception):
    """Blobs cannot be read or written."""


class StoreUnavailableError(StoreError):
    """The store does not answer, or refuses."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            f"the store of blobs cannot be used ({detail}): look at ARENA_STORE and its server"
        )


class BlobError(StoreError):
    """A blob that cannot be read; `sha256` is its hash."""

    def __init__(self, sha256: str, message: str) -> None:
        super().__init__(message)
        self.sha256 = sha256


class BlobMissingError(BlobError):
    """There is no blob with this hash."""

    def __init__(self, sha256: str) -> None:
        super().__init__(sha256, f"no blob {sha256}: restore it from a backup of the site")


class BlobDamagedError(BlobError):
    """What is stored under this hash is something else."""

    def __init__(self, sha256: str) -> None:
        super().__init__(
            sha256, f"the blob {sha256} is damaged: restore it from a backup of the site"
        )
