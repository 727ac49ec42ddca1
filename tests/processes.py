"""Many at once: processes of their own, each with its own connection to the same database."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

from django.db import connections

PROCESSES = 8
_inherited: list[Any] = []


def leave_inherited_connections() -> None:
    """In a forked process: use no connection that its parent has open, and close none.

    `close_all` in the parent is not enough once a browser test has run there: Playwright's loop is then the running
    one, and Django keeps other connections for it than for a process without a loop, as a forked one is.
    """
    for connection in connections.all(initialized_only=True):
        _inherited.append(
            connection.connection
        )  # kept, so that nothing is said to the server about its end
        connection.connection = None


def at_once(act: Callable[[int], Any], processes: int = PROCESSES) -> list[Any]:
    """What `act(number)` gives in each of so many processes, all let go at the same moment."""
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(processes), context.SimpleQueue()

    def run(number: int) -> None:
        leave_inherited_connections()
        barrier.wait(timeout=300)
        try:
            results.put((number, act(number)))
        except BaseException as error:  # noqa: BLE001 - handed to the test, which fails by it
            results.put((number, error))

    connections.close_all()
    children = [context.Process(target=run, args=(number,)) for number in range(processes)]
    for child in children:
        child.start()
    found = dict(results.get() for _ in children)
    for child in children:
        child.join()
    errors = [value for value in found.values() if isinstance(value, BaseException)]
    if errors:
        raise ExceptionGroup("in the processes", [e for e in errors if isinstance(e, Exception)])
    return [found[number] for number in range(processes)]
