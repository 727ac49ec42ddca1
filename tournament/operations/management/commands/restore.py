"""``manage.py restore FILE``: a site as it was when a backup was made, in a home that has none."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tournament.moderation.errors import ModerationError
from tournament.moderation.services import erasures_file
from tournament.operations.backups import restore_backup
from tournament.operations.errors import OperationsError
from tournament.store.errors import StoreError

USAGE = 2


class Command(BaseCommand):
    """Put a backup back."""

    help = (
        "Put a backup into a site that has no database yet, check every hash in it, bring it to this version's "
        "tables, and remove again who was erased since. Stop web, workers and beat before, and start them after."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012 Django's own; there is no database yet

    def add_arguments(self, parser: CommandParser) -> None:
        """Which backup, and the list of erasures."""
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument(
            "--erasures",
            metavar="FILE",
            type=Path,
            help="the list of erasures; by default erasures.jsonl in the home",
        )

    def handle(self, *_args: Any, file: Path, erasures: Path | None, **_options: Any) -> None:
        """Do it; exit code 2 if it cannot be done so, 1 if something is missing that the site needs."""
        if erasures is not None and not erasures.is_file():
            raise CommandError(f"there is no list of erasures {erasures}", returncode=USAGE)
        has_list = (erasures or erasures_file()).is_file()
        try:
            report = restore_backup(file, erasures=erasures)
        except OSError as error:
            raise CommandError(
                f"{error.filename or file} cannot be read or written: {error.strerror}",
                returncode=USAGE,
            ) from error
        except (OperationsError, StoreError, ModerationError) as error:
            raise CommandError(str(error), returncode=USAGE) from error
        made = datetime.fromtimestamp(report.made_at, UTC)
        self.stdout.write(
            f"The site is as it was at {made:%Y-%m-%d %H:%M:%S} UTC: {report.blobs} blobs."
        )
        if report.kept_key:
            self.stdout.write(
                "Its secret key is that of ARENA_SECRET_KEY_FILE: people log in anew."
            )
        if not has_list:
            self.stdout.write(
                f"No list of erasures found at {erasures_file()}: whoever was erased since the backup is back."
            )
        for name in report.erased:
            self.stdout.write(f"Erased again: {name}")
        if report.lost:
            raise CommandError(
                f"{len(report.lost)} blobs that the site needs are nowhere, e.g. {report.lost[0]}: what they hold "
                "cannot be shown, and matches that need them wait for you"
            )
        self.stdout.write("Try it: manage.py ratings verify. Then start web, workers and beat.")
