"""Failpoints: every place between two steps of a process, and a way to die, or to wait, exactly there.

A step is what the outside can see: an SQL statement, a commit, a file synced or moved into its place, a
message published. They are found by looking on, so no line of the product names them, and a statement that
is added later is tried by itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any
from unittest import mock

from django.db import connection, connections

from tests.processes import leave_inherited_connections
from tournament import tasks

Reach = Callable[[str], None]
"""Called at each point with its name."""


@contextlib.contextmanager
def watched(tell: Reach) -> Iterator[None]:
    """Call `tell` before each statement, and before and after each other step, of this thread."""
    watcher = threading.current_thread()

    def reach(name: str) -> None:
        if threading.current_thread() is watcher:
            tell(name)

    def around_statement(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        reach(f"before {' '.join(sql.split())[:60]}")
        return execute(sql, params, many, context)

    def around(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            reach(f"before {name}")
            result = step(*args, **kwargs)
            reach(f"after {name}")
            return result

        return wrapped

    with contextlib.ExitStack() as undo:
        undo.enter_context(connection.execute_wrapper(around_statement))
        undo.enter_context(
            mock.patch.object(connection, "commit", around("commit", connection.commit))
        )
        for name in ("fsync", "replace", "rename", "utime"):
            undo.enter_context(mock.patch.object(os, name, around(name, getattr(os, name))))
        undo.enter_context(mock.patch.object(tasks, "publish", around("publish", tasks.publish)))
        yield


def interleave(first: Callable[[], Any], second: Callable[[], Any], at: int) -> str:
    """Hold `first` at its point `at`, from 1, let `second` go as far as it comes, then both to their ends.

    The point's name; empty if `first` has not so many. What either raises is raised.
    """
    held, go_on, passed = threading.Event(), threading.Event(), []

    def reach(name: str) -> None:
        passed.append(name)
        if len(passed) == at:
            held.set()
            assert go_on.wait(timeout=60)

    def run_first() -> None:
        with watched(reach):
            first()

    with ThreadPoolExecutor(2) as threads:
        ahead = threads.submit(_and_close, run_first)
        while not held.wait(0.005) and not ahead.done():
            pass
        behind = threads.submit(_and_close, second)
        wait([behind], timeout=BLOCKED_SECONDS)
        go_on.set()
        behind.result()
        ahead.result()
    return passed[at - 1] if len(passed) >= at else ""


BLOCKED_SECONDS = 0.3
"""Who has not ended by then waits for a lock of the other, or is slow; both are fine."""


def _and_close(act: Callable[[], Any]) -> None:
    try:
        act()
    finally:
        connection.close()


def points_of(act: Callable[[], Any], log: Path) -> list[str]:
    """The points that a process passes which does `act`, in their order."""
    status, points = _in_a_process(act, log, die_at=0)
    assert status == 0, f"it ended with {status} after {points[-3:]}"
    return points


def die_at(number: int, act: Callable[[], Any], log: Path) -> str:
    """Do `act` in a process that kills itself, as by kill -9, at that point, from 1; the point's name."""
    status, points = _in_a_process(act, log, die_at=number)
    assert status == -signal.SIGKILL, f"it ended with {status} after {points[-3:]}"
    assert len(points) == number
    return points[-1]


def _in_a_process(act: Callable[[], Any], log: Path, *, die_at: int) -> tuple[int, list[str]]:
    connections.close_all()
    child = os.fork()
    if not child:
        _be_the_child(act, log, die_at)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), log.read_text().splitlines()


def _be_the_child(act: Callable[[], Any], log: Path, number: int) -> None:
    status = 3
    leave_inherited_connections()
    try:
        with log.open("w", buffering=1) as file:
            passed = 0

            def reach(name: str) -> None:
                nonlocal passed
                passed += 1
                file.write(name + "\n")
                if passed == number:
                    os.kill(os.getpid(), signal.SIGKILL)

            with watched(reach):
                act()
            status = 0
    except BaseException:  # noqa: BLE001 - told, and the status says so
        traceback.print_exc()
    finally:
        os._exit(status)  # nothing of the test that was forked with it may run
