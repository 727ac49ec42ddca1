"""Is A better than B? Means with their intervals, Elo, and a sequential test, by mirrored sets.

The unit is the mirrored set, a board played once in each rotation: its plays share their tiles, so
they are not independent, but sets are. Between two entrants a set's score is one of 0, ¼, ½, ¾, 1.
The module knows no records: it gets the scores of plays as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from random import Random

import msgspec

from engine.errors import UsageError

Z95 = 1.96
"""Standard errors on each side of a 95 % interval."""
SET_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""What a set can score between two."""


class Estimate(msgspec.Struct, frozen=True):
    """A mean of independent sets, with its 95 % interval."""

    mean: float
    low: float | None
    """None if one set alone says nothing of the spread."""
    high: float | None
    sets: int

    @property
    def excludes_zero(self) -> bool:
        """Whether all of the interval lies on one side of zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


class Elo(msgspec.Struct, frozen=True):
    """A difference in strength in Elo, with its 95 % interval.

    ±inf where a score is 0 or 1, which no finite difference explains; msgspec writes it as null.
    """

    value: float
    low: float
    high: float


class EntrantSummary(msgspec.Struct, frozen=True):
    """What the sets say of one entrant."""

    points: Estimate
    """Points a board: own score less the mean of the others', in the game's points."""
    score: Estimate
    """(beaten + ½ tied) / (entrants - 1) a board, so 1 for a win between two."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What mirrored sets say of their entrants."""

    entrants: tuple[EntrantSummary, ...]
    elo: Elo | None
    """Of the first over the second; None for more than two."""
    superiority: float | None
    """The likelihood that the first is the better of two (LOS); None for more than two."""
    mirroring: float | None
    """How many unmirrored boards one play of a mirrored set was worth for the points of the first:
    1 says that mirroring saved nothing. None where it cannot be told."""


class Mirroring(msgspec.Struct, frozen=True):
    """What playing a board in each rotation saved, for one measure of the first entrant."""

    correlation: float | None
    """Of two plays of one set: below 0 luck cancels out, at 0 mirroring saves nothing. None where it
    cannot be told: for one set alone, or where all plays are equal."""
    variance_ratio: float | None
    """The variance of a mean over as many unrelated plays, over that of the mirrored ones: how many
    unmirrored plays one mirrored play is worth. None also where the sets' means are all equal."""


def compare_sets(sets: Sequence[Sequence[Sequence[int]]]) -> Comparison:
    """Compare entrants by ``sets[set][rotation][entrant]``: what each entrant scored in each play.

    Raises UsageError for no set at all, or for sets that differ in their number of entrants.
    """
    entrants = _count_entrants(sets)
    points = [[points_of_play(play) for play in mirrored] for mirrored in sets]
    scores = [[scores_of_play(play) for play in mirrored] for mirrored in sets]
    summaries = tuple(
        EntrantSummary(
            points=estimate([_mean([play[e] for play in mirrored]) for mirrored in points]),
            score=estimate([_mean([play[e] for play in mirrored]) for mirrored in scores]),
        )
        for e in range(entrants)
    )
    first = summaries[0].score
    is_duel = entrants == 2
    return Comparison(
        entrants=summaries,
        elo=elo_interval(first) if is_duel else None,
        superiority=_superiority([_mean([play[0] for play in s]) for s in scores])
        if is_duel
        else None,
        mirroring=measure_mirroring(
            [[play[0] for play in mirrored] for mirrored in points]
        ).variance_ratio,
    )


def _count_entrants(sets: Sequence[Sequence[Sequence[int]]]) -> int:
    counts = {len(play) for mirrored in sets for play in mirrored}
    if len(counts) != 1 or not all(sets):
        raise UsageError(
            "a comparison needs at least one set, and the same entrants in all of them"
        )
    (entrants,) = counts
    if entrants < 2:
        raise UsageError("a comparison needs at least two entrants")
    return entrants


