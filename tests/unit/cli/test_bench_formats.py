"""``arena bench formats``: what it measures and tells. How fast anything is, no test says."""

from __future__ import annotations

import itertools
import json

from engine.cli import bench_formats
from engine.cli.bench_formats import Measurement, run
from engine.cli.exits import ExitCode


def ticking(seconds: list[float]):
    """A clock by which the measured stretches take these seconds, again and again."""
    ticks = itertools.accumulate(t for took in itertools.cycle(seconds) for t in (0, took))
    return lambda: next(ticks)


def test_slowest_round_counts_and_growth_is_over_a_quarter_of_the_entrants(monkeypatch):
    monkeypatch.setattr(bench_formats, "TRIES", 1)
    # five rounds and the table
    clock = ticking([1, 2, 3, 5, 4, 6])
    small, large, other = bench_formats.bench_formats((4, 16, 10), clock=clock)
    assert (small.entrants, small.round_seconds, small.table_seconds) == (4, 5, 6)
    assert small.growth is None
    assert large.growth == 1
    assert other.growth is None


def test_fastest_try_of_each_counts():
    (measured,) = bench_formats.bench_formats((4,), clock=ticking([9, 2, 7]))
    assert (measured.round_seconds, measured.table_seconds) == (2, 2)


def test_goals_are_for_the_time_of_a_round_and_its_growth():
    def measured(entrants: int, seconds: float, growth: float | None) -> bool:
        return Measurement(entrants, seconds, 1.0, growth).is_reached

    assert measured(1000, 0.3, 4.4)
    assert not measured(1000, 0.31, 4.4)
    assert not measured(1000, 0.3, 4.5)
    assert measured(10_000, 3.0, None)
    assert measured(250, 100.0, None)


def test_missed_goal_is_told_and_ends_with_1_only_if_strict(monkeypatch, capsys):
    slow = [Measurement(1000, 0.5, 0.1, 4.0)]
    monkeypatch.setattr(bench_formats, "bench_formats", lambda sizes: iter(slow))
    assert run(strict=False, as_json=False) == ExitCode.OK
    assert "≤ 0.3 s, growth ≤ 4.4 missed" in capsys.readouterr().out
    assert run(strict=True, as_json=False) == ExitCode.NOT_GOOD


def test_json_holds_every_measurement(capsys):
    assert run(strict=True, as_json=True, sizes=(4, 16)) in {ExitCode.OK, ExitCode.NOT_GOOD}
    rows = json.loads(capsys.readouterr().out)["measurements"]
    assert [row["entrants"] for row in rows] == [4, 16]
    assert rows[1]["growth"] > 0
