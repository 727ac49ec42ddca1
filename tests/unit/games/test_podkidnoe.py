"""The rules of Podkidnoe, case by case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import ContestError, IllegalActionError, NotationError, RulesetError, UsageError
from engine.games.podkidnoe import (
    PODKIDNOE,
    Draw,
    End,
    Event,
    Lay,
    Pass,
    PodkidnoeState,
    TopUp,
)
from engine.shuffle import Stream
from engine.tiles import Tile, format_tiles, tile_set
from tests.unit.games.positions import board_of, do, legal, podkidnoe_with

GOLDEN = Path(__file__).parents[2] / "golden"
GAME = json.loads((GOLDEN / "podkidnoe_illustrative_game.json").read_text())
GAME_BOARD = board_of(
    GAME["hands"], GAME["first"], starter=GAME["starter"], reserve=GAME["reserve"]
)


# The illustrative game


def test_the_illustrative_game_replays_turn_by_turn():
    state = PODKIDNOE.start(PODKIDNOE.make_ruleset(), GAME_BOARD)
    for turn in GAME["turns"]:
        assert state.seat == turn["seat"]
        do(PODKIDNOE, state, ", ".join(turn["actions"]))
        assert state.open_ends == (turn["open_end"],)
        assert state.points == tuple(turn["points"])
        assert state.penalties == tuple(turn["penalties"])
    assert state.seat == 0
    assert [format_tiles(hand) for hand in state.hands] == GAME["hands_after"]
    top_ups = [event.seat for event in state.log if event.action == TopUp()]
    assert top_ups == [seat for seat, _ in GAME["top_ups"]]


def test_after_the_illustrative_turns_ekaterina_has_no_five_and_may_draw():
    state = illustrative_state()
    assert legal(PODKIDNOE, state) == {"pass", "draw"}
    assert state.observe(0).reserve_size == 4


def illustrative_state() -> PodkidnoeState:
    state = PODKIDNOE.start(PODKIDNOE.make_ruleset(), GAME_BOARD)
    for turn in GAME["turns"]:
        do(PODKIDNOE, state, ", ".join(turn["actions"]))
    return state


def test_the_illustrative_game_is_drawn_as_on_file():
    actions = [
        (turn["seat"], PODKIDNOE.parse_action(action))
        for turn in GAME["turns"]
        for action in turn["actions"]
    ]
    drawn = PODKIDNOE.draw(PODKIDNOE.make_ruleset(), GAME_BOARD, actions)
    assert drawn + "\n" == (GOLDEN / GAME["drawn"]).read_text()


# Turns


def test_first_tile_chooses_the_open_end_and_the_line_grows_from_it():
    state = podkidnoe_with(["6-3 6-5 3-0", "5-0 5-1"], "3-0", "1-1")
    assert state.open_ends == (3, 0)
    do(PODKIDNOE, state, "lay 6-3, lay 6-5, end")
    assert state.open_ends == (5,)
    assert legal(PODKIDNOE, state) == {"lay 5-0", "lay 5-1", "draw", "pass"}


def test_choice_of_the_open_end_passes_on_with_the_turn():
    state = podkidnoe_with(["6-3 6-5", "5-0 3-1"], "3-0", "1-1", "pass")
    assert state.open_ends == (3, 0)
    assert {"lay 5-0", "lay 3-1"} <= legal(PODKIDNOE, state)
    do(PODKIDNOE, state, "lay 5-0")
    assert state.open_ends == (5,)


def test_choice_of_the_open_end_outlasts_a_draw():
    state = podkidnoe_with(["6-4 6-5", "5-0 3-1"], "3-0", "2-0 1-1", "draw")
    assert legal(PODKIDNOE, state) == {"lay 2-0", "draw", "end"}


@pytest.mark.parametrize(
    ("starter", "ends"),
    [
        ("3-0", (3, 0)),  # the higher first
        ("4-4", (4,)),  # a double has one number to lay on
    ],
)
def test_starter_shows_its_ends(starter, ends):
    assert podkidnoe_with(["6-5", "6-1"], starter, "").open_ends == ends


def test_a_double_keeps_the_open_end():
    state = podkidnoe_with(["3-3 3-1", "6-5"], "3-0", "", "lay 3-3")
    assert state.open_ends == (3,)
    assert legal(PODKIDNOE, state) == {"lay 3-1", "end"}


def test_run_scores_a_point_a_tile_and_may_stop_early():
    state = podkidnoe_with(["4-3 5-4 5-3", "6-5"], "3-0", "1-1", "lay 4-3, lay 5-4")
    assert legal(PODKIDNOE, state) == {"lay 5-3", "end"}
    do(PODKIDNOE, state, "end")
    assert state.points == (2, 0)
    assert state.penalties == (0, 0)


def test_no_draw_after_a_tile_was_laid():
    state = podkidnoe_with(["6-3 1-1", "2-1"], "3-0", "5-5 4-4", "lay 6-3")
    assert legal(PODKIDNOE, state) == {"end"}


def test_turn_that_laid_the_last_tile_closes_with_end():
    state = podkidnoe_with(["6-3", "2-1 6-5"], "3-0", "5-5 4-4", "lay 6-3")
    assert legal(PODKIDNOE, state) == {"end"}


@pytest.mark.parametrize(
    ("actions", "penalty"),
    [
        ("pass", 1),  # a pass
        ("draw, end", 1),  # a draw; ending after it costs nothing more
        ("draw, draw, end", 2),  # each draw
        ("draw, lay 6-3, end", 1),  # also when a tile was laid after it
    ],
)
def test_passes_and_draws_cost_a_point_each(actions, penalty):
    state = podkidnoe_with(["6-3 1-1", "2-1 2-2"], "3-0", "5-5 4-4 5-4", actions)
    assert state.penalties == (penalty, 0)


@pytest.mark.parametrize(
    ("options", "actions", "expected"),
    [
        ({}, "", {"lay 6-3", "draw", "pass"}),  # both allowed with a playable tile in hand
        ({}, "draw", {"lay 6-3", "draw", "end"}),
        ({}, "draw, draw", {"lay 6-3", "end"}),  # two draws a turn
        ({"max_draws": 1}, "draw", {"lay 6-3", "end"}),
        ({"max_draws": None}, "draw, draw", {"lay 6-3", "draw", "end"}),
        ({"max_draws": None}, "draw, draw, draw", {"lay 6-3", "end"}),  # the reserve is empty
        ({"voluntary_pass": False}, "", {"lay 6-3", "draw"}),
        ({"voluntary_pass": False}, "draw", {"lay 6-3", "draw"}),  # nor end without laying
        ({"voluntary_pass": False}, "draw, draw", {"lay 6-3"}),
        ({"voluntary_draw": False}, "", {"lay 6-3", "pass"}),
        ({"voluntary_draw": False, "voluntary_pass": False}, "", {"lay 6-3"}),
    ],
)
def test_what_may_be_done_with_a_playable_tile_in_hand(options, actions, expected):
    state = podkidnoe_with(["6-3 1-1", "2-1 2-2"], "3-0", "5-5 4-4 5-4", actions, **options)
    assert legal(PODKIDNOE, state) == expected


@pytest.mark.parametrize(
    ("options", "actions", "expected"),
    [
        ({}, "", {"draw", "pass"}),
        ({"voluntary_pass": False}, "", {"draw", "pass"}),  # nobody is made to draw
        ({"voluntary_draw": False}, "", {"draw", "pass"}),  # who cannot lay may draw
        ({"voluntary_draw": False}, "draw", {"draw", "end"}),
        ({"voluntary_draw": False}, "draw, draw", {"lay 3-2", "end"}),
        ({"voluntary_pass": False}, "draw", {"draw", "end"}),
        ({"voluntary_draw": False, "max_draws": None}, "draw, draw", {"lay 3-2", "end"}),
        ({"voluntary_pass": False, "voluntary_draw": False}, "draw, draw", {"lay 3-2"}),
    ],
)
def test_what_may_be_done_without_a_playable_tile(options, actions, expected):
    state = podkidnoe_with(["6-5 1-1", "2-1 2-2"], "3-0", "5-5 3-2 5-4", actions, **options)
    assert legal(PODKIDNOE, state) == expected


@pytest.mark.parametrize(
    ("actions", "penalty"),
    [
        ("draw, draw, lay 6-3", 0),  # what was drawn led to a tile laid
        ("draw, draw, lay 6-3, lay 6-5", 0),  # given back once
        ("draw, draw, end", 2),  # nothing laid
        ("lay 6-3, end", 0),  # nothing drawn
    ],
)
def test_draws_of_a_turn_that_lays_are_free_if_the_ruleset_says_so(actions, penalty):
    state = podkidnoe_with(
        ["6-3 6-5 1-1", "2-1 2-2"], "3-0", "5-5 4-4 5-4", actions, penalise_successful_draw=False
    )
    assert state.penalties == (penalty, 0)


def test_draws_of_earlier_turns_are_not_given_back():
    state = podkidnoe_with(
        ["6-3 1-1", "2-1 2-2"],
        "3-0",
        "5-5 4-4 5-4",
        "draw, end, pass, lay 6-3, end",
        penalise_successful_draw=False,
    )
    assert state.penalties == (1, 1)


# Top-ups and empty hands


def test_top_up_serves_single_tiles_backwards_from_the_last_turn():
    state = podkidnoe_with(
        ["6-3", "6-5", "2-1 2-2", "5-5"], "4-0", "1-0 2-0 3-2", "pass, pass, draw, end, pass"
    )
    topped = [event.seat for event in state.log if event.action == TopUp()]
    assert topped == [3, 1]  # the reserve is empty before seat 0
    assert state.hands[3] == (Tile(5, 5), Tile(2, 0))
    assert state.hands[1] == (Tile(6, 5), Tile(3, 2))
    assert state.penalties == (1, 1, 1, 1)  # the top-up is free


def test_circuit_starts_from_the_first_player_wherever_he_sits():
    state = podkidnoe_with(
        ["1-1", "2-2", "6-4"], "4-0", "6-6 5-5 3-3", "lay 6-4, end, pass", first=2
    )
    assert not [event for event in state.log if event.action == TopUp()]
    do(PODKIDNOE, state, "pass")
    assert [event.seat for event in state.log if event.action == TopUp()] == [1, 0]
    assert state.seat == 0  # seat 2 has no tile and is skipped


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, [0, 2, 2]),  # an empty hand stays empty
        ({"empty_hand": "top_up"}, [1, 2, 2]),  # or takes one with the others
        ({"top_up": "off"}, [0, 1, 2]),  # or nobody takes any
    ],
)
def test_who_is_topped_up(options, sizes):
    state = podkidnoe_with(
        ["4-3", "6-6", "2-1 2-2"], "4-0", "1-0 2-0 3-2", "lay 4-3, end, pass, pass", **options
    )
    assert [len(hand) for hand in state.hands] == sizes


def test_skipped_seats_take_no_turns_and_pay_nothing():
    state = podkidnoe_with(
        ["4-3", "6-6 1-1", "2-1 2-2"], "4-0", "1-0 2-0 3-2", "lay 4-3, end, pass, pass"
    )
    assert state.seat == 1
    do(PODKIDNOE, state, "pass, draw, end")
    assert state.seat == 1
    assert state.penalties == (0, 2, 2)


def test_game_ends_with_the_turn_that_empties_a_hand_if_the_ruleset_says_so():
    position = (["4-3", "6-6 1-1", "2-1 2-2"], "4-0", "1-0 2-0", "lay 4-3")
    state = podkidnoe_with(*position, empty_hand="end_game")
    assert not state.is_over  # the turn is still to be closed
    do(PODKIDNOE, state, "end")
    assert state.is_over
    assert state.score() == (1, 0, 0)


def test_game_goes_on_with_all_hands_empty_while_the_reserve_can_fill_them():
    state = podkidnoe_with(
        ["4-3", "3-2"], "4-0", "5-5 6-6 1-1", "lay 4-3, end, lay 3-2, end", empty_hand="top_up"
    )
    assert not state.is_over  # nobody held a tile, but the reserve had some
    assert [len(hand) for hand in state.hands] == [1, 1]
    assert state.hands[1] == (Tile(5, 5),)  # the last turn's seat takes first


# End


@pytest.mark.parametrize(
    ("hands", "reserve", "actions", "options", "over"),
    [
        (["6-3 1-1", "2-1 2-2"], "", "lay 6-3, end", {}, True),  # no reserve, nobody can lay
        (["6-3 1-1", "6-1 2-2"], "", "lay 6-3, end", {}, False),  # somebody can
        (["6-3 1-1", "2-1 2-2"], "5-5", "lay 6-3, end", {}, False),  # somebody can draw
        (["6-4 1-1", "2-1 2-2"], "5-5", "draw, end", {}, True),  # the last draw ends it too
        (["6-3", "6-1"], "5-5", "lay 6-3, end, lay 6-1, end", {}, True),  # nobody holds a tile
        (["6-4 1-1", "2-1 2-2"], "5-5", "pass, pass", {}, True),  # a quiet circuit
        (["6-4 1-1", "2-1 2-2"], "5-5 5-4", "pass, draw, end, pass", {}, False),  # not one circuit
        (["6-4 1-1", "2-1 2-2"], "5-5 5-4", "draw, end, pass", {}, False),  # a draw is no quiet
        (["6-3 1-1", "2-1 2-2"], "5-5 4-4", "lay 6-3, end, pass", {}, False),  # nor is a lay
        (["6-3 6-1", "1-1"], "5-5 6-6", "lay 6-3, end, pass, pass, pass", {}, True),  # but the next
    ],
)
def test_game_ends_when_nothing_more_can_come(hands, reserve, actions, options, over):
    assert podkidnoe_with(hands, "3-0", reserve, actions, **options).is_over is over


def test_game_ends_after_a_top_up_that_leaves_nobody_able_to_lay():
    state = podkidnoe_with(
        ["6-3 1-1", "2-1 2-2"], "3-0", "5-5 5-4", "lay 6-3, end, draw, end", empty_hand="skip"
    )
    assert [event.action for event in state.log][-1] == TopUp()
    assert state.is_over


def test_with_the_reserve_empty_who_cannot_lay_while_another_can_must_pass_and_pays():
    state = podkidnoe_with(["6-4 1-1", "6-3 2-2"], "3-0", "")
    assert legal(PODKIDNOE, state) == {"pass"}
    do(PODKIDNOE, state, "pass")
    assert state.penalties == (1, 0)
    assert not state.is_over


def test_result_is_points_minus_penalties_and_may_be_negative():
    state = podkidnoe_with(["6-4 1-1", "2-1 2-2"], "3-0", "5-5", "pass, pass")
    assert state.score() == (-1, -1)


@pytest.mark.parametrize(
    ("results", "places"),
    [
        ((3, -1, 5), (2, 3, 1)),  # highest first
        ((3, 5, 3, 5), (3, 1, 3, 1)),  # equal results share the place
        ((-2, -2), (1, 1)),
    ],
)
def test_highest_result_wins(results, places):
    state = podkidnoe_with(["6-4 1-1", "2-1 2-2"], "3-0", "5-5", "pass, pass")
    assert PODKIDNOE.game_places(PODKIDNOE.make_ruleset(), results, 1, state) == places


def test_an_unfinished_deal_has_no_score():
    with pytest.raises(UsageError, match="not over"):
        illustrative_state().score()


# Door


@pytest.mark.parametrize("code", [-1, 29, 31, 1000, 0])
def test_illegal_code_is_refused_and_changes_nothing(code):
    state = illustrative_state()
    before = state.observe(0)
    with pytest.raises(IllegalActionError, match="allowed: draw, pass"):
        state.apply(code)
    assert state.observe(0) == before


def test_observation_tells_the_whole_public_story():
    state = podkidnoe_with(
        ["4-3 1-1", "2-1 2-2", "6-5 3-2"],
        "4-0",
        "1-0 2-0 3-3",
        "lay 4-3, end, pass, draw",
    )
    seen = state.observe(99)
    assert (seen.seat, seen.clock_ms) == (2, 99)
    assert seen.hand == (Tile(6, 5), Tile(3, 2), Tile(1, 0))
    assert seen.legal == (Lay(Tile(3, 2)), Draw(), End())
    assert (seen.first, seen.starter, seen.line) == (0, Tile(4, 0), (Tile(4, 3),))
    assert seen.open_ends == (3,)
    assert seen.reserve_size == 2
    assert seen.hand_sizes == (1, 2, 3)
    assert seen.points == (1, 0, 0)
    assert seen.penalties == (0, 1, 1)
    assert seen.log == (
        Event(0, Lay(Tile(4, 3))),
        Event(0, End()),
        Event(1, Pass()),
        Event(2, Draw()),
    )
    assert (seen.draws, seen.lays) == (1, 0)
    assert (seen.circuit, seen.circuit_place, seen.circuit_is_quiet) == (0, 2, False)


@pytest.mark.parametrize(
    ("actions", "quiet"),
    [
        ("", True),  # nothing done yet
        ("pass", True),  # a pass is quiet
        ("draw", False),  # the seat's own draw counts at once
        ("lay 4-3", False),  # so does its lay
        ("draw, end", False),  # and that of an earlier seat
        ("lay 4-3, end, pass, pass", True),  # each circuit begins anew
    ],
)
def test_observation_tells_whether_the_circuit_was_quiet_so_far(actions, quiet):
    hands = ["4-3 4-1 1-1", "2-1 2-2", "6-5 3-2"]
    state = podkidnoe_with(hands, "4-0", "1-0 2-0 3-3", actions)
    assert state.observe(0).circuit_is_quiet is quiet


def test_lays_of_the_turn_are_counted():
    assert podkidnoe_with(["4-3 1-1", "2-1"], "4-0", "", "lay 4-3").observe(0).lays == 1


@pytest.mark.parametrize(
    ("text", "action"),
    [("lay 6-0", Lay(Tile(6, 0))), ("draw", Draw()), ("end", End()), ("pass", Pass())],
)
def test_notation_round_trips(text, action):
    assert PODKIDNOE.parse_action(text) == action
    assert str(action) == text
    assert PODKIDNOE.decode(PODKIDNOE.encode(action)) == action


@pytest.mark.parametrize("text", ["lay 0-6", "lay", "play 6-0", "top-up", "top_up", "DRAW", ""])
def test_other_texts_are_no_actions(text):
    with pytest.raises(NotationError, match="an action of Podkidnoe"):
        PODKIDNOE.parse_action(text)


@pytest.mark.parametrize("action", [TopUp(), Lay(Tile(7, 0)), "pass", [1]])
def test_what_is_no_action_of_podkidnoe_has_no_code(action):
    with pytest.raises(UsageError, match="no action of Podkidnoe"):
        PODKIDNOE.encode(action)


def test_what_is_no_code_has_no_action():
    with pytest.raises(UsageError, match="31 is no code"):
        PODKIDNOE.decode(31)


# Ruleset


def test_default_ruleset_is_that_of_the_rules():
    rules = PODKIDNOE.make_ruleset()
    assert (rules.voluntary_pass, rules.voluntary_draw, rules.max_draws) == (True, True, 2)
    assert rules.penalise_successful_draw is True
    assert (rules.top_up, rules.empty_hand) == ("end_of_circuit", "skip")


def test_options_are_read_from_text():
    rules = PODKIDNOE.make_ruleset({"max_draws": "null", "voluntary_pass": "false"})
    assert (rules.max_draws, rules.voluntary_pass) == (None, False)
    assert PODKIDNOE.make_ruleset({"max_draws": "1"}).max_draws == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 1}, "no option 'draws'; it has: .*max_draws"),  # unknown
        ({"max_draws": 3}, "max_draws=3 is not allowed in podkidnoe; allowed: 2, 1, null"),
        ({"max_draws": True}, "max_draws=true is not allowed"),  # no integer
        ({"voluntary_draw": "yes"}, "allowed: true, false"),
        ({"top_up": "off", "empty_hand": "top_up"}, "needs top_up=end_of_circuit"),
    ],
)
def test_unknown_options_and_values_are_refused_and_the_allowed_named(options, message):
    with pytest.raises(RulesetError, match=message):
        PODKIDNOE.make_ruleset(options)


# Deals


@pytest.mark.parametrize(("seats", "reserve"), [(2, 17), (3, 12), (4, 7)])
def test_deal_goes_seat_by_seat_then_the_starter_then_the_reserve(seats, reserve):
    key = bytes(range(32))
    tiles = [tile_set(0)[number] for number in Stream(key).permutation(28)]
    board = PODKIDNOE.deal(Stream(key), PODKIDNOE.make_ruleset(), seats)
    for seat, hand in enumerate(board.hands):
        assert list(hand) == sorted(tiles[5 * seat : 5 * seat + 5], reverse=True)
    assert board.starter == tiles[5 * seats]
    assert list(board.reserve) == tiles[5 * seats + 1 :]
    assert len(board.reserve) == reserve


def test_first_player_is_drawn_after_the_shuffle_unless_given():
    drawn = Stream(bytes(32))
    drawn.permutation(28)
    rules = PODKIDNOE.make_ruleset()
    assert PODKIDNOE.deal(Stream(bytes(32)), rules, 3).first == drawn.below(3)
    assert PODKIDNOE.deal(Stream(bytes(32)), rules, 3, first=2).first == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hands": GAME["hands"][:1]}, "2 to 4 hands"),
        ({"dead": "1-1"}, "2 to 4 hands"),
        ({"first": 4}, "a seat from 0 to 3"),
        ({"starter": ""}, "needs a starter"),
        ({"starter": "0-0"}, "exactly once"),
        ({"reserve": "1-0"}, "exactly once"),
    ],
)
def test_a_board_that_is_not_of_the_game_is_refused(changes, message):
    whole = {key: GAME[key] for key in ("hands", "first", "starter", "reserve")}
    with pytest.raises(UsageError, match=message):
        PODKIDNOE.start(PODKIDNOE.make_ruleset(), board_of(**{**whole, **changes}))


@pytest.mark.parametrize("entrants", [1, 5])
def test_two_to_four_play(entrants):
    assert [PODKIDNOE.seats(count) for count in (2, 3, 4)] == [2, 3, 4]
    assert PODKIDNOE.side_of(3) == 3
    with pytest.raises(ContestError, match="2 to 4 entrants"):
        PODKIDNOE.seats(entrants)


@pytest.mark.parametrize("text", ["02", "+2", "none", "NULL", "-0", "2 ", "True"])
def test_value_of_an_option_has_one_spelling(text):
    option = "voluntary_pass" if text == "True" else "max_draws"
    with pytest.raises(RulesetError, match="is not allowed"):
        PODKIDNOE.make_ruleset({option: text})
