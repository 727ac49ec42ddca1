"""The errors of leaderboards.

::

    LogError (UsageError)        an event that the log of a pool cannot take
"""

from __future__ import annotations

from engine.errors import UsageError


class LogError(UsageError):
    """An event that the log of a pool cannot take; the message says why."""
