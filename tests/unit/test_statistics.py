"""Estimates and tests by mirrored sets against their published vectors, and their laws."""

from __future__ import annotations

import math
import random

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.statistics import (
    SET_SCORES,
    Calibration,
    Decision,
    Estimate,
    Mirroring,
    Run,
    SequentialTest,
    _tilt,
    between_equals,
    compare_sets,
    count_sets,
    elo,
    elo_interval,
    estimate,
    estimate_counts,
    expected_score,
    likelihood_ratio,
    likelihood_ratio_by_moments,
    measure_mirroring,
    simulate,
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


@pytest.mark.parametrize(
    ("counts", "elos", "published"),
    [
        pytest.param((223, 9863, 21279, 10037, 246), (0.5, 2.5), -3.07, id="41 648 pairs"),
        pytest.param((871, 26175, 55983, 26678, 821), (0, 2), -4.98, id="110 528 pairs"),
    ],
)
def test_likelihood_ratio_is_that_of_real_tests_on_fishtest(counts, elos, published):
    """As fishtest shows them and fastchess checks itself by (its "logistic pentanomial" cases)."""
    assert likelihood_ratio(counts, *elos) == pytest.approx(published, abs=0.005)
    assert likelihood_ratio_by_moments(counts, *elos) == pytest.approx(published, abs=0.005)


@pytest.mark.parametrize(
    ("counts", "value", "error"),
    [
        pytest.param((1, 10, 78, 48, 13), 72.85, 22.33, id="150 pairs"),
        pytest.param((352, 579, 1264, 743, 464), 19.83, 6.77, id="3402 pairs"),
    ],
)
def test_elo_is_that_of_real_matches_by_fastchess(counts, value, error):
    found = elo_interval(estimate_counts(counts))
    assert found.value == pytest.approx(value, abs=0.005)
    assert (found.high - found.low) / 2 == pytest.approx(error, abs=0.005)


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
@example([4, 4, 4, 44, 2])  # whose first Newton step leads beside a pole
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
    "counts",
    [
        pytest.param((1, 2, 3), id="too few"),
        pytest.param((0, 0, 0, 0, 0), id="no set"),
        pytest.param((1, 1, -1, 1, 1), id="negative"),
        pytest.param((1, 1, math.nan, 1, 1), id="no number"),
        pytest.param((1, 1, math.inf, 1, 1), id="without end"),
    ],
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


@pytest.mark.parametrize(
    ("counts", "score"),
    [
        pytest.param((10, 40, 80, 50, 20), 0.51, id="near the seen mean"),
        pytest.param((1e-3, 1e-3, 1e-3, 1e-3, 40), 0.5, id="all in one cell"),
        pytest.param((40, 1e-3, 1e-3, 1e-3, 1e-3), 0.99, id="far from what was seen"),
    ],
)
def test_likeliest_chances_under_a_hypothesis_have_its_mean(counts, score):
    chances = [count / sum(counts) for count in counts]
    x = _tilt(chances, score)
    likeliest = [p / (1 + x * (a - score)) for p, a in zip(chances, SET_SCORES, strict=True)]
    assert math.fsum(likeliest) == pytest.approx(1)
    assert math.fsum(p * a for p, a in zip(likeliest, SET_SCORES, strict=True)) == pytest.approx(
        score
    )


@given(counts_of_sets, st.floats(-300, 300), st.floats(-300, 300))
def test_likeliest_chances_are_likelier_than_any_others_of_that_mean(counts, elo0, elo1):
    assert likelihood_ratio(counts, elo0, elo1) == pytest.approx(
        -likelihood_ratio(counts, elo1, elo0), abs=1e-6
    )
    seen = estimate_counts([count or 1e-3 for count in counts]).mean
    assert likelihood_ratio(counts, elo0, elo(seen)) >= -1e-6


def test_run_stops_at_the_set_that_decides_and_looks_no_further():
    test = SequentialTest(elo0=0, elo1=400)
    assert test.run(iter([1.0] * 20 + [0.3]), 1000) == Run((0, 0, 0, 0, 20), Decision.ACCEPT_H1)


def test_run_without_a_decision_takes_all_sets_or_the_most():
    test = SequentialTest()
    assert test.run([0.5] * 30, 1000) == Run((0, 0, 30, 0, 0), Decision.CONTINUE)
    assert test.run([0.25, 0.75] * 30, 25).sets == 25


@given(counts_of_sets)
def test_between_equals_no_side_is_favoured(counts):
    chances = between_equals(counts)
    assert chances == chances[::-1]
    assert sum(chances) == pytest.approx(1)
    assert chances[0] == pytest.approx((counts[0] + counts[4]) / 2 / sum(counts))


def calibrate(test: SequentialTest, chances, runs: int = 400) -> Calibration:
    return simulate(test, chances, runs=runs, most_sets=5000, generator=random.Random(1))


SEEN = {
    "eighty": (117, 0, 326, 0, 157),
    "podkidnoe": (96, 101, 212, 107, 84),
}
"""How 600 sets of each game ended between `random` and its own copy, as `arena compare random --calibrate 400
--sets 600 --seed c` played them."""


@pytest.mark.parametrize("game", SEEN)
def test_a_bot_is_seldom_called_better_than_its_own_copy(game):
    found = calibrate(SequentialTest(elo0=0, elo1=60), between_equals(SEEN[game]))
    assert found.rate <= 0.07
    assert found.accepted_h1 > 0  # as it must in some of so many runs, or nothing was tried
    assert found.accepted_h0 >= 0.9 * found.runs


def test_calibration_finds_a_test_that_stops_too_soon():
    hasty = SequentialTest(elo0=0, elo1=60, bound=0.5, least_sets=1)
    assert calibrate(hasty, between_equals(SEEN["eighty"])).rate > 0.07


def test_calibration_finds_a_difference_that_is_there():
    better = (50, 60, 240, 120, 130)
    assert elo(estimate_counts(better).mean) > 60
    assert calibrate(SequentialTest(elo0=0, elo1=60), better, runs=100).rate >= 0.9


def test_calibration_without_a_run_is_refused():
    with pytest.raises(UsageError, match="at least one run"):
        calibrate(SequentialTest(), (1, 1, 1, 1, 1), runs=0)


@pytest.mark.parametrize(
    ("plays", "found"),
    [
        pytest.param([[1.0, 0.0], [0.0, 1.0]], Mirroring(-1.0, None), id="the tiles decide all"),
        pytest.param(
            [[1.0, 1.0], [0.0, 0.0]], Mirroring(1.0, 0.5), id="a second play says nothing"
        ),
        pytest.param(
            [[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
            Mirroring(0.0, 1.0),
            id="plays know nothing of each other",
        ),
        pytest.param([[3.0, 3.0]], Mirroring(None, None), id="one set alone"),
        pytest.param([[3.0, 3.0]] * 2, Mirroring(None, None), id="nothing varies"),
        pytest.param([[3.0], [4.0]], Mirroring(None, 1.0), id="nothing is mirrored"),
        pytest.param(
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            Mirroring(-0.5, None),
            id="one of three wins whatever sits there",
        ),
    ],
)
def test_correlation_within_sets_is_measured(plays, found):
    measured = measure_mirroring(plays)
    assert measured.correlation == pytest.approx(found.correlation)
    assert measured.variance_ratio == pytest.approx(found.variance_ratio)


@pytest.mark.parametrize("plays", [[], [[]], [[1.0], [1.0, 2.0]]], ids=["none", "empty", "uneven"])
def test_mirroring_of_no_sets_is_refused(plays):
    with pytest.raises(UsageError, match="equally many plays"):
        measure_mirroring(plays)
