"""The rating model against its vectors and openskill, and the laws of the fold."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openskill.models import PlackettLuce

from engine.errors import UsageError
from engine.ratings import (
    INHERITED_SIGMA,
    EventKind,
    Fold,
    Member,
    RatedVersion,
    Rating,
    RatingEvent,
    Step,
    Team,
    apply_result,
    fold,
    inherit,
    preview,
    rate,
    resume,
    rewind,
)

FRESH = Rating()


def test_winner_of_a_first_duel_gets_the_published_rating():
    (winner,), (loser,) = rate([[FRESH], [FRESH]], [1, 2])
    assert (winner.mu, winner.sigma) == (27.635389493, 8.065901414)
    assert loser.mu == pytest.approx(50 - winner.mu, abs=1e-9)


def test_winners_of_a_first_match_of_pairs_get_the_published_rating():
    winners, losers = rate([[FRESH, FRESH], [FRESH, FRESH]], [1, 2])
    assert {(r.mu, r.sigma) for r in winners} == {(26.964294622, 8.177962604)}
    assert losers[0] == losers[1]


@pytest.mark.parametrize(
    ("ranks", "mus"),
    [
        pytest.param((0, 1, 2, 3), (27.795253, 26.552918, 24.689416, 20.962413), id="no ties"),
        pytest.param((0, 1, 1, 3), (27.795253, 24.689416, 24.689416, 22.825915), id="middle tied"),
    ],
)
def test_four_players_get_the_published_means(ranks, mus):
    rated = rate([[FRESH]] * 4, ranks)
    assert [round(team[0].mu, 6) for team in rated] == list(mus)


def test_only_the_order_of_ranks_matters():
    teams = [[Rating(30, 4)], [Rating(20, 7)], [Rating(25, 2)]]
    assert rate(teams, [1, 1, 3]) == rate(teams, [-5, -5, 70])


def random_case(generator: random.Random) -> tuple[list[list[Rating]], list[int]]:
    count = generator.randint(2, 4)
    teams = [
        [
            Rating(round(generator.uniform(-10, 60), 9), round(generator.uniform(0.5, 9), 9))
            for _ in range(generator.randint(1, 2))
        ]
        for _ in range(count)
    ]
    return teams, [generator.randint(1, count) for _ in range(count)]


def by_openskill(teams: list[list[Rating]], ranks: list[int]) -> list[list[tuple[float, float]]]:
    model = PlackettLuce(tau=25 / 300)
    rated = model.rate(
        [[model.rating(mu=r.mu, sigma=r.sigma) for r in team] for team in teams],
        ranks=[float(rank) for rank in ranks],
    )
    return [[(r.mu, r.sigma) for r in team] for team in rated]


def test_a_thousand_random_matches_are_rated_as_by_openskill():
    generator = random.Random(20260101)
    for _ in range(1000):
        teams, ranks = random_case(generator)
        ours = [[(r.mu, r.sigma) for r in team] for team in rate(teams, ranks)]
        theirs = by_openskill(teams, ranks)
        for our_team, their_team in zip(ours, theirs, strict=True):
            for our, their in zip(our_team, their_team, strict=True):
                assert our == pytest.approx(their, abs=1e-9), (teams, ranks)


@pytest.mark.parametrize(
    ("teams", "ranks"),
    [
        pytest.param([[FRESH]], [1], id="a match needs an opponent"),
        pytest.param([[FRESH], []], [1, 2], id="a team needs a member"),
        pytest.param([[FRESH], [FRESH]], [1], id="each team needs a rank"),
    ],
)
def test_what_is_no_match_is_not_rated(teams, ranks):
    with pytest.raises(UsageError):
        rate(teams, ranks)


def test_shown_number_and_interval_follow_from_mean_and_deviation():
    rating = Rating(30.0, 2.0)
    assert rating.shown == 24.0
    assert rating.interval == (26.08, 33.92)


def test_new_version_starts_from_its_parents_mean_less_certain():
    assert inherit(Rating(33.5, 1.25)) == Rating(33.5, INHERITED_SIGMA)
    assert inherit(Rating(20.0, 7.5)) == Rating(20.0, 7.5)
    assert inherit(None) == FRESH


def result(seq: int, winner: int, loser: int, loser_ancestors: tuple[int, ...] = ()) -> RatingEvent:
    return RatingEvent(
        seq=seq,
        kind=EventKind.RESULT,
        match=f"m{seq}",
        teams=(
            Team((Member(winner),), 1),
            Team((Member(loser, loser_ancestors),), 2),
        ),
    )


def void(seq: int, match: str) -> RatingEvent:
    return RatingEvent(seq=seq, kind=EventKind.VOID, match=match)


def unvoid(seq: int, match: str) -> RatingEvent:
    return RatingEvent(seq=seq, kind=EventKind.UNVOID, match=match)


def test_first_match_of_a_version_starts_from_its_newest_rated_ancestor():
    log = [result(1, 1, 9), result(2, 1, 9), result(3, 9, 3, (2, 1))]
    at_two = fold(log[:2]).versions
    expected = rate([[at_two[9].rating], [inherit(at_two[1].rating)]], [1, 2])
    assert fold(log).versions[3].rating == expected[1][0]
    assert fold(log).versions[1] == at_two[1]


@st.composite
def logs(draw: st.DrawFn) -> list[RatingEvent]:
    """A log as the services write it: results, and voids and unvoids of what they may void."""
    log: list[RatingEvent] = []
    counting: list[str] = []
    voided: list[str] = []
    for seq in range(1, draw(st.integers(1, 12)) + 1):
        kinds = ["result"] + ["void"] * bool(counting) + ["unvoid"] * bool(voided)
        kind = draw(st.sampled_from(kinds))
        if kind == "result":
            log.append(draw(results(seq)))
            counting.append(f"m{seq}")
        elif kind == "void":
            match = draw(st.sampled_from(counting))
            counting.remove(match)
            voided.append(match)
            log.append(void(seq, match))
        else:
            match = draw(st.sampled_from(voided))
            voided.remove(match)
            counting.append(match)
            log.append(unvoid(seq, match))
    return log


@st.composite
def results(draw: st.DrawFn, seq: int) -> RatingEvent:
    members = draw(st.integers(1, 2))
    count = draw(st.integers(2, 4 // members))
    versions = draw(
        st.lists(st.integers(1, 8), min_size=count * members, max_size=count * members, unique=True)
    )
    ranks = draw(st.lists(st.integers(1, count), min_size=count, max_size=count))
    teams = tuple(
        Team(
            tuple(
                Member(version, tuple(range(version - 1, 0, -1)))
                for version in versions[team * members : (team + 1) * members]
            ),
            ranks[team],
        )
        for team in range(count)
    )
    return RatingEvent(seq=seq, kind=EventKind.RESULT, match=f"m{seq}", teams=teams)


def play_on(log: list[RatingEvent]) -> dict[int, RatedVersion]:
    """The ratings as a service keeps them: each result applied to the stored lines alone."""
    stored: dict[int, RatedVersion] = {}
    for event in log:
        members = [member for team in event.teams for member in team.members]
        needed = {v for member in members for v in (member.version, *member.ancestors)}
        stored.update(apply_result({v: stored[v] for v in needed if v in stored}, event))
    return stored


@given(logs())
def test_incremental_rating_equals_the_full_replay(log):
    only_results = [event for event in log if event.kind is EventKind.RESULT]
    assert play_on(only_results) == fold(only_results).versions


@given(logs(), st.data())
def test_log_replayed_from_any_of_its_events_on_equals_the_full_replay(log, data):
    folded = fold(log)
    first = data.draw(st.integers(0, len(log)))
    counting = [e for e in log if e.kind is EventKind.RESULT and e.match not in folded.voided]
    before = fold([event for event in counting if event.seq <= first])
    versions, steps = resume(before.versions, log[first:], folded.voided)
    assert versions == folded.versions
    assert (*before.steps, *steps) == folded.steps


@given(logs(), st.data())
def test_rewound_lines_are_those_of_the_log_cut_short(log, data):
    folded = fold(log)
    first = data.draw(st.integers(0, len(log)))
    counting = [e for e in log if e.kind is EventKind.RESULT and e.match not in folded.voided]
    last = {step.version: step for step in folded.steps if step.seq <= first}
    rewound = rewind(folded.versions, [e for e in counting if e.seq > first], last.values())
    assert rewound == fold([event for event in counting if event.seq <= first]).versions


def test_lines_without_one_that_has_a_history_cannot_be_rewound():
    with pytest.raises(UsageError, match="version 7 has a history but no rating"):
        rewind({}, [], [Step(1, 7, FRESH)])


@given(logs(), st.data())
def test_ratings_kept_up_through_voids_and_unvoids_equal_the_replay(log, data):
    """As the services do it: a result is applied, a void or unvoid replays from its result on."""
    lines: dict[int, RatedVersion] = {}
    steps: list[Step] = []
    results: list[RatingEvent] = []
    voided: set[str] = set()
    for number, event in enumerate(log, start=1):
        if event.kind is EventKind.RESULT:
            changed = apply_result(lines, event)
            lines.update(changed)
            steps += [Step(event.seq, v, line.rating) for v, line in changed.items()]
            results.append(event)
        else:
            first = next(e.seq for e in results if e.match == event.match)
            tail = [e for e in results if e.seq >= first]
            kept = [step for step in steps if step.seq < first]
            before = rewind(
                lines,
                [e for e in tail if e.match not in voided],
                {step.version: step for step in kept}.values(),
            )
            voided ^= {event.match}
            lines, new = resume(before, tail, voided)
            steps = [*kept, *new]
        replayed = fold(log[:number])
        assert lines == replayed.versions
        assert tuple(steps) == replayed.steps


@given(logs())
def test_replay_of_a_log_gives_the_same_bits(log):
    assert fold(log) == fold(tuple(log))


@given(logs())
def test_a_void_match_counts_as_if_it_had_never_been(log):
    folded = fold(log)
    kept = [e for e in log if e.kind is EventKind.RESULT and e.match not in folded.voided]
    assert folded.versions == fold(kept).versions
    assert folded.steps == fold(kept).steps


@given(logs(), st.data())
def test_void_then_unvoid_is_the_original(log, data):
    folded = fold(log)
    counting = sorted({e.match for e in log} - folded.voided)
    if not counting:
        return
    match = data.draw(st.sampled_from(counting))
    seq = folded.last_seq
    again = fold([*log, void(seq + 1, match), unvoid(seq + 2, match)])
    assert (again.versions, again.steps) == (folded.versions, folded.steps)


@given(logs())
def test_last_step_of_a_version_is_its_rating(log):
    folded = fold(log)
    last = {step.version: step.rating for step in folded.steps}
    assert last == {version: line.rating for version, line in folded.versions.items()}


def test_matches_wins_and_ties_are_counted():
    tie = RatingEvent(
        seq=2,
        kind=EventKind.RESULT,
        match="m2",
        teams=(Team((Member(1),), 1), Team((Member(2),), 1), Team((Member(3),), 3)),
    )
    lines = fold([result(1, 1, 2), tie]).versions
    assert {v: (line.matches, line.wins, line.ties) for v, line in lines.items()} == {
        1: (2, 1, 1),
        2: (2, 0, 1),
        3: (1, 0, 0),
    }


def test_empty_log_rates_nobody():
    assert fold([]) == Fold(versions={}, steps=(), last_seq=0, voided=frozenset())


@pytest.mark.parametrize(
    "log",
    [
        pytest.param([result(2, 1, 2), result(1, 3, 4)], id="numbers must rise"),
        pytest.param([result(1, 1, 2), result(1, 3, 4)], id="numbers are unique"),
        pytest.param([void(1, "m1")], id="void of an unknown match"),
        pytest.param([result(1, 1, 2), void(2, "m1"), void(3, "m1")], id="void of a void"),
        pytest.param([result(1, 1, 2), unvoid(2, "m1")], id="unvoid of what counts"),
        pytest.param(
            [result(1, 1, 2), void(2, "m1"), unvoid(3, "m1"), unvoid(4, "m1")], id="unvoid twice"
        ),
        pytest.param([result(1, 1, 1)], id="a version cannot meet itself"),
    ],
)
def test_a_log_that_is_not_in_order_is_refused(log):
    with pytest.raises(UsageError):
        fold(log)


def test_a_second_result_of_a_match_is_refused():
    again = RatingEvent(seq=2, kind=EventKind.RESULT, match="m1", teams=result(1, 1, 2).teams)
    with pytest.raises(UsageError, match="second result of m1"):
        fold([result(1, 1, 2), again])


def test_preview_shows_what_a_void_would_change_and_nothing_else():
    log = [result(1, 1, 2), result(2, 3, 4), result(3, 1, 3)]
    changes = preview(log, [void(4, "m2")])
    before, after = fold(log).versions, fold([*log, void(4, "m2")]).versions
    assert {c.version for c in changes} == {1, 3, 4}
    assert {c.version: c.after for c in changes}[4] is None
    assert {c.version: c.before for c in changes}[1] == before[1].rating
    assert {c.version: c.after for c in changes}[1] == after[1].rating
