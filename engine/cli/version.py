"""`arena version`."""

from __future__ import annotations

from importlib.metadata import version as version_of

from engine.cli.exits import ExitCode
from engine.cli.output import say
from engine.record import FORMAT
from engine.sdk import PROTOCOL


def run() -> ExitCode:
    """Tell the versions that a bug report needs."""
    say(f"domino-arena {version_of('domino-arena')} ({PROTOCOL}, {FORMAT})")
    return ExitCode.OK
