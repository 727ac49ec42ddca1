"""Gauntlet: challengers against the field, and nobody else."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from engine.errors import FormatError
from engine.formats import DecidedBy, get_format
from tests.unit.formats.stages import (
    leave,
    play_round,
    play_stage,
    publish,
    seeded,
    seeds_of,
    start,
    won_by,
)

GT = get_format("gauntlet")


def named_first(pairing):
    return won_by(0)


def test_one_challenger_meets_the_field_in_turn():
    view = play_stage(GT, start(GT, 5))
    assert [seeds_of(view, index) for index in range(1, 5)] == [
        [(1, 2)],
        [(3, 1)],
        [(1, 4)],
        [(5, 1)],
    ]
    assert [p.key for r in view.rounds for p in r.pairings] == [f"GT/R{r}/M1" for r in range(1, 5)]


def test_last_seeds_may_challenge():
    view = play_stage(GT, start(GT, 4, challengers=2, challenging_seeds="last"))
    assert [seeds_of(view, index) for index in (1, 2)] == [[(3, 1), (4, 2)], [(2, 3), (1, 4)]]


@pytest.mark.parametrize(
    ("count", "challengers"),
    [(2, 1), (9, 1), (9, 3), (9, 8), (8, 4), (7, 5)],  # few, many, and as many as the field
)
@pytest.mark.parametrize("cycles", [1, 2])
def test_each_challenger_meets_each_of_the_field_and_nobody_else_meets(count, challengers, cycles):
    view = play_stage(GT, start(GT, count, challengers=challengers, cycles=cycles))
    met = Counter(frozenset(p.entrants) for r in view.rounds for p in r.pairings)
    field = range(101 + challengers, 101 + count)
    expected = [frozenset(both) for both in product(range(101, 101 + challengers), field)]
    assert met == Counter(expected * cycles)
    assert len(view.rounds) == GT.round_count(count, view.options)


@pytest.mark.parametrize(("count", "challengers"), [(9, 1), (9, 3), (10, 4), (7, 5), (12, 6)])
def test_nobody_is_named_first_much_more_often_than_second(count, challengers):
    view = play_stage(GT, start(GT, count, challengers=challengers))
    balance = Counter()
    for published in view.rounds:
        for pairing in published.pairings:
            balance[pairing.entrants[0]] += 1
            balance[pairing.entrants[1]] -= 1
    assert all(abs(value) <= 2 for value in balance.values())


def test_second_cycle_repeats_the_first_with_sides_swapped():
    view = play_stage(GT, start(GT, 7, challengers=2, cycles=2))
    for index in range(1, 6):
        assert seeds_of(view, 5 + index) == [pair[::-1] for pair in seeds_of(view, index)]


def test_challengers_and_field_have_tables_of_their_own():
    view = play_stage(GT, start(GT, 5, challengers=2), named_first)
    rows = GT.standings(view)
    assert [row.group for row in rows] == ["challengers"] * 2 + ["field"] * 3
    assert [row.group_place for row in rows][:3:2] == [1, 1]
    assert [row.place for row in rows][:3:2] == [1, 3]
    assert [row.matches for row in rows] == [3, 3, 2, 2, 2]


def test_who_leaves_is_walked_over_whoever_he_is():
    view = play_round(GT, start(GT, 4), named_first)
    view = play_stage(GT, leave(view, [103]))
    decided = {p.key: p.result.decided_by for r in view.rounds for p in r.pairings}
    assert decided == {
        "GT/R1/M1": DecidedBy.PLAY,
        "GT/R2/M1": DecidedBy.WALKOVER,
        "GT/R3/M1": DecidedBy.PLAY,
    }


def test_gauntlet_without_a_challenger_or_a_field_does_not_begin():
    view = start(GT, 4)
    assert GT.next_round(leave(view, [101])) is None
    assert GT.next_round(leave(view, [102, 103, 104])) is None


def test_who_left_before_the_first_round_moves_nobody():
    view = start(GT, 5)
    all_stay = GT.next_round(publish(view, GT.next_round(view)))
    view = leave(view, [105])
    assert GT.next_round(publish(view, GT.next_round(view))) == all_stay


@pytest.mark.parametrize(
    ("count", "options", "message"),
    [
        pytest.param(3, {"challengers": 3}, "3 challengers of 3 entrants", id="no field"),
        pytest.param(300, {}, "at most 256 entrants", id="too many rounds"),
        pytest.param(4, {"challengers": 0}, "from 1 to 255", id="nobody challenges"),
        pytest.param(4, {"challenging_seeds": "middle"}, "first, last", id="no such seeds"),
        pytest.param(4, {"tie_breaks": ["wins"]}, "begin with 'score'", id="no score"),
    ],
)
def test_impossible_gauntlets_are_refused_saying_what_to_change(count, options, message):
    with pytest.raises(FormatError, match=message):
        GT.check(seeded(count), GT.make_options(options))
