"""The doctor says what is there, and what to do about what is not."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from engine.sandbox.findings import Finding
from engine.sandbox.probe import ProbeReport
from tournament.operations import doctor
from tournament.operations.doctor import check_broker, check_home, check_store_size
from tournament.operations.errors import BrokerUnavailableError


def test_machine_without_a_sandbox_is_not_well_and_hears_why(monkeypatch, capsys, tmp_path: Path):
    report = ProbeReport(level=None, reasons=("no bubblewrap", "install it"))
    monkeypatch.setattr(doctor, "probe_sandbox", lambda: report)
    assert doctor.main(["--home", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "MISSING level: no bot can be held here" in said
    assert "no bubblewrap\n          install it" in said


def test_apparmors_refusal_comes_with_the_profile_that_mends_it(monkeypatch, capsys, tmp_path):
    reasons = ("no user namespace", "AppArmor forbids user namespaces")
    monkeypatch.setattr(doctor, "probe_sandbox", lambda: ProbeReport(level=None, reasons=reasons))
    assert doctor.main(["--home", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "          profile bwrap" in said
    assert "  userns," in said


def test_what_is_weaker_is_told_with_what_would_mend_it_and_the_site_can_run(
    monkeypatch, capsys, tmp_path
):
    landlock = Finding("Landlock", "weak", "version 4", ("use a newer kernel",))
    report = ProbeReport(level="landlock", landlock_abi=4, machine=(landlock,))
    monkeypatch.setattr(doctor, "probe_sandbox", lambda: report)
    monkeypatch.setattr(doctor, "check_broker", lambda: Finding("broker", "ok", "there"))
    assert doctor.main(["--home", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "WEAKER  level: landlock" in said
    assert "WEAKER  Landlock: version 4\n          use a newer kernel\n" in said
    assert (
        f"bots get: Python {platform.python_version()}, its standard library, domino-arena" in said
    )
    assert "memory of a process 256 MiB, more where it has numpy 120 MiB" in said
    assert "fast: 2 s to start, 0.5 s for each game, 0.01 s gained with each question" in said
    assert "A clock counts the CPU time" in said


def test_home_that_no_site_could_live_in_is_told_before_it_is_tried(tmp_path, monkeypatch):
    (tmp_path / ".profile").write_text("")  # as useradd --create-home leaves it
    tmp_path.chmod(0o755)
    found = check_home(tmp_path)
    assert (found.grade, f"chmod 700 {tmp_path}" in found.text) == ("missing", True)
    monkeypatch.setattr("os.access", lambda *_: False)
    found = check_home(tmp_path / "new")
    assert found.grade == "missing"
    assert "this user may not make it" in found.text


def test_answer_as_json_is_all_that_was_found(monkeypatch, capsys, tmp_path):
    landlock = Finding("Landlock", "weak", "version 4", ("use a newer kernel",))
    report = ProbeReport(level="landlock", landlock_abi=4, machine=(landlock,))
    monkeypatch.setattr(doctor, "probe_sandbox", lambda: report)
    for grade, can_run in (("ok", True), ("missing", False)):
        broker = Finding("broker", grade, "asked")
        monkeypatch.setattr(doctor, "check_broker", lambda broker=broker: broker)
        assert doctor.main(["--home", str(tmp_path), "--json"]) == (0 if can_run else 1)
        answer = json.loads(capsys.readouterr().out)
        assert answer["can_run"] is can_run
        assert answer["home"] == str(tmp_path)
        by_name = {finding["name"]: finding for finding in answer["findings"]}
        assert by_name["broker"]["grade"] == grade
        assert by_name["Landlock"]["advice"] == ["use a newer kernel"]
        assert {"machine", "level", "bots get", "home"} <= by_name.keys()


def test_missing_broker_is_said(monkeypatch):
    def find_none():
        raise BrokerUnavailableError("none here")

    monkeypatch.setattr(doctor, "find_server", find_none)
    assert check_broker().grade == "missing"


@pytest.mark.stack
def test_broker_is_asked_for_its_version():
    assert "v=" in check_broker().text


def test_home_that_does_not_exist_yet_is_judged_by_the_disk_it_will_be_on(tmp_path: Path):
    assert "GB free" in check_home(tmp_path / "not" / "yet").text


@pytest.mark.parametrize(
    ("budget", "grade", "words"),
    [
        ("", "ok", "without a budget"),
        ("1", "weak", "1.2 GB of 1.0 GB"),  # more than there may be
        ("100", "ok", "1.2 GB of 100.0 GB"),
    ],
)
def test_store_is_held_to_its_budget(tmp_path, monkeypatch, budget, grade, words):
    monkeypatch.delenv("ARENA_STORE", raising=False)
    monkeypatch.setenv("ARENA_STORE_GB", budget)
    (tmp_path / "blobs" / "ab").mkdir(parents=True)
    with (tmp_path / "blobs" / "ab" / "cd").open("wb") as sparse:
        sparse.truncate(1_200_000_000)
    found = check_store_size(tmp_path)
    assert (found.grade, words in found.text) == (grade, True)
