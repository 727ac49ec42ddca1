"""`arena check`: what the server would say to a bot."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from engine.checking import CHECK_SECONDS, CheckReport, Conditions, check_wheel
from engine.cli.contestants import wheel_of
from engine.cli.exits import ExitCode
from engine.cli.files import reason_of, try_folder, write_file
from engine.cli.output import note, print_json, progress, say
from engine.cli.play import parse_rules
from engine.cli.results import last_lines, printable
from engine.errors import InfrastructureError, SandboxUnavailableError, UsageError, WheelError
from engine.games import get_game
from engine.sdk.timecontrol import time_control as named_control


def read_conditions(
    game: str | None, *, seats: int | None, rules: Sequence[str], time_control: str | None
) -> Conditions | None:
    """The conditions of a tournament as options name them; None without a game. Raises UsageError."""
    given = {"--seats": seats, "--rule": rules, "--time-control": time_control}
    if game is None:
        for option in (name for name, value in given.items() if value):
            raise UsageError(f"{option} goes with --game: name the game too")
        return None
    played = get_game(game)
    return Conditions(
        game=game,
        seats=seats or min(map(played.seats, played.entrant_counts)),
        ruleset=parse_rules(rules),
        time_control=named_control(time_control or "standard"),
    )


def run(
    bot: Path,
    *,
    trusted: bool,
    as_json: bool,
    seconds: float = CHECK_SECONDS,
    only: Conditions | None = None,
    records: Path | None = None,
) -> ExitCode:
    """Check a wheel or a project folder, or try it under given conditions alone.

    The matches that its faults ended are written into the folder `records`. NOT_GOOD if it is rejected. Raises ArenaError.
    """
    if records is not None:
        try_folder(records)
    try:
        data = wheel_of(bot)
    except WheelError as error:
        report = CheckReport(verdict="rejected", reasons=error.reasons)
    else:
        report = _check(bot, data, only, trusted=trusted, quiet=as_json, seconds=seconds)
    if as_json:
        answer = msgspec.to_builtins(report)
        del answer["log"], answer["faulty"]
        answer["debug"] = _write_faulty(bot, report, records)
        print_json(answer | ({"sandboxed": False} if trusted else {}))
        for line in _log_lines(report):
            note(line)
    else:
        _print(bot, report, only)
        for command in _write_faulty(bot, report, records):
            say(f"play it again: {command}")
        if report.faulty and records is None:
            say("(--records DIR writes RECORD)")
        if trusted:
            note("not sandboxed: the bot ran in this process, as trusted code")
    return ExitCode.OK if report.verdict == "accepted" else ExitCode.NOT_GOOD


def _write_faulty(bot: Path, report: CheckReport, records: Path | None) -> list[str]:
    """Write the faulty matches, if there is a folder for them; the commands that play their moments again."""
    commands = []
    for trial in report.faulty:
        file = "RECORD" if records is None else str(records / trial.name)
        if records is not None:
            write_file(records / trial.name, trial.record)
        words = shlex.join((file, str(bot) if "/" in str(bot) else f"./{bot}"))
        commands += [f"arena debug {words} {arguments}" for arguments in trial.debug]
    return commands


def _check(
    bot: Path,
    data: bytes,
    only: Conditions | None,
    *,
    trusted: bool,
    quiet: bool,
    seconds: float,
) -> CheckReport:
    with (
        _scratch() as folder,
        progress(f"checking {bot}", None, quiet=quiet) as show,
    ):
        try:
            return check_wheel(
                data,
                folder,
                trusted=trusted,
                progress=show,
                tell_void=note,
                seconds=seconds,
                only=only,
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


def _print(bot: Path, report: CheckReport, only: Conditions | None) -> None:
    say(f"{bot}: {report.verdict}")
    if only is not None and not report.reasons:
        say(f"- plays {only}")
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
