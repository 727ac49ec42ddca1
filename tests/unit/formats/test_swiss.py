"""Swiss: the published first rounds, the best pairing of every small round, byes, floats, late entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import FormatError
from engine.formats import DecidedBy, SeededEntrant, StageView, get_format, swiss
from engine.formats.results import forfeit_outcome, void_result
from engine.standings import TieBreak
from tests.unit.formats.stages import (
    better_seed_wins,
    leave,
    play_round,
    play_stage,
    publish,
    scored,
    seeded,
    seeds_of,
    settle,
    start,
    won_by,
)

SW = get_format("swiss")
HALF = Fraction(1, 2)


def pairs_of(view: StageView, index: int) -> set[frozenset[int]]:
    return {frozenset(seeds) for seeds in seeds_of(view, index) if len(seeds) == 2}


def bye_of(view: StageView, index: int) -> int | None:
    return next((seeds[0] for seeds in seeds_of(view, index) if len(seeds) == 1), None)


def enter_late(view: StageView, entrant: int) -> StageView:
    newcomer = SW.late_entrant(view, entrant)
    return msgspec.structs.replace(view, entrants=(*view.entrants, newcomer))


# The first rounds


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (8, [(1, 5), (2, 6), (3, 7), (4, 8)]),
        (7, [(1, 4), (2, 5), (3, 6), (7,)]),
        (3, [(1, 2), (3,)]),
        (2, [(1, 2)]),
    ],
)
def test_first_round_folds_the_field_and_the_last_has_the_bye(count, expected):
    view = start(SW, count)
    view = publish(view, SW.next_round(view))
    assert seeds_of(view, 1) == expected


@pytest.mark.parametrize("count", [8, 64, 300])
def test_large_first_round_folds_too(count):
    view = start(SW, count)
    half = count // 2
    assert [tuple(e - 100 for e in p.entrants) for p in SW.next_round(view).pairings] == [
        (seed, seed + half) for seed in range(1, half + 1)
    ]


def test_keys_name_round_and_match_and_the_bye_comes_last():
    view = play_round(SW, start(SW, 5), better_seed_wins)
    assert [p.key for p in view.rounds[0].pairings] == ["SW/R1/M1", "SW/R1/M2", "SW/R1/M3"]
    assert [p.is_bye for p in view.rounds[0].pairings] == [False, False, True]
    assert view.rounds[0].pairings[-1].result.scores == (1,)


def test_second_round_brings_winners_and_losers_together():
    view = play_round(SW, start(SW, 8), better_seed_wins)
    view = publish(view, SW.next_round(view))
    assert pairs_of(view, 2) == {frozenset(p) for p in [(1, 3), (2, 4), (5, 7), (6, 8)]}


# The best of all pairings, against every pairing there is


def every_pairing(members: list[int]) -> Iterator[list[tuple[int, ...]]]:
    """All ways to pair `members`; of an odd number one rests."""
    if len(members) % 2:
        for resting in members:
            for pairing in every_pairing([m for m in members if m != resting]):
                yield [*pairing, (resting,)]
        return
    if not members:
        yield []
        return
    first, *others = members
    for other in others:
        for pairing in every_pairing([m for m in others if m != other]):
            yield [(first, other), *pairing]


def cost_of(view: StageView, pairing: list[tuple[int, ...]]) -> tuple:
    """What a pairing of the next round costs, level by level, told from the published rounds alone."""
    score: Counter[int] = Counter()
    met: dict[frozenset[int], int] = {}
    byes: Counter[int] = Counter()
    seats: Counter[int] = Counter()
    floats: dict[int, int] = {}
    for published in view.rounds:
        before = score.copy()
        floats = {}
        for stored in published.pairings:
            if stored.is_bye:
                byes[stored.entrants[0]] += 1
                floats[stored.entrants[0]] = -1
            else:
                a, b = stored.entrants
                met[frozenset((a, b))] = published.index
                seats[a] += 1
                seats[b] -= 1
                floats[a] = (before[b] > before[a]) - (before[b] < before[a])
                floats[b] = -floats[a]
            for entrant, won in zip(stored.entrants, stored.result.scores, strict=True):
                score[entrant] += won
    ranked = sorted(
        (e for e in view.entrants if e.active),
        key=lambda entrant: (-score[entrant.id], entrant.seed),
    )
    place = {entrant.id: index for index, entrant in enumerate(ranked)}
    size = Counter(score[entrant.id] for entrant in ranked)
    fewest = min(byes[entrant.id] for entrant in ranked)
    rematches, recency, second_byes, bye_from_end = 0, 0, 0, 0
    gaps, repeated, clashes, distance = Fraction(0), 0, 0, Fraction(0)
    for group in pairing:
        if len(group) == 1:
            second_byes += byes[group[0]] > fewest
            bye_from_end += len(ranked) - 1 - place[group[0]]
            continue
        a, b = sorted(group, key=place.__getitem__)
        rematches += frozenset(group) in met
        recency += met.get(frozenset(group), 0)
        gap = score[a] - score[b]
        gaps += gap * gap
        apart = Fraction(place[b] - place[a])
        if gap:
            repeated += (floats.get(a, 0) < 0) + (floats.get(b, 0) > 0)
            distance += apart
        else:
            distance += abs(apart - Fraction(size[score[a]], 2))
        clashes += seats[a] * seats[b] > 0
    return second_byes, rematches, recency, bye_from_end, gaps, repeated, clashes, distance


@st.composite
def swiss_stages(draw: st.DrawFn, largest: int) -> StageView:
    """A stage after some rounds, with ties, forfeits, voids, withdrawals and late entries."""
    count = draw(st.integers(2, largest))
    view = start(SW, count, rounds=draw(st.integers(1, count - 1)))
    for _ in range(draw(st.integers(0, count - 1))):
        if len(view.entrants) < largest and draw(st.integers(0, 5)) == 0:
            with_one_more = len(view.rounds) < SW.round_count(len(view.entrants), view.options)
            view = enter_late(view, 101 + len(view.entrants)) if with_one_more else view
        if draw(st.integers(0, 5)) == 0:
            view = leave(view, [draw(st.sampled_from(view.entrants)).id])
        after = play_round(SW, view, lambda _: draw(outcomes))
        if after is None:
            break
        view = after
        if draw(st.integers(0, 5)) == 0:
            voided = draw(st.sampled_from(view.rounds[-1].pairings))
            view = settle(view, {voided.key: void_result(voided.result)})
    return view


outcomes = st.sampled_from(
    [
        *[won_by(0), won_by(1), scored((0, 0))] * 2,
        forfeit_outcome(2, [0], "did not appear"),
        forfeit_outcome(2, [0, 1], "neither appeared"),
    ]
)


def planned_pairs(view: StageView) -> list[tuple[int, ...]] | None:
    planned = SW.next_round(view)
    return planned and [pairing.entrants for pairing in planned.pairings]


def check_best(view: StageView) -> None:
    planned = planned_pairs(view)
    if planned is not None:
        active = [entrant.id for entrant in view.active]
        assert sorted(e for group in planned for e in group) == sorted(active)
        best = min(cost_of(view, pairing) for pairing in every_pairing(active))
        assert cost_of(view, planned) == best


@given(swiss_stages(largest=7))
@settings(max_examples=60, deadline=None)
def test_no_pairing_of_a_small_round_is_better(view):
    check_best(view)


@pytest.mark.exhaustive
@given(swiss_stages(largest=8))
@settings(max_examples=300, deadline=None)
def test_no_pairing_of_a_small_round_is_better_in_many_more_stages(view):
    check_best(view)


@given(swiss_stages(largest=24), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_pairing_depends_on_no_order_of_entrants_nor_on_their_ids(view, rng):
    shuffled = list(view.entrants)
    rng.shuffle(shuffled)
    assert SW.next_round(msgspec.structs.replace(view, entrants=tuple(shuffled))) == (
        SW.next_round(view)
    )


# Rematches and byes


def test_four_meet_everyone_once_in_three_rounds():
    view = play_stage(SW, start(SW, 4, rounds=3))
    met = Counter(pair for index in (1, 2, 3) for pair in pairs_of(view, index))
    assert len(met) == 6
    assert set(met.values()) == {1}


def test_unavoidable_rematch_is_the_oldest_one():
    # all four have met; then two leave nobody else: 1 and 2 met last in the round that they share
    view = play_stage(SW, start(SW, 4, rounds=3))
    view = enter_late(enter_late(msgspec.structs.replace(view, rounds=view.rounds[:2]), 105), 106)
    view = play_round(SW, leave(view, [105, 106]), better_seed_wins)
    again = msgspec.structs.replace(view, options=SW.make_options({"rounds": 4}))
    again = publish(again, SW.next_round(again))
    assert pairs_of(again, 4) == pairs_of(view, 1)


def test_two_who_are_left_meet_again_rather_than_not_at_all():
    view = play_round(SW, start(SW, 5, rounds=3), better_seed_wins)
    view = leave(view, [102, 104, 105])
    view = play_round(SW, view, better_seed_wins)
    assert pairs_of(view, 2) == pairs_of(view, 1) - {frozenset((2, 4))} == {frozenset((1, 3))}


@pytest.mark.parametrize("count", [5, 7, 9, 15])
def test_nobody_rests_twice_before_all_have(count):
    view = play_stage(SW, start(SW, count, rounds=count - 1))
    byes = [bye_of(view, index) for index in range(1, count)]
    assert len(set(byes)) == len(byes)


def test_bye_passes_on_where_the_others_could_not_be_paired_without_it():
    # of three, 1-2 met and 3 rested; 2 is last of those who have not, and 1 has yet to meet 3
    view = play_stage(SW, start(SW, 3, rounds=2))
    assert [bye_of(view, index) for index in (1, 2)] == [3, 2]


def test_who_met_stays_met_however_it_came_out():
    view = start(SW, 4, rounds=2)
    view = play_round(SW, view, lambda _: forfeit_outcome(2, [0, 1], "neither appeared"))
    view = settle(view, {p.key: void_result(p.result) for p in view.rounds[0].pairings})
    view = publish(view, SW.next_round(view))
    assert not pairs_of(view, 1) & pairs_of(view, 2)


# Seats


@pytest.mark.parametrize("count", [8, 16, 33])
def test_nobody_always_sits_on_the_same_side(count):
    view = play_stage(SW, start(SW, count))
    balance: Counter[int] = Counter()
    for published in view.rounds:
        for pairing in published.pairings:
            if not pairing.is_bye:
                balance[pairing.entrants[0]] += 1
                balance[pairing.entrants[1]] -= 1
    assert max(map(abs, balance.values())) < len(view.rounds)


def test_of_two_with_equal_balance_who_sat_second_of_late_sits_first():
    view = start(SW, 4, rounds=3)
    view = play_round(SW, view, lambda _: scored((0, 0)))  # 1-3 2-4
    view = play_round(SW, view, lambda _: scored((0, 0)))
    assert [seats[0] for seats in seeds_of(view, 2)] == [4, 3]
    view = publish(view, SW.next_round(view))
    assert seeds_of(view, 3) == [(1, 2), (4, 3)] or seeds_of(view, 3) == [(1, 2), (3, 4)]


# Many entrants


def play_large(count: int, rounds: int, decide) -> StageView:
    view = start(SW, count, rounds=rounds)
    for _ in range(rounds):
        view = play_round(SW, view, decide)
    return view


def upset_often(pairing):
    return [won_by(0), won_by(1), scored((0, 0))][sum(pairing.entrants) * 7919 % 3]


@pytest.mark.parametrize(
    ("count", "decide"),
    [
        pytest.param(301, better_seed_wins, id="odd groups and a bye in every round"),
        pytest.param(320, upset_often, id="many score groups, many of them odd"),
        pytest.param(258, lambda _: scored((0, 0)), id="one group in every round"),
    ],
)
def test_large_rounds_pair_everyone_and_nobody_again(count, decide):
    view = play_large(count, 3, decide)
    met = Counter(pair for index in range(1, 4) for pair in pairs_of(view, index))
    assert set(met.values()) == {1}
    for index in range(1, 4):
        assert len({e for seeds in seeds_of(view, index) for e in seeds}) == count


def test_windows_cover_the_table_in_even_pieces():
    groups = [[0, 1, 2], list(range(3, 304)), [304], list(range(305, 600)), list(range(600, 612))]
    windows = swiss._windows(groups)
    assert sorted(place for window in windows for place in window) == list(range(612))
    assert all(len(window) % 2 == 0 and window == sorted(window) for window in windows)
    assert all(swiss.WINDOW <= len(window) <= 4 * swiss.WINDOW for window in windows)


def test_window_of_a_large_group_holds_those_whom_the_fold_brings_together():
    for window in swiss._windows([list(range(640))]):
        assert all((place + 320) in window for place in window if place < 320)


@pytest.mark.parametrize("window", [2, 4, 16])
def test_window_without_a_pairing_is_joined_to_the_next(monkeypatch, window):
    monkeypatch.setattr(swiss, "COMPLETE_UP_TO", 0)
    monkeypatch.setattr(swiss, "WINDOW", window)
    view = play_large(21, 9, upset_often)
    met = Counter(pair for index in range(1, 10) for pair in pairs_of(view, index))
    assert set(met.values()) == {1}
    assert len({bye_of(view, index) for index in range(1, 10)}) == 9


def test_windows_find_what_the_whole_finds_where_nothing_crosses_them(monkeypatch):
    view = play_round(SW, start(SW, 128), better_seed_wins)
    whole = planned_pairs(view)
    monkeypatch.setattr(swiss, "COMPLETE_UP_TO", 0)
    assert planned_pairs(view) == whole


# Who comes and goes


def test_who_leaves_is_not_paired_any_more_and_keeps_what_he_has():
    view = play_round(SW, start(SW, 6, rounds=3), better_seed_wins)
    view = play_stage(SW, leave(view, [101]))
    assert not any(1 in pair for index in (2, 3) for pair in seeds_of(view, index))
    row = next(row for row in SW.standings(view) if row.entrant == 101)
    assert (row.score, row.matches, row.unplayed, row.note) == (1, 1, 2, "withdrawn")


def test_opponents_of_who_left_get_half_a_point_for_each_round_he_missed():
    view = play_round(SW, start(SW, 6, rounds=3), better_seed_wins)
    view = play_stage(SW, leave(view, [101]))
    row = next(row for row in SW.standings(view) if row.entrant == 104)
    buchholz = next(t for t in row.tie_breaks if t.name == TieBreak.BUCHHOLZ)
    # 101 has won once and missed two rounds, 1 + 2 * 1/2
    assert seeds_of(view, 1)[0] == (1, 4)
    assert buchholz.working.startswith("Buchholz 5 = 2 + ")


def test_who_leaves_in_an_open_round_is_walked_over():
    view = start(SW, 4, rounds=3)
    view = leave(publish(view, SW.next_round(view)), [101])
    pairing = view.rounds[0].pairings[0]
    result = SW.walkover(view, pairing)
    assert result.decided_by is DecidedBy.WALKOVER
    assert result.scores == (0, 1)


def test_late_entrant_has_the_last_seed_and_nothing_for_what_he_missed():
    view = play_round(SW, start(SW, 5, rounds=4), better_seed_wins)
    view = enter_late(view, 500)
    assert view.entrants[-1] == SeededEntrant(id=500, seed=6)
    assert 500 in {e for p in SW.next_round(view).pairings for e in p.entrants}
    view = play_round(SW, view, lambda p: won_by(p.entrants.index(max(p.entrants))))
    row = next(row for row in SW.standings(view) if row.entrant == 500)
    assert (row.score, row.matches, row.unplayed) == (1, 1, 1)


def test_late_entrant_changes_no_published_round():
    view = start(SW, 5, rounds=4)
    view = publish(view, SW.next_round(view))
    later = enter_late(view, 500)
    assert later.rounds == view.rounds
    with pytest.raises(FormatError, match="SW/R1/M1"):
        SW.next_round(later)


def test_who_enters_when_no_round_is_left_is_refused():
    view = play_stage(SW, start(SW, 5, rounds=2))
    with pytest.raises(FormatError, match="too late"):
        SW.late_entrant(view, 500)


def test_stage_that_is_over_does_not_go_on_for_a_late_entrant():
    # nine would have one round more than eight
    view = play_stage(SW, start(SW, 8))
    assert SW.round_count(9, view.options) == len(view.rounds) + 1
    with pytest.raises(FormatError, match="too late"):
        SW.late_entrant(view, 500)


def test_late_entrant_counts_for_the_number_of_rounds():
    view = play_stage(SW, enter_late(play_round(SW, start(SW, 8), better_seed_wins), 500))
    assert len(view.rounds) == SW.round_count(9, view.options) == 5


def test_who_is_in_already_does_not_enter_again():
    with pytest.raises(FormatError, match="entrant 101 is in this stage already"):
        SW.late_entrant(start(SW, 5), 101)


# What can be asked for


@pytest.mark.parametrize(
    ("count", "rounds"),
    [(2, 1), (3, 2), (4, 3), (5, 4), (8, 4), (9, 5), (64, 7), (65, 8), (1000, 11)],
)
def test_rounds_are_one_more_than_a_knock_out_has_if_there_are_opponents(count, rounds):
    assert SW.round_count(count, SW.make_options()) == rounds
    assert SW.match_count(count, SW.make_options()) == rounds * (count // 2)


@pytest.mark.parametrize(
    ("given_options", "message"),
    [
        pytest.param(
            {"rounds": 0}, "rounds=0 is not allowed in swiss; allowed: .* 1 to 128", id="none"
        ),
        pytest.param({"rounds": "half"}, "rounds=half", id="no number"),
        pytest.param({"rounds": 8}, "of 8 entrants takes at most 7 rounds", id="too few opponents"),
        pytest.param({"tie_breaks": ["wins"]}, "begin with 'score'", id="no score"),
    ],
)
def test_impossible_stages_are_refused_with_what_to_change(given_options, message):
    with pytest.raises(FormatError, match=message):
        start(SW, 8, **given_options)


def test_far_too_many_entrants_are_refused():
    with pytest.raises(FormatError, match="at most 16384 entrants, and there are 16385"):
        SW.check(seeded(16385), SW.make_options())


def test_summary_says_what_it_is_not():
    assert "not FIDE's Dutch system" in SW.summary


def test_table_of_a_swiss_stage_is_ordered_by_score_and_then_by_opposition():
    view = play_stage(SW, start(SW, 8))
    rows = SW.standings(view)
    assert rows[0].entrant == 101
    assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
    assert {t.name for t in rows[0].tie_breaks} >= {TieBreak.BUCHHOLZ, TieBreak.LOT}
