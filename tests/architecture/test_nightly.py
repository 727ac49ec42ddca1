"""The nightly run goes through all steps, and tells in one summary which failed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = """#!/bin/sh
echo "$1 begins"
echo "1 of $1 in 2.5 s"
echo
[ "$1" != faults ]
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the script, and a `.ci/run` in which the step `faults` fails."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/nightly", tmp_path / ".ci")
    (tmp_path / ".ci/run").write_text(RUN)
    (tmp_path / ".ci/run").chmod(0o755)
    return tmp_path


def nightly(clone: Path, *steps: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [clone / ".ci/nightly", *steps], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_step_that_fails_keeps_no_other_from_running_and_is_told(clone):
    status, lines = nightly(clone)
    steps = [line.split()[:2] for line in lines[1:]]
    assert status == 1
    assert steps == [
        ["FAILED" if step == "faults" else "passed", step]
        for step in ("check", "audit", "test-exhaustive", "test-postgresql", "faults", "soak")
    ]
    assert lines[-1].endswith("1 of soak in 2.5 s"), "the last line of a step says how it went"
    [logs] = (clone / ".nightly").iterdir()
    assert (logs / "faults.log").read_text().startswith("faults begins")
    assert (logs / "summary.txt").read_text().splitlines() == lines


def test_steps_may_be_named_and_all_that_pass_are_a_success(clone):
    assert nightly(clone, "soak")[0] == 0


def test_every_step_is_a_target_of_make():
    steps = re.search(r"steps=\((check[^)]*)\)", (ROOT / ".ci/nightly").read_text())[1].split()
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(steps) <= set(targets)
