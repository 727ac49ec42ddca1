"""Match records that a user named, read for a command that works on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from engine.cli.files import read_file
from engine.errors import RecordError, UntrueFileError, UsageError
from engine.record import MatchRecord, decode_record


def read_record(file: Path) -> MatchRecord:
    """The record in `file`. Raises UsageError if there is none, naming the file and what would do."""
    data = read_file(file)
    try:
        return decode_record(data)
    except RecordError as error:
        raise UsageError(
            f"{file} is no match record ({error}); name a file that arena play --records wrote, or the "
            "record that a match's page gives to download"
        ) from error


@contextlib.contextmanager
def naming(file: Path) -> Iterator[None]:
    """Where a record from `file` is judged: an untruth in it is told with the file and what to do."""
    try:
        yield
    except RecordError as error:
        raise UntrueFileError(str(file), error) from error
