"""``manage.py doctor``: what this machine can do for a site, tried rather than believed."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from engine.sandbox.findings import Finding, Grade
from engine.sandbox.limits import CLOCK, describe_clock, describe_sizes, limits_here
from engine.sandbox.probe import probe_sandbox
from engine.sandbox.speed import budget_percent
from tournament.operations.broker import find_server
from tournament.operations.errors import OperationsError
from tournament.operations.home import check_folder, default_home
from tournament.operations.stack import cores

SPACE_WANTED_BYTES = 1_000_000_000
NEAR_BUDGET = 0.9
"""From this share of the store's budget on the operator is warned."""
_SIGNS = {"ok": "ok     ", "weak": "WEAKER ", "missing": "MISSING"}


def main(arguments: Sequence[str]) -> int:
    """Print what was found, with ``--json`` as one object; 0 if a site can run here, else 1."""
    parser = argparse.ArgumentParser(prog="manage.py doctor", description=__doc__)
    parser.add_argument("--home", type=Path, default=default_home(), help="the site's folder")
    parser.add_argument("--json", action="store_true", help="answer with one JSON object on stdout")
    given = parser.parse_args(arguments)
    home: Path = given.home.absolute()
    findings = [
        check_machine(),
        *probe_sandbox().findings,
        tell_limits(),
        check_broker(),
        check_home(home),
        check_store_size(home),
    ]
    can_run = all(finding.grade != "missing" for finding in findings)
    if given.json:
        answer = {"can_run": can_run, "home": str(home), "findings": findings}
        print(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())
        return 0 if can_run else 1
    for finding in findings:
        print(f"{_SIGNS[finding.grade]} {finding.name}: {finding.text}")
        for line in (*finding.advice, *finding.snippet.splitlines()):
            print(f"          {line}")
    return 0 if can_run else 1


def check_machine() -> Finding:
    """The Python, the system and its cores."""
    text = f"{platform.platform()}, {cores()} cores"
    return Finding("machine", "ok" if sys.platform == "linux" else "missing", text)


def tell_limits() -> Finding:
    """What bots get here, and how much CPU time for the speed of this machine."""
    limits = limits_here()
    packages = ", ".join(f"{name} {version}" for name, version in limits.packages.items())
    sizes = ", ".join(f"{name} {size}" for name, size in describe_sizes(limits))
    clocks = (describe_clock(control) for control in limits.time_controls)
    granted = f"This machine grants {budget_percent()} % of these CPU times, for its speed."
    text = f"Python {limits.python}, its standard library, {packages}"
    return Finding("bots get", "ok", text, (sizes, *clocks, f"{CLOCK} {granted}"))


def check_broker() -> Finding:
    """Whether there is a server for the queue, and that it starts."""
    try:
        server = find_server()
    except OperationsError as error:
        return Finding("broker", "missing", str(error))
    version = subprocess.run([server, "--version"], capture_output=True, text=True, check=False)
    grade: Grade = "ok" if version.returncode == 0 else "missing"
    return Finding("broker", grade, version.stdout.strip() or version.stderr.strip())


def check_home(home: Path) -> Finding:
    """Whether a site can live in its folder, or in one that is made there, and has room."""
    nearest = next(path for path in (home, *home.parents) if path.exists())
    if nearest != home and not os.access(nearest, os.W_OK):
        told = "is not there, and this user may not make it: install --directory --owner USER --mode 0700"
        return Finding("home", "missing", f"{home} {told} {home}")
    try:
        if nearest == home:
            check_folder(home)
    except (OperationsError, OSError) as error:
        return Finding("home", "missing", str(error))
    free = shutil.disk_usage(nearest).free
    grade: Grade = "ok" if free >= SPACE_WANTED_BYTES else "missing"
    return Finding("home", grade, f"{home}, {free / 1e9:.1f} GB free")


def check_store_size(home: Path) -> Finding:
    """What the store takes of its budget (``ARENA_STORE_GB``), if it is a folder of this machine."""
    name, address = "store", os.environ.get("ARENA_STORE") or str(home / "blobs")
    if "://" in address and not address.startswith("file://"):
        return Finding(name, "ok", "no folder of this machine: its size stands in /metrics")
    folder = Path(address.removeprefix("file://"))
    taken = sum(path.stat().st_size for path in folder.glob("??/*") if path.is_file())
    text = f"{folder}, {taken / 1e9:.1f} GB"
    wanted = os.environ.get("ARENA_STORE_GB") or "0"
    budget = int(wanted) * 10**9 if wanted.isdecimal() else 0
    if not budget:
        return Finding(name, "ok", f"{text}, without a budget (ARENA_STORE_GB)")
    if taken < NEAR_BUDGET * budget:
        return Finding(name, "ok", f"{text} of {budget / 1e9:.1f} GB")
    advice = (
        "The sweep lets the oldest records of ladders and scrimmages go that nothing links to.",
        "Grant more by ARENA_STORE_GB, or keep them for fewer days: ARENA_RECORD_DAYS, ARENA_SCRIMMAGE_DAYS.",
    )
    return Finding(name, "weak", f"{text} of {budget / 1e9:.1f} GB", advice)
