"""The operations app of the site."""

from __future__ import annotations

import logging

from django.apps import AppConfig


class OperationsConfig(AppConfig):
    """The embedded stack and the commands around it, health and metrics, the page of the queue; it has no tables."""

    name = "tournament.operations"

    def ready(self) -> None:
        """Let the admin's menu lead to the queue, which is no model, and what libraries warn of be logged as all else is."""
        from django.contrib import admin

        from tournament.operations.menu import add_queue

        add_queue(admin.site)
        logging.captureWarnings(capture=True)
