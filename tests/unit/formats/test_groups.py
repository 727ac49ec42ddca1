"""Groups: the snake, the rounds side by side, the tables, and who goes on to which place of a bracket."""

from __future__ import annotations

from itertools import combinations
from string import ascii_uppercase

import msgspec
import pytest

from engine.errors import FormatError
from engine.formats import DecidedBy, get_format
from engine.formats.groups import cross_groups, snake
from engine.formats.seeding import bracket_size, fold_order
from engine.formats.stages import StagePlan, check_stages, next_stage_entrants
from tests.unit.formats.stages import (
    leave,
    play_round,
    play_stage,
    publish,
    scored,
    seeded,
    start,
    won_by,
)

GROUPS = get_format("groups")
SE = get_format("single_elimination")


def members(view):
    """The seeds of each group, as its pairings name them."""
    groups = {}
    for published in view.rounds:
        for pairing in published.pairings:
            seeds = groups.setdefault(pairing.key.split("/")[1], set())
            seeds |= {entrant - 100 for entrant in pairing.entrants}
    return groups


def table_of(view, group):
    rows = [row for row in GROUPS.standings(view) if row.group == group]
    return [(row.group_place, row.entrant - 100) for row in rows]


def bracket_of(view, count):
    """The first round of a knock-out of the `count` who go on, as A1-B2, from the top to the bottom."""
    rows = {row.entrant: f"{row.group}{row.group_place}" for row in GROUPS.standings(view)}
    plan = StagePlan(format="groups", qualifiers=count)
    knock_out = start(SE, 4)
    entrants = next_stage_entrants(view, plan)
    first = SE.next_round(msgspec.structs.replace(knock_out, entrants=entrants))
    return " ".join("-".join(rows[e] for e in pairing.entrants) for pairing in first.pairings)


@pytest.mark.parametrize(
    ("count", "groups", "expected"),
    [
        (8, 2, [[1, 4, 5, 8], [2, 3, 6, 7]]),
        (10, 4, [[1, 8, 9], [2, 7, 10], [3, 6], [4, 5]]),  # the last lap does not reach all
        (6, 3, [[1, 6], [2, 5], [3, 4]]),
    ],
)
def test_seeds_go_into_the_groups_as_a_snake(count, groups, expected):
    assert snake(range(1, count + 1), groups) == expected
    view = play_stage(GROUPS, start(GROUPS, count, groups=groups))
    assert members(view) == {
        name: set(seeds) for name, seeds in zip("ABCD"[:groups], expected, strict=True)
    }


def test_keys_name_group_round_and_match():
    view = play_stage(GROUPS, start(GROUPS, 7, groups=2))
    assert [pairing.key for pairing in view.rounds[1].pairings] == [
        "RR/A/R2/M1",
        "RR/A/R2/M2",
        "RR/B/R2/M1",
        "RR/B/R2/M2",
    ]


@pytest.mark.parametrize(("count", "groups"), [(4, 2), (9, 2), (13, 3), (17, 8), (60, 26)])
@pytest.mark.parametrize("cycles", [1, 2])
def test_each_two_of_a_group_meet_and_nobody_else_does(count, groups, cycles):
    view = play_stage(GROUPS, start(GROUPS, count, groups=groups, cycles=cycles))
    met = sorted(
        tuple(sorted(pairing.entrants))
        for published in view.rounds
        for pairing in published.pairings
        if not pairing.is_bye
    )
    drawn = snake(range(101, 101 + count), groups)
    assert met == sorted(
        pair for group in drawn for pair in combinations(group, 2) for _ in range(cycles)
    )
    assert len(met) == GROUPS.match_count(count, view.options)
    assert len(view.rounds) == GROUPS.round_count(count, view.options)


def test_table_knows_the_group_and_the_place_in_it():
    view = play_stage(GROUPS, start(GROUPS, 8))
    assert table_of(view, "A") == [(1, 1), (2, 4), (3, 5), (4, 8)]
    assert table_of(view, "B") == [(1, 2), (2, 3), (3, 6), (4, 7)]
    rows = GROUPS.standings(view)
    assert [(row.place, row.entrant - 100) for row in rows] == [
        (1, 1),
        (1, 2),
        (3, 4),
        (3, 3),
        (5, 5),
        (5, 6),
        (7, 8),
        (7, 7),
    ]


def test_tie_breaks_look_at_the_group_alone():
    view = play_stage(GROUPS, start(GROUPS, 8), lambda _: scored((0, 0)))
    for row in GROUPS.standings(view):
        assert row.score == row.matches / 2 == 1.5
        assert row.tie_breaks[1].working != "not all of the tied have met"


def test_who_leaves_is_walked_over_in_his_group():
    view = play_round(GROUPS, start(GROUPS, 8), lambda _: won_by(0))
    view = play_stage(GROUPS, leave(view, [101]))
    walked = [
        pairing.key
        for published in view.rounds
        for pairing in published.pairings
        if pairing.result.decided_by is DecidedBy.WALKOVER
    ]
    assert walked
    assert {key.split("/")[1] for key in walked} == {"A"}
    assert [row.note for row in GROUPS.standings(view) if row.entrant == 101] == ["withdrawn"]


def test_who_leaves_before_the_draw_is_in_no_group():
    view = play_stage(GROUPS, leave(start(GROUPS, 6), [102]))
    assert members(view) == {"A": {1, 5, 6}, "B": {3, 4}}
    last = GROUPS.standings(view)[-1]
    assert (last.entrant, last.place, last.group, last.group_place) == (102, 6, "", None)


