"""``arena bench engine``: how fast the games play, against peers measured side by side in one run.

Absolute times mean little on a shared machine, so each pair is measured in turns (A B A B …) in CPU
time, and the median of the pairwise ratios is told. One measured play is a freshly shuffled deal
played at random to its end, ``legal → choose → apply``; the shuffle's time is included on both sides
(OpenSpiel deals by chance nodes). Counted are the steps of players alone: calls, trumps, tiles laid,
never chance nodes. Both sides choose with the same method, `random.Random.choice`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from engine.cli.exits import ExitCode
from engine.errors import UsageError

if TYPE_CHECKING:
    import random

    from engine.games.base import State

Play = Callable[["random.Random"], int]
"""Plays one deal with this random number generator and tells how many steps players made."""

SEED = 20
"""Both sides play from generators with this seed."""
WARM_UP_PLAYS = 20


class Contender(NamedTuple):
    """One of ours against one of theirs."""

    name: str
    """What of ours is measured."""
    peer: str
    """What it is measured against."""
    goal: float | None
    """The ratio to reach; None where the number is only told."""
    ours: Play
    theirs: Play


class Comparison(NamedTuple):
    """What was measured: steps per CPU second of both sides (medians), and the ratios pair by pair."""

    name: str
    peer: str
    steps_per_second: float
    peer_steps_per_second: float
    ratios: tuple[float, ...]
    ratio: float
    """The median of `ratios`."""
    goal: float | None

    @property
    def is_reached(self) -> bool:
        """Whether the goal, if there is one, is reached."""
        return self.goal is None or self.ratio >= self.goal


def bench_engine(*, pairs: int = 15, cpu_seconds: float = 0.15) -> Iterator[Comparison]:
    """Measure the games against OpenSpiel, each side `pairs` times for about `cpu_seconds`.

    Raises UsageError if OpenSpiel is not installed.
    """
    for contender in _contenders(_import_openspiel()):
        yield compare(contender, pairs=pairs, cpu_seconds=cpu_seconds)


def compare(
    contender: Contender,
    *,
    pairs: int,
    cpu_seconds: float,
    clock: Callable[[], float] = time.process_time,
) -> Comparison:
    """Measure both sides in turns: A B A B …"""
    import random
    from statistics import median

    rngs = random.Random(SEED), random.Random(SEED)  # noqa: S311 - random play, no secret
    for play, rng in zip((contender.ours, contender.theirs), rngs, strict=True):
        for _ in range(WARM_UP_PLAYS):
            play(rng)
    rates = [
        (
            _measure(contender.ours, rngs[0], cpu_seconds, clock),
            _measure(contender.theirs, rngs[1], cpu_seconds, clock),
        )
        for _ in range(pairs)
    ]
    ratios = tuple(ours / theirs for ours, theirs in rates)
    return Comparison(
        name=contender.name,
        peer=contender.peer,
        steps_per_second=median(ours for ours, _ in rates),
        peer_steps_per_second=median(theirs for _, theirs in rates),
        ratios=ratios,
        ratio=median(ratios),
        goal=contender.goal,
    )


def command(
    pairs: Annotated[
        int, typer.Option(min=5, metavar="N", help="How many times each side is measured.")
    ] = 15,
    cpu_seconds: Annotated[
        float, typer.Option(min=0.05, metavar="S", help="How long each measurement takes.")
    ] = 0.15,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a goal is missed.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Answer with one JSON object on stdout.")
    ] = False,
) -> None:
    """Measure how fast the games play, against OpenSpiel in the same run.

    Played are freshly shuffled deals, at random to their end, on one core. The shuffle's time is
    included on both sides; only the steps of players are counted. Needs the group `bench`.
    """
    code = run(pairs=pairs, cpu_seconds=cpu_seconds, strict=strict, as_json=as_json)
    if code:
        raise typer.Exit(code)


def run(*, pairs: int, cpu_seconds: float, strict: bool, as_json: bool) -> ExitCode:
    """Measure and tell; NOT_GOOD if `strict` and a goal is missed."""
    comparisons = list(_with_notes(bench_engine(pairs=pairs, cpu_seconds=cpu_seconds)))
    if as_json:
        _tell_as_json(comparisons)
    else:
        _tell_as_table(comparisons)
    is_good = all(comparison.is_reached for comparison in comparisons)
    return ExitCode.OK if is_good or not strict else ExitCode.NOT_GOOD


def _measure(
    play: Play, rng: random.Random, cpu_seconds: float, clock: Callable[[], float]
) -> float:
    """Steps per second, over plays for about `cpu_seconds`."""
    steps = 0
    start = clock()
    while (spent := clock() - start) < cpu_seconds:
        for _ in range(10):
            steps += play(rng)
    return steps / spent


# What plays


def _contenders(pyspiel: Any) -> Iterable[Contender]:
    from engine.games.eighty import EIGHTY
    from engine.games.podkidnoe import PODKIDNOE
    from engine.shuffle import Stream

    played_out = EIGHTY.make_ruleset({"nello": False})
    default = EIGHTY.make_ruleset()
    podkidnoe = PODKIDNOE.make_ruleset()

    def eighty(rng: random.Random) -> int:
        return _play(EIGHTY.random_state(played_out, 4, rng), rng)

    def eighty_default(rng: random.Random) -> int:
        return _play(EIGHTY.random_state(default, 4, rng), rng)

    def eighty_verifiable(rng: random.Random) -> int:
        return _play(EIGHTY.dealt_state(Stream(rng.randbytes(32)), played_out, 4), rng)

    def eighty_with_boards(rng: random.Random) -> int:
        board = EIGHTY.deal(Stream(rng.randbytes(32)), played_out, 4)
        return _play(EIGHTY.start(played_out, board), rng)

    def podkidnoe_of_two(rng: random.Random) -> int:
        return _play(PODKIDNOE.random_state(podkidnoe, 2, rng), rng)

    spades = _openspiel_play(pyspiel, "spades")
    dominoes = _openspiel_play(pyspiel, "python_block_dominoes")
    for name, peer, goal, ours, theirs in (
        ("eighty, every deal played out", "OpenSpiel spades", 1.5, eighty, spades),
        ("eighty, default ruleset", "OpenSpiel spades", None, eighty_default, spades),
        ("eighty, verifiable deals", "OpenSpiel spades", 1.3, eighty_verifiable, spades),
        ("eighty, verifiable boards", "OpenSpiel spades", None, eighty_with_boards, spades),
        ("podkidnoe of two", "OpenSpiel block dominoes", 25.0, podkidnoe_of_two, dominoes),
    ):
        yield Contender(name=name, peer=peer, goal=goal, ours=ours, theirs=theirs)


def _play(state: State, rng: random.Random) -> int:
    choose = rng.choice
    steps = 0
    while state.seat >= 0:
        state.apply(choose(state.legal()))
        steps += 1
    return steps


def _openspiel_play(pyspiel: Any, name: str) -> Play:
    game = pyspiel.load_game(name)

    def play(rng: random.Random) -> int:
        choose = rng.choice
        state = game.new_initial_state()
        steps = 0
        while not state.is_terminal():
            if not state.is_chance_node():
                steps += 1
            # At a chance node of these two games all outcomes are equally likely.
            state.apply_action(choose(state.legal_actions()))
        return steps

    return play


def _import_openspiel() -> Any:
    try:
        import pyspiel
        from open_spiel.python.games import block_dominoes  # noqa: F401 - registers the game
    except ImportError as error:
        raise UsageError(
            "the peers of this benchmark are not installed; "
            f"run: {sys.executable} -m pip install 'domino-arena[bench]' (in a checkout: '.[bench]')"
        ) from error
    return pyspiel


# What is told


def _with_notes(comparisons: Iterable[Comparison]) -> Iterator[Comparison]:
    from engine.cli.output import note

    for comparison in comparisons:
        note(f"measured {comparison.name}: {comparison.ratio:.2f} times {comparison.peer}")
        yield comparison


def _tell_as_json(comparisons: list[Comparison]) -> None:
    import platform

    from engine.cli.output import print_json

    rows = [{**row._asdict(), "is_reached": row.is_reached} for row in comparisons]
    print_json({"python": platform.python_version(), "comparisons": rows})


def _tell_as_table(comparisons: list[Comparison]) -> None:
    from engine.cli.output import print_table, say

    print_table(
        ("what", "against", "steps/s", "theirs", "ratio", "goal"),
        [
            (
                row.name,
                row.peer,
                round(row.steps_per_second),
                round(row.peer_steps_per_second),
                round(row.ratio, 2),
                ""
                if row.goal is None
                else f"≥ {row.goal:g}" + ("" if row.is_reached else " missed"),
            )
            for row in comparisons
        ],
    )
    say("A ratio is the median over pairs measured in turns, in CPU time.")
