"""The rules of Eighty, case by case."""

from __future__ import annotations

import random

import pytest

from engine.errors import (
    ContestError,
    IllegalActionError,
    NotationError,
    RulesetError,
    UsageError,
)
from engine.games import get_game
from engine.games.eighty import (
    EIGHTY,
    MAX_DEALS,
    Bid,
    Call,
    Contract,
    EightyState,
    Nello,
    Pass,
    Play,
    Played,
    Trump,
)
from engine.shuffle import Stream
from engine.tiles import Tile, format_tiles
from tests.unit.games.positions import board_of, do, eighty_with, legal

BID_50 = "bid 50, pass, pass, pass"
NELLO = "nello, pass, pass, pass"
HANDS = [
    "6-6 6-5 6-4 6-3 6-2 6-1 5-5 5-4 5-3 5-2",
    "6-6 6-5 6-4 6-3 6-2 6-1 5-5 5-4 5-3 5-2",
    "5-1 4-4 4-3 4-2 4-1 3-3 3-2 3-1 2-2 2-1",
    "5-1 4-4 4-3 4-2 4-1 3-3 3-2 3-1 2-2 2-1",
]
DEAD = "1-1 1-1"
BOARD = board_of(HANDS, 3, DEAD)


def new_deal(shaker: int = 3, **options: object) -> EightyState:
    return EIGHTY.start(EIGHTY.make_ruleset(options), board_of(HANDS, shaker, DEAD))


# Tricks


@pytest.mark.parametrize(
    ("trump", "tiles", "winner", "points"),
    [
        (4, "4-6 4-4 4-4 4-1", 1, 17),  # the first of two twins takes the trick
        (4, "4-4 4-4 4-6 4-1", 0, 17),  # also when it led
        (4, "5-3 5-5 5-5 6-5", 1, 22),  # the double is the highest of its suit
        (4, "5-3 6-5 4-1 4-1", 2, 12),  # any trump beats the led suit
        (4, "5-3 6-5 4-1 6-6", 2, 7),  # another suit's double is nothing
        (4, "5-3 6-5 5-4 5-2", 2, 2),  # a tile with a trump end is a trump, not a five
        (4, "2-1 4-2 4-3 2-2", 2, 2),  # trumps rank by their other end
        (6, "5-3 6-3 5-5 6-1", 1, 12),  # 6-3 is the higher trump
    ],
)
def test_trick_goes_to_the_highest_trump_else_the_highest_of_the_led_suit(
    trump, tiles, winner, points
):
    state = one_trick(tiles, f"{BID_50}, trump {trump}")
    assert (state.tricks[0].winner, state.tricks[0].points) == (winner, points)
    assert state.points[winner % 2] == points


def one_trick(tiles: str, calls: str, **options: object) -> EightyState:
    """Each seat in turn holds just the tile that it plays; tiles may stand low end first here."""
    hands = ["-".join(sorted(tile.split("-"), reverse=True)) for tile in tiles.split()]
    state = eighty_with(hands, calls, **options)
    do(EIGHTY, state, ", ".join(f"play {tile}" for tile in hands))
    return state


@pytest.mark.parametrize(
    ("tiles", "winner"),
    [
        ("4-6 4-4 4-4 4-1", 2),  # the last of two twins is the higher
        ("4-4 4-4 4-6 4-1", 1),  # also against a led one
        ("5-3 5-5 5-5 6-5", 2),  # in a plain suit
        ("5-3 6-6 6-6 5-1", 0),  # but twins that cannot win are nothing
    ],
)
def test_last_of_two_twins_takes_the_trick_if_the_ruleset_says_so(tiles, winner):
    assert one_trick(tiles, f"{BID_50}, trump 4", twin_winner="last").tricks[0].winner == winner


