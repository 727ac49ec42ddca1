"""Can this machine hold a bot? Not believed, but tried: a real bot attempts what is forbidden.

A program that exists proves nothing: user namespaces may be off, or a filter may not load. So the probe
starts `engine.sandbox.probe_bot` as any bot is started, and reads what it managed to do.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engine.agents import BotSource, Declined, Limits, never
from engine.errors import InfrastructureError, SandboxUnavailableError
from engine.games import GAMES
from engine.sandbox.findings import Finding, apparmor_profile, look_around
from engine.sandbox.landlock import landlock_abi
from engine.sandbox.policy import Level
from engine.sdk.timecontrol import time_control

if TYPE_CHECKING:
    from engine.sandbox.launcher import Launcher

_LIMITS = Limits(cpu_us=10_000_000, wall_ms=60_000)


class Attempt(msgspec.Struct, frozen=True):
    """One forbidden thing that the probe tried."""

    tried: str
    held: bool
    """Whether the wall held."""
    said: str
    """What the attempt got for an answer."""


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe found."""

    level: Level | None
    """What walls stand here: the strongest that hold; None if no bot can be held."""
    reasons: tuple[str, ...] = ()
    """Why no bot can be held here, and what to do; empty if the walls stand."""
    attempts: tuple[Attempt, ...] = ()
    """What was tried at `level`."""
    bubblewrap: str | None = None
    """The path of the bubblewrap that works."""
    landlock_abi: int = 0
    """The kernel's version of Landlock; 0 if it has none."""
    machine: tuple[Finding, ...] = ()
    """What the machine offers for the walls."""

    @property
    def holds(self) -> bool:
        """Whether bots can be held on this machine."""
        return self.level is not None

    @property
    def is_forking(self) -> bool:
        """Whether bots are forked from a zygote: without Landlock they could read each other's files there."""
        return self.landlock_abi > 0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that is to be told, the level first."""
        return (self._verdict, *self.machine)

    @property
    def notes(self) -> tuple[str, ...]:
        """What holds, but could be stronger, and how."""
        weak = (finding for finding in self.findings if finding.grade == "weak")
        return tuple(note for finding in weak for note in finding.advice)

    @property
    def _verdict(self) -> Finding:
        if self.level is None:
            text = "no bot can be held here"
            return Finding("level", "missing", text, self.reasons, apparmor_profile(self.reasons))
        text = f"{self.level}; {len(self.attempts)} forbidden things tried, all held"
        if self.level == "landlock":
            return Finding("level", "weak", text, (_WITHOUT_NAMESPACES,))
        return Finding("level", "ok", text)


_WITHOUT_NAMESPACES = (
    "bots are held by Landlock, seccomp and limits alone: they have no namespaces of their own, can "
    "see whether a file exists on this machine, count the open files of a partner's process, who so can tell them "
    "its hand, leave marks in the caches of its disks and in times of access for another bot to find, and read "
    "packages that lie beside the interpreter"
)


@cache
def require_sandbox() -> ProbeReport:
    """Make sure that bots can be held; tried once a process. Raises SandboxUnavailableError with reasons."""
    report = probe_sandbox()
    if not report.holds:
        raise SandboxUnavailableError(report.reasons)
    return report


def probe_sandbox() -> ProbeReport:
    """Try the walls now, the strongest first. What goes wrong is in the report's reasons."""
    if sys.platform != "linux":
        return ProbeReport(
            level=None, reasons=(f"the sandbox needs Linux, and this is {sys.platform}",)
        )
    from engine.sandbox.cgroup import sweep_groups
    from engine.sandbox.launcher import sweep_orphans

    sweep_orphans()
    sweep_groups()
    strongest = _probe_level("bubblewrap")
    if strongest.holds:
        return strongest
    if not landlock_abi():
        kernel = "this kernel has no Landlock, which would do without namespaces"
        return msgspec.structs.replace(strongest, reasons=(*strongest.reasons, kernel))
    weaker = _probe_level("landlock", strongest.reasons)
    if not weaker.holds:
        return msgspec.structs.replace(strongest, reasons=(*strongest.reasons, *weaker.reasons))
    return weaker


