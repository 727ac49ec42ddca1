"""The app's place in Django."""

from __future__ import annotations

from django.apps import AppConfig


class ScrimmagesConfig(AppConfig):
    """The app `scrimmages`."""

    name = "tournament.scrimmages"
