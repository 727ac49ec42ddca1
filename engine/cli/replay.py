"""`arena replay`: a match record as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cli.exits import ExitCode
from engine.cli.files import read_file
from engine.cli.output import say
from engine.drawing import draw_record
from engine.record import decode_record

if TYPE_CHECKING:
    from pathlib import Path


def run(file: Path, *, deal: int | None) -> ExitCode:
    """Draw the record, or only the plays of one deal. Raises UsageError, and RecordError if it is untrue."""
    say(draw_record(decode_record(read_file(file)), deal).rstrip("\n"))
    return ExitCode.OK
