"""The app's place in Django."""

from __future__ import annotations

from django.apps import AppConfig


class PlayersConfig(AppConfig):
    """The app `players`."""

    name = "tournament.players"
