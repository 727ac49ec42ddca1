"""The doctor says what is there, and what to do about what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.sandbox.probe import ProbeReport
from tournament.operations import doctor
from tournament.operations.doctor import check_broker, check_home, check_sandbox
from tournament.operations.errors import BrokerUnavailableError


def test_machine_without_a_sandbox_is_not_well_and_hears_why(monkeypatch, capsys, tmp_path: Path):
    report = ProbeReport(level=None, reasons=("no bubblewrap", "install it"))
    monkeypatch.setattr(doctor, "probe_sandbox", lambda: report)
    assert doctor.main(["--home", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "MISSING sandbox: no bubblewrap" in said
    assert "install it" in said


def test_apparmors_refusal_comes_with_the_profile_that_mends_it(monkeypatch):
    reasons = ("no user namespace", "AppArmor forbids user namespaces")
    monkeypatch.setattr(doctor, "probe_sandbox", lambda: ProbeReport(level=None, reasons=reasons))
    advice = "\n".join(check_sandbox().advice)
    assert "profile bwrap" in advice
    assert "userns," in advice


def test_weaker_level_is_well_but_told_with_what_would_mend_it(monkeypatch):
    report = ProbeReport(
        level="landlock",
        landlock_abi=4,
        notes=("no namespaces", "AppArmor forbids user namespaces"),
    )
    monkeypatch.setattr(doctor, "probe_sandbox", lambda: report)
    finding = check_sandbox()
    assert finding.is_well
    assert finding.text.startswith("level landlock")
    assert "Landlock: version 4" in finding.advice
    assert "could be stronger: no namespaces" in finding.advice
    assert any("profile bwrap" in line for line in finding.advice)


def test_missing_broker_is_said(monkeypatch):
    def find_none():
        raise BrokerUnavailableError("none here")

    monkeypatch.setattr(doctor, "find_server", find_none)
    assert not check_broker().is_well


@pytest.mark.stack
def test_broker_is_asked_for_its_version():
    assert "v=" in check_broker().text


def test_home_that_does_not_exist_yet_is_judged_by_the_disk_it_will_be_on(tmp_path: Path):
    assert "GB free" in check_home(tmp_path / "not" / "yet").text
