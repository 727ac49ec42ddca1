"""``manage.py revalidate``: what would become of the accepted versions with this Python and this SDK."""

from __future__ import annotations

import platform
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError, CommandParser

from engine.errors import SandboxUnavailableError
from engine.sandbox.probe import require_sandbox
from tournament.operations.errors import OperationsError
from tournament.operations.revalidation import Verdict, accepted_versions, revalidate
from tournament.operations.stack import cores

USAGE = 2


class Command(BaseCommand):
    """Check again, and list what would break."""

    help = (
        "Check all accepted versions again, as this installation would, and list those that would be rejected or "
        "accepted for less. Nothing is changed. Run it from a new installation before you upgrade: exit code 1 "
        "if anything would break."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Which versions, and how."""
        parser.add_argument("--newest", action="store_true", help="only the newest of each bot")
        parser.add_argument("--bot", default="", metavar="NAME", help="only this bot's")
        parser.add_argument(
            "--jobs",
            type=int,
            default=cores(),
            metavar="N",
            help="so many at a time; default: a core each",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do it; exit code 2 for a bot that has none, 1 if something would break or cannot be checked."""
        if options["jobs"] < 1:
            raise CommandError("--jobs needs at least 1", returncode=USAGE)
        versions = accepted_versions(newest=options["newest"], bot=options["bot"])
        if options["bot"] and not versions:
            raise CommandError(f"{options['bot']!r} has no accepted version", returncode=USAGE)
        try:
            require_sandbox()
        except SandboxUnavailableError as error:
            raise CommandError(f"bots cannot be checked here: {error}") from error
        found = []
        try:
            for verdict in revalidate(versions, jobs=options["jobs"]):
                found.append(verdict)
                if not options["json"] and not verdict.is_same:
                    self._tell(verdict)
        except OperationsError as error:
            raise CommandError(str(error)) from error
        broken = [verdict for verdict in found if not verdict.is_same]
        if options["json"]:
            answer = {"python": platform.python_version(), "checked": len(found), "broken": broken}
            self.stdout.write(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())
        else:
            self.stdout.write(
                f"{len(found)} versions checked with Python {platform.python_version()}: "
                f"{len(broken) or 'none'} would break"
            )
        if broken:
            raise SystemExit(1)

    def _tell(self, verdict: Verdict) -> None:
        self.stdout.write(f"{verdict.outcome:<8} {verdict.bot} {verdict.version}")
        for reason in verdict.reasons:
            self.stdout.write(f"           {reason}")