@pytest.mark.parametrize(
    ("trump", "led", "hand", "expected"),
    [
        (4, "6-5", "6-4 6-1 5-5 2-1", "6-1"),  # 6-4 is a trump, 5-5 no six
        (4, "6-4", "6-6 5-4 4-1 2-1", "5-4 4-1"),  # trumps were led
        (4, "6-5", "6-4 5-5 2-1", "6-4 5-5 2-1"),  # no six: anything, and no duty to trump
        (5, "6-5", "6-6 6-1 5-1 3-2", "5-1"),  # the led tile is a trump
        (1, "6-6", "6-1 6-1 5-5", "6-1 5-5"),  # no six, and twins are one action
    ],
)
def test_led_suit_must_be_followed_with_any_of_its_tiles(trump, led, hand, expected):
    state = eighty_with([led, hand, "", ""], f"{BID_50}, trump {trump}, play {led}")
    assert legal(EIGHTY, state) == {f"play {tile}" for tile in expected.split()}


def test_winner_leads_the_next_trick():
    state = eighty_with(["5-3 2-1", "6-5 1-1", "5-1 2-2", "3-3 3-2"], f"{BID_50}, trump 4")
    do(EIGHTY, state, "play 5-3, play 6-5, play 5-1, play 3-3")
    assert (state.seat, legal(EIGHTY, state)) == (1, {"play 1-1"})


def test_playing_one_twin_leaves_the_other():
    state = eighty_with(["6-1 6-1", "5-1 5-2", "5-2 4-2", "5-3 3-3"], f"{BID_50}, trump 4")
    do(EIGHTY, state, "play 6-1, play 5-1, play 5-2, play 5-3")
    assert state.observe(0).hand == (Tile(6, 1),)


def test_bidder_need_not_hold_his_trump_and_leads_any_tile():
    state = new_deal()
    do(EIGHTY, state, f"{BID_50}")
    assert legal(EIGHTY, state) == {f"trump {suit}" for suit in range(1, 7)}
    do(EIGHTY, state, "trump 1")
    assert legal(EIGHTY, state) == {f"play {tile}" for tile in HANDS[0].split()}


# Auction


def test_auction_starts_left_of_the_shaker_and_each_calls_once():
    state = new_deal(shaker=1)
    order = []
    for call in ("pass", "bid 60", "pass", "bid 61"):
        order.append(state.seat)
        do(EIGHTY, state, call)
    assert order == [2, 3, 0, 1]
    assert state.seat == 1
    assert state.contract == Contract(seat=1, bid=61, nello=False, trump=None)


@pytest.mark.parametrize(
    ("calls", "options", "highest_refused", "lowest_allowed"),
    [
        ("", {}, 49, 50),  # the lowest bid
        ("", {"min_bid": 60}, 59, 60),  # the other lowest bid of the source
        ("bid 57", {}, 57, 58),  # an equal bid is none
        ("pass, bid 57, pass", {}, 57, 58),  # the shaker calls last, no privilege
        ("nello", {"nello_value": 60}, 60, 61),  # Nel-O ranks as a bid of its value
    ],
)
def test_bid_must_be_higher_than_every_earlier_one(calls, options, highest_refused, lowest_allowed):
    state = new_deal(**options)
    do(EIGHTY, state, calls)
    bids = {int(text[4:]) for text in legal(EIGHTY, state) if text.startswith("bid ")}
    assert bids == set(range(lowest_allowed, 81))
    assert highest_refused not in bids
    assert "pass" in legal(EIGHTY, state)


@pytest.mark.parametrize(
    ("calls", "options", "expected"),
    [
        ("bid 80", {}, {"pass"}),  # nothing is higher than 80, and Nel-O is equal
        ("nello", {}, {"pass"}),  # nor than Nel-O at 80
        ("bid 79", {}, {"pass", "nello", "bid 80"}),  # Nel-O outbids less than its value
        ("bid 79", {"nello_value": 79}, {"pass", "bid 80"}),  # but not an equal bid
        ("bid 79", {"nello": False}, {"pass", "bid 80"}),  # nor where it is not played
    ],
)
def test_nello_ranks_as_its_value(calls, options, expected):
    state = new_deal(**options)
    do(EIGHTY, state, calls)
    assert legal(EIGHTY, state) == expected


