"""`arena check`: what the server would say to a bot."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from engine.checking import CheckReport, check_wheel
from engine.cli.contestants import wheel_of
from engine.cli.exits import ExitCode
from engine.cli.output import note, print_json, progress, say
from engine.cli.results import last_lines, printable
from engine.errors import SandboxUnavailableError, WheelError


def run(bot: Path, *, trusted: bool, as_json: bool) -> ExitCode:
    """Check a wheel or a project folder; NOT_GOOD if it is rejected. Raises ArenaError."""
    try:
        data = wheel_of(bot)
    except WheelError as error:
        report = CheckReport(verdict="rejected", reasons=error.reasons)
    else:
        report = _check(bot, data, trusted=trusted, quiet=as_json)
    if as_json:
        print_json({**msgspec.to_builtins(report), "sandboxed": not trusted})
    else:
        _print(bot, report)
        if trusted:
            note("not sandboxed: the bot ran in this process, as trusted code")
    return ExitCode.OK if report.verdict == "accepted" else ExitCode.NOT_GOOD


def _check(bot: Path, data: bytes, *, trusted: bool, quiet: bool) -> CheckReport:
    with (
        tempfile.TemporaryDirectory(prefix="arena-check-") as folder,
        progress(f"checking {bot}", None, quiet=quiet) as show,
    ):
        try:
            return check_wheel(data, Path(folder), trusted=trusted, progress=show, tell_void=note)
        except SandboxUnavailableError as error:
            hint = "your own bot can be checked without one: add --trusted"
            raise SandboxUnavailableError((*error.reasons, hint)) from error


def _print(bot: Path, report: CheckReport) -> None:
    say(f"{bot}: {report.verdict}")
    for reason in report.reasons:
        say(f"- {printable(reason)}")
    for game in report.games:
        say(f"- plays {game.game}")
        for option, values in game.options.items():
            say(f"    {option}: {', '.join(map(_spell, values))}")
    if report.reasons and report.log.strip():
        say()
        say("--- its log")
        for line in last_lines(printable(report.log)):
            say(line)


def _spell(value: object) -> str:
    """A value as ``--rule`` takes it."""
    return msgspec.json.encode(value).decode().strip('"')
