"""``arena bench fairness``: on a machine kept busy, no bot that behaves loses on time, and those that do not, do.

Two processes play matches at a time, under the fast clock, while other programs keep every core busy.
Bots that behave play each other; to every ten of their matches one comes in which a bot spins, sleeps
or naps. `--nice` plays at a lower priority than the other programs, `--freeze` stops one of the
processes in the middle of its matches: all of that is the machine's fault and nobody's at the table.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from engine.cli.exits import ExitCode

BEHAVED = ("greedy", "steady", "random", "cautious", "bold")
"""Reference bots: they answer at once."""
THINKER = "thinker"
"""A bot that behaves, and uses most of its time."""
_ONE_THINKS_IN = 10
_ONE_PLANTED_TO = 10

_BOT = """\
import re
import time

from engine.sdk import Strategy, hookimpl

{before}
class Planted(Strategy):
    def act(self, observation):
        {act}
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Planted()
"""
_THINK = """\
until = time.process_time() + observation.clock_ms / 10_000
        while time.process_time() < until:
            pass"""
PLANTED = {
    "spins": ("", "while True: pass"),
    "sleeps": ("", "time.sleep(3600)"),
    "spins-late": (
        "",
        "self.asked = getattr(self, 'asked', 0) + 1\n        while self.asked > 1: pass",
    ),
    "naps": ("", "while True: time.sleep(0.1)"),
    "backtracks": ("", "re.match('(a|aa)+$', 'a' * 100 + 'b')"),
    "spins-at-import": ("while True: pass\n\n", "pass"),
}
"""What bots that do not behave do: before they are made, and when they are asked."""


class Plan(NamedTuple):
    """One match to be played."""

    number: int
    game: str
    bots: tuple[str, ...]
    planted: str | None
    """The one of its bots that does not behave."""


class Played(NamedTuple):
    """What came of it."""

    plan: Plan
    faults: tuple[tuple[str, str, str], ...]
    """Of each fault the bot, its kind and its words."""
    voids: tuple[str, ...]
    """Of each attempt that was void why."""
    failure: str = ""
    """Why there is no result, if all attempts were void."""


class Findings(NamedTuple):
    """What the whole shows."""

    matches: int
    """Of bots that behave."""
    time_forfeits: int
    """Of bots that behave, on time."""
    other_faults: tuple[str, ...]
    """Whatever else bots that behave were charged with."""
    planted: dict[str, int]
    """By what they do, how many bots that do not behave were played."""
    caught: dict[str, int]
    """And how many of them lost on time."""
    void_attempts: int
    unplayed: tuple[str, ...]
    """Why matches came to no result."""

    @property
    def holds(self) -> bool:
        """Whether nobody who behaves lost, and everybody else did, on time."""
        return (
            self.time_forfeits == 0
            and not self.other_faults
            and self.caught == self.planted
            and not self.unplayed
        )


def command(
    matches: Annotated[
        int, typer.Option(min=1, metavar="N", help="Matches of bots that behave.")
    ] = 300,
    busy: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Programs that do nothing but use the cores. [2 a core]"
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, metavar="N", help="Matches at a time.")] = 2,
    nice: Annotated[
        int, typer.Option(min=0, max=19, metavar="N", help="Play with so much less priority.")
    ] = 0,
    freeze: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="Stop one worker for so long in mid-match, twice."
        ),
    ] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Answer with one JSON object on stdout.")
    ] = False,
) -> None:
    """Try that time is fair on a busy machine.

    Other programs keep all cores busy while bots play. Exit code 1 if one that behaves loses on time, or
    one that spins or sleeps does not.
    """
    code = run(
        matches=matches,
        busy=2 * (os.cpu_count() or 1) if busy is None else busy,
        workers=workers,
        nice=nice,
        freeze_seconds=freeze,
        as_json=as_json,
    )
    if code:
        raise typer.Exit(code)


def run(
    *,
    matches: int,
    busy: int,
    workers: int,
    nice: int,
    freeze_seconds: float,
    as_json: bool,
) -> ExitCode:
    """Play and tell; NOT_GOOD if the claim fails. Raises SandboxUnavailableError."""
    from engine.cli.output import note, print_json, progress, say
    from engine.sandbox.probe import require_sandbox

    require_sandbox()
    plans = make_plans(matches)
    began = time.monotonic()
    played = []
    with (
        tempfile.TemporaryDirectory(prefix="arena-fairness-") as folder,
        kept_busy(busy),
        progress("fairness", len(plans), quiet=as_json) as show,
    ):
        crew = _Crew(Path(folder), workers=workers, nice=nice, freeze_seconds=freeze_seconds)
        for result in crew.play(plans):
            played.append(result)
            show(len(played))
            for words in result.voids:
                note(f"match {result.plan.number}: {words}")
    findings = find(played)
    conditions: dict[str, Any] = {
        "busy": busy,
        "workers": workers,
        "nice": nice,
        "freeze_seconds": freeze_seconds,
        "seconds": round(time.monotonic() - began, 1),
    }
    if as_json:
        print_json({"holds": findings.holds, **findings._asdict(), **conditions})
    else:
        for line in _spell(findings, conditions):
            say(line)
    return ExitCode.OK if findings.holds else ExitCode.NOT_GOOD


def make_plans(matches: int) -> list[Plan]:
    """So many matches of bots that behave, of both games and all table sizes; among them those with a planted one."""
    plans: list[Plan] = []
    behaved = itertools.cycle(BEHAVED)
    planted = itertools.cycle(PLANTED)
    tables = itertools.cycle((("eighty", 2), ("podkidnoe", 2), ("eighty", 2), ("podkidnoe", 3)))
    for number in range(matches):
        game, size = next(tables)
        bots = [next(behaved) for _ in range(size)]
        if number % _ONE_THINKS_IN == 1:
            bots[0] = THINKER
        plans.append(Plan(len(plans), game, tuple(bots), None))
        if number % _ONE_PLANTED_TO == 0:
            game, size = next(tables)
            culprit = next(planted)
            bots = [culprit, *(next(behaved) for _ in range(size - 1))]
            bots = bots[number % size :] + bots[: number % size]
            plans.append(Plan(len(plans), game, tuple(bots), culprit))
    return plans


def find(played: Sequence[Played]) -> Findings:
    """What the results say."""
    planted: dict[str, int] = {}
    caught: dict[str, int] = {}
    others = []
    forfeits = 0
    for result in played:
        culprit = result.plan.planted
        if culprit is not None:
            planted[culprit] = planted.get(culprit, 0) + 1
            caught[culprit] = caught.get(culprit, 0) + any(
                (bot, kind) == (culprit, "time") for bot, kind, _ in result.faults
            )
        for bot, kind, detail in result.faults:
            if bot != culprit and kind == "time":
                forfeits += 1
            elif bot != culprit:
                others.append(f"match {result.plan.number}: {bot} {detail} ({kind})")
    return Findings(
        matches=sum(result.plan.planted is None for result in played),
        time_forfeits=forfeits,
        other_faults=tuple(others),
        planted=planted,
        caught=caught,
        void_attempts=sum(len(result.voids) for result in played),
        unplayed=tuple(result.failure for result in played if result.failure),
    )


def _spell(findings: Findings, conditions: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{conditions['busy']} programs kept the cores busy, {conditions['workers']} matches were played "
        f"at a time, for {conditions['seconds']:.0f} s"
    )
    yield f"{findings.matches} matches of bots that behave: {findings.time_forfeits} lost on time"
    for kind, number in findings.planted.items():
        yield f"a bot that {kind.replace('-', ' ')}: {findings.caught[kind]} of {number} lost on time"
    yield f"{findings.void_attempts} attempts were void and made again"
    yield from findings.other_faults
    yield from findings.unplayed
    yield "the claim holds" if findings.holds else "the claim does not hold"


@contextlib.contextmanager
def kept_busy(programs: int) -> Iterator[None]:
    """Meanwhile so many other programs use whatever processor time they get; they end with this process too."""
    program = (
        "import os\nparent = os.getppid()\n"
        "while os.getppid() == parent:\n    for _ in range(10**6): pass\n"
    )
    with contextlib.ExitStack() as running:
        for _ in range(programs):
            hog = subprocess.Popen([sys.executable, "-S", "-c", program], start_new_session=True)
            running.callback(hog.wait)
            running.callback(hog.kill)
        yield


class _Player(NamedTuple):
    process: Any
    channel: Connection[Plan | None, Played]


class _Crew:
    """The processes that play."""

    def __init__(self, stage: Path, *, workers: int, nice: int, freeze_seconds: float) -> None:
        self._stage = stage
        self._workers = workers
        self._nice = nice
        self._freeze_seconds = freeze_seconds

    def play(self, plans: Sequence[Plan]) -> Iterator[Played]:
        """The results as they come."""
        _pack(self._stage)
        context = multiprocessing.get_context("spawn")
        with contextlib.ExitStack() as running:
            players = []
            for _ in range(min(self._workers, len(plans))):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_play_all, args=(theirs, str(self._stage), self._nice), daemon=True
                )
                process.start()
                theirs.close()
                running.callback(process.join)
                running.callback(ours.close)
                players.append(_Player(process, ours))
            yield from self._hand_out(plans, players)

    def _hand_out(self, plans: Sequence[Plan], players: list[_Player]) -> Iterator[Played]:
        waiting = iter(plans)
        channels = [player.channel for player in players]
        for player in players:
            player.channel.send(next(waiting))
        freezes = [len(plans) // 3, 2 * len(plans) // 3] if self._freeze_seconds else []
        for done in range(len(plans)):
            while freezes and done >= freezes[0]:
                freezes.pop(0)
                _freeze(players[0].process.pid, self._freeze_seconds)
            ready = wait(channels)
            channel = next(channel for channel in channels if channel in ready)
            yield channel.recv()
            if (plan := next(waiting, None)) is not None:
                channel.send(plan)
            else:
                channels.remove(channel)
                channel.send(None)


def _freeze(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)


def _pack(stage: Path) -> None:
    """Write the wheel of every bot to `stage`."""
    from engine.plugins import source_of_plugin
    from engine.wheels import pack_module

    texts = {name: _BOT.format(before=before, act=act) for name, (before, act) in PLANTED.items()}
    texts[THINKER] = _BOT.format(before="", act=_THINK)
    for name in BEHAVED:
        source = source_of_plugin(name, stage / "plugins")
        module = Path(source.folder, *source.entry_point.partition(":")[0].split("."))
        texts[name] = module.with_suffix(".py").read_text(encoding="utf-8")
    for name, text in texts.items():
        module = stage / f"{name.replace('-', '_')}_bot.py"
        module.write_text(text, encoding="utf-8")
        (stage / f"{name}.whl").write_bytes(pack_module(module, bot=name, version="1.0"))


def _play_all(channel: Connection[Played, Plan | None], stage: str, nice: int) -> None:
    """Play what comes through the channel, until None does."""
    os.nice(nice)
    with contextlib.suppress(EOFError):
        while (plan := channel.recv()) is not None:
            channel.send(_play(plan, Path(stage)))


def _play(plan: Plan, stage: Path) -> Played:
    from engine.errors import InfrastructureError
    from engine.record import BoardsContest, BotRef, DealSource, EntrantRef, make_spec
    from engine.runner import repeat_if_void, run_match
    from engine.sdk.timecontrol import time_control
    from engine.shuffle import local_prk
    from engine.wheels import wheel_source

    sources = [
        wheel_source((stage / f"{bot}.whl").read_bytes(), stage / "wheels") for bot in plan.bots
    ]
    spec = make_spec(
        game=plan.game,
        entrants=[
            EntrantRef(f"{source.bot}#{place}", (BotRef(source.bot, source.version, source.wheel),))
            for place, source in enumerate(sources)
        ],
        contest=BoardsContest(1),
        time_control=time_control("fast"),
        deals=DealSource(local_prk("fairness"), "local", reveal=True),
        match_key=f"M{plan.number + 1}",
    )
    voids: list[str] = []
    try:
        played = repeat_if_void(
            lambda: run_match(spec, [(source,) for source in sources]), voids.append
        )
    except InfrastructureError as error:
        return Played(plan, (), tuple(voids), f"match {plan.number} came to no result: {error}")
    faults = tuple(
        (plan.bots[fault.entrant], str(fault.kind), fault.detail)
        for fault in played.record.outcome.faults
    )
    return Played(plan, faults, tuple(voids))
