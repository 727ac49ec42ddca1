"""``manage.py doctor``: what this machine can do for a site, tried rather than believed."""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.sandbox.probe import APPARMOR_PROFILE, probe_sandbox
from tournament.operations.broker import find_server
from tournament.operations.errors import OperationsError
from tournament.operations.home import default_home
from tournament.operations.stack import cores

SPACE_WANTED_BYTES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    is_well: bool
    text: str
    advice: Sequence[str] = ()
    """What to do about it."""


def main(arguments: Sequence[str]) -> int:
    """Print what was found; 0 if a site can run here, else 1."""
    parser = argparse.ArgumentParser(prog="manage.py doctor", description=__doc__)
    parser.add_argument("--home", type=Path, default=default_home(), help="the site's folder")
    home: Path = parser.parse_args(arguments).home.absolute()
    checks: tuple[Callable[[], Finding], ...] = (
        check_machine,
        check_sandbox,
        check_broker,
        lambda: check_home(home),
    )
    findings = [check() for check in checks]
    for finding in findings:
        print(f"{'ok     ' if finding.is_well else 'MISSING'} {finding.name}: {finding.text}")
        for line in finding.advice:
            print(f"          {line}")
    return 0 if all(finding.is_well for finding in findings) else 1


def check_machine() -> Finding:
    """The Python, the system and its cores."""
    text = f"Python {platform.python_version()}, {platform.platform()}, {cores()} cores"
    return Finding("machine", sys.platform == "linux", text)


def check_sandbox() -> Finding:
    """Whether bots can be held here: a bot of our own attempts what is forbidden."""
    report = probe_sandbox()
    if report.holds:
        text = f"level {report.level}; {len(report.attempts)} forbidden things tried, all held"
        advice = [f"could be stronger: {note}" for note in report.notes]
    else:
        text, *advice = report.reasons
    if any("AppArmor" in line for line in (text, *advice)):
        bubblewrap = report.bubblewrap or shutil.which("bwrap") or "/usr/bin/bwrap"
        advice.append("Put this into /etc/apparmor.d/bwrap, then: systemctl reload apparmor")
        advice.extend(APPARMOR_PROFILE.format(bubblewrap=bubblewrap).splitlines())
    return Finding("sandbox", report.holds, text, (*report.features(), *advice))


def check_broker() -> Finding:
    """Whether there is a server for the queue, and that it starts."""
    try:
        server = find_server()
    except OperationsError as error:
        return Finding("broker", False, str(error))
    version = subprocess.run([server, "--version"], capture_output=True, text=True, check=False)
    return Finding(
        "broker", version.returncode == 0, version.stdout.strip() or version.stderr.strip()
    )


def check_home(home: Path) -> Finding:
    """Whether the site's folder, or the nearest that exists above it, has room."""
    nearest = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(nearest).free
    return Finding("home", free >= SPACE_WANTED_BYTES, f"{home}, {free / 1e9:.1f} GB free")
