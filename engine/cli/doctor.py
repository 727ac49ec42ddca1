"""`arena doctor`: can this machine hold bots, how well, and what may a bot use here? And on a site?"""

from __future__ import annotations

from typing import Any

import msgspec

from engine.cli.exits import ExitCode
from engine.cli.output import print_json, print_table, say
from engine.cli.site_limits import Comparison, compare_with_site, spell_speed
from engine.sandbox.limits import CLOCK, PublishedLimits, describe_sizes, limits_here
from engine.sandbox.probe import ProbeReport, probe_sandbox
from engine.sandbox.speed import budget_percent


def run(*, server: str | None, as_json: bool) -> ExitCode:
    """Try the walls and tell; NO_SANDBOX if no bot can be held. Raises UsageError for no site at `server`."""
    limits, percent = limits_here(), budget_percent()
    comparison = None if server is None else compare_with_site(server, limits, percent)
    report = probe_sandbox()
    if as_json:
        print_json(_spell(report, limits, percent, comparison))
    else:
        _print_report(report)
        _print_limits(limits, percent)
        if comparison is not None:
            _print_comparison(comparison, percent)
    return ExitCode.OK if report.holds else ExitCode.NO_SANDBOX


def _spell(
    report: ProbeReport, limits: PublishedLimits, percent: int, comparison: Comparison | None
) -> dict[str, Any]:
    return {
        "level": report.level,
        "reasons": report.reasons,
        "findings": [msgspec.to_builtins(finding) for finding in report.findings],
        "attempts": [msgspec.to_builtins(attempt) for attempt in report.attempts],
        **msgspec.to_builtins(limits),
        "budget_percent": percent,
        "server": msgspec.to_builtins(comparison),
    }


def _print_report(report: ProbeReport) -> None:
    if report.holds:
        tried = len(report.attempts)
        say(f"sandbox: level {report.level}; {tried} forbidden things tried, all held")
    else:
        say("sandbox: no bot can be held here")
    for reason in report.reasons:
        say(f"- {reason}")
    for finding in report.machine:
        say(f"- {finding.name}: {finding.text}")
    for note in report.notes:
        say(f"- could be stronger: {note}")
    for finding in report.findings:
        if finding.snippet:
            say(f"\n/etc/apparmor.d/bwrap:\n{finding.snippet}")
    say()


def _print_limits(limits: PublishedLimits, percent: int) -> None:
    packages = ", ".join(f"{name} {number}" for name, number in limits.packages.items())
    say(f"bots get Python {limits.python}, its standard library, {packages}")
    print_table(("limit", "value"), describe_sizes(limits))
    say()
    print_table(
        ("time control", "start ms", "game ms", "per action ms", "real time per action ms"),
        [msgspec.structs.astuple(control) for control in limits.time_controls],
    )
    say(f"{CLOCK} This machine grants {percent} % of these CPU times, for its speed.")


def _print_comparison(comparison: Comparison, percent: int) -> None:
    say()
    say(f"{comparison.url}, beside this machine:")
    if comparison.slower is None:
        say("- speed: no worker of it was heard of lately")
    else:
        granted = sorted({worker.budget_percent for worker in comparison.limits.workers})
        spelled = " and ".join(dict.fromkeys(f"{each} %" for each in (granted[0], granted[-1])))
        say(
            f"- speed: its workers are {spell_speed(comparison.slower)}; of a time control's CPU time they grant "
            f"{spelled}, this machine {percent} %, so that a bot can think as far"
        )
    for difference in comparison.differences:
        say(f"- {difference}")
    if not comparison.differences:
        say("- Python, packages and limits are the same")
