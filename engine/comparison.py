"""Is one bot better than another? What its matches are, what their sets say, and the answer in words.

Wherever the question is asked, by ``arena compare`` or on a site, the same bots and seed give the same matches, the
same numbers and the same answer. Who plays the matches, and where, this module does not know.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from engine.agents import BotSource
from engine.games import get_game
from engine.record import (
    BoardsContest,
    BotRef,
    DealSource,
    EntrantRef,
    MatchRecord,
    MatchSpec,
    make_spec,
)
from engine.record.contest import by_entrant
from engine.sdk.timecontrol import time_control as find_time_control
from engine.shuffle import local_prk
from engine.statistics import (
    Comparison,
    Decision,
    Elo,
    Estimate,
    Mirroring,
    SequentialTest,
    compare_sets,
    count_sets,
    likelihood_ratio,
    measure_mirroring,
    points_of_play,
    scores_of_play,
)

BOARDS_A_MATCH = 20
"""Sets are played so many at a time, each time by fresh processes."""
Sets = Sequence[Sequence[Sequence[int]]]
"""``sets[set][rotation][entrant]``: what each entrant scored in each play."""


class Verdict(StrEnum):
    """What the sets of one game say."""

    BETTER = "better"
    """The first bot is better, or, by hypotheses below zero, no worse."""
    NOT_BETTER = "not_better"
    """It is not, or not by as much as was asked for."""
    UNDECIDED = "undecided"
    """The sets do not say."""
    FAULT = "fault"
    """A bot did something wrong: mend it first."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of each game."""

    test: SequentialTest | None
    """None: a fixed number of sets, judged by the interval."""
    most_sets: int


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What the sets say."""

    sets: int
    counts: tuple[int, ...]
    """How many sets the first bot ended with 0, ¼, ½, ¾ and 1."""
    compared: Comparison | None
    """None before a set is finished."""
    ratio: float | None
    """The log-likelihood ratio of the two hypotheses; None without a test."""
    decision: Decision | None
    points_mirroring: Mirroring | None
    score_mirroring: Mirroring | None
    verdict: Verdict


# Matches


def nth_match(
    number: int,
    *,
    game: str,
    entrants: Sequence[EntrantRef],
    rules: Mapping[str, Any],
    time_control: str,
    seed: str,
    most_sets: int,
) -> MatchSpec:
    """The match `number` (from 1) of a comparison: the next `BOARDS_A_MATCH` sets, or those left of `most_sets`.

    Raises ContestError for a game, rules or a time control that there are not.
    """
    played = (number - 1) * BOARDS_A_MATCH
    return make_spec(
        game=game,
        match_key=f"M{number}",
        entrants=entrants,
        contest=BoardsContest(boards=min(BOARDS_A_MATCH, most_sets - played)),
        time_control=find_time_control(time_control),
        deals=DealSource(prk=local_prk(seed), tournament_id="local", reveal=True),
        options=dict(rules),
    )


def count_matches(most_sets: int) -> int:
    """How many matches so many sets are."""
    return math.ceil(most_sets / BOARDS_A_MATCH)


def name_entrants(sources: Sequence[tuple[BotSource, ...]]) -> tuple[EntrantRef, ...]:
    """The entrants by names that differ: ``greedy``, ``greedy#2``; ``steady@1.0`` against ``@1.1``."""
    versions: dict[str, set[str | None]] = {}
    for source in (source for bots in sources for source in bots):
        versions.setdefault(source.bot, set()).add(source.version)
    seen: Counter[str] = Counter()
    entrants = []
    for bots in sources:
        name = "+".join(_label(source, versions[source.bot]) for source in bots)
        seen[name] += 1
        entrants.append(
            EntrantRef(
                name=name if seen[name] == 1 else f"{name}#{seen[name]}",
                bots=tuple(BotRef(source.bot, source.version, source.wheel) for source in bots),
            )
        )
    return tuple(entrants)


def _label(source: BotSource, versions: set[str | None]) -> str:
    return source.bot if len(versions) == 1 else f"{source.bot}@{source.version or 'local'}"


# Numbers


def weigh(sets: Sets, question: Question, *, is_faulty: bool = False) -> Findings:
    """What `sets`, all of them finished, say; with a fault there is no answer."""
    counts = count_sets(scores_by_set(sets))
    compared = compare_sets(sets) if sets else None
    test = question.test
    decision = None if test is None else test.decide(counts) if sets else Decision.CONTINUE
    return Findings(
        sets=len(sets),
        counts=counts,
        compared=compared,
        ratio=likelihood_ratio(counts, test.elo0, test.elo1) if test and sets else None,
        decision=decision,
        points_mirroring=_measure(sets, points_of_play),
        score_mirroring=_measure(sets, scores_of_play),
        verdict=Verdict.FAULT if is_faulty else find_verdict(compared, decision),
    )


