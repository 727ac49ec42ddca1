"""The errors of the store.

::

    BlobError
    ├── BlobMissingError     there is no blob with this hash
    └── BlobDamagedError     what is stored under this hash is something else
"""

from __future__ import annotations


class BlobError(Exception):
    """A blob that cannot be read; `sha256` is its hash."""

    def __init__(self, sha256: str, message: str) -> None:
        super().__init__(message)
        self.sha256 = sha256


class BlobMissingError(BlobError):
    """There is no blob with this hash."""

    def __init__(self, sha256: str) -> None:
        super().__init__(sha256, f"no blob {sha256}: restore it from a backup of the site's home")


class BlobDamagedError(BlobError):
    """What is stored under this hash is something else."""

    def __init__(self, sha256: str) -> None:
        super().__init__(
            sha256, f"the blob {sha256} is damaged: restore it from a backup of the site's home"
        )