def test_four_passes_throw_the_deal_in():
    state = new_deal()
    do(EIGHTY, state, "pass, pass, pass, pass")
    assert state.is_over
    assert state.score() == (0, 0)
    assert state.declaring_side is None
    assert state.contract is None
    assert state.legal() == []


@pytest.mark.parametrize(
    ("calls", "may_pass"),
    [
        ("pass, pass, pass", False),  # the shaker is left alone
        ("pass, bid 50, pass", True),  # somebody bid
        ("nello, pass, pass", True),  # Nel-O is a bid
        ("pass, pass", True),  # not yet the shaker
    ],
)
def test_forced_shaker_must_bid_when_three_passed(calls, may_pass):
    state = new_deal(forced_shaker_bid=True)
    do(EIGHTY, state, calls)
    assert ("pass" in legal(EIGHTY, state)) is may_pass


def test_forced_shaker_may_call_nello():
    state = new_deal(forced_shaker_bid=True)
    do(EIGHTY, state, "pass, pass, pass, nello")
    assert state.contract == Contract(seat=3, bid=80, nello=True, trump=None)


# Scores


@pytest.mark.parametrize(
    ("bid", "taken", "score"),
    [
        (50, (55, 20), (55, 20)),  # made: each side scores what it took
        (55, (55, 20), (55, 20)),  # exactly the bid is enough
        (57, (55, 20), (0, 77)),  # set: the others score the bid and what they took
        (80, (80, 0), (80, 0)),  # everything
        (80, (75, 0), (0, 80)),  # a count tile lay dead
    ],
)
@pytest.mark.parametrize("bidder", [0, 1])
def test_bidders_score_what_they_took_or_lose_the_bid(bidder, bid, taken, score):
    state = finished(bidder, f"bid {bid}", taken)
    assert state.score() == (score if bidder == 0 else score[::-1])


def finished(bidder: int, call: str, taken: tuple[int, int], **options: object) -> EightyState:
    """A deal that ended after the bidder's side took taken[0], the others taken[1]."""
    state = new_deal(shaker=(bidder - 1) % 4, **options)
    do(EIGHTY, state, f"{call}, pass, pass, pass, trump 1")
    state._taken = list(taken if bidder % 2 == 0 else taken[::-1])
    state._end()
    return state


@pytest.mark.parametrize(
    ("taken", "score"),
    [
        ((60, 20), (1, 0)),  # made: one mark
        ((59, 21), (0, 1)),  # set: one mark to the others
    ],
)
def test_a_deal_is_one_mark_where_marks_are_scored(taken, score):
    assert finished(0, "bid 60", taken, scoring="marks").score() == score


@pytest.mark.parametrize(
    ("totals", "bidder", "places"),
    [
        ((262, 258), 0, (1, 2)),  # both there: the side that had the bid, here the higher
        ((258, 262), 0, (1, 2)),  # whatever the scores
        ((262, 258), 1, (2, 1)),  # of either side
        ((240, 284), 0, (2, 1)),  # one there: it wins, the bid or not
        ((250, 249), 1, (1, 2)),  # exactly the target is enough
        ((249, 249), 1, None),  # nobody there: the game goes on
    ],
)
def test_game_is_won_at_the_target_and_the_bidders_come_first(totals, bidder, places):
    last = finished(bidder, "bid 60", (62, 18))
    assert EIGHTY.game_places(EIGHTY.make_ruleset(), totals, 7, last) == places


def test_a_game_of_the_source_ends_with_the_bidders_at_262():
    last = finished(0, "bid 60", (62, 18))
    totals = tuple(before + now for before, now in zip((200, 240), last.score(), strict=True))
    assert totals == (262, 258)
    assert EIGHTY.game_places(EIGHTY.make_ruleset(), totals, 9, last) == (1, 2)


def test_a_failed_bid_lifts_the_others_over_the_target():
    last = finished(0, "bid 60", (56, 24))
    totals = tuple(before + now for before, now in zip((240, 200), last.score(), strict=True))
    assert totals == (240, 284)
    assert EIGHTY.game_places(EIGHTY.make_ruleset(), totals, 9, last) == (2, 1)


