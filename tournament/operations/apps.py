"""The operations app of the site."""

from __future__ import annotations

from django.apps import AppConfig


class OperationsConfig(AppConfig):
    """The embedded stack and the commands around it; it has no tables."""

    name = "tournament.operations"
