"""Single elimination: the bracket, who advances, and the places."""

from __future__ import annotations

import pytest

from engine.errors import FormatError
from engine.formats import DecidedBy, forfeit_outcome, get_format, void_result
from tests.unit.formats.stages import (
    better_seed_wins,
    leave,
    play_round,
    play_stage,
    publish,
    scored,
    seeds_of,
    settle,
    start,
    won_by,
)

SE = get_format("single_elimination")


def places_by_seed(view):
    return {row.entrant - 100: row.place for row in SE.standings(view)}


def notes_by_seed(view):
    return {row.entrant - 100: row.note for row in SE.standings(view)}


def test_eight_are_paired_by_fold_order():
    view = play_stage(SE, start(SE, 8))
    assert seeds_of(view, 1) == [(1, 8), (4, 5), (2, 7), (3, 6)]
    assert seeds_of(view, 2) == [(1, 4), (2, 3)]
    assert seeds_of(view, 3) == [(1, 2)]


def test_keys_name_round_and_slot():
    view = play_stage(SE, start(SE, 4, third_place=True))
    assert [[p.key for p in r.pairings] for r in view.rounds] == [
        ["SE/R1/M1", "SE/R1/M2"],
        ["SE/R2/M1", "SE/P3/M1"],
    ]


@pytest.mark.parametrize("count", range(2, 66))
def test_byes_fall_to_the_top_seeds_and_only_in_round_one(count):
    view = play_stage(SE, start(SE, count))
    byes = [p.entrants[0] - 100 for p in view.rounds[0].pairings if p.is_bye]
    assert sorted(byes) == list(range(1, len(byes) + 1))
    assert not [p for r in view.rounds[1:] for p in r.pairings if p.is_bye]
    assert sum(not p.is_bye for r in view.rounds for p in r.pairings) == count - 1


def test_bye_is_decided_when_it_is_planned():
    view = start(SE, 3)
    bye, match = SE.next_round(view).pairings
    assert bye.is_bye
    assert bye.result.decided_by is DecidedBy.BYE
    assert bye.result.advances == (True,)
    assert match.result is None


def test_losers_of_a_round_share_the_place():
    view = play_stage(SE, start(SE, 8))
    assert places_by_seed(view) == {1: 1, 2: 2, 3: 3, 4: 3, 5: 5, 6: 5, 7: 5, 8: 5}


def test_match_for_the_third_place_parts_the_losers_of_the_semi_finals():
    view = play_stage(SE, start(SE, 8, third_place=True))
    assert seeds_of(view, 3) == [(1, 2), (4, 3)]
    assert places_by_seed(view) == {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 5, 7: 5, 8: 5}
    assert notes_by_seed(view)[3] == "third"
    assert notes_by_seed(view)[8] == "lost in round 1"


def test_third_place_needs_four_entrants():
    with pytest.raises(FormatError, match="third place needs at least 4 entrants, and there are 3"):
        start(SE, 3, third_place=True)


def test_tie_goes_to_the_lot_and_stays_a_tie():
    view = start(SE, 2)
    view = publish(view, SE.next_round(view))
    result = SE.decide(view, view.rounds[0].pairings[0], scored((0, 0)))
    assert result.decided_by is DecidedBy.LOT
    assert result.places == (1, 1)
    assert [str(score) for score in result.scores] == ["1/2", "1/2"]
    assert sorted(result.advances) == [False, True]


def test_lot_follows_from_the_stages_lot_and_the_key_and_favours_nobody():
    chosen = []
    for number in range(200):
        view = start(SE, 2, lot=number.to_bytes(4, "big"))
        pairing = SE.next_round(view).pairings[0]
        result = SE.decide(view, pairing, scored((0, 0)))
        assert result == SE.decide(view, pairing, scored((0, 0)))
        chosen.append(result.advances.index(True))
    assert 70 < sum(chosen) < 130


