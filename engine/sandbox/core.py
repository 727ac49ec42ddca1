"""One core for a match: referee and bots take turns, so a second one only makes them wait for each other.

A round trip between processes on one core costs 5 µs, between two cores up to ten times that. Each process
that plays claims a core that no other has claimed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator

_MARK = "domino-arena-core"
_claimed: tuple[int, int, int | None] | None = None
"""Our pid, the core, and the open file that marks it as ours: a forked child must claim anew."""


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Meanwhile this thread, and every process that it starts, runs on one core alone."""
    if sys.platform != "linux":
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {_claim(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _claim(allowed: set[int]) -> int:
    """The core of this process, one of those that it may use."""
    global _claimed  # noqa: PLW0603  # what a process has claimed is a fact about the process
    if _claimed is None or _claimed[0] != os.getpid() or _claimed[1] not in allowed:
        if _claimed is not None and _claimed[2] is not None:
            os.close(_claimed[2])
        _claimed = (os.getpid(), *_find_free(sorted(allowed)))
    return _claimed[1]


def _find_free(cores: list[int]) -> tuple[int, int | None]:
    """A core that is free, and its mark; if none is, any."""
    for core in cores:
        mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            # A name in the abstract namespace has one owner, leaves no file, and is free when the owner is gone.
            mark.bind(f"\0{_MARK}-{core}")
        except OSError:
            mark.close()
        else:
            return core, mark.detach()
    return cores[os.getpid() % len(cores)], None
