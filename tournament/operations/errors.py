"""What can go wrong while running a site, as one tree.

::

    OperationsError              the site cannot run so; the message says what to change
    ├── BrokerUnavailableError   no Valkey or Redis server on this machine
    ├── ListenError              the address cannot be listened on
    ├── HomeBusyError            another site runs in this home
    └── ChildFailedError         a part of the site ended while starting (carries the end of its log)
"""

from __future__ import annotations


class OperationsError(Exception):
    """The site cannot run so; the message says what to change."""


class BrokerUnavailableError(OperationsError):
    """This machine has no server for the queue."""


class ListenError(OperationsError):
    """The address cannot be listened on."""


class HomeBusyError(OperationsError):
    """Another site runs in this home."""


class ChildFailedError(OperationsError):
    """A part of the site ended while starting."""

    def __init__(self, name: str, status: int | None, log_tail: str) -> None:
        ended = "did not start in time" if status is None else f"ended with status {status}"
        super().__init__(f"{name} {ended}. The end of its log:\n{log_tail or '(empty)'}")
        self.name = name
        self.status = status
        self.log_tail = log_tail
