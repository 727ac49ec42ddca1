"""Pods: their sizes, who sits together and where, and the pod score."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import combinations

import msgspec
import pytest

from engine.errors import FormatError
from engine.formats import DecidedBy, forfeit_outcome, get_format
from engine.formats.pods import pod_sizes, seat_together
from tests.unit.formats.stages import (
    leave,
    play_round,
    play_stage,
    publish,
    scored,
    seeded,
    seeds_of,
    start,
    won_by,
)

PODS = get_format("pods")


def meetings(view):
    met = Counter(
        frozenset(both)
        for published in view.rounds
        for pairing in published.pairings
        for both in combinations(pairing.entrants, 2)
    )
    everyone = [entrant.id for entrant in view.entrants]
    return {both: met[frozenset(both)] for both in combinations(everyone, 2)}


@pytest.mark.parametrize(
    ("entrants", "sizes"),
    [
        (2, [2]),  # all there is
        (3, [3]),
        (4, [4]),
        (5, [3, 2]),  # four would leave one alone
        (6, [3, 3]),
        (7, [4, 3]),
        (8, [4, 4]),
        (9, [3, 3, 3]),
        (10, [4, 3, 3]),
        (11, [4, 4, 3]),
        (13, [4, 3, 3, 3]),
    ],
)
def test_pods_are_mostly_of_four_and_the_rest_of_three(entrants, sizes):
    assert pod_sizes(entrants) == sizes
    planned = PODS.next_round(start(PODS, entrants))
    assert sorted((len(p.entrants) for p in planned.pairings), reverse=True) == sizes


@pytest.mark.parametrize("entrants", range(2, 66))
def test_nobody_ever_has_a_bye(entrants):
    sizes = pod_sizes(entrants)
    assert sum(sizes) == entrants
    assert max(sizes) - min(sizes) <= 1
    assert entrants == 5 or min(sizes) >= min(3, entrants)


def test_keys_name_round_and_pod():
    view = play_stage(PODS, start(PODS, 7, rounds=2))
    keys = [pairing.key for published in view.rounds for pairing in published.pairings]
    assert keys == ["PD/R1/M1", "PD/R1/M2", "PD/R2/M1", "PD/R2/M2"]


def test_first_pods_are_a_snake_so_they_are_equally_strong():
    view = play_round(PODS, start(PODS, 12), lambda p: won_by(0, len(p.entrants)))
    assert seeds_of(view, 1) == [(1, 6, 7, 12), (2, 5, 8, 11), (3, 4, 9, 10)]


@pytest.mark.parametrize(
    ("entrants", "rounds", "times"),
    [
        (9, 4, 1),  # the affine plane of order 3
        (16, 5, 1),  # and that of order 4
        (9, 8, 2),
        (16, 10, 2),
    ],
)
def test_where_everyone_can_meet_everyone_equally_often_they_do(entrants, rounds, times):
    view = play_stage(PODS, start(PODS, entrants, rounds=rounds))
    assert set(meetings(view).values()) == {times}


@pytest.mark.parametrize(("entrants", "rounds"), [(40, 7), (64, 7), (65, 8)])
def test_with_room_enough_nobody_meets_twice(entrants, rounds):
    view = play_stage(PODS, start(PODS, entrants, rounds=rounds))
    assert max(meetings(view).values()) == 1


def partitions(left, sizes):
    """Every way to seat these entrants in pods of these sizes."""
    if not left:
        yield []
        return
    for size in set(sizes):
        rest = list(sizes)
        rest.remove(size)
        for others in combinations(left[1:], size - 1):
            pod = (left[0], *others)
            for pods in partitions([each for each in left if each not in pod], rest):
                yield [pod, *pods]


def repeated(pods, met):
    return sum(met[a][b] ** 2 for pod in pods for a, b in combinations(pod, 2))


@pytest.mark.parametrize("entrants", range(4, 10))
def test_pods_are_the_cheapest_there_are_after_any_past(entrants):
    dice = random.Random(entrants)
    everyone = list(range(1, entrants + 1))
    for _ in range(5):
        met = {a: Counter() for a in everyone}
        for a, b in combinations(everyone, 2):
            met[a][b] = met[b][a] = dice.choice([0, 0, 1, 1, 2, 3])
        lots = [dice.randbytes(32) for _ in range(16)]
        found = repeated(seat_together(everyone, met, lots=lots), met)
        best = min(repeated(pods, met) for pods in partitions(everyone, pod_sizes(entrants)))
        assert found == best


def test_pods_of_ten_are_the_cheapest_there_are_in_every_round():
    view = start(PODS, 10, rounds=6)
    while (after := play_round(PODS, view, lambda p: won_by(0, len(p.entrants)))) is not None:
        met = {entrant.id: Counter() for entrant in view.entrants}
        for (a, b), times in meetings(view).items():
            met[a][b] = met[b][a] = times
        found = repeated([pairing.entrants for pairing in after.rounds[-1].pairings], met)
        ways = partitions([entrant.id for entrant in view.entrants], pod_sizes(10))
        assert found == min(repeated(pods, met) for pods in ways)
        view = after


def test_nobody_sits_in_smaller_pods_much_more_often_than_another():
    view = play_stage(PODS, start(PODS, 5, rounds=10))
    small = Counter(
        entrant
        for published in view.rounds
        for pairing in published.pairings
        if len(pairing.entrants) == 2
        for entrant in pairing.entrants
    )
    assert sum(small.values()) == 20
    assert max(small.values()) - min(small.values()) <= 2


@pytest.mark.parametrize("entrants", [4, 6, 16, 21])
def test_everyone_sits_in_every_seat_about_equally_often(entrants):
    view = play_stage(PODS, start(PODS, entrants, rounds=8))
    sat = Counter(
        (entrant, at)
        for published in view.rounds
        for pairing in published.pairings
        for at, entrant in enumerate(pairing.entrants)
    )
    for entrant in view.entrants:
        first_three = [sat[entrant.id, at] for at in range(3)]
        assert max(first_three) - min(first_three) <= 2


def test_pod_scores_of_all_sizes_compare():
    view = start(PODS, 7)
    four, three = PODS.next_round(view).pairings
    assert PODS.decide(view, four, scored((5, 1, 1, -7))).scores == (
        Fraction(1),
        Fraction(1, 2),
        Fraction(1, 2),
        Fraction(0),
    )
    assert PODS.decide(view, three, scored((5, 1, -6))).scores == (
        Fraction(1),
        Fraction(1, 2),
        Fraction(0),
    )


def test_who_is_at_fault_in_a_pod_is_last_and_the_others_tie():
    view = start(PODS, 4)
    pod = PODS.next_round(view).pairings[0]
    result = PODS.decide(view, pod, forfeit_outcome(4, [2], "did not appear"))
    assert result.places == (1, 1, 4, 1)
    assert result.scores == (Fraction(2, 3), Fraction(2, 3), Fraction(0), Fraction(2, 3))


def test_pod_goes_on_while_two_are_left_and_the_last_one_scores():
    view = start(PODS, 4)
    view = publish(view, PODS.next_round(view))
    pod = view.rounds[0].pairings[0]
    assert PODS.walkover(leave(view, [101, 104]), pod) is None
    result = PODS.walkover(leave(view, [101, 103, 104]), pod)
    assert result.decided_by is DecidedBy.WALKOVER
    assert dict(zip(pod.entrants, result.scores, strict=True)) == {101: 0, 102: 1, 103: 0, 104: 0}


def test_who_leaves_is_not_seated_again():
    view = play_round(PODS, start(PODS, 9, rounds=3), lambda p: won_by(0, len(p.entrants)))
    view = play_stage(PODS, leave(view, [101]))
    assert [len(p.entrants) for p in view.rounds[1].pairings] == [4, 4]
    assert not any(101 in p.entrants for r in view.rounds[1:] for p in r.pairings)
    assert [row.note for row in PODS.standings(view) if row.entrant == 101] == ["withdrawn"]


@pytest.mark.parametrize(
    ("entrants", "rounds"), [(2, 2), (3, 3), (4, 3), (5, 4), (16, 5), (17, 6), (64, 7)]
)
def test_rounds_follow_from_the_number_of_entrants(entrants, rounds):
    assert PODS.round_count(entrants, PODS.make_options()) == rounds


def test_who_comes_late_joins_the_next_round_and_has_no_score_for_those_before():
    view = play_round(PODS, start(PODS, 7), lambda p: won_by(0, len(p.entrants)))
    late = PODS.late_entrant(view, 900)
    view = msgspec.structs.replace(view, entrants=(*view.entrants, late))
    planned = PODS.next_round(view)
    assert [len(pairing.entrants) for pairing in planned.pairings] == [4, 4]
    assert any(900 in pairing.entrants for pairing in planned.pairings)
    done = play_stage(PODS, view, lambda p: won_by(0, len(p.entrants)))
    row = next(row for row in PODS.standings(done) if row.entrant == 900)
    assert row.matches == len(done.rounds) - 1


def test_nobody_comes_after_the_last_round():
    view = play_stage(PODS, start(PODS, 6, rounds=2), lambda p: won_by(0, len(p.entrants)))
    with pytest.raises(FormatError, match="too late to enter"):
        PODS.late_entrant(view, 900)


def test_pods_do_not_depend_on_results():
    up = play_stage(PODS, start(PODS, 11), lambda p: won_by(0, len(p.entrants)))
    down = play_stage(PODS, start(PODS, 11), lambda p: won_by(1, len(p.entrants)))
    assert [seeds_of(up, i) for i in range(1, 6)] == [seeds_of(down, i) for i in range(1, 6)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"rounds": 0}, "from 1 to 60", id="zero rounds"),
        pytest.param({"rounds": 61}, "from 1 to 60", id="more rounds than sense"),
        pytest.param({"tie_breaks": ["wins"]}, "begin with 'score'", id="no score"),
    ],
)
def test_impossible_pods_are_refused_saying_what_to_change(options, message):
    with pytest.raises(FormatError, match=message):
        PODS.check(seeded(8), PODS.make_options(options))