def points_of_play(play: Sequence[int]) -> list[float]:
    """By entrant, its own score in one play less the mean of the others'."""
    total, others = sum(play), len(play) - 1
    return [own - (total - own) / others for own in play]


def scores_of_play(play: Sequence[int]) -> list[float]:
    """By entrant, (beaten + ½ tied) / (entrants - 1) in one play: between two 1, ½ or 0.

    How far a side was ahead does not count: 90 to 10 is one win as 50 to 40 is.
    """
    others = len(play) - 1
    return [
        (sum(own > other for other in play) + (sum(own == other for other in play) - 1) / 2)
        / others
        for own in play
    ]


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of independent values and μ ± 1.96√(v/N), where v = Σp(x-μ)².

    Raises UsageError for no value.
    """
    if not values:
        raise UsageError("an estimate needs at least one set")
    mean, variance = _mean(values), _variance(values)
    if len(values) == 1:
        return Estimate(mean, None, None, 1)
    error = Z95 * math.sqrt(variance / len(values))
    return Estimate(mean, mean - error, mean + error, len(values))


def elo(score: float) -> float:
    """The Elo difference that a mean score stands for: -400·log10(1/s - 1); ±inf at 1 and 0 and beyond."""
    if score <= 0:
        return -math.inf
    return math.inf if score >= 1 else -400 * math.log10(1 / score - 1)


def expected_score(difference: float) -> float:
    """The mean score that an Elo difference stands for: 1/(1 + 10^(-d/400))."""
    return 1 / (1 + math.pow(10, -difference / 400))


def elo_interval(score: Estimate) -> Elo:
    """A score's estimate in Elo, its two ends turned one by one."""
    low = -math.inf if score.low is None else elo(score.low)
    high = math.inf if score.high is None else elo(score.high)
    return Elo(elo(score.mean), low, high)


def estimate_counts(counts: Sequence[float]) -> Estimate:
    """The estimate of a score from how often a set scored 0, ¼, ½, ¾ and 1."""
    total, mean, variance = _moments(_check_counts(counts))
    if total < 2:
        return Estimate(mean, None, None, round(total))
    error = Z95 * math.sqrt(variance / total)
    return Estimate(mean, mean - error, mean + error, round(total))


def superiority(counts: Sequence[float]) -> float:
    """The likelihood that the first is the better (LOS): Φ((μ - ½)/√(v/N))."""
    total, mean, variance = _moments(_check_counts(counts))
    return _normal(mean - 0.5, variance / total)


def _superiority(scores: Sequence[float]) -> float:
    return _normal(_mean(scores) - 0.5, _variance(scores) / len(scores))


def _normal(excess: float, variance: float) -> float:
    """P(a normal value with this mean and variance is above 0); a sure one is 0, ½ or 1."""
    if variance == 0:
        return 0.5 + 0.5 * ((excess > 0) - (excess < 0))
    return 0.5 * (1 + math.erf(excess / math.sqrt(2 * variance)))


def measure_mirroring(plays: Sequence[Sequence[float]]) -> Mirroring:
    """What mirroring saved, by ``plays[set][rotation]``: the first entrant's result in each play.

    With k plays a set, variance v over all plays and variance b of the sets' means, the ratio is
    (v/k)/b, and the correlation ρ that explains it is that of b = v/k·(1 + (k-1)ρ). Raises UsageError
    for no set, or for sets that differ in their number of plays.
    """
    if len({len(mirrored) for mirrored in plays}) != 1 or not plays[0]:
        raise UsageError("mirroring is measured over sets of equally many plays; give at least one")
    each = len(plays[0])
    unrelated = _variance([value for mirrored in plays for value in mirrored]) / each
    between = _variance([_mean(mirrored) for mirrored in plays])
    if len(plays) < 2 or unrelated == 0:
        return Mirroring(None, None)
    return Mirroring(
        correlation=(between / unrelated - 1) / (each - 1) if each > 1 else None,
        variance_ratio=unrelated / between if between else None,
    )


