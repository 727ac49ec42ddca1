"""Round robin: the Berger tables, walkovers, and the table."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import msgspec
import pytest

from engine.errors import FormatError
from engine.formats import DecidedBy, forfeit_outcome, get_format
from engine.formats.berger import berger_round
from tests.unit.formats.stages import (
    better_seed_wins,
    leave,
    play_round,
    play_stage,
    publish,
    scored,
    seeded,
    seeds_of,
    start,
)

RR = get_format("round_robin")


def test_six_meet_by_the_berger_table():
    expected = "1-6 2-5 3-4 | 6-4 5-3 1-2 | 2-6 3-1 4-5 | 6-5 1-4 2-3 | 3-6 4-2 5-1"
    table = " | ".join(
        " ".join(f"{first}-{second}" for first, second in berger_round(6, index))
        for index in range(5)
    )
    assert table == expected


def test_keys_name_round_and_match():
    view = play_stage(RR, start(RR, 4))
    assert [p.key for r in view.rounds for p in r.pairings] == [
        f"RR/R{r}/M{m}" for r in (1, 2, 3) for m in (1, 2)
    ]


@pytest.mark.parametrize("count", range(2, 20))
def test_each_two_meet_once_and_nobody_rests_more_than_another(count):
    view = play_stage(RR, start(RR, count))
    met = Counter(frozenset(p.entrants) for r in view.rounds for p in r.pairings if not p.is_bye)
    byes = Counter(p.entrants[0] for r in view.rounds for p in r.pairings if p.is_bye)
    assert len(met) == count * (count - 1) // 2
    assert set(met.values()) == {1}
    assert set(byes.values()) <= {1}
    assert len(byes) == (count if count % 2 else 0)


@pytest.mark.parametrize("count", range(2, 20))
def test_nobody_is_named_first_much_more_often_than_second(count):
    view = play_stage(RR, start(RR, count))
    balance = Counter()
    for published in view.rounds:
        for pairing in published.pairings:
            if not pairing.is_bye:
                balance[pairing.entrants[0]] += 1
                balance[pairing.entrants[1]] -= 1
    assert all(abs(value) <= 1 for value in balance.values())


@pytest.mark.parametrize("count", [2, 5, 6])
def test_second_cycle_repeats_the_first_with_sides_swapped(count):
    view = play_stage(RR, start(RR, count, cycles=2))
    half = len(view.rounds) // 2
    for index in range(1, half + 1):
        assert seeds_of(view, half + index) == [pair[::-1] for pair in seeds_of(view, index)]


def test_bye_is_the_last_slot_and_scores_nothing():
    planned = RR.next_round(start(RR, 5))
    assert [p.is_bye for p in planned.pairings] == [False, False, True]
    assert planned.pairings[-1].result.scores == (Fraction(0),)


def test_tie_is_a_half_for_both_and_nobody_advances():
    view = start(RR, 2)
    result = RR.decide(view, RR.next_round(view).pairings[0], scored((0, 0)))
    assert result.scores == (Fraction(1, 2), Fraction(1, 2))
    assert result.advances == (False, False)
    assert result.decided_by is DecidedBy.PLAY


def test_double_forfeit_scores_nothing_for_either():
    view = start(RR, 2)
    outcome = forfeit_outcome(2, [0, 1], "neither started")
    result = RR.decide(view, RR.next_round(view).pairings[0], outcome)
    assert result.scores == (Fraction(0), Fraction(0))


def test_table_is_ordered_by_score():
    rows = RR.standings(play_stage(RR, start(RR, 5)))
    assert [(row.place, row.entrant - 100, int(row.score)) for row in rows] == [
        (1, 1, 4),
        (2, 2, 3),
        (3, 3, 2),
        (4, 4, 1),
        (5, 5, 0),
    ]
    assert {row.unplayed for row in rows} == {0}


def test_who_leaves_keeps_what_he_has_and_is_walked_over_from_then_on():
    view = play_round(RR, start(RR, 4), better_seed_wins)
    view = play_stage(RR, leave(view, [101]))
    row = next(row for row in RR.standings(view) if row.entrant == 101)
    assert (row.score, row.matches, row.unplayed, row.note) == (1, 1, 2, "withdrawn")
    walked = [p.result.decided_by for r in view.rounds[1:] for p in r.pairings if 101 in p.entrants]
    assert walked == [DecidedBy.WALKOVER] * 2


def test_who_leaves_before_the_first_round_is_not_in_the_table():
    view = play_stage(RR, leave(start(RR, 5), [103]))
    assert len(view.rounds) == 3
    assert not any(103 in p.entrants for r in view.rounds for p in r.pairings)


def test_all_rounds_can_be_published_before_any_is_decided():
    view = start(RR, 5, cycles=2)
    while (planned := RR.next_round(view)) is not None:
        view = publish(view, planned)
    played = play_stage(RR, start(RR, 5, cycles=2))
    assert [p.entrants for r in view.rounds for p in r.pairings] == [
        p.entrants for r in played.rounds for p in r.pairings
    ]


def test_table_is_read_from_the_published_round_even_if_seeds_change():
    view = start(RR, 6)
    view = publish(view, RR.next_round(view))
    reseeded = msgspec.structs.replace(
        view,
        entrants=tuple(msgspec.structs.replace(e, seed=7 - e.seed) for e in view.entrants),
    )
    assert [p.entrants for r in play_rest(reseeded).rounds for p in r.pairings] == [
        p.entrants for r in play_rest(view).rounds for p in r.pairings
    ]


def play_rest(view):
    """Decides the open round and plays the stage to its end."""
    last = view.rounds[-1]
    decided = tuple(
        msgspec.structs.replace(p, result=RR.decide(view, p, better_seed_wins(p)))
        for p in last.pairings
    )
    done = msgspec.structs.replace(last, pairings=decided)
    return play_stage(RR, msgspec.structs.replace(view, rounds=(*view.rounds[:-1], done)))


def test_too_many_entrants_are_refused_with_the_count_of_matches():
    with pytest.raises(FormatError, match="129 entrants has 8256 matches"):
        RR.check(seeded(129), RR.make_options())


def test_tie_breaks_are_read_from_text_in_their_order():
    options = RR.make_options({"cycles": "2", "tie_breaks": "score, wins, lot"})
    assert options.cycles == 2
    assert options.tie_breaks == ("score", "wins", "lot")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"cycles": 0}, "cycles=0 is not allowed.*allowed: 1, 2", id="no cycle at all"),
        pytest.param({"cycles": True}, "cycles=true is not allowed", id="a boolean is no number"),
        pytest.param({"tie_breaks": "score,goals"}, "goals", id="unknown tie-break"),
        pytest.param({"tie_breaks": "score,score"}, "each at most once", id="repeated tie-break"),
        pytest.param({"tie_breaks": 3}, "tie_breaks=3", id="no list"),
    ],
)
def test_impossible_options_are_refused_naming_what_is_allowed(given, message):
    with pytest.raises(FormatError, match=message):
        RR.make_options(given)


def test_tie_breaks_that_leave_out_the_score_are_refused():
    with pytest.raises(FormatError, match="begin with 'score'"):
        start(RR, 4, tie_breaks=["wins"])
