"""The app's place in Django."""

from __future__ import annotations

from django.apps import AppConfig


class ModerationConfig(AppConfig):
    """The app `moderation`."""

    name = "tournament.moderation"