@pytest.mark.parametrize(
    ("totals", "deals", "places"),
    [
        ((100, 90), MAX_DEALS, (1, 2)),  # the higher score wins
        ((90, 90), MAX_DEALS, (1, 1)),  # equal scores tie
        ((100, 90), MAX_DEALS - 1, None),  # one deal earlier the game goes on
    ],
)
def test_game_stops_after_200_deals(totals, deals, places):
    last = new_deal()
    do(EIGHTY, last, "pass, pass, pass, pass")
    assert EIGHTY.game_places(EIGHTY.make_ruleset(), totals, deals, last) == places


def test_an_unfinished_deal_has_no_score():
    with pytest.raises(UsageError, match="not over"):
        new_deal().score()


# Nel-O


@pytest.mark.parametrize(
    ("led", "hand", "doubles", "expected"),
    [
        ("5-3", "6-5 3-1 4-4", "high", "6-5"),  # the higher end was led
        ("3-3", "6-3 5-5 2-1", "high", "6-3"),  # a double is of its suit
        ("3-3", "6-3 5-5 2-1", "own_suit", "5-5"),  # a double asks for doubles
        ("6-3", "6-6 6-1 2-1", "own_suit", "6-1"),  # and is no six
        ("3-3", "6-3 2-1", "own_suit", "6-3 2-1"),  # no double: anything
        ("6-1", "6-6 5-5 2-1", "low", "6-6"),  # low doubles are of their suit all the same
    ],
)
def test_nello_suits_are_followed(led, hand, doubles, expected):
    state = eighty_with([led, hand, "", ""], f"{NELLO}, play {led}", nello_doubles=doubles)
    assert legal(EIGHTY, state) == {f"play {tile}" for tile in expected.split()}


@pytest.mark.parametrize(
    ("tiles", "doubles", "winner"),
    [
        ("6-5 6-6 - 6-6", "high", 1),  # no trumps, the first twin
        ("6-5 6-6 - 6-1", "high", 1),  # a double is high
        ("6-1 6-6 - 6-2", "low", 3),  # 6-2 beats 6-1 beats 6-6
        ("6-6 6-1 - 5-5", "low", 1),  # a led low double loses to any of its suit
        ("6-6 5-5 - 4-1", "low", 0),  # but to nothing else
        ("3-3 5-5 - 6-6", "own_suit", 3),  # doubles rank 6-6 to 1-1
        ("6-1 6-6 - 6-2", "own_suit", 3),  # a double is no six
        ("2-1 1-1 - 3-1", "high", 0),  # neither is a two
    ],
)
def test_nello_trick_has_three_tiles_and_the_highest_takes_it(tiles, doubles, winner):
    hands = ["" if tile == "-" else tile for tile in tiles.split()]
    state = eighty_with(hands, NELLO, nello_doubles=doubles)
    do(EIGHTY, state, ", ".join(f"play {hand}" for hand in hands if hand))
    assert state.tricks[0].winner == winner
    assert [played.seat for played in state.tricks[0].plays] == [0, 1, 3]
    assert state.tricks[0].points == 0


def test_nello_is_set_by_the_first_trick_that_the_bidder_takes():
    state = eighty_with(["2-1 5-1", "1-1 6-6", "", "3-1 6-5"], NELLO)
    do(EIGHTY, state, "play 2-1, play 1-1, play 3-1")
    assert state.is_over
    assert not state.is_made
    assert state.score() == (0, 80)


@pytest.mark.parametrize(
    ("options", "made", "set_"),
    [
        ({}, (80, 0), (0, 80)),  # the value of a bid of 80
        ({"nello_value": 60}, (60, 0), (0, 60)),  # or what the ruleset says
        ({"scoring": "marks"}, (1, 0), (0, 1)),  # one mark either way
    ],
)
def test_nello_scores_its_value_and_no_trick_points(options, made, set_):
    lost = ["1-1 2-1", "6-6 2-2", "", "5-5 3-3"]
    state = eighty_with(lost, NELLO, **options)
    do(EIGHTY, state, "play 1-1, play 6-6, play 5-5")
    assert state.score() == set_

    state = made_nello(**options)
    assert state.is_made
    assert state.points == (0, 0)
    assert state.score() == made


