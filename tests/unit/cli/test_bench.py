"""``arena bench engine``: what it counts and tells. How fast anything is, no test says."""

from __future__ import annotations

import json
import random
import sys
import types

import pytest

from engine.cli.bench import Comparison, Contender, _openspiel_play, bench_engine, compare, run
from engine.cli.exits import ExitCode
from engine.errors import UsageError


class Clock:
    """Time that passes only as plays take it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def play(self, steps: int, seconds: float):
        def play(_rng):
            self.now += seconds
            return steps

        return play


def test_ratio_is_that_of_steps_per_second_measured_in_turns():
    clock = Clock()
    contender = Contender(
        name="ours", peer="theirs", goal=1.5, ours=clock.play(40, 2.0), theirs=clock.play(50, 5.0)
    )
    result = compare(contender, pairs=5, cpu_seconds=1.0, clock=clock)
    assert result.steps_per_second == 20
    assert result.peer_steps_per_second == 10
    assert result.ratios == (2.0,) * 5
    assert result.ratio == 2.0
    assert result.is_reached


def test_ratio_is_the_median_so_that_one_disturbed_pair_decides_nothing():
    clock = Clock()
    seconds = iter([1.0] * 20 + [1.0] * 10 + [1.0] * 10 + [50.0] * 10)

    def ours(_rng):
        clock.now += next(seconds)
        return 1

    contender = Contender(name="a", peer="b", goal=1.5, ours=ours, theirs=clock.play(1, 1.0))
    result = compare(contender, pairs=3, cpu_seconds=1.0, clock=clock)
    assert result.ratios == (1.0, 1.0, 0.02)
    assert result.ratio == 1.0
    assert not result.is_reached


class FakeState:
    """A deal of two chance nodes and three steps."""

    def __init__(self) -> None:
        self.left = 5

    def is_terminal(self) -> bool:
        return self.left == 0

    def is_chance_node(self) -> bool:
        return self.left > 3

    def legal_actions(self) -> list[int]:
        return [self.left]

    def apply_action(self, action: int) -> None:
        assert action == self.left
        self.left -= 1


@pytest.fixture
def openspiel(monkeypatch):
    """OpenSpiel as far as the benchmark uses it; it need not be installed to test the benchmark."""
    fake = types.ModuleType("pyspiel")
    fake.load_game = lambda _name: types.SimpleNamespace(new_initial_state=FakeState)
    games = types.ModuleType("open_spiel.python.games")
    games.block_dominoes = None
    monkeypatch.setitem(sys.modules, "pyspiel", fake)
    for name in ("open_spiel", "open_spiel.python"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "open_spiel.python.games", games)


@pytest.mark.usefixtures("openspiel")
def test_each_game_is_measured_against_a_peer():
    results = list(bench_engine(pairs=1, cpu_seconds=0.001))
    assert [(row.name.split(",")[0], row.goal) for row in results] == [
        ("eighty", 1.5),
        ("eighty", None),
        ("eighty", 1.3),
        ("eighty", None),
        ("podkidnoe of two", 25.0),
    ]
    assert all(row.steps_per_second > 0 and row.peer_steps_per_second > 0 for row in results)


@pytest.mark.usefixtures("openspiel")
def test_chance_nodes_are_no_steps():
    play = _openspiel_play(sys.modules["pyspiel"], "spades")
    assert play(random.Random(1)) == 3


@pytest.mark.usefixtures("openspiel")
def test_the_answer_is_one_json_object_on_stdout(capsys):
    run(pairs=1, cpu_seconds=0.001, strict=False, as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert {"name", "peer", "ratio", "ratios", "goal", "is_reached"} <= set(
        answer["comparisons"][0]
    )


@pytest.mark.usefixtures("openspiel")
def test_the_answer_is_a_table(capsys):
    run(pairs=1, cpu_seconds=0.001, strict=False, as_json=False)
    told = capsys.readouterr().out
    assert told.splitlines()[0].split() == ["what", "against", "steps/s", "theirs", "ratio", "goal"]
    assert "OpenSpiel spades" in told


@pytest.mark.parametrize(
    ("strict", "ratio", "code"),
    [
        (False, 1.0, ExitCode.OK),  # a missed goal is told
        (True, 1.0, ExitCode.NOT_GOOD),  # and only fails where that was asked
        (True, 1.5, ExitCode.OK),  # the goal itself is enough
    ],
)
def test_a_missed_goal_fails_only_if_strict(monkeypatch, capsys, strict, ratio, code):
    row = Comparison(
        name="a",
        peer="b",
        steps_per_second=ratio,
        peer_steps_per_second=1.0,
        ratios=(ratio,),
        ratio=ratio,
        goal=1.5,
    )
    monkeypatch.setattr("engine.cli.bench.bench_engine", lambda **_: iter([row]))
    assert run(pairs=1, cpu_seconds=1, strict=strict, as_json=False) == code
    assert ("missed" in capsys.readouterr().out) is (ratio < 1.5)


def test_missing_peers_are_named_with_the_command_that_installs_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(UsageError, match=r"pip install 'domino-arena\[bench\]'"):
        list(bench_engine(pairs=1, cpu_seconds=0.001))
