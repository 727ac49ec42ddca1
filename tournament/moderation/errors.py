"""The errors of moderation. Each message says what to change.

::

    UsageError                    (engine)
    └── ModerationError           somebody who cannot be suspended, readmitted or erased so
        └── ErasureListError      the list of erasures cannot be read or written
"""

from __future__ import annotations

from engine.errors import UsageError


class ModerationError(UsageError):
    """Somebody who cannot be suspended, readmitted or erased so."""


class ErasureListError(ModerationError):
    """The list of erasures cannot be read or written."""