def made_nello(**options: object) -> EightyState:
    """A Nel-O that the bidder makes: the first of many random plays of a good hand where he does."""
    board = board_of(
        [
            "2-1 2-1 3-1 3-1 4-1 4-1 1-1 3-2 3-2 4-2",
            "6-6 6-6 5-5 5-5 4-4 4-4 3-3 3-3 2-2 2-2",
            "6-1 5-1 5-1 6-2 6-2 5-2 5-2 4-2 1-1 6-1",
            "6-5 6-5 6-4 6-4 6-3 6-3 5-4 5-4 5-3 5-3",
        ],
        3,
        "4-3 4-3",
    )
    rng = random.Random(1)
    for _ in range(1000):
        state = EIGHTY.start(EIGHTY.make_ruleset(options), board)
        do(EIGHTY, state, NELLO)
        while not state.is_over:
            state.apply(rng.choice(state.legal()))
        if state.is_made:
            return state
    raise AssertionError("no play of this hand makes Nel-O")


def test_nello_partner_has_no_actions_and_his_seat_never_leads():
    state = EIGHTY.start(EIGHTY.make_ruleset(), BOARD)
    do(EIGHTY, state, "pass, nello, pass, pass")
    seats = set()
    while not state.is_over:
        seats.add(state.seat)
        state.apply(state.legal()[0])
    assert seats <= {0, 1, 2}


# Door


@pytest.mark.parametrize(
    "code",
    [
        -1,  # no code
        10**6,  # no code
        49,  # a bid below the lowest
        20,  # a play during the auction
        21,  # a trump during the auction
    ],
)
def test_illegal_code_is_refused_and_changes_nothing(code):
    state = new_deal()
    before = state.observe(0)
    with pytest.raises(IllegalActionError):
        state.apply(code)
    assert state.observe(0) == before


def test_refusal_names_what_is_allowed():
    state = eighty_with(["6-5", "6-1 5-5", "", ""], f"{BID_50}, trump 4, play 6-5")
    with pytest.raises(
        IllegalActionError, match=r"^play 5-5 is not allowed here; allowed: play 6-1$"
    ):
        do(EIGHTY, state, "play 5-5")


def test_nothing_can_be_done_after_the_end():
    state = new_deal()
    do(EIGHTY, state, "pass, pass, pass, pass")
    with pytest.raises(IllegalActionError, match="allowed: nothing"):
        do(EIGHTY, state, "pass")


def test_action_of_a_seat_whose_turn_it_is_not_is_refused():
    with pytest.raises(IllegalActionError, match="turn of seat 0"):
        EIGHTY.apply_action(new_deal(), 1, Pass())


def test_observation_tells_the_whole_public_story():
    state = eighty_with(
        ["5-3 2-1", "6-5 1-1", "5-1 2-2", "3-3 3-2"],
        "bid 50, pass, bid 51, pass, trump 4, play 5-1, play 3-3, play 5-3, play 6-5, play 1-1",
    )
    seen = state.observe(1234, (10, 20))
    assert seen.seat == 2
    assert seen.clock_ms == 1234
    assert seen.hand == (Tile(2, 2),)
    assert seen.legal == (Play(Tile(2, 2)),)
    assert seen.shaker == 3
    assert seen.calls == (Call(0, Bid(50)), Call(1, Pass()), Call(2, Bid(51)), Call(3, Pass()))
    assert seen.contract == Contract(seat=2, bid=51, nello=False, trump=4)
    assert seen.tricks[0].leader == 2
    assert [str(played.tile) for played in seen.tricks[0].plays] == ["5-1", "3-3", "5-3", "6-5"]
    assert (seen.tricks[0].winner, seen.tricks[0].points) == (1, 2)
    assert seen.trick == (Played(1, Tile(1, 1)),)
    assert seen.points == (0, 2)
    assert seen.scores == (10, 20)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("pass", Pass()),
        ("bid 50", Bid(50)),
        ("bid 80", Bid(80)),
        ("nello", Nello()),
        ("trump 6", Trump(6)),
        ("play 6-4", Play(Tile(6, 4))),
    ],
)
def test_notation_round_trips(text, action):
    assert EIGHTY.parse_action(text) == action
    assert str(action) == text
    assert EIGHTY.decode(EIGHTY.encode(action)) == action


