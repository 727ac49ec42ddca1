"""Estimates and tests by mirrored sets against their published vectors, and their laws."""

from __future__ import annotations

import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.statistics import (
    SET_SCORES,
    Decision,
    Estimate,
    SequentialTest,
    compare_sets,
    count_sets,
    elo,
    elo_interval,
    estimate,
    estimate_counts,
    expected_score,
    likelihood_ratio,
    likelihood_ratio_by_moments,
    superiority,
)

counts_of_sets = st.lists(st.integers(0, 60), min_size=5, max_size=5).filter(lambda c: sum(c) >= 2)


@pytest.mark.parametrize(
    ("counts", "elos", "exact"),
    [
        pytest.param((10, 40, 80, 50, 20), (0, 10), 1.343160, id="the first is a little better"),
        pytest.param((5, 20, 50, 20, 5), (0, 10), -0.206512, id="quite even"),
        pytest.param(
            (100, 300, 500, 350, 150), (0, 5), 3.180517, id="many sets, narrow hypotheses"
        ),
    ],
)
def test_exact_likelihood_ratio_is_the_published_one(counts, elos, exact):
    assert likelihood_ratio(counts, *elos) == pytest.approx(exact, abs=1e-6)


def test_likelihood_ratio_by_moments_is_the_published_one():
    assert likelihood_ratio_by_moments((10, 40, 80, 50, 20), 0, 10) == pytest.approx(
        1.357933, abs=1e-6
    )


def test_elo_and_its_interval_are_the_published_ones():
    result = elo_interval(estimate_counts((10, 40, 80, 50, 20)))
    assert result.value == pytest.approx(26.107, abs=1e-3)
    assert (result.high - result.low) / 2 == pytest.approx(24.584, abs=1e-3)


def test_likelihood_of_superiority_is_the_published_one():
    assert superiority((10, 40, 80, 50, 20)) == pytest.approx(0.981814, abs=1e-6)


@given(counts_of_sets)
def test_counts_and_single_sets_give_the_same_estimate(counts):
    scores = [score for score, count in zip(SET_SCORES, counts, strict=True) for _ in range(count)]
    assert count_sets(scores) == tuple(counts)
    one, other = estimate(scores), estimate_counts(counts)
    assert (one.mean, one.low, one.high) == pytest.approx((other.mean, other.low, other.high))
    assert one.sets == other.sets


@given(counts_of_sets)
def test_turning_the_entrants_round_turns_every_number_round(counts):
    turned = counts[::-1]
    assert estimate_counts(turned).mean == pytest.approx(1 - estimate_counts(counts).mean)
    assert superiority(turned) == pytest.approx(1 - superiority(counts))
    assert likelihood_ratio(turned, -10, 0) == pytest.approx(
        -likelihood_ratio(counts, 0, 10), abs=1e-6
    )


@given(st.floats(-800, 800))
def test_elo_and_expected_score_undo_each_other(difference):
    assert elo(expected_score(difference)) == pytest.approx(difference, abs=1e-6)


def test_a_clean_sweep_has_no_finite_elo_and_is_null_in_json():
    swept = elo_interval(estimate_counts((0, 0, 0, 0, 12)))
    assert swept.value == swept.high == math.inf
    assert elo(0.0) == -math.inf
    assert msgspec.json.decode(msgspec.json.encode(swept))["value"] is None


def test_one_set_alone_has_no_interval():
    assert estimate([4.0]) == Estimate(4.0, None, None, 1)
    assert not estimate([4.0]).excludes_zero
    assert elo_interval(estimate([0.75])).low == -math.inf


@pytest.mark.parametrize(
    ("values", "excludes"),
    [
        pytest.param([3.0, 5.0, 4.0], True, id="all above"),
        pytest.param([-3.0, -5.0, -4.0], True, id="all below"),
        pytest.param([-3.0, 5.0, 1.0], False, id="on both sides"),
    ],
)
def test_interval_tells_whether_it_excludes_zero(values, excludes):
    assert estimate(values).excludes_zero is excludes


def test_interval_holds_the_truth_about_95_times_in_100():
    generator = random.Random(7)
    held = 0
    for _ in range(1000):
        drawn = estimate([generator.choice(SET_SCORES) for _ in range(100)])
        held += drawn.low <= 0.5 <= drawn.high
    assert 925 <= held <= 970


