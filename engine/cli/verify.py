"""`arena verify`: is what a match record says true?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from engine.cli.exits import ExitCode
from engine.cli.files import read_file
from engine.cli.output import print_json, say
from engine.errors import RecordError, UsageError
from engine.record import decode_record, replay


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the judge says of one file."""

    file: str
    is_true: bool | None = msgspec.field(name="true")
    """None if the file could not be read."""
    digest: str | None = None
    """The record's digest, when it is true."""
    place: str | None = None
    """The path of the first wrong value, e.g. ``games[0].score``."""
    message: str | None = None


def run(files: Sequence[Path], *, as_json: bool) -> ExitCode:
    """Judge every file and say so; NOT_GOOD if one is untrue, else USAGE if one cannot be read."""
    verdicts = [_judge_file(file) for file in files]
    if as_json:
        print_json({"files": [msgspec.to_builtins(verdict) for verdict in verdicts]})
    else:
        for verdict in verdicts:
            say(_line(verdict))
    if any(verdict.is_true is False for verdict in verdicts):
        return ExitCode.NOT_GOOD
    return ExitCode.OK if all(verdict.is_true for verdict in verdicts) else ExitCode.USAGE


def _judge_file(file: Path) -> Verdict:
    try:
        return judge(str(file), read_file(file))
    except UsageError as error:
        return Verdict(file=str(file), is_true=None, message=str(error))


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
    if verdict.is_true is None:
        return f"{verdict.file}: NOT JUDGED: {verdict.message}"
    return f"{verdict.file}: UNTRUE at {verdict.place}: {verdict.message}"
