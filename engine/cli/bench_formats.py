"""``arena bench formats``: how long a round of a large Swiss stage takes to pair, and its table to make.

Played is a stage of five rounds with many upsets and ties; told is the slowest of its rounds, in CPU time.
Each is paired three times, and the fastest counts: the others tell what else the machine did. The
growth is the time of four times as many entrants over that of these.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import typer

from engine.cli.exits import ExitCode

GOALS = {1000: 0.3, 10_000: 3.0}
"""Seconds for a round of so many entrants."""
GROWTH_GOAL = 4.4
"""For four times as many."""
SIZES = (625, 2500, 10_000, 250, 1000, 4000)
ROUNDS = 5
TRIES = 3
"""How often each round is paired, and each table made."""


class Measurement(NamedTuple):
    """A stage of one size."""

    entrants: int
    round_seconds: float
    """The slowest round."""
    table_seconds: float
    """The standings after the last round."""
    growth: float | None
    """Against the time of a round of a quarter of the entrants; None where that was not measured."""

    @property
    def is_reached(self) -> bool:
        """Whether the goals for this size are reached."""
        in_time = self.round_seconds <= GOALS.get(self.entrants, float("inf"))
        return in_time and (self.growth is None or self.growth <= GROWTH_GOAL)


def bench_formats(
    sizes: tuple[int, ...] = SIZES, *, clock: Callable[[], float] = time.process_time
) -> Iterator[Measurement]:
    """Measure each size; a size whose quarter came before it also gets its growth."""
    seconds: dict[int, float] = {}
    for size in sizes:
        rounds, table = _measure(size, clock)
        seconds[size] = max(rounds)
        quarter = seconds.get(size // 4)
        yield Measurement(
            entrants=size,
            round_seconds=seconds[size],
            table_seconds=table,
            growth=None if not quarter else seconds[size] / quarter,
        )


def _measure(size: int, clock: Callable[[], float]) -> tuple[list[float], float]:
    import random

    import msgspec

    from engine.formats import SeededEntrant, StageView, get_format
    from engine.outcome import Outcome, Termination, places_by

    fmt = get_format("swiss")
    rng = random.Random(size)  # noqa: S311 - chance, no secret
    view = StageView(
        entrants=tuple(SeededEntrant(id=seed, seed=seed) for seed in range(1, size + 1)),
        options=fmt.make_options({"rounds": ROUNDS}),
    )
    outcomes = [
        Outcome(
            termination=Termination.COMPLETED, faults=(), points=points, places=places_by(points)
        )
        for points in ((1, -1), (-1, 1), (0, 0))
    ]
    seconds = []
    for _ in range(ROUNDS):
        seconds.append(_fastest(lambda: fmt.next_round(view), clock))  # noqa: B023 - called at once
        planned = fmt.next_round(view)
        assert planned is not None
        decided = tuple(
            pairing
            if pairing.is_bye
            else msgspec.structs.replace(
                pairing, result=fmt.decide(view, pairing, rng.choice(outcomes))
            )
            for pairing in planned.pairings
        )
        published = msgspec.structs.replace(planned, pairings=decided)
        view = msgspec.structs.replace(view, rounds=(*view.rounds, published))
    return seconds, _fastest(lambda: fmt.standings(view), clock)


def _fastest(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """The seconds of the fastest of some tries."""
    tries = []
    for _ in range(TRIES):
        start = clock()
        work()
        tries.append(clock() - start)
    return min(tries)


def command(
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a goal is missed.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Answer with one JSON object on stdout.")
    ] = False,
) -> None:
    """Measure how long large Swiss rounds take to pair, and how that grows.

    Told are the slowest of five rounds and the table after them, in CPU time, for 250 to 10 000 entrants.
    """
    code = run(strict=strict, as_json=as_json)
    if code:
        raise typer.Exit(code)


def run(*, strict: bool, as_json: bool, sizes: tuple[int, ...] = SIZES) -> ExitCode:
    """Measure and tell; NOT_GOOD if `strict` and a goal is missed."""
    from engine.cli.output import print_json

    measured = list(bench_formats(sizes))
    if as_json:
        print_json({"measurements": [_as_row(row) for row in measured]})
    else:
        _tell(measured)
    is_good = all(row.is_reached for row in measured)
    return ExitCode.OK if is_good or not strict else ExitCode.NOT_GOOD


def _as_row(row: Measurement) -> dict[str, Any]:
    return {**row._asdict(), "is_reached": row.is_reached}


def _tell(measured: list[Measurement]) -> None:
    from engine.cli.output import print_table, say

    print_table(
        ("Swiss, entrants", "round s", "table s", "t(4n)/t(n)", "goal"),
        [
            (
                row.entrants,
                f"{row.round_seconds:.3f}",
                f"{row.table_seconds:.3f}",
                "" if row.growth is None else f"{row.growth:.2f}",
                _goal(row),
            )
            for row in sorted(measured)
        ],
    )
    say(
        "The slowest of five rounds with many upsets and ties, each the fastest of three tries, in CPU time."
    )


def _goal(row: Measurement) -> str:
    goals = [f"≤ {GOALS[row.entrants]:g} s"] if row.entrants in GOALS else []
    goals += [] if row.growth is None else [f"growth ≤ {GROWTH_GOAL:g}"]
    return ", ".join(goals) + ("" if row.is_reached else " missed")