def test_lot_can_be_recomputed_from_the_published_rule():
    import hashlib
    import hmac

    view = start(SE, 2, lot=b"\x07" * 32)
    pairing = SE.next_round(view).pairings[0]
    items = [b"dt/lot/v1", b"match/SE/R1/M1"]
    packed = b"".join(len(item).to_bytes(4, "big") + item for item in items)
    drawn = int.from_bytes(hmac.new(b"\x07" * 32, packed, hashlib.sha256).digest(), "big")
    assert SE.decide(view, pairing, scored((0, 0))).advances.index(True) == drawn % 2


def test_fault_of_one_lets_the_other_advance():
    view = start(SE, 2)
    pairing = SE.next_round(view).pairings[0]
    result = SE.decide(view, pairing, forfeit_outcome(2, [0], "broke the rules"))
    assert result.decided_by is DecidedBy.FORFEIT
    assert result.advances == (False, True)
    assert [int(score) for score in result.scores] == [0, 1]


def test_double_forfeit_lets_the_better_seed_advance_whatever_the_lot():
    for number in range(20):
        view = start(SE, 4, lot=bytes([number]))
        pairing = SE.next_round(view).pairings[1]
        assert pairing.entrants == (102, 103)
        result = SE.decide(view, pairing, forfeit_outcome(2, [0, 1], "neither started"))
        assert result.decided_by is DecidedBy.DOUBLE_FORFEIT
        assert result.advances == (True, False)
        assert [int(score) for score in result.scores] == [0, 0]


def test_who_leaves_during_a_round_is_walked_over():
    view = start(SE, 4)
    view = leave(publish(view, SE.next_round(view)), [101])
    first, second = view.rounds[0].pairings
    assert SE.walkover(view, second) is None
    result = SE.walkover(view, first)
    assert result.decided_by is DecidedBy.WALKOVER
    assert result.advances == (False, True)


def test_winner_who_leaves_is_walked_over_in_the_next_round():
    view = play_round(SE, start(SE, 4), better_seed_wins)
    view = leave(view, [101])
    final = SE.next_round(view).pairings[0]
    assert final.entrants == (101, 102)
    assert final.result.decided_by is DecidedBy.WALKOVER
    assert final.result.advances == (False, True)
    view = play_stage(SE, view)
    assert places_by_seed(view)[1] == 2
    assert notes_by_seed(view)[1] == "lost the final, withdrawn"


def test_match_of_two_who_left_is_decided_by_seed():
    view = start(SE, 4)
    view = leave(publish(view, SE.next_round(view)), [102, 103])
    assert SE.walkover(view, view.rounds[0].pairings[1]).advances == (True, False)


def test_who_leaves_before_the_bracket_is_drawn_is_not_in_it():
    view = play_stage(SE, leave(start(SE, 5), [102]))
    assert seeds_of(view, 1) == [(1, 5), (3, 4)]
    assert notes_by_seed(view)[2] == "not in the bracket, withdrawn"
    assert places_by_seed(view)[2] == 5


def test_voided_match_does_not_undo_the_bracket():
    view = play_round(SE, start(SE, 4), better_seed_wins)
    result = view.rounds[0].pairings[0].result
    voided = settle(view, {"SE/R1/M1": void_result(result)})
    assert SE.next_round(voided).pairings[0].entrants == (101, 102)
    assert SE.standings(voided)[0].wins + SE.standings(voided)[1].wins == 1


def test_table_shows_who_still_plays():
    view = play_round(SE, start(SE, 4, third_place=True), better_seed_wins)
    view = publish(view, SE.next_round(view))
    assert notes_by_seed(view) == {
        1: "plays the final",
        2: "plays the final",
        3: "plays for the third place",
        4: "plays for the third place",
    }
    assert places_by_seed(view) == {1: 1, 2: 1, 3: 3, 4: 3}


def test_upset_moves_the_winner_to_the_losers_place_in_the_bracket():
    view = play_stage(SE, start(SE, 4), lambda p: won_by(p.entrants.index(max(p.entrants))))
    assert seeds_of(view, 2) == [(4, 3)]
    assert places_by_seed(view) == {4: 1, 3: 2, 1: 3, 2: 3}
