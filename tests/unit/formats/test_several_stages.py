"""Tournaments of several stages: what is refused, who goes on, and the keys of their matches."""

from __future__ import annotations

import msgspec
import pytest

from engine.errors import FormatError
from engine.formats import FORMATS, get_format
from engine.formats.stages import (
    StagePlan,
    check_stages,
    match_key,
    next_stage_entrants,
    split_match_key,
)
from tests.unit.formats.stages import (
    leave,
    play_round,
    play_stage,
    publish,
    start,
    with_an_end,
    won_by,
)

RR = get_format("round_robin")
SE = get_format("single_elimination")
TABLE_THEN_CUP = (
    StagePlan(format="round_robin", qualifiers=4),
    StagePlan(format="single_elimination", options={"third_place": True}),
)


@pytest.mark.parametrize(
    ("entrants", "plans", "message"),
    [
        pytest.param(4, (), "1 to 5 stages, not 0", id="no stage at all"),
        pytest.param(4, TABLE_THEN_CUP[:1] * 6, "1 to 5 stages, not 6", id="too many stages"),
        pytest.param(
            1, TABLE_THEN_CUP, "stage 1: .*at least 2 entrants, and there is 1", id="one entrant"
        ),
        pytest.param(
            3, TABLE_THEN_CUP, "stage 1: 4 cannot go on, since only 3", id="more than there are"
        ),
        pytest.param(
            8,
            (StagePlan(format="round_robin", qualifiers=3), TABLE_THEN_CUP[1]),
            "stage 2: .*third place needs at least 4 entrants, and there are 3",
            id="the next stage needs more",
        ),
        pytest.param(
            None,
            (StagePlan(format="round_robin", qualifiers=3), TABLE_THEN_CUP[1]),
            "stage 2: .*third place needs at least 4",
            id="the next stage needs more, whoever enters",
        ),
        pytest.param(
            8,
            (StagePlan(format="round_robin"), TABLE_THEN_CUP[1]),
            "stage 1: say how many go on",
            id="nobody goes on",
        ),
        pytest.param(
            8,
            (StagePlan(format="round_robin", qualifiers=1), TABLE_THEN_CUP[1]),
            "stage 1: 1 cannot play the next stage",
            id="one goes on",
        ),
        pytest.param(
            8,
            (StagePlan(format="round_robin", qualifiers=0), TABLE_THEN_CUP[1]),
            "stage 1: 0 cannot play the next stage",
            id="zero go on",
        ),
        pytest.param(
            8,
            (StagePlan(format="round_robin", qualifiers=4),),
            "leave out the qualifiers",
            id="qualifiers of the last stage",
        ),
        pytest.param(
            8,
            (StagePlan(format="marathon", qualifiers=4), TABLE_THEN_CUP[1]),
            "stage 1: there is no format 'marathon'",
            id="unknown format",
        ),
        pytest.param(
            None,
            (StagePlan(format="round_robin", options={"cycles": 0}, qualifiers=4), *TABLE_THEN_CUP),
            "stage 1: cycles=0 is not allowed",
            id="impossible option",
        ),
    ],
)
def test_impossible_stages_are_refused_naming_the_stage(entrants, plans, message):
    with pytest.raises(FormatError, match=message):
        check_stages(entrants, plans)


@pytest.mark.parametrize("entrants", [None, 4, 5, 20])
def test_possible_stages_are_accepted(entrants):
    check_stages(entrants, TABLE_THEN_CUP)


def test_error_of_the_only_stage_does_not_number_it():
    with pytest.raises(FormatError, match=r"^Round robin needs"):
        check_stages(1, (StagePlan(format="round_robin"),))


def test_who_goes_on_is_seeded_by_the_table():
    view = play_stage(RR, start(RR, 6), lambda p: won_by(p.entrants.index(max(p.entrants))))
    entrants = next_stage_entrants(view, TABLE_THEN_CUP[0])
    assert [(e.id, e.seed) for e in entrants] == [(106, 1), (105, 2), (104, 3), (103, 4)]
    assert all(entrant.active for entrant in entrants)


def test_who_left_does_not_go_on_and_the_next_of_the_table_does():
    view = leave(play_stage(RR, start(RR, 6)), [102])
    assert RR.qualify(view, 4) == (101, 103, 104, 105)


def test_cut_through_a_shared_place_takes_the_better_seeds():
    view = play_stage(SE, start(SE, 8))
    assert [row.place for row in SE.standings(view)] == [1, 2, 3, 3, 5, 5, 5, 5]
    assert SE.qualify(view, 5) == (101, 102, 103, 104, 105)


