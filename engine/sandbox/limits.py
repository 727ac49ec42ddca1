"""What a bot gets here, to be told: the numbers that the sandbox, the wheel reader and the clocks go by."""

from __future__ import annotations

import platform

import msgspec

from engine.sandbox import policy
from engine.sdk.loading import TRACEBACK_BYTES
from engine.sdk.timecontrol import TIME_CONTROLS, TimeControl
from engine.wheels import provided_versions
from engine.wheels.archive import MAX_FILES, MAX_RATIO, MAX_UNPACKED_BYTES, MAX_WHEEL_BYTES
from engine.wheels.directory import MAX_PATH_LENGTH
from engine.wheels.paths import MAX_FOLDERS


class PublishedLimits(msgspec.Struct, frozen=True, kw_only=True):
    """All that an author has to reckon with. Sizes are in bytes."""

    python: str
    packages: dict[str, str]
    """What may be required, with versions; the standard library is there too."""
    memory_bytes: int
    """Address space of a process, the interpreter included."""
    numpy_bytes: int
    """What a process that has numpy may have more, which is what numpy takes."""
    stack_bytes: int
    open_files: int
    log_bytes: int
    traceback_bytes: int
    wheel_bytes: int
    unpacked_bytes: int
    unpacked_ratio: int
    """How many times as large as packed a wheel may be unpacked."""
    wheel_files: int
    wheel_folders: int
    wheel_path_characters: int
    """The longest path of a file in a wheel."""
    time_controls: tuple[TimeControl, ...]


def limits_here(*, wheel_bytes: int = MAX_WHEEL_BYTES) -> PublishedLimits:
    """What a bot gets by this installation; `wheel_bytes` where a site takes less."""
    return PublishedLimits(
        python=platform.python_version(),
        packages=provided_versions(),
        memory_bytes=policy.MEMORY_BYTES,
        numpy_bytes=policy.NUMPY_BYTES,
        stack_bytes=policy.STACK_BYTES,
        open_files=policy.OPEN_FILES,
        log_bytes=policy.LOG_BYTES,
        traceback_bytes=TRACEBACK_BYTES,
        wheel_bytes=min(wheel_bytes, MAX_WHEEL_BYTES),
        unpacked_bytes=MAX_UNPACKED_BYTES,
        unpacked_ratio=MAX_RATIO,
        wheel_files=MAX_FILES,
        wheel_folders=MAX_FOLDERS,
        wheel_path_characters=MAX_PATH_LENGTH,
        time_controls=tuple(TIME_CONTROLS.values()),
    )


CLOCK = (
    "A clock counts the CPU time of the bot's process from question to answer, not the time that passes; "
    "each game begins with a full one."
)
"""What the time controls mean, in a sentence."""


def describe_sizes(limits: PublishedLimits) -> tuple[tuple[str, str], ...]:
    """What is bounded, and by how much, for people."""
    return (
        ("memory of a process", spell_bytes(limits.memory_bytes)),
        ("more where it has numpy", spell_bytes(limits.numpy_bytes)),
        ("its stack", spell_bytes(limits.stack_bytes)),
        ("its open files", str(limits.open_files)),
        ("its log", spell_bytes(limits.log_bytes)),
        ("a crash's traceback", spell_bytes(limits.traceback_bytes)),
        ("a wheel", spell_bytes(limits.wheel_bytes)),
        ("a wheel, unpacked", spell_bytes(limits.unpacked_bytes)),
        ("a wheel, unpacked, may grow", f"{limits.unpacked_ratio} times"),
        ("files of a wheel", str(limits.wheel_files)),
        ("folders of a wheel", str(limits.wheel_folders)),
        ("a path in a wheel", f"{limits.wheel_path_characters} characters"),
    )


def describe_clock(control: TimeControl) -> str:
    """``fast: 2 s to start, 0.5 s for each game, …``."""
    start, game, gain, cap = (
        f"{milliseconds / 1000:g} s"
        for milliseconds in (
            control.start_cpu_ms,
            control.game_cpu_ms,
            control.action_cpu_ms,
            control.action_wall_ms,
        )
    )
    return (
        f"{control.name}: {start} to start, {game} for each game, {gain} gained with each question; "
        f"idle for at most {cap} of real time in all"
    )


def spell_bytes(count: int) -> str:
    """``5 MiB``, ``64 KiB``, ``10 bytes``."""
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:g} {unit}"
    return f"{count} bytes"
