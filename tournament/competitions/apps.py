"""The app's place in Django."""

from __future__ import annotations

from django.apps import AppConfig


class CompetitionsConfig(AppConfig):
    """The app `competitions`."""

    name = "tournament.competitions"
