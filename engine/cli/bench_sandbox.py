"""``arena bench sandbox``: what the walls cost, against the same without them, measured in one run.

Everything is measured in real time on one core, in turns (A B A B …), and the median is told: other
load disturbs both sides alike. A *step* is one question to a sandboxed bot and its answer, with the
observation packed and unpacked (those of a whole deal, one after the other), the clocks read, the deadline kept, the process continued and stopped; its peer is one byte through a pipe
to a bare Python process and back. A *match* is four seats of Eighty, two boards, each from both sides: eight processes; its peer is the
same match with a bubblewrap and an interpreter for each.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from engine.cli.exits import ExitCode

if TYPE_CHECKING:
    from engine.agents import BotSource

BOT = '''\
"""Answers with the first legal action: what is measured is what lies around it."""

from engine.sdk import Strategy, hookimpl


class First(Strategy):
    def act(self, observation):
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return First()
'''
NUMPY_BOT = BOT.replace("from engine.sdk", "import numpy as np\nfrom engine.sdk", 1).replace(
    "legal[0]", "legal[int(np.argmin(np.ones((9, 9)) @ np.arange(9.0)))]"
)
"""The same answer, calculated."""
_BUSY = 1.2
"""From so many times as long on, what was measured is other programs too."""
STEPS = 400
"""Steps of one measurement."""
SEED = "bench"


class Measurement(NamedTuple):
    """One line of the result."""

    name: str
    unit: str
    value: float
    peer: str | None
    """What it was measured against; None where an absolute number counts."""
    peer_value: float | None
    ratio: float | None
    """The median of the pairwise ratios."""
    goal: float
    """For the ratio, or for the value where there is no peer."""
    is_at_most: bool
    """Whether the goal is an upper bound; else a lower."""

    @property
    def is_reached(self) -> bool:
        """Whether the goal is reached."""
        measured = self.value if self.ratio is None else self.ratio
        return measured <= self.goal if self.is_at_most else measured >= self.goal


def command(
    pairs: Annotated[
        int, typer.Option(min=5, metavar="N", help="How many times each side is measured.")
    ] = 9,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a goal is missed.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Answer with one JSON object on stdout.")
    ] = False,
) -> None:
    """Measure what the sandbox costs, against the same without it in the same run.

    One step, one match of four seats, the start of a bot, and the memory of its process.
    """
    code = run(pairs=pairs, strict=strict, as_json=as_json)
    if code:
        raise typer.Exit(code)


def run(*, pairs: int, strict: bool, as_json: bool) -> ExitCode:
    """Measure and tell; NOT_GOOD if `strict` and a goal is missed."""
    from engine.cli.output import note
    from engine.sandbox.probe import require_sandbox
    from engine.sandbox.starvation import OwnPace

    report, pace = require_sandbox(), OwnPace()
    measurements = []
    for measurement in bench_sandbox(pairs=pairs):
        note(f"measured {measurement.name}")
        measurements.append(measurement)
    if as_json:
        _tell_as_json(measurements, str(report.level), pace.slowdown())
    else:
        _tell_as_table(measurements, str(report.level), pace.slowdown())
    is_good = all(measurement.is_reached for measurement in measurements)
    return ExitCode.OK if is_good or not strict else ExitCode.NOT_GOOD


def bench_sandbox(*, pairs: int) -> Iterator[Measurement]:
    """All measurements. Raises SandboxUnavailableError where no bot can be held."""
    from engine.sandbox.core import one_core

    with one_core(), tempfile.TemporaryDirectory(prefix="arena-bench-") as folder:
        stage = _Stage(Path(folder))
        yield _bench_step(stage, pairs)
        yield _bench_match(stage, pairs)
        yield from _bench_start(stage, pairs)


class _Stage:
    """A bot, and what it takes to play it."""

    def __init__(self, folder: Path) -> None:
        from engine.agents import Limits, Reply
        from engine.games import get_game
        from engine.shuffle import Stream
        from engine.wheels import pack_module, wheel_source

        self.limits = Limits(cpu_us=10_000_000, wall_ms=60_000)
        self.reply = Reply
        sources = []
        for name, program in (("first", BOT), ("numeric", NUMPY_BOT)):
            (folder / f"{name}.py").write_text(program)
            wheel = pack_module(folder / f"{name}.py", bot=name, version="1.0")
            sources.append(wheel_source(wheel, folder / "wheels"))
        self.source, self.numpy_source = sources
        self.game = get_game("eighty")
        self.ruleset = self.game.make_ruleset()
        state = self.game.start(
            self.ruleset, self.game.deal(Stream(bytes(32)), self.ruleset, self.seats)
        )
        questions = []
        while not state.is_over:
            if len(state.legal()) > 1:
                questions.append(state.observe(1000))
            state.apply(state.legal()[-1])
        self.questions = itertools.cycle(questions)

    seats = 4

    @contextlib.contextmanager
    def agent(self, source: BotSource | None = None) -> Iterator[Any]:
        """A sandboxed agent, not started; closed in the end."""
        from engine.agents import never
        from engine.sandbox.agent import sandbox_factory
        from engine.sdk.timecontrol import time_control

        agent = sandbox_factory()(
            source or self.source,
            game=self.game.name,
            ruleset=self.ruleset,
            players=self.seats,
            time_control=time_control("standard"),
            keep_alive=never,
        )
        try:
            yield agent
        finally:
            agent.close()

    def get_ready(self, agent: Any) -> None:
        """From nothing until the first question can be asked."""
        from engine.sdk import GameInfo
        from engine.sdk.timecontrol import time_control

        agent.start()
        ready = agent.wait_ready(self.limits)
        assert isinstance(ready, int), ready
        agent.begin_game(
            GameInfo(
                game=self.game.name,
                ruleset=self.ruleset,
                seat=0,
                players=("a", "b", "a", "b"),
                time_control=time_control("standard"),
                random_seed=1,
                number=0,
            )
        )

    def ask(self, agent: Any) -> None:
        """One step."""
        question = next(self.questions)
        answer = agent.ask(question, question.legal, self.limits, deal=0, turn=0, move=1)
        assert isinstance(answer, self.reply), answer

    def play(self, factory: Any) -> None:
        """One match of four seats."""
        from engine.record import BoardsContest, BotRef, DealSource, EntrantRef, make_spec
        from engine.referee import play_match
        from engine.sdk.timecontrol import time_control
        from engine.shuffle import local_prk

        bot = BotRef(self.source.bot, self.source.version, self.source.wheel)
        spec = make_spec(
            game=self.game.name,
            entrants=[EntrantRef(name, (bot,)) for name in ("one", "two")],
            contest=BoardsContest(2),
            time_control=time_control("standard"),
            deals=DealSource(local_prk(SEED), "local", reveal=True),
        )
        played = play_match(spec, [(self.source,), (self.source,)], factory)
        assert not played.record.outcome.faults, played.record.outcome


def _bench_step(stage: _Stage, pairs: int) -> Measurement:
    with stage.agent() as agent, _echo() as bounce:
        stage.get_ready(agent)
        return _compare(
            "step",
            "µs",
            "a byte through a pipe and back",
            [_step_by_step(lambda: stage.ask(agent), bounce) for _ in range(pairs)],
            goal=4.5,
            is_at_most=True,
        )


def _step_by_step(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """Median microseconds of one call of each, made by turns."""
    times = [(_seconds_of(ours), _seconds_of(theirs)) for _ in range(STEPS)]
    return _median(time for time, _ in times) * 1e6, _median(time for _, time in times) * 1e6


def _bench_match(stage: _Stage, pairs: int) -> Measurement:
    from engine.sandbox.agent import sandbox_factory
    from engine.sandbox.launcher import BubblewrapLauncher

    warm, cold = sandbox_factory(), sandbox_factory(BubblewrapLauncher())
    stage.play(warm)
    return _compare(
        "match of four seats",
        "matches/s",
        "a bubblewrap and an interpreter for each bot",
        [
            (
                1 / _median(_seconds_of(lambda: stage.play(warm)) for _ in range(3)),
                1 / _seconds_of(lambda: stage.play(cold)),
            )
            for _ in range(pairs)
        ],
        goal=3.0,
        is_at_most=False,
    )


def _bench_start(stage: _Stage, pairs: int) -> Iterator[Measurement]:
    for kind, source in (("a bot", stage.source), ("a bot with numpy", stage.numpy_source)):
        seconds, private = [], []
        for _ in range(3 * pairs):
            with stage.agent(source) as agent:
                began = time.perf_counter()
                stage.get_ready(agent)
                stage.ask(agent)
                seconds.append(time.perf_counter() - began)
                private.append(agent.private_bytes())
        yield _absolute(f"start of {kind} to its first move", "ms", _median(seconds) * 1e3, 10.0)
        name = f"memory of {kind}'s process that is its own"
        yield _absolute(name, "MB", _median(private) / 1e6, 12.0)


def _absolute(name: str, unit: str, value: float, goal: float) -> Measurement:
    """A number that has a bound of its own."""
    return Measurement(name, unit, value, None, None, None, goal, is_at_most=True)


def _compare(
    name: str,
    unit: str,
    peer: str,
    measured: list[tuple[float, float]],
    *,
    goal: float,
    is_at_most: bool,
) -> Measurement:
    """What comes of pairs that were measured in turns."""
    return Measurement(
        name,
        unit,
        _median(value for value, _ in measured),
        peer,
        _median(value for _, value in measured),
        _median(value / peer_value for value, peer_value in measured),
        goal,
        is_at_most,
    )


def _median(values: Iterable[float]) -> float:
    from statistics import median

    return median(values)


def _seconds_of(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


@contextlib.contextmanager
def _echo() -> Iterator[Callable[[], None]]:
    """Sends a byte through a pipe to a bare child of this process, on the same core, which sends it back."""
    to_child, from_us = os.pipe()
    from_child, to_us = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(from_us)
        try:
            while byte := os.read(to_child, 1):
                os.write(to_us, byte)
        finally:
            os._exit(0)
    os.close(to_child)
    os.close(to_us)

    def bounce() -> None:
        os.write(from_us, b"x")
        os.read(from_child, 1)

    try:
        yield bounce
    finally:
        os.close(from_us)
        os.close(from_child)
        os.waitpid(pid, 0)


def _tell_as_json(measurements: list[Measurement], level: str, slowdown: float) -> None:
    import platform

    from engine.cli.output import print_json

    rows = [{**row._asdict(), "is_reached": row.is_reached} for row in measurements]
    print_json(
        {
            "python": platform.python_version(),
            "level": level,
            "slowdown": round(slowdown, 2),
            "measurements": rows,
        }
    )


def _tell_as_table(measurements: list[Measurement], level: str, slowdown: float) -> None:
    from engine.cli.output import print_table, say

    print_table(
        ("what", "measured", "against", "theirs", "ratio", "goal"),
        [
            (
                row.name,
                f"{row.value:.1f} {row.unit}",
                row.peer or "",
                "" if row.peer_value is None else f"{row.peer_value:.1f} {row.unit}",
                "" if row.ratio is None else f"{row.ratio:.2f}",
                f"{'≤' if row.is_at_most else '≥'} {row.goal:g}"
                + ("" if row.is_reached else " missed"),
            )
            for row in measurements
        ],
    )
    say(
        f"Level {level}. A ratio is the median over pairs measured in turns, in real time on one core."
    )
    if slowdown > _BUSY:
        say(
            f"Other programs took this one's time: it took {slowdown:.1f} times as long as it ran. Measure again "
            "on a quiet machine before you believe times, and ratios of times so short."
        )
