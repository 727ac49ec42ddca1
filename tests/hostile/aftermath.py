"""What is left after an attack: a whole match is played, and then everything is looked at that could stay behind.

``python -m tests.hostile.matrix --aftermath`` prints it for every attack.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.agents import BotSource, Failure, never
from engine.record import (
    BoardsContest,
    BotRef,
    DealSource,
    EntrantRef,
    encode_record,
    make_spec,
    replay,
)
from engine.referee import PlayedMatch, play_match
from engine.sandbox.agent import sandbox_factory
from engine.sandbox.launcher import Launcher, _children, is_unpacked_wheel
from engine.sandbox.memory import memory_folder, wheel_in_memory
from engine.sdk.timecontrol import TimeControl
from engine.shuffle import local_prk
from tests.hostile.attempts import MARK, MARK_KEY, attempts_here, write_attempt
from tests.hostile.stage import open_files, source_in
from tests.oracle.judge import judge

SHORT = TimeControl("short", 2000, 2000, 10, 60_000)
"""Enough to fill the memory that a bot has."""
IMPATIENT = TimeControl("impatient", 2000, 2000, 10, 2000)
"""For who only sleeps."""
PRK = local_prk("hostile")
SHARED = ("/", "/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run", ".")
"""Folders in which others leave things too: only what is marked counts there."""
MOST_SECONDS = 10.0
"""How long is waited for the dead; longer, and they live."""


@dataclass(frozen=True)
class Aftermath:
    """A match with an attacker, and what was found after it."""

    match: PlayedMatch
    seconds_to_dead: float | None
    """From the referee's verdict (the end of the match, if there is none) until nothing lived; None if something does."""
    left: frozenset[str]
    """Files, queues, keys and the like that were not there before."""

    @property
    def untruths(self) -> list[str]:
        """What the second judge has against the record."""
        return judge(json.loads(encode_record(self.match.record)), prk=PRK)


def play_against(source: BotSource, launcher: Launcher, folder: Path) -> Aftermath:
    """The attacker and a bot that does nothing wrong, one board from both sides; then look."""
    honest = source_in(folder / "honest", "well_behaved")
    entrants = [("Attacker", source), ("Honest", honest)]
    spec = make_spec(
        game="podkidnoe",
        entrants=[
            EntrantRef(name, (BotRef(bot.bot, bot.version, bot.wheel),)) for name, bot in entrants
        ],
        contest=BoardsContest(1),
        time_control=IMPATIENT if source.bot.startswith("sleep") else SHORT,
        deals=DealSource(PRK, "local", reveal=True),
    )
    watch = _Watch()
    if is_unpacked_wheel(Path(source.folder)):
        wheel_in_memory(Path(source.folder))  # the copy that the referee makes is no trace
    before = traces(folder)
    match = play_match(spec, [(source,), (honest,)], watch.factory(launcher), never)
    began = watch.verdict or time.monotonic()
    seconds = _seconds_until_dead(zygotes_of(launcher), began)
    replay(match.record)  # raises if it is untrue
    return Aftermath(match, seconds, traces(folder) - before)


class _Watch:
    """Notes when the referee learns of the first fault."""

    def __init__(self) -> None:
        self.verdict: float | None = None

    def factory(self, launcher: Launcher) -> Callable[..., Any]:
        make = sandbox_factory(launcher)

        def make_watched(*args: Any, **named: Any) -> Any:
            agent = make(*args, **named)
            agent.wait_ready = self._noting(agent.wait_ready)
            agent.ask = self._noting(agent.ask)
            return agent

        return make_watched

    def _noting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any, **named: Any) -> Any:
            answer = call(*args, **named)
            if isinstance(answer, Failure) and self.verdict is None:
                self.verdict = time.monotonic()
            return answer

        return noting


# Processes


def zygotes_of(launcher: Any) -> list[int]:
    """The pids of a launcher's zygotes."""
    return [zygote.pid for zygote in launcher._zygotes().values()]


def living(zygotes: Iterable[int]) -> set[int]:
    """All processes that came from these: below them, of their session, or in their namespace."""
    own = set(zygotes)
    spaces = {_space_of(pid) for pid in own} - {_space_of(os.getpid()), None}
    found: set[int] = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) not in own:
            pid = int(folder.name)
            parent, session = _parent_and_session(pid)
            if parent in own or session in own or (spaces and _space_of(pid) in spaces):
                found.add(pid)
    return found


