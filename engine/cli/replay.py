"""`arena replay`: a match record as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cli.exits import ExitCode
from engine.cli.output import say
from engine.cli.records import naming, read_record
from engine.drawing import draw_record

if TYPE_CHECKING:
    from pathlib import Path


def run(file: Path, *, deal: int | None) -> ExitCode:
    """Draw the record, or only the plays of one deal. Raises UsageError, and UntrueFileError."""
    record = read_record(file)
    with naming(file):
        drawn = draw_record(record, deal)
    say(drawn.rstrip("\n"))
    return ExitCode.OK
