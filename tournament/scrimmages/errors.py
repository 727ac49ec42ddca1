"""The errors of scrimmages. Each message says what to change.

::

    UsageError                         (engine)
    └── ScrimmageError                 a scrimmage that cannot be asked for, cancelled or played again so
        ├── InvalidScrimmageError      what was asked for is wrong (a message per field)
        └── ScrimmageQuotaError        too many are open, or were asked for within a day
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from engine.errors import UsageError


class ScrimmageError(UsageError):
    """A scrimmage that cannot be asked for, cancelled or played again so."""


class InvalidScrimmageError(ScrimmageError):
    """What was asked for is wrong; `fields` has a message by field."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {message}" for field, message in fields.items()))
        self.fields = dict(fields)


class ScrimmageQuotaError(ScrimmageError):
    """Too many are open, or were asked for within a day; `next_at` tells when the next is possible, if it is known."""

    def __init__(self, message: str, next_at: datetime | None = None) -> None:
        super().__init__(message)
        self.next_at = next_at
