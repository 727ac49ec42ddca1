"""The Celery app: it carries messages that say "look at this row", nothing else.

Pool children are forks of the worker's main process. Each plays from its own main thread, in which it
also starts its sandbox: bubblewrap's ``--die-with-parent`` follows the thread that spawned it. So the
pool must be ``prefork`` (or ``solo``), never threads.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from celery import Celery
from celery.signals import (
    setup_logging,
    task_postrun,
    task_prerun,
    worker_init,
    worker_process_init,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from structlog.contextvars import bind_contextvars, clear_contextvars

from tournament.operations.settling import settle_messages
from tournament.store.queues import PLAYING_QUEUES, spelled_out

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tournament.settings")

app = Celery("tournament")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.imports = ("tournament.tasks",)
settle_messages()

logger = logging.getLogger(__name__)

_stopping_since = multiprocessing.RawValue("d", 0.0)
"""In shared memory, without a lock, since it is asked at each move of a match: when (monotonic seconds) the worker was told to stop; 0 as long as it was not."""


def stop_seconds() -> float:
    """For how long this worker has known that it has to stop; 0 while it has not been told."""
    since = _stopping_since.value
    return time.monotonic() - since if since else 0.0


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _stop(**_: Any) -> None:
    """From now on no child claims anything; what is being played may be finished."""
    _stopping_since.value = time.monotonic()


@setup_logging.connect  # type: ignore[untyped-decorator]
def _leave_logging(**_: Any) -> None:
    """The settings say what is logged and how; with somebody here, Celery does not set it up anew."""


@task_prerun.connect  # type: ignore[untyped-decorator]
def _begin_task(task_id: str, task: Any, **_: Any) -> None:
    """What is logged from now on is the task's, and its first query connects anew if need be."""
    from tournament.store.services import drop_broken_connection

    clear_contextvars()
    bind_contextvars(task=task_id, task_name=task.name)
    drop_broken_connection()


@task_postrun.connect  # type: ignore[untyped-decorator]
def _end_task(**_: Any) -> None:
    """What is logged from now on is no task's."""
    clear_contextvars()


@worker_init.connect  # type: ignore[untyped-decorator]
@worker_process_init.connect  # type: ignore[untyped-decorator]
def _close_connections(**_: Any) -> None:
    """No connection to the database goes through a fork."""
    from django.db import connections

    connections.close_all()


@worker_init.connect  # type: ignore[untyped-decorator]
def _report(sender: Any, **_: Any) -> None:
    """Before the pool is forked, so that its children know already what the walls come to."""
    taken = sender.app.amqp.queues
    for queue in spelled_out(taken.consume_from):
        if queue not in taken.consume_from:
            taken.select_add(queue)
    if _plays(sender.app):
        from tournament.workers.services import report_worker

        _tell(report_worker, sender.hostname, **_service(sender))


@worker_ready.connect  # type: ignore[untyped-decorator]
def _go_on_reporting(sender: Any, **_: Any) -> None:
    """Give a sign of life now and then, from the main process, whatever its children do."""
    if not _plays(sender.app):
        return
    from tournament.workers.services import REPORT_SECONDS, give_sign_of_life

    sign = partial(_tell, give_sign_of_life, sender.hostname, **_service(sender.controller))
    sign()  # it has waited for the broker, perhaps for long
    if not _reporting:
        _reporting.append(sender.hostname)
        sender.timer.call_repeatedly(REPORT_SECONDS, sign)


@worker_shutdown.connect  # type: ignore[untyped-decorator]
def _sign_off(**_: Any) -> None:
    """It stops in order, and is not missed."""
    if _reporting:
        from tournament.workers.services import sign_off

        _tell(sign_off, _reporting.pop())


_reporting: list[str] = []
"""The name under which this process gives signs of life; a lost broker makes it ready anew, and it goes on."""


def _plays(app: Celery) -> bool:
    return bool(PLAYING_QUEUES & set(app.amqp.queues.consume_from))


def _service(worker: Any) -> dict[str, Any]:
    """What a worker takes, and how many of it at once."""
    return {"queues": sorted(worker.app.amqp.queues.consume_from), "slots": worker.concurrency}


def _tell(service: Callable[..., None], name: str, **about: Any) -> None:
    """Call a service of the workers' reports; a database that is away stops no worker."""
    from django.db import DatabaseError, connections

    try:
        service(name=name, **about)
    except DatabaseError as error:
        logger.warning("%s could not be written down: %s", service.__name__, error)
    finally:
        connections.close_all()  # no connection goes through a fork
