"""Gunicorn's own lines in the form of all others."""

from __future__ import annotations

import os
from typing import Any

from gunicorn.glogging import Logger

from tournament.operations.logs import log_formatter


class WebLogger(Logger):  # type: ignore[misc]  # untyped
    """What the web server says of itself, as ``ARENA_LOG_FORMAT`` asks for it; the settings have judged that."""

    def setup(self, cfg: Any) -> None:
        """Set up as usual, with another form."""
        super().setup(cfg)
        form = os.environ.get("ARENA_LOG_FORMAT") or "line"
        for handler in self.error_log.handlers:
            handler.setFormatter(log_formatter(form))
