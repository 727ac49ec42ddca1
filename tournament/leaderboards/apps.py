"""The app's place in Django."""

from __future__ import annotations

from django.apps import AppConfig


class LeaderboardsConfig(AppConfig):
    """The app `leaderboards`."""

    name = "tournament.leaderboards"
