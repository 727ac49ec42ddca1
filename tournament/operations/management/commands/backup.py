"""``manage.py backup FILE|FOLDER [--keep N] [--without-blobs]``: the whole site in one file, while it goes on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tournament.operations.backups import write_backup
from tournament.store.errors import StoreError

USAGE = 2
PATTERN = "arena-????????-??????.tar"


class Command(BaseCommand):
    """Write a backup, and let go of old ones."""

    help = (
        "Write database, secret key, wheels, records and logs into one file, while the site goes on; "
        "manage.py restore puts it back. Keep it as safe as the site: whoever has it can read everything."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to, and how many stay."""
        parser.add_argument(
            "target",
            metavar="FILE|FOLDER",
            type=Path,
            help="in a folder it is named by the time, UTC",
        )
        parser.add_argument(
            "--keep",
            metavar="N",
            type=int,
            help="delete all but the N newest such files in the folder",
        )
        parser.add_argument(
            "--without-blobs",
            action="store_true",
            help="only name wheels, records and logs: their store is kept safe by other means",
        )

    def handle(
        self,
        *_args: Any,
        target: Path,
        keep: int | None,
        without_blobs: bool,
        **_options: Any,
    ) -> None:
        """Write it; exit code 2 for a place that takes no file, 1 if the site itself has lost something."""
        is_folder = target.is_dir()
        if keep is not None and (not is_folder or keep < 1):
            raise CommandError(
                "--keep needs a folder that is there, and at least 1", returncode=USAGE
            )
        file = (
            target / time.strftime("arena-%Y%m%d-%H%M%S.tar", time.gmtime())
            if is_folder
            else target
        )
        if not file.parent.is_dir():
            raise CommandError(
                f"there is no folder {file.parent.absolute()}: make it first, or name another place",
                returncode=USAGE,
            )
        try:
            report = write_backup(file, with_blobs=not without_blobs)
        except OSError as error:
            raise CommandError(
                f"{file} cannot be written ({error.strerror}): name another place", returncode=USAGE
            ) from error
        except StoreError as error:
            raise CommandError(str(error)) from error
        named = " (named only)" if without_blobs else ""
        self.stdout.write(f"{file}: {report.blobs} blobs{named}, {report.size} bytes")
        if keep is not None:
            for old in sorted(target.glob(PATTERN))[:-keep]:
                old.unlink()
                self.stdout.write(f"{old}: deleted")
        if report.lost:
            raise CommandError(
                f"the store has lost or damaged {len(report.lost)} blobs that the site needs, so the backup is "
                f"without them, e.g. {report.lost[0]}: look for them in an older backup"
            )
