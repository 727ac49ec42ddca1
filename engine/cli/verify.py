"""`arena verify`: is what a match record says true?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from engine.cli.exits import ExitCode
from engine.cli.files import read_file
from engine.cli.output import print_json, say
from engine.errors import RecordError
from engine.record import decode_record, replay


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the judge says of one file."""

    file: str
    is_true: bool = msgspec.field(name="true")
    digest: str | None = None
    """The record's digest, when it is true."""
    place: str | None = None
    """The path of the first wrong value, e.g. ``games[0].score``."""
    message: str | None = None


def run(files: Sequence[Path], *, as_json: bool) -> ExitCode:
    """Judge every file and say so; NOT_GOOD if one is untrue. Raises UsageError if one cannot be read."""
    contents = [(file, read_file(file)) for file in files]
    verdicts = [judge(str(file), data) for file, data in contents]
    if as_json:
        print_json({"files": [msgspec.to_builtins(verdict) for verdict in verdicts]})
    else:
        for verdict in verdicts:
            say(_line(verdict))
    return ExitCode.OK if all(verdict.is_true for verdict in verdicts) else ExitCode.NOT_GOOD


def judge(file: str, data: bytes) -> Verdict:
    """Read and replay one record."""
    try:
        record = decode_record(data)
        replay(record)
    except RecordError as error:
        return Verdict(file=file, is_true=False, place=error.place, message=error.message)
    return Verdict(file=file, is_true=True, digest=record.digest)


def _line(verdict: Verdict) -> str:
    if verdict.is_true:
        return f"{verdict.file}: true"
    return f"{verdict.file}: UNTRUE at {verdict.place}: {verdict.message}"
