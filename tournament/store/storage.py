"""Blobs as private files: written whole or not at all, never overwritten."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.files.storage import FileSystemStorage


class BlobStorage(FileSystemStorage):
    """Files that only this user can read, each put in place by a rename after it is on the disk."""

    def __init__(self, location: str) -> None:
        super().__init__(
            location=location, file_permissions_mode=0o600, directory_permissions_mode=0o700
        )

    def url(self, name: str | None) -> str:
        """Blobs have no address: views decide who may read them. Raises ValueError."""
        raise ValueError(f"the blob {name} is private and has no URL")

    def _save(self, name: str, content: File[Any]) -> str:
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

    def renew(self, name: str) -> bool:
        """Let a file be as young as a new one; False if there is none."""
        try:
            os.utime(self.path(name))
        except FileNotFoundError:
            return False
        return True

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """The name itself: equal names have equal contents."""
        del max_length
        return name