@pytest.mark.parametrize(
    "text",
    [
        "play 4-6",  # the high end stands first
        "play 6-0",  # no blanks in Eighty
        "bid 81",  # above the highest
        "bid 49",  # below any lowest
        "trump 0",  # no blanks
        "Pass",  # small letters
        "play  6-4",  # one space
        "",
    ],
)
def test_other_texts_are_no_actions(text):
    with pytest.raises(NotationError, match="an action of Eighty"):
        EIGHTY.parse_action(text)


@pytest.mark.parametrize("action", [Bid(49), Trump(7), Play(Tile(6, 0)), "pass", [1]])
def test_what_is_no_action_of_eighty_has_no_code(action):
    with pytest.raises(UsageError, match="no action of Eighty"):
        EIGHTY.encode(action)


def test_what_is_no_code_has_no_action():
    with pytest.raises(UsageError, match="40 is no code"):
        EIGHTY.decode(40)


# Ruleset


def test_default_ruleset_is_that_of_the_rules():
    rules = EIGHTY.make_ruleset()
    assert (rules.min_bid, rules.forced_shaker_bid, rules.dead_tiles) == (50, False, "dead")
    assert (rules.twin_winner, rules.scoring, rules.target) == ("first", "points", 250)
    assert (rules.nello, rules.nello_value, rules.nello_doubles) == (True, 80, "high")


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ({"scoring": "marks"}, 10),  # ten marks by default
        ({"scoring": "marks", "target": 250}, 250),  # what was asked wins, even the other default
        ({"scoring": "marks", "target": "7"}, 7),  # also as text
        ({"scoring": "points"}, 250),
        ({"target": 1}, 1),  # any integer from 1
    ],
)
def test_target_defaults_by_the_scoring(options, target):
    assert EIGHTY.make_ruleset(options).target == target


def test_options_are_read_from_text():
    rules = EIGHTY.make_ruleset({"min_bid": "60", "nello": "false", "forced_shaker_bid": "true"})
    assert (rules.min_bid, rules.nello, rules.forced_shaker_bid) == (60, False, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_bit": 50}, "no option 'min_bit'; it has: .*min_bid"),  # unknown
        ({"min_bid": 55}, "min_bid=55 is not allowed in eighty; allowed: 50, 60"),
        ({"min_bid": 50.0}, "min_bid=50.0 is not allowed"),  # no integer
        ({"min_bid": True}, "min_bid=true is not allowed"),  # no integer either
        ({"nello": 1}, "nello=1 is not allowed in eighty; allowed: true, false"),
        ({"nello": None}, "nello=null is not allowed"),
        ({"target": 0}, "target=0 is not allowed"),
        ({"target": "null"}, "target=null is not allowed"),
        ({"target": "--5"}, "target=--5 is not allowed"),
        ({"target": 2**53}, "target=9007199254740992 is not allowed"),
        ({"nello_value": 49}, "allowed: an integer from 50 to 80"),
        ({"nello_value": 81}, "allowed: an integer from 50 to 80"),
        ({"min_bid": 60, "nello_value": 59}, "allowed: an integer from 60 to 80"),  # contradiction
        ({"dead_tiles": "last_trick"}, "allowed: dead"),
        ({"nello_doubles": "own suit"}, "allowed: high, own_suit, low"),
    ],
)
def test_unknown_options_and_values_are_refused_and_the_allowed_named(options, message):
    with pytest.raises(RulesetError, match=message):
        EIGHTY.make_ruleset(options)


# Deals


