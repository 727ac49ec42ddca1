"""`arena doctor` tells what the probe found, and what a bot gets."""

from __future__ import annotations

import json
import platform

import pytest

from engine.cli.exits import ExitCode
from engine.sandbox.findings import Finding
from engine.sandbox.probe import Attempt, ProbeReport

WELL = ProbeReport(
    level="landlock",
    attempts=(Attempt("fork", True, "no"),),
    landlock_abi=5,
    machine=(
        Finding("Landlock", "ok", "version 5"),
        Finding("bubblewrap", "weak", "does not work here", ("use bubblewrap",), "profile bwrap"),
    ),
)
ILL = ProbeReport(level=None, reasons=("there is no bwrap", "install it"))


@pytest.fixture
def found(monkeypatch):
    def find(report):
        monkeypatch.setattr("engine.cli.doctor.probe_sandbox", lambda: report)

    return find


def test_level_and_what_could_be_stronger_are_told(arena, found):
    found(WELL)
    answer = arena("doctor")
    assert answer.code == ExitCode.OK
    assert "level landlock; 1 forbidden things tried, all held" in answer.out
    assert "- could be stronger: use bubblewrap" in answer.out
    assert "- Landlock: version 5" in answer.out
    assert "/etc/apparmor.d/bwrap:\nprofile bwrap" in answer.out


def test_machine_that_holds_no_bot_ends_with_the_code_for_that(arena, found):
    found(ILL)
    answer = arena("doctor")
    assert answer.code == ExitCode.NO_SANDBOX
    assert "- there is no bwrap\n- install it\n" in answer.out


def test_limits_of_a_bot_are_told(arena, found):
    found(WELL)
    answer = json.loads(arena("doctor", "--json").out)
    assert answer["level"] == "landlock"
    assert answer["python"] == platform.python_version()
    assert set(answer["packages"]) == {"domino-arena", "pluggy", "msgspec", "numpy"}
    assert answer["memory_bytes"] == 256 * 2**20
    assert [control["name"] for control in answer["time_controls"]] == ["fast", "standard", "long"]
    assert 25 <= answer["budget_percent"] <= 400


@pytest.mark.sandbox
def test_doctor_of_this_machine_finds_that_all_walls_hold(arena):
    answer = json.loads(arena("doctor", "--json").out)
    assert answer["reasons"] == []
    assert answer["attempts"]
    assert all(attempt["held"] for attempt in answer["attempts"])
