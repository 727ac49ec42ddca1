"""The sandbox starts whatever folders an interpreter lies in: environments, copies, trees that were moved."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import engine
from engine.sandbox import runtime
from engine.sandbox.probe import probe_sandbox
from engine.sandbox.runtime import find_runtime

pytestmark = [pytest.mark.sandbox, pytest.mark.exhaustive]

BASE = Path(sys.base_prefix)
NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"
PROBE = """\
import json
from engine.sandbox.probe import probe_sandbox
from engine.sandbox.runtime import find_runtime
report, runtime = probe_sandbox(), find_runtime()
print(json.dumps([report.level, report.reasons, report.notes, runtime.interpreter, runtime.shown, runtime.library_path]))
"""


class Seen:
    """What an interpreter says of its sandbox."""

    def __init__(self, interpreter: Path) -> None:
        done = subprocess.run(
            [interpreter, "-c", PROBE],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(packages())},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        self.level, self.reasons, self.notes, self.interpreter, shown, self.library_path = (
            json.loads(done.stdout)
        )
        self.shown = {outside for outside, _ in shown}


def packages():
    """Where this process finds the engine and what it needs."""
    return (str(Path(engine.__file__).parents[1]), sysconfig.get_path("purelib"))


def assert_as_strong_as_here(seen):
    assert seen.level == probe_sandbox().level, (seen.reasons, seen.notes)


@pytest.mark.parametrize("copies", [[], ["--copies"]], ids=["links", "copies"])
def test_interpreter_of_a_virtual_environment_starts(tmp_path, copies):
    command = [sys.executable, "-m", "venv", "--without-pip", *copies, tmp_path / "home"]
    subprocess.run(command, check=True)
    seen = Seen(tmp_path / "home" / "bin" / "python")
    assert_as_strong_as_here(seen)
    assert seen.interpreter == find_runtime().interpreter


def test_environment_of_an_environment_starts(tmp_path):
    for outer, inner in (("one", "two"),):
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", tmp_path / outer], check=True
        )
        python = tmp_path / outer / "bin" / "python"
        subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / inner], check=True)
        assert_as_strong_as_here(Seen(tmp_path / inner / "bin" / "python"))


@pytest.fixture
def moved_tree(tmp_path):
    """A whole interpreter elsewhere, whose library and others are found from where it lies, as Conda's are."""
    library = sysconfig.get_config_var("INSTSONAME") or ""
    program = find_runtime().interpreter
    original = f"{BASE}/lib".encode() + b"\0"
    content = Path(program).read_bytes()
    relative = b"$ORIGIN/../lib\0"
    if ".so" not in library or original not in content or len(original) < len(relative):
        pytest.skip("this interpreter has no library whose path could be made relative")
    tree = tmp_path / "tree"
    unneeded = shutil.ignore_patterns("test", "__pycache__", "site-packages", "config-*", "idlelib")
    shutil.copytree(BASE / "lib" / NAME, tree / "lib" / NAME, ignore=unneeded)
    shutil.copy2(BASE / "lib" / library, tree / "lib")
    (tree / "bin").mkdir()
    moved = tree / "bin" / Path(program).name
    moved.write_bytes(content.replace(original, relative.ljust(len(original), b"\0")))
    moved.chmod(0o755)
    return moved


def test_tree_that_was_moved_starts(moved_tree):
    seen = Seen(moved_tree)
    assert_as_strong_as_here(seen)
    assert seen.interpreter == str(moved_tree)
    assert seen.library_path == str(moved_tree.parents[1] / "lib")


def test_libraries_that_lie_beside_an_interpreter_are_shown_one_by_one(moved_tree):
    own = moved_tree.parents[1] / "lib"
    libraries = [
        path for path in runtime.mapped_here() if path.name.startswith(("libm.so", "libm-"))
    ]
    shutil.copy2(libraries[0], own / "libm.so.6.own")
    (own / "libm.so.6").symlink_to("libm.so.6.own")
    (own / "libnobodys.so.1").write_bytes(b"not in use")
    seen = Seen(moved_tree)
    assert_as_strong_as_here(seen)
    assert {str(own / "libm.so.6"), str(own / "libm.so.6.own")} <= seen.shown
    assert not {str(own), str(own / "libnobodys.so.1")} & seen.shown


def test_interpreter_that_needs_no_help_gets_none():
    if b"$ORIGIN" in Path(find_runtime().interpreter).read_bytes():
        pytest.skip("this one looks for its libraries from where it lies")
    assert "LD_LIBRARY_PATH" not in runtime.environment_of(find_runtime())


def test_interpreter_that_does_not_run_alone_is_told(monkeypatch):
    broken = runtime.replace(find_runtime(), interpreter="/bin/false")
    with pytest.raises(
        runtime.SandboxUnavailableError, match="does not run without its environment"
    ):
        runtime._with_own_libraries(broken)