def _space_of(pid: int) -> str | None:
    try:
        return f"{Path(f'/proc/{pid}/ns/pid').readlink()}"
    except OSError:
        return None


def _parent_and_session(pid: int) -> tuple[int, int]:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0
    return int(fields[1]), int(fields[3])


def _seconds_until_dead(zygotes: list[int], began: float) -> float | None:
    while time.monotonic() - began < MOST_SECONDS:
        if not any(_children(pid) for pid in zygotes):
            seconds = time.monotonic() - began
            if not living(zygotes):  # nor has anything escaped; this look takes longer than dying
                return seconds
        time.sleep(0.001)
    return None


# Traces


def traces(folder: Path) -> frozenset[str]:
    """What there is now: all below `folder` and in our copies of wheels; of what is shared, what is marked."""
    memory = memory_folder()
    copies = memory.glob(f"wheels-*-{os.getpid()}-*") if memory else ()
    files = {
        f"{path}"
        for place in (folder, *copies)
        for path in place.rglob("*")
        if not path.is_relative_to(folder / "honest")  # which is written for each match
    }
    marked = {
        f"{path}" for place in map(Path, SHARED) for path in _list(place) if MARK in path.name
    }
    return frozenset({*files, *marked, *_objects(), *_keys()})


def _list(place: Path) -> list[Path]:
    try:
        return list(place.iterdir())
    except OSError:
        return []


def _objects() -> set[str]:
    """Marked objects of System V; those of a namespace end with it."""
    return {
        f"System V {kind}"
        for kind in ("shm", "sem", "msg")
        for line in _lines(f"/proc/sysvipc/{kind}")
        if line.split()[0] == str(MARK_KEY)
    }


def _keys() -> set[str]:
    return {line for line in _lines("/proc/keys") if MARK in line}


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


# Memory and open files


@dataclass(frozen=True)
class Load:
    """What the worker and its zygotes hold."""

    resident_bytes: tuple[int, ...]
    open_files: tuple[int, ...]


def load_of(launcher: Any) -> Load:
    """What this process and the launcher's zygotes hold now."""
    pids = zygotes_of(launcher)
    return Load(
        tuple(map(_resident_bytes, [os.getpid(), *pids])),
        (open_files(), *(len(_list(Path(f"/proc/{pid}/fd"))) for pid in pids)),
    )


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def print_aftermath(
    level: str, launcher: Any, bots: Iterable[str], within: float = MOST_SECONDS
) -> int:
    """Print what is left after every attack at a level; how many left anything, or lived on for more seconds than `within`."""
    seconds, bad, late = [], 0, 0
    print(f"level {level}: verdict, milliseconds from it until nothing lives, and what is left")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources: list[tuple[str, Callable[[], BotSource]]] = [
            *((bot, lambda bot=bot: source_in(folder / "bot", bot)) for bot in bots),
            *(
                (f"{row.kind}: {row.name}", lambda row=row: write_attempt(folder / ("0" * 64), row))
                for row in attempts_here()
            ),
        ]
        for _, write in (sources[0], sources[-1]):
            play_against(write(), launcher, folder)  # starts the zygotes
        before = load_of(launcher)
        for attack, write in sources:
            found = play_against(write(), launcher, folder)
            dead = found.seconds_to_dead
            seconds.append(MOST_SECONDS if dead is None else dead)
            is_bad = dead is None or bool(found.left) or bool(found.untruths)
            bad += is_bad
            is_late = dead is not None and dead > within
            late += is_late
            verdict = found.match.record.outcome.termination.value
            spelled = "alive" if dead is None else f"{dead * 1000:6.1f}"
            print(
                f"{verdict:<15}{spelled:>8}  {'LEFT ' if is_bad else ''}{'LATE ' if is_late else ''}{attack} {' '.join(sorted(found.left))}"
            )
        after = load_of(launcher)
    print(
        f"{len(seconds)} matches: dead after {statistics.median(seconds) * 1000:.1f} ms (median), "
        f"{max(seconds) * 1000:.1f} ms at most; {bad} left anything, "
        f"{late} lived for more than {within * 1000:g} ms"
    )
    for who, old, new in zip(("worker", "zygote"), before.resident_bytes, after.resident_bytes):  # noqa: B905  # one or two zygotes
        print(f"memory of the {who}: {old >> 10} KiB before, {new >> 10} KiB after")
    print(f"open files before {before.open_files}, after {after.open_files}")
    return bad + late
