"""``arena simulate-formats``: what it tells, and how it ends."""

from __future__ import annotations

import json

from engine.cli.exits import ExitCode
from engine.formats import FORMATS
from engine.formats.simulation import Tally


def test_every_format_is_played_and_told(arena):
    answer = arena("simulate-formats", "--tournaments", "1", "--json")
    told = json.loads(answer.out)
    assert answer.code == ExitCode.OK
    assert told["is_good"] is True
    assert [row["format"] for row in told["formats"]] == list(FORMATS)
    assert all(row["tournaments"] == 1 and row["troubles"] == [] for row in told["formats"])


def test_chosen_format_is_told_as_a_table_and_what_was_looked_at(arena):
    answer = arena("simulate-formats", "--tournaments", "2", "--format", "single_elimination")
    header, row, *rest = answer.out.splitlines()
    assert header.split()[:2] == ["format", "tournaments"]
    assert row.split()[:2] == ["single_elimination", "2"]
    assert "Every round paired and decided" in rest[-1]


def test_seed_decides_all(arena):
    def digest(seed):
        words = ("--tournaments", "1", "--format", "swiss", "--seed", seed, "--json")
        return json.loads(arena("simulate-formats", *words).out)["formats"][0]["digest"]

    assert digest("a") == digest("a") != digest("b")


def test_what_does_not_hold_is_told_and_ends_with_1(arena, monkeypatch):
    def fail(fmt, seed):
        return Tally(format=fmt.name, tournaments=1, troubles=[f"seed {seed}: a bye too early"])

    monkeypatch.setattr("engine.cli.simulate_formats.simulate", fail)
    answer = arena("simulate-formats", "--tournaments", "12", "--format", "swiss")
    assert answer.code == ExitCode.NOT_GOOD
    assert "swiss: seed formats/0: a bye too early" in answer.out
    assert "and 2 more" in answer.out
    assert "Every round" not in answer.out


def test_unknown_format_is_refused_naming_the_known_ones(arena):
    answer = arena("simulate-formats", "--format", "marathon")
    assert answer.code == ExitCode.USAGE
    assert "single_elimination" in answer.err
