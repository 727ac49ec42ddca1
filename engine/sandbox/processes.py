"""Processes as the system shows them, and a name for one that no other process ever has.

Whatever a worker leaves outside itself (a bubblewrap, a cgroup, copies in memory) carries its owner's mark, so that who
comes next can tell what belongs to nobody. Pids are those of one namespace: a container counts its own, and may share
files, cgroups or the sight of its processes with others. So a mark says whose pids it means, and only its own kind judges it.
"""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")


def own_mark() -> str:
    """``NAMESPACE-PID-START`` of this process."""
    return f"{pid_namespace()}-{os.getpid()}-{start_time(os.getpid())}"


def has_ended(mark: str) -> bool:
    """Whether the process of a mark is gone; False for one that we cannot know: of other pids, or no mark at all."""
    namespace, _, process = mark.partition("-")
    pid, _, start = process.partition("-")
    if namespace != str(pid_namespace()) or not (pid.isdecimal() and start.isdecimal()):
        return False
    return start_time(int(pid)) != start


def pid_namespace() -> int:
    """Whose pids we count in: no other namespace of this kernel has that number while it lives."""
    return (PROC / "self" / "ns" / "pid").stat().st_ino


def start_time(pid: int) -> str | None:
    """When a process started, in clock ticks since boot; None if there is none."""
    fields = stat_fields(pid)
    return fields[19] if fields else None


def parent_of(pid: int) -> int | None:
    """The pid of a process's parent; None if there is no such process."""
    fields = stat_fields(pid)
    return int(fields[1]) if fields else None


def stat_fields(pid: int) -> list[str] | None:
    """``/proc/PID/stat`` from its third field on: the second may contain anything."""
    try:
        stat = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()


def user_of(pid: int) -> int | None:
    """The real user of a process, also of one with the rights of another (setuid); None if there is none."""
    try:
        lines = (PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("Uid:")), None)