def _probe_level(level: Level, complaints: tuple[str, ...] = ()) -> ProbeReport:
    """What comes of trying that level; `complaints` is why a stronger one does not hold."""
    from engine.sandbox.launcher import find_bubblewrap

    bubblewrap = None
    try:
        if level == "bubblewrap":
            bubblewrap = find_bubblewrap()
        attempts = _try_walls(level)
    except SandboxUnavailableError as error:
        return _report_failure((*error.reasons, *_advice()))
    except (InfrastructureError, OSError) as error:
        return _report_failure((str(error), *_advice()))
    failed = [attempt for attempt in attempts if not attempt.held]
    return ProbeReport(
        level=None if failed else level,
        reasons=tuple(f"a bot could {attempt.tried} ({attempt.said})" for attempt in failed),
        attempts=attempts,
        bubblewrap=bubblewrap,
        landlock_abi=landlock_abi(),
        machine=look_around(
            bubblewrap=bubblewrap,
            complaints=complaints,
            landlock_abi=landlock_abi(),
            is_shown_in_memory=level == "bubblewrap",
        ),
    )


def _report_failure(reasons: tuple[str, ...]) -> ProbeReport:
    """No bubblewrap, or no bot, came to its end."""
    abi = landlock_abi()
    machine = look_around(
        bubblewrap=None, complaints=(), landlock_abi=abi, is_shown_in_memory=False
    )
    return ProbeReport(level=None, reasons=reasons, landlock_abi=abi, machine=machine)


def _try_walls(level: Level) -> tuple[Attempt, ...]:
    """Run the probe's bot. Raises InfrastructureError if it does not get to its end."""
    # Here, since agents are made only after this module has been asked.
    from engine.sandbox.agent import sandbox_factory
    from engine.sandbox.launcher import BubblewrapLauncher
    from engine.sandbox.memory import wheel_in_memory
    from engine.sandbox.probe_bot.arena_probe import ATTEMPTS, BESIDE, OTHER_FOLDER
    from engine.sandbox.zygote_launcher import ZygoteLauncher

    game = next(iter(GAMES.values()))
    with contextlib.ExitStack() as until:
        launcher: Launcher = BubblewrapLauncher()
        if landlock_abi():
            zygotes = launcher = ZygoteLauncher(level)
            until.callback(zygotes.close)
        stage = Path(until.enter_context(tempfile.TemporaryDirectory(prefix="arena-probe-")))
        probe = _stage_probe(stage)
        other = stage / OTHER_FOLDER
        if level == "bubblewrap":
            other = wheel_in_memory(other)  # as a bot that has played before
        (probe / BESIDE).write_text(other.name)
        agent = sandbox_factory(launcher)(
            BotSource(
                bot="probe",
                version=None,
                wheel=None,
                folder=str(probe),
                entry_point="arena_probe",
            ),
            game=game.name,
            ruleset=game.make_ruleset(),
            players=game.seats(game.entrant_counts[0]),
            time_control=time_control("standard"),
            keep_alive=never,
        )
        try:
            agent.start()
            outcome = agent.wait_ready(_LIMITS)
        finally:
            log = agent.close()
    lines = [line for line in log.text.splitlines() if line.startswith("{")]
    if not isinstance(outcome, Declined) or len(lines) != len(ATTEMPTS):
        raise InfrastructureError(
            f"the bot that tries the walls did not come to its end: {outcome}\n{log.text}{log.traceback}"
        )
    return tuple(msgspec.json.decode(line, type=Attempt) for line in lines)


def _stage_probe(stage: Path) -> Path:
    """The probe's folder, lying beside another bot's as unpacked wheels lie."""
    from engine.sandbox.probe_bot.arena_probe import OTHER_FILE, OTHER_FOLDER

    folder = stage / ("0" * 64)
    shutil.copytree(Path(__file__).parent / "probe_bot", folder)
    (stage / OTHER_FOLDER).mkdir()
    (stage / OTHER_FOLDER / OTHER_FILE).write_text("PLAN = 'lead the doubles'\n")
    return folder


def _advice() -> tuple[str, ...]:
    """What this machine's settings say of why user namespaces do not work, and what to do."""
    advice = []
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        advice.append(
            "AppArmor forbids user namespaces to programs without a profile (Ubuntu 24.04): "
            "put the profile for bwrap into /etc/apparmor.d/bwrap, then: systemctl reload apparmor"
        )
    if _setting("kernel/unprivileged_userns_clone") == "0":
        advice.append(
            "user namespaces are off: as root, sysctl -w kernel.unprivileged_userns_clone=1"
        )
    if _setting("user/max_user_namespaces") == "0":
        advice.append("user namespaces are off: as root, sysctl -w user.max_user_namespaces=15000")
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        advice.append(
            "this is a container: it must allow user namespaces (see docs/sandbox.md, Containers)"
        )
    return tuple(advice)


def _setting(name: str) -> str | None:
    try:
        return (Path("/proc/sys") / name).read_text().strip()
    except OSError:
        return None
