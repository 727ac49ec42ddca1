"""``arena bench sandbox``: what it counts and tells. How fast anything is, no test says."""

from __future__ import annotations

import json

import pytest

from engine.cli import bench_sandbox
from engine.cli.bench_sandbox import Measurement, run
from engine.cli.exits import ExitCode


def measurement(value: float, ratio: float | None, goal: float, *, is_at_most: bool) -> Measurement:
    peer = None if ratio is None else "a peer"
    peer_value = None if ratio is None else value / ratio
    return Measurement("it", "µs", value, peer, peer_value, ratio, goal, is_at_most)


@pytest.mark.parametrize(
    ("value", "ratio", "goal", "is_at_most", "is_reached"),
    [
        (100.0, 4.5, 4.5, True, True),  # a ratio counts, not the value
        (1.0, 4.6, 4.5, True, False),
        (1.0, 3.0, 3.0, False, True),
        (9.0, 2.9, 3.0, False, False),
        (9.9, None, 10.0, True, True),  # where there is no peer the value counts
        (10.1, None, 10.0, True, False),
    ],
)
def test_goal_is_a_bound_on_the_ratio_or_else_on_the_value(
    value, ratio, goal, is_at_most, is_reached
):
    assert measurement(value, ratio, goal, is_at_most=is_at_most).is_reached == is_reached


def test_ratio_is_the_median_of_the_pairs():
    pairs = [(4.0, 1.0), (4.0, 2.0), (900.0, 3.0)]
    compared = bench_sandbox._compare("it", "µs", "a peer", pairs, goal=4.5, is_at_most=True)
    assert (compared.value, compared.peer_value, compared.ratio) == (4.0, 2.0, 4.0)


@pytest.mark.parametrize(("slowdown", "is_told"), [(1.0, False), (1.1, False), (2.5, True)])
def test_machine_that_was_busy_meanwhile_is_told(capsys, slowdown, is_told):
    measured = [measurement(1.0, 4.0, 4.5, is_at_most=True)]
    bench_sandbox._tell_as_table(measured, "bubblewrap", slowdown)
    assert ("Other programs" in capsys.readouterr().out) is is_told
    bench_sandbox._tell_as_json(measured, "bubblewrap", slowdown)
    assert json.loads(capsys.readouterr().out)["slowdown"] == slowdown


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("strict", "ratio", "code"),
    [(False, 9.0, ExitCode.OK), (True, 9.0, ExitCode.NOT_GOOD), (True, 4.0, ExitCode.OK)],
    ids=["told only", "missed", "reached"],
)
def test_missed_goal_is_told_and_fails_when_that_is_asked(monkeypatch, capsys, strict, ratio, code):
    measured = [measurement(1.0, ratio, 4.5, is_at_most=True)]
    monkeypatch.setattr(bench_sandbox, "bench_sandbox", lambda *, pairs: iter(measured))
    assert run(pairs=5, strict=strict, as_json=True) is code
    answer = json.loads(capsys.readouterr().out)
    assert answer["level"] in {"bubblewrap", "landlock"}
    assert answer["measurements"][0]["is_reached"] is (ratio <= 4.5)
    run(pairs=5, strict=False, as_json=False)
    assert ("missed" in capsys.readouterr().out) is (ratio > 4.5)


@pytest.mark.sandbox
def test_everything_is_measured(monkeypatch):
    monkeypatch.setattr(bench_sandbox, "STEPS", 20)
    measured = {row.name: row for row in bench_sandbox.bench_sandbox(pairs=1)}
    assert set(measured) == {
        "step",
        "match of four seats",
        "start of a bot to its first move",
        "memory of a bot's process that is its own",
        "start of a bot with numpy to its first move",
        "memory of a bot with numpy's process that is its own",
    }
    assert all(row.value > 0 for row in measured.values())
    step = measured["step"]
    assert step.ratio == step.value / step.peer_value
