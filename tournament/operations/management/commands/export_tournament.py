"""``manage.py export-tournament SLUG [FILE]``: a finished tournament as one document that anyone can verify."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import Tournament
from tournament.competitions.selectors.bundles import (
    bundle_name,
    packed_bundle,
    plain_bundle,
    tournament_bundle,
)

PACKED = ".gz"
USAGE = 2


class Command(BaseCommand):
    """Write the bundle of a finished tournament into a file."""

    help = (
        "Write a finished tournament as one document that anyone can verify by arena verify-tournament: commitment, "
        "secret, records, pairings, standings and ratings. A file whose name ends with .gz is packed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Which tournament, and where to."""
        parser.add_argument("slug", metavar="SLUG", help="the last part of its page's address")
        parser.add_argument(
            "file", metavar="FILE", nargs="?", type=Path, help="by default SLUG.bundle.json.gz"
        )

    def handle(self, *_args: Any, slug: str, file: Path | None, **_options: Any) -> None:
        """Write it, or end with exit code 2 and the reason."""
        tournament = Tournament.objects.filter(slug=slug).first()
        if tournament is None:
            raise CommandError(f"there is no tournament {slug!r}", returncode=USAGE)
        try:
            bundle = tournament_bundle(tournament)
        except TournamentStateError as error:
            raise CommandError(str(error), returncode=USAGE) from error
        target = file or Path(bundle_name(tournament))
        write = packed_bundle if target.suffix == PACKED else plain_bundle
        try:
            size = write_whole(target, write(bundle))
        except OSError as error:
            raise CommandError(
                f"{target} cannot be written ({error.strerror}): name another file",
                returncode=USAGE,
            ) from error
        self.stdout.write(
            f"{target}: {len(bundle.records)} matches, {size} bytes, {bundle.digest}\n"
            f"Verify it: arena verify-tournament {target}"
        )


def write_whole(target: Path, chunks: Iterable[bytes]) -> int:
    """Write a file at once or not at all; its size in bytes. Raises OSError if it cannot be written."""
    size = 0
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            for chunk in chunks:
                size += file.write(chunk)
        Path(unfinished).chmod(0o644)
        Path(unfinished).replace(target)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    return size
