"""What a machine offers for the walls, one thing at a time: how it is, what is weaker for it, how to mend it.

The one source of what ``arena doctor``, ``manage.py doctor`` and the site's admin tell of a sandbox.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from engine.errors import SandboxUnavailableError

APPARMOR_PROFILE = """\
abi <abi/4.0>,
include <tunables/global>
profile bwrap {bubblewrap} flags=(unconfined) {{
  userns,
  include if exists <local/bwrap>
}}
"""
"""For ``/etc/apparmor.d/bwrap``: allows bubblewrap what Ubuntu 24.04 forbids (format with `bubblewrap`)."""
_SCOPING_ABI = 6

Grade = Literal["ok", "weak", "missing"]
"""As strong as it can be; weaker than it could be; or so that no bot can be held."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    grade: Grade
    text: str
    advice: tuple[str, ...] = ()
    """What is weaker or missing, and what to do, a sentence each."""
    snippet: str = ""
    """A profile of AppArmor for bubblewrap, where the lack of one is what is wrong."""


def look_around(
    *,
    bubblewrap: str | None,
    complaints: Sequence[str],
    landlock_abi: int,
    is_shown_in_memory: bool,
) -> tuple[Finding, ...]:
    """What this machine has, whatever level its walls come to.

    `bubblewrap` is the path of the one that works, `complaints` why none does; `is_shown_in_memory` is
    whether bots are shown files of a tmpfs where there is one.
    """
    return (
        Finding("kernel", "ok", f"{platform.release()} on {platform.machine()}"),
        _look_at_bubblewrap(bubblewrap, complaints),
        _look_at_landlock(landlock_abi),
        Finding(
            "bots' processes",
            "ok" if landlock_abi else "weak",
            "forked from a zygote" if landlock_abi else "each with an interpreter of its own",
        ),
        _look_at_cgroup(),
        *_look_at_interpreter(),
        *(_look_at_memory() if is_shown_in_memory else ()),
    )


def _look_at_bubblewrap(path: str | None, complaints: Sequence[str]) -> Finding:
    if path is not None:
        return Finding("bubblewrap", "ok", path)
    advice = tuple(f"bubblewrap does not work here: {complaint}" for complaint in complaints)
    return Finding("bubblewrap", "weak", "does not work here", advice, apparmor_profile(complaints))


def apparmor_profile(complaints: Sequence[str]) -> str:
    """The profile that mends it, if AppArmor stands in bubblewrap's way; else nothing."""
    if not any("AppArmor" in complaint for complaint in complaints):
        return ""
    import shutil

    return APPARMOR_PROFILE.format(bubblewrap=shutil.which("bwrap") or "/usr/bin/bwrap")


def _look_at_landlock(abi: int) -> Finding:
    if abi == 0:
        advice = (
            "this kernel has no Landlock, so every bot's process starts an interpreter of its own, which "
            "is slow: use kernel 5.13 or later with landlock in its lsm= list"
        )
        return Finding("Landlock", "weak", "not in this kernel", (advice,))
    if abi < _SCOPING_ABI:
        advice = (
            f"Landlock is version {abi}: from {_SCOPING_ABI} on (kernel 6.12) it also keeps signals and "
            "abstract sockets in; here other walls do"
        )
        return Finding("Landlock", "weak", f"version {abi}", (advice,))
    return Finding("Landlock", "ok", f"version {abi}")


def _look_at_cgroup() -> Finding:
    """An addition: what it bounds, the limits of each process bound too, but one by one."""
    from engine.sandbox.cgroup import MEMORY_BYTES, PROCESSES, find_home

    home = find_home()
    if home is None:
        return Finding("cgroup", "ok", "none is delegated to this; the limits of each process do")
    text = (
        f"all bots of a match together: {MEMORY_BYTES >> 20} MiB, {PROCESSES} processes, in {home}"
    )
    return Finding("cgroup", "ok", text)


def _look_at_interpreter() -> Iterator[Finding]:
    """A root's bots are root outside too, without any of its rights: one wall less."""
    from engine.sandbox.runtime import closed_to_others, find_runtime

    try:
        interpreter = find_runtime().interpreter
    except SandboxUnavailableError as error:
        yield Finding("interpreter", "missing", "its parts cannot be found", error.reasons)
        return
    closed = closed_to_others(Path(interpreter))
    is_root = os.geteuid() == 0
    if closed is None:
        yield Finding("interpreter", "ok", f"{interpreter}, readable by every user")
    else:
        remedy = (
            f"{closed}, where the interpreter lies, is closed to others: install Python where all can "
            "read it"
        )
        text = f"{interpreter}, in {closed}, which is closed to other users"
        yield Finding("interpreter", "weak" if is_root else "ok", text, (remedy,) * is_root)
    if is_root:
        note = "this runs as root, and so do the bots, seen from outside: run it as another user"
        yield Finding("user", "weak", "root", (note,))
    else:
        yield Finding("user", "ok", f"user {os.geteuid()}, not root")


def _look_at_memory() -> Iterator[Finding]:
    from engine.sandbox.memory import LEAST_BYTES, memory_complaint, memory_folder

    folder = memory_folder()
    if folder is not None:
        yield Finding("files of bots", "ok", f"in memory, {folder}")
        return
    complaint = memory_complaint()
    note = (
        "bots see files on a disk, whose caches one can leave marks in for another to find: have a tmpfs of "
        f"{LEAST_BYTES >> 20} MiB or more without noexec, and name it by ARENA_MEMORY (see docs/sandbox.md)"
    )
    yield Finding("files of bots", "weak", "on a disk", (complaint, note) if complaint else (note,))
