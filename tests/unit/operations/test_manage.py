"""manage.py sets itself up, in a small project of its own whose packages need no network."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from dataclasses import dataclass
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


def make_checkout(folder: Path) -> Path:
    """A checkout with nothing but manage.py, a project file and one command."""
    checkout = folder / "a checkout"
    package = checkout / "tournament" / "operations"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()  # else another checkout on PYTHONPATH comes first
    shutil.copy(MANAGE, checkout)
    (checkout / "pyproject.toml").write_text(PYPROJECT)
    (checkout / "backend.py").write_text(BACKEND)
    (checkout / "constraints.txt").write_text("")
    (package / "doctor.py").write_text(DOCTOR)
    return checkout


def start(checkout: Path, *arguments: str, cwd: Path | None = None, **environ: str):
    """Start manage.py as a newcomer would: by the Python of the machine, with no package index."""
    return subprocess.Popen(
        [sys._base_executable, str(checkout / "manage.py"), *arguments],
        cwd=cwd or checkout,
        env={**os.environ, "PIP_NO_INDEX": "1", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@dataclass(frozen=True)
class Done:
    """How a run of manage.py ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def finish(process: subprocess.Popen[str]) -> Done:
    stdout, stderr = process.communicate()
    return Done(process.returncode, stdout, stderr)


def run(checkout: Path, *arguments: str, cwd: Path | None = None, **environ: str) -> Done:
    return finish(start(checkout, *arguments, cwd=cwd, **environ))


@dataclass(frozen=True)
class FirstRuns:
    """A checkout that was set up, which costs seconds and is therefore done once for many tests.

    Two processes began at once, in another folder, among settings that lead Python and pip away.
    """

    checkout: Path
    folder: Path
    """Where they ran."""
    elsewhere: Path
    """Where a setting says that packages belong."""
    both: tuple[Done, Done]


@pytest.fixture(scope="module")
def first_runs(tmp_path_factory: pytest.TempPathFactory) -> FirstRuns:
    checkout = make_checkout(tmp_path_factory.mktemp("first"))
    folder = tmp_path_factory.mktemp("folder")
    (folder / "json.py").write_text("raise SystemExit('led away')")
    elsewhere = folder / "elsewhere"
    settings = {"PIP_USER": "1", "PIP_TARGET": str(elsewhere), "PYTHONPATH": str(folder)}
    both = [start(checkout, "doctor", "--deep", cwd=folder, **settings) for _ in range(2)]
    one, other = map(finish, both)
    return FirstRuns(checkout, folder, elsewhere, (one, other))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which nothing was done yet."""
    return make_checkout(tmp_path)


@pytest.fixture
def ready(first_runs: FirstRuns, tmp_path: Path) -> Path:
    """A checkout of one's own that was set up."""
    return shutil.copytree(first_runs.checkout, tmp_path / "another checkout", symlinks=True)


def test_it_sets_itself_up_and_goes_on(first_runs: FirstRuns):
    for done in first_runs.both:
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{first_runs.checkout / '.venv'} {first_runs.folder} --deep\n"
    assert any("setting up .venv" in done.stderr for done in first_runs.both)


def test_it_sets_itself_up_only_once(ready: Path):
    done = run(ready, "doctor")
    assert done.stdout.startswith(str(ready / ".venv"))
    assert done.stderr == ""


def test_two_at_once_set_up_one_environment(first_runs: FirstRuns):
    assert sum("ready after" in done.stderr for done in first_runs.both) == 1


def test_settings_that_lead_python_away_do_no_harm(first_runs: FirstRuns):
    assert all("led away" not in done.stderr for done in first_runs.both)
    assert not first_runs.elsewhere.exists()


def test_changed_project_is_installed_again_into_the_same_environment(ready: Path):
    kept = ready / ".venv" / "kept"
    kept.touch()
    (ready / "constraints.txt").write_text("# newer\n")
    done = run(ready, "doctor")
    assert "updating .venv" in done.stderr
    assert done.stdout.startswith(str(ready / ".venv"))
    assert kept.exists()


@pytest.mark.exhaustive  # how it is cleared away: below; how it is made: the first runs
def test_environment_that_was_never_finished_is_made_anew(ready: Path):
    (ready / ".venv" / ".arena-server").unlink()
    shutil.rmtree(ready / ".venv" / "lib")
    done = run(ready, "doctor")
    assert "setting up .venv" in done.stderr
    assert done.stdout.startswith(str(ready / ".venv"))


def test_failed_set_up_shows_why_and_is_not_taken_for_done(ready: Path):
    (ready / "constraints.txt").write_text("# newer\n")
    (ready / "backend.py").write_text("raise RuntimeError('no backend today')")
    done = run(ready, "doctor")
    assert done.returncode == 1
    assert "no backend today" in done.stderr
    assert not runpy.run_path(str(ready / "manage.py"))["is_ready"]("server")


@pytest.mark.parametrize(
    "is_environment",
    [
        False,
        True,
    ],  # a folder of letters; an environment made by hand, with what was installed in it
)
def test_somebody_elses_folder_is_left_alone(checkout: Path, is_environment: bool):
    venv = checkout / ".venv"
    venv.mkdir()
    (venv / "letters.txt").write_text("dear")
    if is_environment:
        (venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
        (venv / "bin").mkdir()
        (venv / "bin" / "python").symlink_to(sys.executable)
    before = sorted(venv.rglob("*"))
    done = run(checkout, "doctor")
    assert done.returncode == 1
    assert "move it away" in done.stderr
    assert ".venv/bin/python manage.py" in done.stderr
    assert sorted(venv.rglob("*")) == before


def test_link_to_somebody_elses_folder_is_left_alone(checkout: Path, tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (checkout / ".venv").symlink_to(tmp_path / "mine")
    done = run(checkout, "doctor")
    assert "move it away" in done.stderr
    assert (checkout / ".venv").is_symlink()


def test_broken_environment_of_its_own_making_is_made_anew(checkout: Path):
    manage = runpy.run_path(str(checkout / "manage.py"))
    manage["clear_away"]()
    (checkout / ".venv" / "half").touch()
    manage["clear_away"]()
    assert [path.name for path in (checkout / ".venv").iterdir()] == [".arena-made"]


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
