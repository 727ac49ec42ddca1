"""``manage.py submit_reference_bots``: for sites that are not started by ``manage.py up``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from tournament.operations.house import submit_reference_bots


class Command(BaseCommand):
    """Submit what is new among the reference bots, for the account ``house``."""

    help = "Submit what is new among the reference bots, for the account house; safe to repeat."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Submit them, and list all that the house has."""
        bots = submit_reference_bots(self.stderr.write)
        self.stdout.write(f"The house has {', '.join(bot.name for bot in bots)}.")
