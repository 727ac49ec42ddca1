"""``manage.py erase-player NAME [--export FILE] [--yes]``: remove a person from the site for good."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q

from tournament.moderation.errors import ModerationError
from tournament.moderation.selectors import erasure_preview, write_personal_data
from tournament.moderation.services import check_erasable, erase_player, erasures_file
from tournament.players.models import Player
from tournament.store.scrubbing import scrub_deleted

USAGE = 2


class Command(BaseCommand):
    """Show what would go, hand it over, erase it."""

    help = (
        "Remove a person from the site: account, tokens, sessions, notices, wheels, logs, and their name wherever "
        "it stands. What their bots played stays under the bots' names, so records, bundles and ratings verify as "
        "before. Shows what would change first, and asks."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Whom, and whether all is agreed."""
        parser.add_argument("name", metavar="NAME", help="the user name, or its form in addresses")
        parser.add_argument(
            "--export",
            metavar="FILE",
            type=Path,
            help="first write all that is kept of the person into this ZIP file",
        )
        parser.add_argument("--yes", action="store_true", help="do it without asking")

    def handle(
        self, *_args: Any, name: str, export: Path | None, yes: bool, **_options: Any
    ) -> None:
        """Do it, or end with exit code 2 and the reason."""
        player = Player.objects.filter(Q(username=name) | Q(slug=name)).order_by("pk").first()
        if player is None:
            raise CommandError(f"there is no player {name!r}", returncode=USAGE)
        try:
            check_erasable(player)
            for line in erasure_preview(player):
                self.stdout.write(f"  {line}")
            if export is not None:
                self._export(player, export)
            if not yes:
                self._ask(player)
            former = erase_player(player=player)
        except ModerationError as error:
            raise CommandError(str(error), returncode=USAGE) from error
        self.stdout.write(
            f"Erased: the account is called “{former}” now, and the erasure is noted in {erasures_file()}. "
            "Keep that list apart from backups: a restored one repeats it."
        )
        if not scrub_deleted():
            self.stdout.write(
                "The database was too busy for its file to be written anew, so parts of what was erased may still stand "
                "in it, where nothing shows them. Stop the site and run: manage.py shell -c "
                '"from tournament.store.scrubbing import scrub_deleted; print(scrub_deleted())"'
            )

    def _export(self, player: Player, target: Path) -> None:
        """Write the person's data into a new file that only this user can read."""
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise CommandError(
                f"{target} cannot be written ({error.strerror}): name another file",
                returncode=USAGE,
            ) from error
        with os.fdopen(descriptor, "wb") as file:
            count = write_personal_data(player, file)
        self.stdout.write(f"Exported {count} files to {target}.")

    def _ask(self, player: Player) -> None:
        if not sys.stdin.isatty():
            raise CommandError(
                "nothing was erased: run it again with --yes to do what stands above",
                returncode=USAGE,
            )
        answer = input(f"This cannot be undone. Type {player.username} to go on: ")
        if answer.strip() != player.username:
            raise CommandError("nothing was erased", returncode=USAGE)