def test_groups_are_read_from_the_published_round_even_if_seeds_change():
    view = start(GROUPS, 8)
    view = publish(view, GROUPS.next_round(view))
    reseeded = msgspec.structs.replace(
        view,
        entrants=tuple(msgspec.structs.replace(e, seed=9 - e.seed) for e in view.entrants),
    )
    assert GROUPS.next_round(reseeded) == GROUPS.next_round(view)


@pytest.mark.parametrize(
    ("groups", "count", "expected"),
    [
        (2, 2, "A1-B1"),
        (2, 4, "A1-B2 B1-A2"),
        (4, 4, "A1-D1 B1-C1"),
        (4, 8, "A1-B2 D1-C2 B1-A2 C1-D2"),
        (8, 16, "A1-B2 H1-G2 D1-C2 E1-F2 B1-A2 G1-H2 C1-D2 F1-E2"),
        (2, 6, "A1 B2-A3 B1 A2-B3"),  # the winners of the groups have the byes
        (2, 8, "A1-B4 B2-A3 B1-A4 A2-B3"),
        (4, 12, "A1 B2-D3 D1 C2-A3 B1 A2-C3 C1 D2-B3"),
    ],
)
def test_groups_cross_in_the_knock_out_that_follows(groups, count, expected):
    view = play_stage(GROUPS, start(GROUPS, 4 * groups, groups=groups))
    assert bracket_of(view, count) == expected


def rounds_until_rivals_meet(blocks):
    """The fewest matches after which two of one group can meet, counted back from the final (0)."""
    flat = [name for block in cross_groups(blocks) for name in block]
    size = bracket_size(len(flat))
    place_of = {seed: place for place, seed in enumerate(fold_order(size))}
    places = {}
    for seed, name in enumerate(flat, start=1):
        places.setdefault(name, []).append(place_of[seed])
    return max(
        size.bit_length() - 1 - (a ^ b).bit_length()
        for taken in places.values()
        for a, b in combinations(taken, 2)
    )


@pytest.mark.parametrize("groups", range(2, 27))
def test_two_of_a_group_meet_in_the_final_at_the_earliest(groups):
    assert rounds_until_rivals_meet([ascii_uppercase[:groups]] * 2) == 0


@pytest.mark.parametrize("groups", [2, 4, 8, 16])
@pytest.mark.parametrize("each", [3, 4])
def test_up_to_four_of_a_group_meet_in_the_semi_finals_at_the_earliest(groups, each):
    assert rounds_until_rivals_meet([ascii_uppercase[:groups]] * each) == 1


@pytest.mark.parametrize("groups", [3, 5, 6, 7, 9, 12])
def test_with_other_numbers_of_groups_four_of_one_meet_at_most_a_round_earlier(groups):
    assert rounds_until_rivals_meet([ascii_uppercase[:groups]] * 3) <= 1
    assert rounds_until_rivals_meet([ascii_uppercase[:groups]] * 4) <= 2


@pytest.mark.parametrize("groups", range(2, 27))
@pytest.mark.parametrize("each", [2, 3, 4])
def test_each_block_keeps_its_groups(groups, each):
    blocks = [ascii_uppercase[:groups]] * each
    ordered = cross_groups(blocks)
    assert [sorted(block) for block in ordered] == [sorted(block) for block in blocks]
    assert ordered[0] == list(blocks[0])


def test_places_that_not_every_group_gets_go_to_the_best_of_those_next():
    # 10 in 4 groups: A and B have three, C and D two; who is worse seeded in its group loses
    view = play_stage(GROUPS, start(GROUPS, 10, groups=4))
    # the seconds: A 8 (1 of 2), B 7 (1 of 2), C 6 and D 5 (0 of 1)
    assert set(GROUPS.qualify(view, 6)) == {101, 102, 103, 104, 107, 108}
    assert GROUPS.qualify(view, 6)[:4] == (101, 102, 103, 104)
    assert set(GROUPS.qualify(view, 3)) == {101, 102, 103}  # all won everything: the better seeds


def test_who_left_is_replaced_by_the_next_of_his_group():
    view = leave(play_stage(GROUPS, start(GROUPS, 8)), [101])
    assert GROUPS.qualify(view, 4) == (104, 102, 105, 103)


def test_group_that_everyone_left_sends_nobody():
    view = leave(play_stage(GROUPS, start(GROUPS, 8)), [101, 104, 105, 108])
    assert GROUPS.qualify(view, 4) == (102, 103, 106, 107)


def test_groups_then_knock_out_is_checked_as_a_whole():
    groups = StagePlan(format="groups", options={"groups": 4}, qualifiers=8)
    check_stages(16, (groups, StagePlan(format="single_elimination")))
    with pytest.raises(
        FormatError, match=r"stage 1: 4 groups need at least 8 entrants.*there are 7"
    ):
        check_stages(7, (groups, StagePlan(format="single_elimination")))


@pytest.mark.parametrize(
    ("count", "options", "message"),
    [
        pytest.param(5, {"groups": 6}, "6 groups need at least 12", id="more groups than entrants"),
        pytest.param(3, {}, "2 groups need at least 4 entrants, two each, and there are 3", id="3"),
        pytest.param(400, {"groups": 2}, "groups of 200", id="groups too large"),
        pytest.param(8, {"groups": 1}, "a whole number from 2 to 26", id="one group"),
        pytest.param(80, {"groups": 27}, "a whole number from 2 to 26", id="no letter left"),
        pytest.param(8, {"tie_breaks": ["wins"]}, "begin with 'score'", id="no score"),
    ],
)
def test_impossible_groups_are_refused_saying_what_to_change(count, options, message):
    with pytest.raises(FormatError, match=message):
        GROUPS.check(seeded(count), GROUPS.make_options(options))
