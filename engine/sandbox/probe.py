"""Can this machine hold a bot? Not believed, but tried: a real bot attempts what is forbidden.

A program that exists proves nothing: user namespaces may be off, or a filter may not load. So the probe
starts `engine.sandbox.probe_bot` as any bot is started, and reads what it managed to do.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

import msgspec

from engine.agents import BotSource, Declined, Limits, never
from engine.errors import InfrastructureError, SandboxUnavailableError
from engine.games import GAMES
from engine.sdk.timecontrol import time_control

APPARMOR_PROFILE = """\
abi <abi/4.0>,
include <tunables/global>
profile bwrap {bubblewrap} flags=(unconfined) {{
  userns,
  include if exists <local/bwrap>
}}
"""
"""For ``/etc/apparmor.d/bwrap``: allows bubblewrap what Ubuntu 24.04 forbids (format with `bubblewrap`)."""

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

    reasons: tuple[str, ...]
    """Why no bot can be held here, and what to do; empty if the walls stand."""
    attempts: tuple[Attempt, ...] = ()
    bubblewrap: str | None = None
    """The path of the bubblewrap that works."""
    notes: tuple[str, ...] = ()
    """What holds, but could be stronger, and how."""

    @property
    def holds(self) -> bool:
        """Whether bots can be held on this machine."""
        return not self.reasons


@cache
def require_sandbox() -> None:
    """Make sure that bots can be held; tried once a process. Raises SandboxUnavailableError with reasons."""
    report = probe_sandbox()
    if not report.holds:
        raise SandboxUnavailableError(report.reasons)


def probe_sandbox() -> ProbeReport:
    """Try the walls now. What goes wrong is in the report's reasons."""
    if sys.platform != "linux":
        return ProbeReport(reasons=(f"the sandbox needs Linux, and this is {sys.platform}",))
    from engine.sandbox.launcher import find_bubblewrap, sweep_orphans

    sweep_orphans()
    try:
        bubblewrap = find_bubblewrap()
        attempts = _try_walls()
    except SandboxUnavailableError as error:
        return ProbeReport(reasons=(*error.reasons, *_advice()))
    except (InfrastructureError, OSError) as error:
        return ProbeReport(reasons=(str(error), *_advice()))
    return ProbeReport(
        reasons=tuple(
            f"a bot could {attempt.tried} ({attempt.said})"
            for attempt in attempts
            if not attempt.held
        ),
        attempts=attempts,
        bubblewrap=bubblewrap,
        notes=_notes(),
    )


def _try_walls() -> tuple[Attempt, ...]:
    """Run the probe's bot. Raises InfrastructureError if it does not get to its end."""
    # Here, since agents are made only after this module has been asked.
    from engine.sandbox.agent import sandbox_factory
    from engine.sandbox.launcher import BubblewrapLauncher
    from engine.sandbox.probe_bot.arena_probe import ATTEMPTS

    game = next(iter(GAMES.values()))
    agent = sandbox_factory(BubblewrapLauncher())(
        BotSource(
            bot="probe",
            version=None,
            wheel=None,
            folder=str(Path(__file__).parent / "probe_bot"),
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


def _notes() -> tuple[str, ...]:
    """A root's bots are root outside too, without any of its rights: one wall less."""
    from engine.sandbox.runtime import closed_to_others, find_runtime

    if os.geteuid() != 0:
        return ()
    interpreter = find_runtime().interpreter
    closed = closed_to_others(Path(interpreter))
    if closed is None:
        return ("this runs as root, and so do the bots, seen from outside: run it as another user",)
    reason = f"{closed}, where the interpreter lies, is closed to others"
    remedy = "install Python where all can read it, and run this as another user"
    return (f"this runs as root, and so do the bots, seen from outside; {reason}: {remedy}",)


def _advice() -> tuple[str, ...]:
    """What this machine's settings say of why user namespaces do not work, and what to do."""
    advice = []
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        advice.append(
            "AppArmor forbids user namespaces to programs without a profile (Ubuntu 24.04): "
            "install the profile for bwrap that docs/sandbox.md shows"
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
