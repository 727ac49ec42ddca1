"""A cgroup for the bots, in a tree of plain files that stands for the kernel's."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from engine.errors import InfrastructureError
from engine.sandbox import cgroup, processes
from engine.sandbox.cgroup import Group, find_home, make_group, sweep_groups

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="cgroups are Linux's")


class Tree:
    """A hierarchy of version 2 whose files are plain ones, and this process's place in it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = folder / "cgroup"
        self.proc = folder / "proc"
        (self.proc / "self").mkdir(parents=True)
        self.root.mkdir()
        mounts = f"proc /proc proc rw 0 0\ncgroup2 {self.root} cgroup2 rw,nosuid 0 0\n"
        (self.proc / "self" / "mounts").write_text(mounts)
        self.live(os.getpid(), "100")
        self.delegated: set[Path] = set()
        (self.proc / "self" / "ns").mkdir()
        (self.proc / "self" / "ns" / "pid").touch()
        patch.setattr(processes, "PROC", self.proc)
        patch.setattr(cgroup, "_is_delegated", self.delegated.__contains__)
        patch.setattr(cgroup.Path, "rmdir", self._rmdir)

    def live(self, pid: int, began: str) -> None:
        (self.proc / str(pid)).mkdir()
        fields = ["S", *("0" * 18), began]
        (self.proc / str(pid) / "stat").write_text(f"{pid} (a b) c) {' '.join(fields)} 0\n")

    def make(self, path: str, *, controllers="cpu memory pids", enabled="") -> Path:
        place = Path(f"{self.root}{path}")
        place.mkdir(parents=True, exist_ok=True)
        (place / "cgroup.controllers").write_text(controllers)
        (place / "cgroup.subtree_control").write_text(enabled)
        return place

    def live_in(self, path: str, lines: str = "") -> None:
        (self.proc / "self" / "cgroup").write_text(f"{lines}0::{path}\n")

    @staticmethod
    def _rmdir(folder: Path) -> None:
        """As the kernel's, whose files go with their folder."""
        if not folder.exists():
            raise FileNotFoundError(folder)
        shutil.rmtree(folder)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    find_home.cache_clear()
    yield Tree(tmp_path, monkeypatch)
    find_home.cache_clear()


def test_own_group_that_can_be_divided_is_the_home(tree):
    place = tree.make("/site/worker", enabled="memory pids")
    tree.live_in("/site/worker", lines="4:memory:/old\n")
    assert find_home() == place
    assert not list(place.glob("arena-*"))  # the trial left nothing


def test_controllers_are_switched_on_where_they_are_not(tree):
    place = tree.make("/worker", enabled="cpu")
    tree.live_in("/worker")
    assert find_home() == place
    assert (place / "cgroup.subtree_control").read_text() == "+memory +pids"


@pytest.mark.parametrize("controllers", ["", "cpu", "memory", "pids io"], ids=str)
def test_group_without_both_controllers_is_none(tree, controllers):
    tree.make("/worker", controllers=controllers)
    tree.live_in("/worker")
    assert find_home() is None


def test_group_that_holds_processes_is_none_and_one_above_is_if_it_is_delegated(tree, monkeypatch):
    tree.make("/site/one/worker")
    above = tree.make("/site/one", enabled="memory pids")
    tree.live_in("/site/one/worker")
    real = Path.write_text

    def busy(path, text, *rest, **named):
        if path == tree.root / "site/one/worker/cgroup.subtree_control":
            raise OSError(16, "Device or resource busy")
        return real(path, text, *rest, **named)

    monkeypatch.setattr(cgroup.Path, "write_text", busy)
    assert find_home() is None
    find_home.cache_clear()
    tree.delegated.add(above)
    assert find_home() == above


@pytest.mark.parametrize("lines", ["", "0::/gone\n", "3:memory:/only/v1\n"])
def test_process_without_a_group_of_version_2_has_no_home(tree, lines):
    (tree.proc / "self" / "cgroup").write_text(lines)
    assert find_home() is None
    assert make_group() is None
    assert sweep_groups() == 0


def test_group_has_its_limits_takes_processes_and_is_removed_with_all_of_them(tree):
    place = tree.make("/worker", enabled="memory pids")
    tree.live_in("/worker")
    group, other = make_group(), make_group()
    assert group is not None
    assert group.folder.parent == place
    assert group != other
    assert (group.folder / "memory.max").read_text() == str(cgroup.MEMORY_BYTES)
    assert (group.folder / "pids.max").read_text() == str(cgroup.PROCESSES)
    group.add(1234)
    assert (group.folder / "cgroup.procs").read_text() == "1234"
    group.end()
    assert not group.folder.exists()
    group.end()  # once more is no harm


def test_process_that_is_not_taken_is_our_failure(tree):
    tree.make("/worker", enabled="memory pids")
    tree.live_in("/worker")
    with pytest.raises(InfrastructureError, match="does not get into its cgroup"):
        Group(tree.root / "worker" / "nothing").add(1)


def test_groups_of_dead_workers_are_ended_and_those_of_living_ones_stay(tree):
    place = tree.make("/worker", enabled="memory pids")
    tree.live_in("/worker")
    tree.live(7, "55")
    own = processes.pid_namespace()
    swept = {
        f"arena-bots-{own}-7-54-1",  # its pid has passed to another process
        f"arena-bots-{own}-8-1-1",
    }
    kept = {
        f"arena-bots-{own}-7-55-1",
        f"arena-bots-{own + 1}-8-1-1",  # of a container that counts other pids
        "somebody-elses",
    }
    for name in swept | kept:
        (place / name).mkdir()
    assert sweep_groups() == len(swept)
    assert {path.name for path in place.iterdir() if path.is_dir()} == kept


def test_group_of_another_user_stays(tree, monkeypatch):
    place = tree.make("/worker", enabled="memory pids")
    tree.live_in("/worker")
    (place / f"arena-bots-{processes.pid_namespace()}-8-1-1").mkdir()
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    assert sweep_groups() == 0


def test_group_of_this_machine_is_made_just_where_one_is_delegated_and_removed_at_its_end():
    group = make_group()
    assert (group is None) == (find_home() is None)
    if group is not None:
        group.end()
        assert not group.folder.exists()
