"""Starts the processes of a site, keeps them going, and ends them in order.

Each child leads a session of its own, so that Ctrl-C reaches this process alone. A child is asked to
stop by a signal to its main process only: its own children are its business, and a worker that is
asked so finishes what it plays. Whatever is left in the session after the main process has ended is
killed. Should this process be killed itself, the kernel asks the children to stop.

One thread, no threads: PR_SET_PDEATHSIG follows the thread that started a child.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tournament.operations.errors import ChildFailedError

PR_SET_PDEATHSIG = 1
LOG_BYTES_KEPT = 20_000_000
STEADY_SECONDS = 60.0
LONGEST_WAIT_SECONDS = 30.0
StopStep = tuple[signal.Signals, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """One process of the site."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    log: Path
    """Standard output and error; begun anew at a start once it is large, the older one kept beside it."""
    is_ready: Callable[[], bool] | None = None
    """Asked until it is true before the next child is started."""
    stop: Sequence[StopStep] = ((signal.SIGTERM, 5.0),)
    """Signals to the main process and the seconds to wait after each; then the session is killed."""
    stop_stage: int = 0
    """Children of a lower stage are gone before the next are asked to stop."""
    pass_fds: Sequence[int] = ()


@dataclass(slots=True)
class Child:
    """A child as it is now."""

    spec: ChildSpec
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    failures: int = 0
    start_after: float = 0.0
    """Before this moment (monotonic seconds) it is not started again."""


def restart_delay(failures: int) -> float:
    """Seconds before the start that follows the given number of failures in a row."""
    return min(LONGEST_WAIT_SECONDS, 0.5 * 2.0 ** (failures - 1)) if failures else 0.0


@dataclass(slots=True)
class Supervisor:
    """Keeps children going. `report` gets a line whenever one had to be started again."""

    report: Callable[[str], None]
    children: list[Child] = field(default_factory=list)

    def start(self, spec: ChildSpec, *, ready_seconds: float = 30.0) -> None:
        """Start a child and wait until it is ready. Raises ChildFailedError if it does not get there."""
        child = Child(spec)
        self.children.append(child)
        spawn(child)
        deadline = time.monotonic() + ready_seconds
        while spec.is_ready and not spec.is_ready():
            assert child.process is not None
            if has_ended(child.process):
                raise ChildFailedError(spec.name, clear_away(child.process), log_tail(spec.log))
            if time.monotonic() > deadline:
                raise ChildFailedError(spec.name, None, log_tail(spec.log))
            time.sleep(0.05)

    def check(self) -> None:
        """Start again what has died, each after a wait that grows with its failures in a row."""
        now = time.monotonic()
        for child in self.children:
            if child.process is not None and has_ended(child.process):
                self.note_end(child, now)
            if child.process is None and now >= child.start_after:
                spawn(child)

    def note_end(self, child: Child, now: float) -> None:
        """Clear away a child that ended by itself, and decide when it is started again."""
        assert child.process is not None
        status = clear_away(child.process)
        steady = now - child.started_at > STEADY_SECONDS
        child.failures = 1 if steady else child.failures + 1
        child.process = None
        child.start_after = now + restart_delay(child.failures)
        self.report(
            f"{child.spec.name} ended with status {status}; starting it again in "
            f"{restart_delay(child.failures):.1f} s (its log: {child.spec.log})"
        )

    def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """End all children, stage by stage; once `hurry` says so, by force."""
        for stage in sorted({child.spec.stop_stage for child in self.children}):
            stop_together([c for c in self.children if c.spec.stop_stage == stage], hurry)
        self.children.clear()


def spawn(child: Child) -> None:
    """Start the child's process, in a session of its own that ends with this one."""
    spec = child.spec
    turn_over(spec.log)
    parent = os.getpid()
    with spec.log.open("ab") as log:
        child.process = subprocess.Popen(
            list(spec.command),
            env=dict(spec.environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=tuple(spec.pass_fds),
            preexec_fn=lambda: end_with(parent),  # noqa: PLW1509 - this process has one thread
        )
    child.started_at = time.monotonic()


def end_with(parent: int) -> None:
    """Have the kernel ask this process to stop when its parent dies (Linux only)."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def turn_over(log: Path) -> None:
    """Begin a log anew once it is large, keeping one older file."""
    if log.exists() and log.stat().st_size > LOG_BYTES_KEPT:
        log.replace(log.with_suffix(".old.log"))


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the main process has ended; its id stays taken until `clear_away`."""
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return process.returncode is not None or os.waitid(os.P_PID, process.pid, flags) is not None


def clear_away(process: subprocess.Popen[bytes]) -> int:
    """Kill what is left in an ended child's session, and take its exit status."""
    if process.returncode is None:
        kill_session(process)
    return process.wait()


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill the child and all that shares its session's first group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def stop_together(children: Sequence[Child], hurry: Callable[[], bool]) -> None:
    """Ask children to stop, each by the signals of its kind in turn, and kill those that do not."""
    waiting = {id(child): child for child in children if child.process is not None}
    steps = {key: iter(child.spec.stop) for key, child in waiting.items()}
    deadlines = dict.fromkeys(waiting, 0.0)
    while waiting:
        for key, child in list(waiting.items()):
            assert child.process is not None
            if has_ended(child.process):
                clear_away(child.process)
                child.process = None
                del waiting[key]
            elif time.monotonic() >= deadlines[key] or hurry():
                step = None if hurry() else next(steps[key], None)
                if step is None:
                    kill_session(child.process)
                    deadlines[key] = time.monotonic() + 1.0
                else:
                    os.kill(child.process.pid, step[0])
                    deadlines[key] = time.monotonic() + step[1]
        if waiting:
            time.sleep(0.02)


def log_tail(log: Path, lines: int = 30) -> str:
    """The last lines of a child's log."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