def test_if_fewer_are_left_than_were_to_go_on_all_of_them_do():
    view = leave(play_stage(RR, start(RR, 5)), [101, 104])
    assert [e.id for e in next_stage_entrants(view, TABLE_THEN_CUP[0])] == [102, 103, 105]
    nobody = leave(view, [102, 103, 105])
    assert next_stage_entrants(nobody, TABLE_THEN_CUP[0]) == ()


def test_nobody_goes_on_before_the_stage_is_over():
    view = play_round(RR, start(RR, 4), lambda _: won_by(0))
    with pytest.raises(FormatError, match="before the stage is over"):
        next_stage_entrants(view, TABLE_THEN_CUP[0])
    view = play_round(SE, start(SE, 4), lambda _: won_by(0))
    view = publish(view, SE.next_round(view))
    with pytest.raises(FormatError, match="SE/R2/M1"):
        SE.qualify(view, 2)


@pytest.mark.parametrize("name", ["round_robin", "groups", "gauntlet"])
def test_nobody_goes_on_while_a_match_of_the_last_published_round_is_open(name):
    fmt = get_format(name)
    view = start(fmt, 6)
    while (planned := fmt.next_round(view)) is not None:
        view = publish(view, planned)
    with pytest.raises(FormatError, match="before the stage is over"):
        fmt.qualify(view, 2)


def test_nobody_goes_on_from_the_last_stage():
    with pytest.raises(FormatError, match="the last stage"):
        next_stage_entrants(play_stage(SE, start(SE, 4)), TABLE_THEN_CUP[1])


@pytest.mark.parametrize("count", [-1, 0, 5])
def test_impossible_counts_are_refused_with_what_is_possible(count):
    view = play_stage(RR, start(RR, 4))
    with pytest.raises(FormatError, match="a number from 1 to 4"):
        RR.qualify(view, count)


def test_next_stage_is_played_from_the_qualifiers():
    first = play_stage(RR, start(RR, 6))
    entrants = next_stage_entrants(first, TABLE_THEN_CUP[0])
    second = msgspec.structs.replace(
        start(SE, 4, third_place=True), entrants=entrants, lot=b"another"
    )
    done = play_stage(SE, second)
    assert [row.entrant for row in SE.standings(done)] == [101, 102, 103, 104]


@pytest.mark.parametrize(
    ("stage", "key", "full"),
    [
        (0, "SE/R1/M3", "SE/R1/M3"),  # one stage: as ever
        (1, "SE/R1/M3", "S2/SE/R1/M3"),  # people count stages from 1
        (4, "W/R2/M1", "S5/W/R2/M1"),
        (11, "SW/R1/M1", "S12/SW/R1/M1"),  # two digits are read whole
    ],
)
def test_keys_of_later_stages_name_their_stage(stage, key, full):
    assert match_key(stage, key) == full
    assert split_match_key(full) == (stage, key)


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_no_formats_own_key_looks_like_a_later_stages(fmt):
    view = play_round(fmt, start(fmt, 8), lambda pairing: won_by(0, len(pairing.entrants)))
    for pairing in view.rounds[0].pairings:
        assert split_match_key(pairing.key) == (0, pairing.key)
        assert len(match_key(4, pairing.key)) <= 40


def better_wins(view):
    """Who is better seeded in this stage wins."""
    seeds = {entrant.id: entrant.seed for entrant in view.entrants}
    return lambda pairing: won_by(
        pairing.entrants.index(min(pairing.entrants, key=seeds.__getitem__)),
        len(pairing.entrants),
    )


@pytest.mark.parametrize("first", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_any_format_may_follow_any_other(first):
    begun = start(first, 9, **with_an_end(first, {}))
    done = play_stage(first, begun, better_wins(begun))
    plan = StagePlan(format=first.name, options=with_an_end(first, {}), qualifiers=5)
    entrants = next_stage_entrants(done, plan)
    assert [entrant.seed for entrant in entrants] == [1, 2, 3, 4, 5]
    for second in FORMATS.values():
        options = with_an_end(second, {})
        check_stages(9, (plan, StagePlan(format=second.name, options=options)))
        begun = msgspec.structs.replace(start(second, 5, **options), entrants=entrants)
        last = play_stage(second, begun, better_wins(begun))
        keys = [
            match_key(stage, pairing.key)
            for stage, view in enumerate((done, last))
            for published in view.rounds
            for pairing in published.pairings
        ]
        assert len(set(keys)) == len(keys)
        assert {row.entrant for row in second.standings(last)} == {e.id for e in entrants}
