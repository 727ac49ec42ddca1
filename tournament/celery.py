"""The Celery app: it carries messages that say "look at this row", nothing else.

Pool children are forks of the worker's main process. Each plays from its own main thread, in which it
also starts its sandbox: bubblewrap's ``--die-with-parent`` follows the thread that spawned it. So the
pool must be ``prefork`` (or ``solo``), never threads.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_process_init, worker_shutting_down

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tournament.settings")

app = Celery("tournament")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.imports = ("tournament.tasks",)

_stopping_since = multiprocessing.Value("d", 0.0)
"""In shared memory: when (monotonic seconds) the worker was told to stop; 0 as long as it was not."""


def stop_seconds() -> float:
    """For how long this worker has known that it has to stop; 0 while it has not been told."""
    since = _stopping_since.value
    return time.monotonic() - since if since else 0.0


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _stop(**_: Any) -> None:
    """From now on no child claims anything; what is being played may be finished."""
    _stopping_since.value = time.monotonic()


@worker_init.connect  # type: ignore[untyped-decorator]
@worker_process_init.connect  # type: ignore[untyped-decorator]
def _close_connections(**_: Any) -> None:
    """No connection to the database goes through a fork."""
    from django.db import connections

    connections.close_all()
