"""The errors of tournaments. Each message says what to change.

::

    UsageError                         (engine)
    ├── InvalidTournamentError         a tournament or series that cannot be made so (a message per field)
    ├── TournamentStateError           not possible in the state that the tournament is in
    └── EntryError                     a bot that cannot enter, leave or be taken out so
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import UsageError


class InvalidTournamentError(UsageError):
    """A tournament that cannot be made so; `fields` has a message by field."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {message}" for field, message in fields.items()))
        self.fields = dict(fields)


class TournamentStateError(UsageError):
    """Not possible in the state that the tournament, match or round is in."""


class EntryError(UsageError):
    """A bot that cannot enter, leave or be taken out so."""
