"""`arena doctor`: can this machine hold bots, how well, and what may a bot use here?"""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of
from typing import Any

import msgspec

from engine.cli.exits import ExitCode
from engine.cli.output import print_json, print_table, say
from engine.sandbox import policy
from engine.sandbox.probe import ProbeReport, probe_sandbox
from engine.sandbox.speed import budget_percent
from engine.sdk.timecontrol import TIME_CONTROLS
from engine.wheels import PROVIDED
from engine.wheels.archive import MAX_FILES, MAX_UNPACKED_BYTES, MAX_WHEEL_BYTES


def run(*, as_json: bool) -> ExitCode:
    """Try the walls and tell; NO_SANDBOX if no bot can be held."""
    report, limits = probe_sandbox(), limits_here()
    if as_json:
        print_json({**_spell(report), **limits})
    else:
        _print(report, limits)
    return ExitCode.OK if report.holds else ExitCode.NO_SANDBOX


def limits_here() -> dict[str, Any]:
    """What a bot gets on this machine, by this installation."""
    return {
        "python": platform.python_version(),
        "packages": {name: version_of(name) for name in PROVIDED},
        "memory_bytes": policy.MEMORY_BYTES,
        "stack_bytes": policy.STACK_BYTES,
        "open_files": policy.OPEN_FILES,
        "log_bytes": policy.LOG_BYTES,
        "wheel_bytes": MAX_WHEEL_BYTES,
        "unpacked_bytes": MAX_UNPACKED_BYTES,
        "wheel_files": MAX_FILES,
        "time_controls": [msgspec.to_builtins(control) for control in TIME_CONTROLS.values()],
        "budget_percent": budget_percent(),
    }


def _spell(report: ProbeReport) -> dict[str, Any]:
    return {
        "level": report.level,
        "reasons": report.reasons,
        "features": report.features(),
        "notes": report.notes,
        "attempts": [msgspec.to_builtins(attempt) for attempt in report.attempts],
    }


def _print(report: ProbeReport, limits: dict[str, Any]) -> None:
    if report.holds:
        tried = len(report.attempts)
        say(f"sandbox: level {report.level}; {tried} forbidden things tried, all held")
    else:
        say("sandbox: no bot can be held here")
    for reason in report.reasons:
        say(f"- {reason}")
    for feature in report.features():
        say(f"- {feature}")
    for note in report.notes:
        say(f"- could be stronger: {note}")
    say()
    packages = ", ".join(f"{name} {number}" for name, number in limits["packages"].items())
    say(f"bots get Python {limits['python']}, its standard library, {packages}")
    print_table(
        ("limit", "value"),
        [
            ("memory of a process", f"{limits['memory_bytes'] >> 20} MiB"),
            ("its stack", f"{limits['stack_bytes'] >> 20} MiB"),
            ("its open files", str(limits["open_files"])),
            ("its log", f"{limits['log_bytes'] >> 10} KiB"),
            ("a wheel", f"{limits['wheel_bytes'] >> 20} MiB"),
            ("a wheel, unpacked", f"{limits['unpacked_bytes'] >> 20} MiB"),
            ("files of a wheel", str(limits["wheel_files"])),
        ],
    )
    say()
    print_table(
        ("time control", "start ms", "game ms", "per action ms", "real time per action ms"),
        [tuple(control.values()) for control in limits["time_controls"]],
    )
    say(f"This machine grants {limits['budget_percent']} % of these CPU times, for its speed.")
