"""A cgroup for the bots of each zygote, where this process may make one: a bound for what they take together.

The limits of each process hold without it. It adds a bound for all of them, for memory that no limit of a
process counts (sockets, page tables), and an end that no process escapes. It needs version 2 with
the controllers ``memory`` and ``pids``, and a group that is ours to divide: our own, or the one above if that was
delegated to us and holds no processes (systemd's ``Delegate=`` with ``DelegateSubgroup=``; `man 7 cgroups`).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.errors import InfrastructureError
from engine.sandbox import processes
from engine.sandbox.processes import has_ended, own_mark, pid_namespace

MEMORY_BYTES = 2 * 1024 * 1024 * 1024
"""For all bots of a zygote: those of one match, of which each may have an eighth or a fifth of it."""
PROCESSES = 64
"""For a zygote and its bots."""
_CONTROLLERS = frozenset({"memory", "pids"})
_NAME = "arena-bots"
_PARTING_SECONDS = 2.0
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Group:
    """A cgroup of ours, with its limits."""

    folder: Path

    def add(self, pid: int) -> None:
        """Move a process into it, and so what it will fork. Raises InfrastructureError."""
        try:
            (self.folder / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            raise InfrastructureError(
                f"the sandbox does not get into its cgroup: {error}"
            ) from error

    def end(self) -> None:
        """Kill all that is in it, and remove it."""
        with contextlib.suppress(
            OSError
        ):  # not before Linux 5.14: then those who started them ended them
            (self.folder / "cgroup.kill").write_text("1")
        deadline = time.monotonic() + _PARTING_SECONDS
        while not _remove(self.folder) and time.monotonic() < deadline:
            time.sleep(0.005)  # the dead are still being taken out


def make_group() -> Group | None:
    """A new one; None where we may not. Raises InfrastructureError if it cannot be made where others could."""
    home = find_home()
    if home is None:
        return None
    group = Group(home / f"{_NAME}-{own_mark()}-{next(_numbers)}")
    try:
        _make(group)
    except OSError as error:
        raise InfrastructureError(f"a cgroup for the sandbox cannot be made: {error}") from error
    return group


@cache
def find_home() -> Path | None:
    """The cgroup in which this process can make others with limits, tried by making one; None if there is none."""
    own = _own_group()
    if own is None:
        return None
    places = [own]
    if _is_delegated(own.parent):
        places.append(own.parent)
    return next(filter(_serves, places), None)


def sweep_groups() -> int:
    """End the groups of this user whose worker, a process of this pid namespace, is gone; how many there were."""
    home = find_home()
    if home is None:
        return 0
    left = [folder for folder in home.glob(f"{_NAME}-{pid_namespace()}-*") if _is_orphan(folder)]
    for folder in left:
        Group(folder).end()
    return len(left)


def _own_group() -> Path | None:
    try:
        lines = (processes.PROC / "self" / "cgroup").read_text().splitlines()
        mounts = (processes.PROC / "self" / "mounts").read_text().splitlines()
    except OSError:
        return None
    paths = [line.removeprefix("0::") for line in lines if line.startswith("0::")]
    roots = [fields[1] for fields in map(str.split, mounts) if fields[2] == "cgroup2"]
    return Path(f"{roots[0]}{paths[0]}") if paths and roots else None


def _is_delegated(place: Path) -> bool:
    """Whether systemd says so: else it is not ours, even if root may write there."""
    try:
        return os.getxattr(place, "user.delegate") == b"1"
    except OSError:
        return False


def _serves(place: Path) -> bool:
    try:
        if not set((place / "cgroup.controllers").read_text().split()) >= _CONTROLLERS:
            return False
        enabled = place / "cgroup.subtree_control"
        if not set(enabled.read_text().split()) >= _CONTROLLERS:
            enabled.write_text("+memory +pids")
        trial = Group(place / f"{_NAME}-{own_mark()}-0")
        _make(trial)
    except OSError:
        return False
    trial.end()
    return True


def _make(group: Group) -> None:
    group.folder.mkdir()
    try:
        (group.folder / "memory.max").write_text(str(MEMORY_BYTES))
        (group.folder / "pids.max").write_text(str(PROCESSES))
    except OSError:
        _remove(group.folder)
        raise


def _remove(folder: Path) -> bool:
    """Whether it is gone: it cannot go while there is a process in it."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _is_orphan(folder: Path) -> bool:
    mark = folder.name.removeprefix(f"{_NAME}-").rpartition("-")[0]
    try:
        return has_ended(mark) and folder.stat().st_uid == os.geteuid()
    except FileNotFoundError:  # another process sweeps too
        return False