class Decision(StrEnum):
    """What a sequential test says so far."""

    CONTINUE = "continue"
    """Neither hypothesis is refuted yet."""
    ACCEPT_H0 = "accept_h0"
    """The difference is not `elo1`."""
    ACCEPT_H1 = "accept_h1"
    """The difference is not `elo0`."""


class SequentialTest(msgspec.Struct, frozen=True, kw_only=True):
    """A generalised sequential probability ratio test (GSPRT) of two Elo differences.

    α = β = 0.05, so it stops at a log-likelihood ratio of ±ln 19. It needs 20 sets before it may
    stop: from the first set on the type-I error was 24 % in trials, from the 20th 5.3 %.
    """

    elo0: float = 0.0
    elo1: float = 10.0
    bound: float = math.log(0.95 / 0.05)
    least_sets: int = 20

    def decide(self, counts: Sequence[float]) -> Decision:
        """The decision after so many sets of 0, ¼, ½, ¾ and 1."""
        if sum(_check_counts(counts)) < self.least_sets:
            return Decision.CONTINUE
        ratio = likelihood_ratio(counts, self.elo0, self.elo1)
        if abs(ratio) < self.bound:
            return Decision.CONTINUE
        return Decision.ACCEPT_H1 if ratio > 0 else Decision.ACCEPT_H0

    def run(self, scores: Iterable[float], most_sets: int) -> Run:
        """Take sets one by one, in their order, until the test decides, they end, or `most_sets` are in.

        So a stop depends on the sets alone, not on how many were played at a time. Raises UsageError for
        a score that no set between two has.
        """
        counts = [0] * len(SET_SCORES)
        decision = Decision.CONTINUE
        for number, score in enumerate(scores, start=1):
            counts[_cell_of(score)] += 1
            decision = self.decide(counts)
            if decision is not Decision.CONTINUE or number >= most_sets:
                break
        return Run(tuple(counts), decision)


class Run(msgspec.Struct, frozen=True):
    """Where a sequential test stopped."""

    counts: tuple[int, ...]
    decision: Decision
    """`CONTINUE` if the sets ended before it was decided."""

    @property
    def sets(self) -> int:
        """How many sets it took."""
        return sum(self.counts)


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """How a sequential test ended in simulated runs."""

    runs: int
    accepted_h1: int
    accepted_h0: int
    mean_sets: float
    """Sets a run."""

    @property
    def rate(self) -> float:
        """The share of the runs that accepted the better-hypothesis."""
        return self.accepted_h1 / self.runs


def between_equals(counts: Sequence[float]) -> tuple[float, ...]:
    """The chances of the five scores for a bot against its own copy, from sets that the two played.

    Each of the two is as likely to score x as the other, so each is as likely to score x as 1 - x: the
    counts and their mirror image are one sample. Their mean is ½ whatever luck the sets had.
    """
    checked = _check_counts(counts)
    total = 2 * sum(checked)
    return tuple((one + other) / total for one, other in zip(checked, checked[::-1], strict=True))


def simulate(
    test: SequentialTest,
    chances: Sequence[float],
    *,
    runs: int,
    most_sets: int,
    generator: Random,
) -> Calibration:
    """Let `test` run over sets drawn with these chances of the scores 0, ¼, ½, ¾ and 1, `runs` times.

    Raises UsageError for chances that are none, or no run.
    """
    weights = _check_counts(chances)
    if runs < 1:
        raise UsageError(f"a calibration needs at least one run; got {runs}")
    done = [test.run(_draw(weights, most_sets, generator), most_sets) for _ in range(runs)]
    return Calibration(
        runs=runs,
        accepted_h1=sum(run.decision is Decision.ACCEPT_H1 for run in done),
        accepted_h0=sum(run.decision is Decision.ACCEPT_H0 for run in done),
        mean_sets=sum(run.sets for run in done) / runs,
    )


