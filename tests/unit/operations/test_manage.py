"""manage.py sets itself up, in a small project of its own whose packages need no network."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
MANAGE = Path(__file__).parents[3] / "manage.py"
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "domino-arena"
version = "1"
[project.optional-dependencies]
server = []
dev = []
"""
BACKEND = '''
"""Builds the smallest editable wheel there is."""
import pathlib, zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "domino_arena-1-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        put = lambda path, text: wheel.writestr("domino_arena-1.dist-info/" + path, text)
        wheel.writestr("arena.pth", str(pathlib.Path.cwd()))
        put("METADATA", "Metadata-Version: 2.1\\nName: domino-arena\\nVersion: 1\\n"
            "Provides-Extra: server\\nProvides-Extra: dev\\n")
        put("WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        put("RECORD", "")
    return name
'''
DOCTOR = '''
import os, sys
def main(arguments):
    """Say where this runs."""
    print(sys.prefix, os.getcwd(), *arguments)
    return 0
'''


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nothing but manage.py, a project file and one command."""
    checkout = tmp_path / "a checkout"
    package = checkout / "tournament" / "operations"
    package.mkdir(parents=True)
    shutil.copy(MANAGE, checkout)
    (checkout / "pyproject.toml").write_text(PYPROJECT)
    (checkout / "backend.py").write_text(BACKEND)
    (checkout / "constraints.txt").write_text("")
    (package / "doctor.py").write_text(DOCTOR)
    return checkout


def run(checkout: Path, *arguments: str, cwd: Path | None = None, **environ: str):
    """Run manage.py as a newcomer would: by the Python of the machine, with no package index."""
    return subprocess.run(
        [sys._base_executable, str(checkout / "manage.py"), *arguments],
        cwd=cwd or checkout,
        env={**os.environ, "PIP_NO_INDEX": "1", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_sets_itself_up_once_and_goes_on(checkout: Path, tmp_path: Path):
    first = run(checkout, "doctor", "--deep", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stdout == f"{checkout / '.venv'} {tmp_path} --deep\n"
    assert "setting up .venv" in first.stderr
    second = run(checkout, "doctor")
    assert second.stdout.startswith(str(checkout / ".venv"))
    assert second.stderr == ""


def test_settings_that_lead_python_away_do_no_harm(checkout: Path, tmp_path: Path):
    (tmp_path / "json.py").write_text("raise SystemExit('led away')")
    done = run(
        checkout,
        "doctor",
        PIP_USER="1",
        PIP_TARGET=str(tmp_path / "elsewhere"),
        PYTHONPATH=str(tmp_path),
    )
    assert done.stdout.startswith(str(checkout / ".venv")), done.stderr
    assert not (tmp_path / "elsewhere").exists()


def test_changed_project_is_installed_again_into_the_same_environment(checkout: Path):
    run(checkout, "doctor")
    kept = checkout / ".venv" / "kept"
    kept.touch()
    (checkout / "constraints.txt").write_text("# newer\n")
    done = run(checkout, "doctor")
    assert "updating .venv" in done.stderr
    assert done.stdout.startswith(str(checkout / ".venv"))
    assert kept.exists()


def test_environment_that_was_never_finished_is_made_anew(checkout: Path):
    run(checkout, "doctor")
    (checkout / ".venv" / ".arena-server").unlink()
    shutil.rmtree(checkout / ".venv" / "lib")
    done = run(checkout, "doctor")
    assert "setting up .venv" in done.stderr
    assert done.stdout.startswith(str(checkout / ".venv"))


def test_failed_set_up_shows_why_and_is_not_taken_for_done(checkout: Path):
    (checkout / "backend.py").write_text("raise RuntimeError('no backend today')")
    done = run(checkout, "doctor")
    assert done.returncode == 1
    assert "no backend today" in done.stderr
    assert not (checkout / ".venv" / ".arena-server").exists()


def test_somebody_elses_folder_is_left_alone(checkout: Path):
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / "letters.txt").write_text("dear")
    done = run(checkout, "doctor")
    assert done.returncode == 1
    assert "move it away" in done.stderr
    assert (checkout / ".venv" / "letters.txt").exists()


def test_two_at_once_set_up_one_environment(checkout: Path):
    command = [sys._base_executable, str(checkout / "manage.py"), "doctor"]
    environ = {**os.environ, "PIP_NO_INDEX": "1"}
    both = [
        subprocess.Popen(
            command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum("ready after" in stderr for _, stderr in said) == 1


def test_switched_off_it_runs_where_it_is(checkout: Path):
    done = run(checkout, "doctor", ARENA_BOOTSTRAP="0")
    assert done.stdout.startswith(sys.base_prefix)
    assert not (checkout / ".venv").exists()


def test_older_python_is_told_what_is_needed():
    program = f"import sys, runpy; sys.version_info = (3, 9, 1); runpy.run_path({str(MANAGE)!r})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "needs Python 3.11 or newer; this is 3.9" in done.stderr


def test_without_a_command_it_lists_them_and_sets_nothing_up(checkout: Path):
    done = run(checkout)
    assert done.returncode == 2
    assert all(command in done.stderr for command in ("demo", "up", "test", "doctor"))
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("unit", "{folder}/unit"),  # a folder where the caller stands
        ("unit/test_x.py::test_y", "{folder}/unit/test_x.py::test_y"),  # one test in it
        ("gone", "gone"),  # no path: pytest says so itself
        ("-x", "-x"),  # an option
    ],
)
def test_paths_among_a_tests_arguments_are_the_callers(tmp_path, monkeypatch, argument, expected):
    manage = runpy.run_path(str(MANAGE))
    (tmp_path / "unit").mkdir()
    (tmp_path / "unit" / "test_x.py").touch()
    monkeypatch.chdir(tmp_path)
    assert manage["resolve_test"](argument) == expected.format(folder=tmp_path)


@pytest.mark.parametrize("argument", ["-n4", "--numprocesses=2", "--pdb", "--trace", "-n"])
def test_caller_decides_how_many_processes_test(argument):
    assert runpy.run_path(str(MANAGE))["steers_workers"](["-x", argument])
