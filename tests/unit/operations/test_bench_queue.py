"""What the queue's measurements are made from."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.tournament_factories import make_bot, make_tournament, play_all, start
from tournament.operations.bench_queue import Measurement, read_arguments, tell
from tournament.operations.queue_measurements import Watched, _anonymous_mb, _cpu_seconds
from tournament.store.clock import read_clock

ROW = Measurement("claim", "ms", 12.0, goal=50.0, is_at_most=True, detail="of 3")


@pytest.mark.parametrize(
    ("value", "is_at_most", "is_reached"),
    [
        (50.0, True, True),  # at most: the goal itself will do
        (50.1, True, False),
        (50.0, False, True),  # at least, as well
        (49.9, False, False),
    ],
)
def test_goal_is_an_upper_or_a_lower_bound(value: float, is_at_most: bool, is_reached: bool):
    assert ROW._replace(value=value, is_at_most=is_at_most).is_reached is is_reached


def test_answer_is_one_json_object_with_every_goal(capsys):
    tell([ROW], "PostgreSQL", read_arguments(["--json", "--trusted"]))
    answer = json.loads(capsys.readouterr().out)
    assert (answer["database"], answer["sandbox"]) == ("PostgreSQL", "none")
    (row,) = answer["measurements"]
    assert (row["value"], row["goal"], row["is_reached"]) == (12.0, 50.0, True)


@pytest.mark.parametrize("option", ["--boards", "--slots", "--pairs", "--seconds", "--claims"])
def test_nothing_is_measured_no_times(option: str, capsys):
    with pytest.raises(SystemExit):
        read_arguments([option, "0"])
    assert "at least 1" in capsys.readouterr().err


@pytest.mark.django_db
def test_only_what_was_played_while_it_was_watched_is_counted():
    bots = [make_bot(f"bot{number}") for number in range(3)]
    play_all(start(make_tournament(bots[:2], name="Before")))
    began = read_clock()
    play_all(start(make_tournament(bots, name="Meanwhile", format="round_robin")))
    watched = Watched(began, read_clock(), {"worker": 1.5, "broker": 0.5}, [], [])
    watched.bare_seconds, watched.bare_cpu_seconds = 1.5, 1.0
    assert (watched.matches, watched.bare_rate, watched.cpu_ratio) == (3, 2.0, 0.5)


def test_cpu_time_of_a_process_counts_its_children_once_they_have_ended():
    before = _cpu_seconds([os.getpid()])
    burn = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    assert _cpu_seconds([os.getpid()]) - before >= 0.15
    assert _anonymous_mb(os.getpid()) > 1