def test_sequential_test_waits_for_twenty_sets():
    test = SequentialTest(elo0=0, elo1=400)
    assert test.decide((0, 0, 0, 0, 19)) is Decision.CONTINUE
    assert test.decide((0, 0, 0, 0, 20)) is Decision.ACCEPT_H1


@pytest.mark.parametrize(
    ("counts", "decision"),
    [
        pytest.param((100, 300, 500, 350, 150), Decision.ACCEPT_H1, id="beyond the upper bound"),
        pytest.param((150, 350, 500, 300, 100), Decision.ACCEPT_H0, id="beyond the lower bound"),
        pytest.param((10, 40, 80, 50, 20), Decision.CONTINUE, id="between the bounds"),
    ],
)
def test_sequential_test_stops_at_its_bounds(counts, decision):
    assert SequentialTest(elo0=0, elo1=5).decide(counts) is decision


def test_bounds_are_those_of_five_per_cent():
    assert SequentialTest().bound == pytest.approx(2.944439, abs=1e-6)


def test_sequential_test_seldom_prefers_a_difference_that_is_not_there():
    generator = random.Random(11)
    test = SequentialTest(elo0=0, elo1=100)
    mistakes = 0
    for _ in range(150):
        counts = [0] * 5
        while (decision := test.decide(counts) if sum(counts) else Decision.CONTINUE) is (
            Decision.CONTINUE
        ):
            counts[generator.choices(range(5), (1, 2, 3, 2, 1))[0]] += 1
        mistakes += decision is Decision.ACCEPT_H1
    assert mistakes <= 18


@pytest.mark.parametrize(
    "counts", [(1, 2, 3), (0, 0, 0, 0, 0), (1, 1, -1, 1, 1)], ids=["too few", "no set", "negative"]
)
def test_what_are_no_counts_are_refused(counts):
    with pytest.raises(UsageError, match="five counts"):
        estimate_counts(counts)


def test_score_that_no_set_of_two_has_is_refused():
    with pytest.raises(UsageError, match="0\\.3"):
        count_sets([0.3])


def test_two_entrants_are_compared_by_set():
    sets = [[[60, 20], [50, 30]], [[40, 0], [20, 20]], [[0, 80], [70, 10]]]
    compared = compare_sets(sets)
    points = compared.entrants[0].points
    assert points.mean == pytest.approx((30 + 20 - 10) / 3)
    assert compared.entrants[1].points.mean == -points.mean
    assert compared.entrants[0].score.mean == pytest.approx((1 + 0.75 + 0.5) / 3)
    assert compared.elo == elo_interval(compared.entrants[0].score)
    assert compared.superiority > 0.9


def test_more_than_two_entrants_have_a_mean_each_and_no_elo():
    compared = compare_sets([[[3, 0, 0], [1, 1, 1], [6, 3, 0]], [[2, 2, -1]] * 3])
    first = compared.entrants[0]
    assert first.points.mean == pytest.approx(((3 + 0 + 4.5) / 3 + 1.5) / 2)
    assert first.score.mean == pytest.approx(((1 + 0.5 + 1) / 3 + 0.75) / 2)
    assert sum(e.points.mean for e in compared.entrants) == pytest.approx(0)
    assert compared.elo is compared.superiority is None


@pytest.mark.parametrize(
    ("sets", "worth"),
    [
        pytest.param(
            [[[5, 0], [0, 5]], [[9, 0], [0, 7]]],
            44.75 / 2 / 0.25,
            id="the tiles decide: a set cancels them",
        ),
        pytest.param(
            [[[5, 0], [5, 0]], [[0, 5], [0, 5]]], 0.5, id="a second play of a set tells nothing"
        ),
    ],
)
def test_what_mirroring_saved_is_measured(sets, worth):
    assert compare_sets(sets).mirroring == pytest.approx(worth)


@pytest.mark.parametrize(
    "sets", [[], [[]], [[[1, 2]], [[1, 2, 3]]], [[[1]]]], ids=["none", "empty", "mixed", "alone"]
)
def test_what_cannot_be_compared_is_refused(sets):
    with pytest.raises(UsageError):
        compare_sets(sets)
