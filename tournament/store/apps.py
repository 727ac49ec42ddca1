"""The app's place in Django."""

from __future__ import annotations

from django.apps import AppConfig


class StoreConfig(AppConfig):
    """The app `store`."""

    name = "tournament.store"
