"""Letting this process's Django use another database than that of the test run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db import connections


@contextlib.contextmanager
def connected_to(database: dict[str, Any]) -> Iterator[None]:
    """Use the database of these settings instead of the run's own. Wants its access to be unblocked."""
    old, settings = connections["default"], connections.settings["default"]
    connections.settings["default"] = connections.configure_settings({"default": database})[
        "default"
    ]
    del connections["default"]
    ContentType.objects.clear_cache()
    try:
        yield
    finally:
        connections["default"].close()
        connections.settings["default"] = settings
        connections["default"] = old
        ContentType.objects.clear_cache()