def _draw(weights: Sequence[float], most_sets: int, generator: Random) -> Iterable[float]:
    while most_sets > 0:
        drawn = min(most_sets, 100)
        yield from generator.choices(SET_SCORES, weights, k=drawn)
        most_sets -= drawn


def likelihood_ratio(counts: Sequence[float], elo0: float, elo1: float) -> float:
    """The log of how much likelier `counts` are under `elo1` than under `elo0`.

    Under each hypothesis the chances of the five scores are those that have its mean and explain the
    counts best: p_i/(1 + x(a_i - s)). A score that never came up counts as 1e-3.
    """
    filled = _fill(_check_counts(counts))
    total = sum(filled)
    chances = [count / total for count in filled]
    score0, score1 = expected_score(elo0), expected_score(elo1)
    x0, x1 = _tilt(chances, score0), _tilt(chances, score1)
    return math.fsum(
        count * math.log((1 + x0 * (a - score0)) / (1 + x1 * (a - score1)))
        for count, a in zip(filled, SET_SCORES, strict=True)
    )


def likelihood_ratio_by_moments(counts: Sequence[float], elo0: float, elo1: float) -> float:
    """The usual approximation of `likelihood_ratio`: N(s1 - s0)(2μ - s0 - s1)/(2v)."""
    total, mean, variance = _moments(_fill(_check_counts(counts)))
    score0, score1 = expected_score(elo0), expected_score(elo1)
    return total * (score1 - score0) * (2 * mean - score0 - score1) / (2 * variance)


def _tilt(chances: Sequence[float], score: float) -> float:
    """The x for which p_i/(1 + x(a_i - s)) are the likeliest chances with mean `score`, near the seen ones.

    It solves Σp_i(a_i - s)/(1 + x(a_i - s)) = 0, which falls all the way between the poles: by Newton's
    steps, halved towards the ends of what is still possible wherever one leads out of it.
    """
    terms = [(p, a - score) for p, a in zip(chances, SET_SCORES, strict=True)]
    ends = low, high = -1 / (1 - score), 1 / score
    x = 0.0
    for _ in range(200):
        value = slope = 0.0
        for p, excess in terms:
            part = excess / (1 + x * excess)
            value += p * part
            slope += p * part * part
        if value > 0:
            low = x
        else:
            high = x
        step = x + value / slope
        # Beside a pole steps are as short as the way to it, so only what is short beside that has arrived.
        if abs(step - x) < 1e-12 * min(x - ends[0], ends[1] - x):
            return x
        x = step if low < step < high else (low + high) / 2
    return x


def count_sets(scores: Sequence[float]) -> tuple[int, ...]:
    """How often a set scored 0, ¼, ½, ¾ and 1. Raises UsageError for any other score."""
    counts = [0] * len(SET_SCORES)
    for score in scores:
        counts[_cell_of(score)] += 1
    return tuple(counts)


def _cell_of(score: float) -> int:
    if score not in SET_SCORES:
        raise UsageError(f"a set between two scores 0, ¼, ½, ¾ or 1; got {score}")
    return round(score * 4)


def _check_counts(counts: Sequence[float]) -> list[float]:
    if len(counts) != len(SET_SCORES) or min(counts) < 0 or not 0 < sum(counts) < math.inf:
        raise UsageError(
            f"give five counts, of sets that scored 0, ¼, ½, ¾ and 1, not all zero; got {list(counts)}"
        )
    return list(counts)


def _fill(counts: Sequence[float]) -> list[float]:
    return [count or 1e-3 for count in counts]


def _moments(counts: Sequence[float]) -> tuple[float, float, float]:
    """N, μ and v of counts."""
    total = sum(counts)
    mean = sum(n * a for n, a in zip(counts, SET_SCORES, strict=True)) / total
    variance = sum(n * (a - mean) ** 2 for n, a in zip(counts, SET_SCORES, strict=True)) / total
    return total, mean, variance


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)