def scores_of_sets(record: MatchRecord) -> list[list[tuple[int, ...]]]:
    """By entrant, what each play of each finished mirrored set scored; in a games match a game is a set."""
    game, has_boards = get_game(record.game), isinstance(record.contest, BoardsContest)
    sets: dict[int | None, list[tuple[int, ...]]] = {}
    for number, entry in enumerate(record.games):
        if all(deal.score is not None for deal in entry.deals):
            play = by_entrant(game, entry.seating, entry.score)
            sets.setdefault(entry.board if has_boards else number, []).append(play)
    plays = len(record.entrants) if has_boards else 1
    return [mirrored for mirrored in sets.values() if len(mirrored) == plays]


def score_of_set(mirrored: Sequence[Sequence[int]]) -> float:
    """What a set between two counts for the first: the mean of its plays' 1, ½ or 0."""
    return sum(scores_of_play(play)[0] for play in mirrored) / len(mirrored)


def scores_by_set(sets: Sets) -> list[float]:
    """`score_of_set` of each."""
    return [score_of_set(mirrored) for mirrored in sets]


def _measure(sets: Sets, measure: Callable[[Sequence[int]], list[float]]) -> Mirroring | None:
    if not sets:
        return None
    return measure_mirroring([[measure(play)[0] for play in mirrored] for mirrored in sets])


def find_verdict(compared: Comparison | None, decision: Decision | None) -> Verdict:
    """By the test where there is one, else by whether the interval of the score excludes ½."""
    if decision is Decision.ACCEPT_H1:
        return Verdict.BETTER
    if decision is Decision.ACCEPT_H0:
        return Verdict.NOT_BETTER
    if decision is Decision.CONTINUE or compared is None:
        return Verdict.UNDECIDED
    score = compared.entrants[0].score
    if score.low is None or score.high is None or score.low <= 0.5 <= score.high:
        return Verdict.UNDECIDED
    return Verdict.BETTER if score.low > 0.5 else Verdict.NOT_BETTER


# Words


def spell_answer(
    first: str, other: str, question: Question, findings: Findings, *, is_interrupted: bool = False
) -> str:
    """The answer in a sentence."""
    if findings.verdict is Verdict.FAULT:
        return "No answer: a fault ended a match. Mend it first, then compare again."
    elo = findings.compared.elo if findings.compared else None
    if elo is None:
        return "No answer: no set was finished."
    stopped = "Interrupted. " if is_interrupted else ""
    return stopped + _spell_answer(first, other, question.test, findings, elo)


def _spell_answer(
    first: str, other: str, test: SequentialTest | None, findings: Findings, elo: Elo
) -> str:
    if math.isinf(elo.value):
        winner, loser = (first, other) if elo.value > 0 else (other, first)
        swept = f"{winner} is better than {loser}: it won all {findings.sets} sets, which no Elo explains."
        return swept if findings.verdict is not Verdict.UNDECIDED else f"Not decided, but {swept}"
    better = f"{first} is better than {other} by {spell_elo(elo)} Elo."
    worse = f"{other} is better than {first} by {spell_elo(turned(elo))} Elo."
    if findings.verdict is Verdict.BETTER:
        if test is None or test.elo0 >= 0:
            return better
        return f"{first} is not worse than {other} by {-test.elo0:g} Elo: {spell_elo(elo)}."
    if findings.verdict is Verdict.NOT_BETTER:
        if elo.high < 0:
            return worse
        assert test is not None
        return f"{first} is not better than {other} by {test.elo1:g} Elo: {spell_elo(elo)}."
    if findings.counts[2] == findings.sets:
        return f"No difference found: each of {count_in_words(findings.sets)} was even, as if they played alike."
    return (
        f"No difference found in {count_in_words(findings.sets)}: {first} is {spell_elo(elo)} Elo over {other}, "
        "which may be chance; play more sets."
    )


def turned(elo: Elo) -> Elo:
    """The same difference seen from the other side."""
    return Elo(-elo.value, -elo.high, -elo.low)


def spell_estimate(estimate: Estimate | None, style: str) -> str:
    """``+12.30 ± 4.51``; the mean alone where nothing is known of the spread."""
    if estimate is None:
        return "-"
    mean = format(estimate.mean, style)
    if estimate.high is None:
        return mean
    return f"{mean} ± {format(estimate.high - estimate.mean, style.lstrip('+'))}"


def spell_elo(elo: Elo) -> str:
    """``+35 (+12 to +58)``; an end that no finite difference explains is written as infinite."""
    value, low, high = (
        f"{round(end):+d}" if math.isfinite(end) else f"{'+' if end > 0 else '-'}∞"
        for end in (elo.value, elo.low, elo.high)
    )
    return f"{value} ({low} to {high})"


def count_in_words(sets: int) -> str:
    """``1 mirrored set``, ``20 mirrored sets``."""
    return f"{sets} mirrored set{'' if sets == 1 else 's'}"
