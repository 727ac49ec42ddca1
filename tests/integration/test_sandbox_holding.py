"""A copy of the runtime stays as long as a process uses it, and no longer than until another is made."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux has the sandbox", allow_module_level=True)

from engine.sandbox import holding
from engine.sandbox.holding import YOUNG_SECONDS, hold, sweep

HOLD = """
import sys
from pathlib import Path
from engine.sandbox.holding import hold
print(hold(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes folders with something in them, `age` seconds ago; what this process holds is let go in the end."""
    monkeypatch.setattr(holding, "_held", {})

    def make(name, age=YOUNG_SECONDS + 60):
        folder = tmp_path / name
        (folder / "lib").mkdir(parents=True)
        (folder / "lib" / "os.py").write_text("")
        then = folder.stat().st_mtime - age
        os.utime(folder, (then, then))
        return folder

    yield make
    for opened in holding._held.values():
        os.close(opened)


def test_folder_that_nobody_holds_is_swept_unless_it_is_young(tmp_path, make):
    held, young, left = make("held"), make("young", age=0), make("left")
    assert hold(held)
    assert hold(held)  # once more costs nothing
    sweep([held, young, left])
    assert sorted(tmp_path.iterdir()) == [held, young]
    assert (held / "lib" / "os.py").is_file()


def test_folder_is_held_by_another_process_until_it_ends(tmp_path, make):
    folder = make("shared")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"True\n"
        sweep([folder])
        assert folder.is_dir()
        other.kill()
    sweep([folder])
    assert list(tmp_path.iterdir()) == []


def test_folder_that_is_gone_is_not_held(tmp_path, make):
    assert not hold(tmp_path / "never")
    assert holding._held == {}


def test_folder_that_cannot_be_swept_keeps_no_other_from_it(tmp_path, make):
    left = make("left")
    sweep([tmp_path / "gone", left])
    assert not left.exists()