def test_deal_goes_seat_by_seat_in_the_order_of_the_shuffle():
    key = bytes(32)
    order = Stream(key).permutation(42)
    tiles = [Tile(high, low) for low in range(1, 7) for high in range(low, 7) for _ in range(2)]
    board = EIGHTY.deal(Stream(key), EIGHTY.make_ruleset(), 4)
    for seat, hand in enumerate(board.hands):
        dealt = [tiles[number] for number in order[10 * seat : 10 * seat + 10]]
        assert list(hand) == sorted(dealt, reverse=True)
    assert sorted(board.dead) == sorted(tiles[number] for number in order[40:])


def test_shaker_is_drawn_after_the_shuffle_unless_given():
    drawn = Stream(bytes(32))
    drawn.permutation(42)
    rules = EIGHTY.make_ruleset()
    assert EIGHTY.deal(Stream(bytes(32)), rules, 4).first == drawn.below(4)
    assert EIGHTY.deal(Stream(bytes(32)), rules, 4, first=2).first == 2


@pytest.mark.parametrize(
    ("board", "message"),
    [
        (board_of(HANDS[:3], 0, DEAD), "four hands"),
        (board_of(HANDS, 0), "2 dead tiles"),
        (board_of(HANDS, 4, DEAD), "a seat from 0 to 3"),
        (board_of(HANDS, 0, "1-1 2-2"), "exactly twice"),
        (board_of(HANDS, 0, "1-1 0-0"), "no tile 0-0"),
        (board_of(HANDS, 0, DEAD, starter="0-0"), "nothing else"),
    ],
)
def test_a_board_that_is_not_of_the_game_is_refused(board, message):
    with pytest.raises(UsageError, match=message):
        EIGHTY.start(EIGHTY.make_ruleset(), board)


def test_two_entrants_share_four_seats():
    assert EIGHTY.seats(2) == 4
    assert [EIGHTY.side_of(seat) for seat in range(4)] == [0, 1, 0, 1]
    with pytest.raises(ContestError, match="by 2 entrants"):
        EIGHTY.seats(4)


def test_games_are_found_by_name():
    assert get_game("eighty") is EIGHTY
    with pytest.raises(UsageError, match="there are: eighty, podkidnoe"):
        get_game("chess")


# Drawing


def played_out(calls: str) -> list[tuple[int, object]]:
    state = EIGHTY.start(EIGHTY.make_ruleset(), BOARD)
    actions = []
    for text in calls.split(", "):
        actions.append((state.seat, EIGHTY.parse_action(text)))
        do(EIGHTY, state, text)
    while not state.is_over:
        actions.append((state.seat, EIGHTY.decode(state.legal()[0])))
        state.apply(state.legal()[0])
    return actions


def test_a_deal_is_drawn_with_its_auction_tricks_and_score():
    actions = played_out("bid 50, pass, pass, pass, trump 6")
    drawn = EIGHTY.draw(EIGHTY.make_ruleset(), BOARD, actions)
    assert f"seat 2    {format_tiles(BOARD.hands[2])}" in drawn
    assert "0 bid 50   1 pass   2 pass   3 pass" in drawn
    assert "seat 0, 50, trump 6" in drawn
    assert drawn.count("*") == 10 + 1  # each trick's led tile, and the legend
    assert drawn.splitlines()[-1].startswith("Score ")


@pytest.mark.parametrize("calls", ["nello, pass, pass, pass", "bid 50, pass, pass, pass, trump 6"])
def test_a_deal_is_drawn_wherever_it_breaks_off_and_never_wider_than_78(calls):
    actions = played_out(calls)
    for length in range(len(actions) + 1):
        drawn = EIGHTY.draw(EIGHTY.make_ruleset(), BOARD, actions[:length])
        assert all(len(line) <= 78 and line == line.rstrip() for line in drawn.splitlines())


def test_a_thrown_in_deal_is_drawn_as_such():
    passes = [(seat, Pass()) for seat in (0, 1, 2, 3)]
    assert "Thrown in" in EIGHTY.draw(EIGHTY.make_ruleset(), BOARD, passes)
