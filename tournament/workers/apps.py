"""The app's place in Django."""

from __future__ import annotations

from django.apps import AppConfig


class WorkersConfig(AppConfig):
    """The app `workers`."""

    name = "tournament.workers"
