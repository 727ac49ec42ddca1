"""``manage.py move-database [--from FILE]``: take a site from SQLite to PostgreSQL, and prove that it is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from tournament.operations.databases import SQLITE_FILE
from tournament.operations.errors import OperationsError
from tournament.operations.home import Home
from tournament.operations.moving import MoveReport, move_database

USAGE = 2


class Command(BaseCommand):
    """Copy all rows into an empty PostgreSQL database, in one transaction, and prove them there."""

    help = (
        "Take a stopped site from SQLite to the empty PostgreSQL database that ARENA_DATABASE names. All rows are "
        "copied in one transaction; before its end counts and digests of every table are compared, all ratings are "
        "replayed, and every record and told bundle is digested anew. If anything differs, nothing was moved."
    )
    requires_system_checks = ()
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        """Where from."""
        parser.add_argument(
            "--from",
            dest="source",
            metavar="FILE",
            type=Path,
            help=f"the SQLite database; by default {SQLITE_FILE} in the home",
        )

    def handle(self, *_args: Any, source: Path | None, **_options: Any) -> None:
        """Do it, or end with exit code 2 and the reason."""
        path = (source or settings.ARENA_HOME / SQLITE_FILE).absolute()
        if not path.is_file():
            raise CommandError(
                f"there is no {path}: name the site's SQLite file\nNothing was moved.",
                returncode=USAGE,
            )
        try:
            with Home(path.parent).stopped():
                report = move_database(path=path, tell=self.stdout.write)
        except PermissionError as error:
            raise CommandError(
                f"{error.filename} cannot be opened: run this as the site's user", returncode=USAGE
            ) from error
        except OperationsError as error:
            raise CommandError(f"{error}\nNothing was moved.", returncode=USAGE) from error
        self.stdout.write("\n".join(spell(report)))


def spell(report: MoveReport) -> list[str]:
    """What was proved, for people."""
    lines = [
        f"Moved {report.rows} rows of {len(report.tables)} tables. In the new database",
        "  every table has as many rows as before, and the same digest of them;",
        f"  the logs of {report.pools} rating pools, replayed, give the stored ratings;",
        f"  {report.records} records of matches have the digests that the database says;",
        f"  {report.bundles} bundles of finished tournaments, made anew, have the digests that were told.",
    ]
    if report.replaced:
        lines.append(
            f"  In {report.replaced} values NUL characters became U+FFFD: PostgreSQL does not keep them."
        )
    return [
        *lines,
        "Start the site with this ARENA_DATABASE from now on; the old file is left as it was.",
    ]
