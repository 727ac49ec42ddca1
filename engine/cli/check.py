"""`arena check`: what the server would say to a bot."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from engine.checking import CHECK_SECONDS, CheckReport, check_wheel
from engine.cli.contestants import wheel_of
from engine.cli.exits import ExitCode
from engine.cli.files import reason_of
from engine.cli.output import note, print_json, progress, say
from engine.cli.results import last_lines, printable
from engine.errors import InfrastructureError, SandboxUnavailableError, WheelError


def run(bot: Path, *, trusted: bool, as_json: bool, seconds: float = CHECK_SECONDS) -> ExitCode:
    """Check a wheel or a project folder; NOT_GOOD if it is rejected. Raises ArenaError."""
    try:
        data = wheel_of(bot)
    except WheelError as error:
        report = CheckReport(verdict="rejected", reasons=error.reasons)
    else:
        report = _check(bot, data, trusted=trusted, quiet=as_json, seconds=seconds)
    if as_json:
        answer = msgspec.to_builtins(report)
        del answer["log"]
        print_json(answer | ({"sandboxed": False} if trusted else {}))
        for line in _log_lines(report):
            note(line)
    else:
        _print(bot, report)
        if trusted:
            note("not sandboxed: the bot ran in this process, as trusted code")
    return ExitCode.OK if report.verdict == "accepted" else ExitCode.NOT_GOOD


def _check(bot: Path, data: bytes, *, trusted: bool, quiet: bool, seconds: float) -> CheckReport:
    with (
        _scratch() as folder,
        progress(f"checking {bot}", None, quiet=quiet) as show,
    ):
        try:
            return check_wheel(
                data, folder, trusted=trusted, progress=show, tell_void=note, seconds=seconds
            )
        except SandboxUnavailableError as error:
            hint = "your own bot can be checked without one: add --trusted"
            raise SandboxUnavailableError((*error.reasons, hint)) from error


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for the unpacked wheel. Raises InfrastructureError if none can be made."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="arena-check-", ignore_cleanup_errors=True)
    except OSError as error:
        raise InfrastructureError(
            f"no folder can be made to unpack the wheel: {reason_of(error)}; TMPDIR names another place"
        ) from error
    with folder as name:
        yield Path(name)


def _print(bot: Path, report: CheckReport) -> None:
    say(f"{bot}: {report.verdict}")
    for reason in report.reasons:
        say(f"- {printable(reason)}")
    for game in report.games:
        say(f"- plays {game.game}")
        for option, values in game.options.items():
            say(f"    {option}: {', '.join(map(_spell, values))}")
    for line in _log_lines(report):
        say(line)


def _log_lines(report: CheckReport) -> list[str]:
    """The end of a rejected bot's log, under a heading."""
    if not report.reasons or not report.log.strip():
        return []
    return ["", "--- its log", *last_lines(printable(report.log))]


def _spell(value: object) -> str:
    """A value as ``--rule`` takes it."""
    return msgspec.json.encode(value).decode().strip('"')
