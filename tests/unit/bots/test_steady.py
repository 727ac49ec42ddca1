"""Steady: what it reckons with, what it chooses in set positions, and that it beats greedy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bots import bold, cautious, greedy, highest, lowest, steady
from engine.games import GAMES
from engine.games.base import Game
from engine.sdk import Tile, eighty, podkidnoe
from engine.shuffle import Stream, deal_key, local_prk
from engine.tiles import parse_tiles

OPTION_VALUES = [
    (game.name, option.name, value)
    for game in GAMES.values()
    for option in game.options
    for value in (option.choices or (option.minimum,))
]


def boards(game: Game, ruleset, seats: int, count: int) -> Iterator[object]:
    for number in range(count):
        key = deal_key(local_prk("steady"), game.name, "local", "M1", number)
        yield game.deal(Stream(key), ruleset, seats)


def play_deal(game: Game, ruleset, board, modules: Sequence) -> tuple[list[str], tuple[int, ...]]:
    """The actions in notation, and the score."""
    table = [module.make_strategy(game.name, ruleset, len(modules)) for module in modules]
    state = game.start(ruleset, board)
    actions = []
    while not state.is_over:
        observation = state.observe(5000)
        action = table[observation.seat].act(observation)
        assert action in observation.legal
        actions.append(f"{observation.seat} {action}")
        state.apply(game.encode(action))
    return actions, state.score()


@pytest.mark.parametrize(("game_name", "option", "value"), OPTION_VALUES)
def test_steady_answers_legally_under_every_option(game_name, option, value):
    game = GAMES[game_name]
    ruleset = game.make_ruleset({option: value})
    for seats in (game.seats(count) for count in game.entrant_counts):
        for board in boards(game, ruleset, seats, 4):
            play_deal(game, ruleset, board, [steady] * seats)


@pytest.mark.parametrize("doubles", ["high", "own_suit", "low"])
def test_steady_plays_nello_legally_in_every_seat(doubles):
    game = GAMES["eighty"]
    ruleset = game.make_ruleset({"nello_doubles": doubles})
    table = [steady.make_strategy("eighty", ruleset, 4) for _ in range(4)]
    for board, bidder in zip(boards(game, ruleset, 4, 12), itertools.cycle(range(4))):
        state = game.start(ruleset, board)
        for _ in range(4):
            state.apply(game.encode(eighty.Nello() if state.seat == bidder else eighty.Pass()))
        while not state.is_over:
            observation = state.observe(5000)
            action = table[observation.seat].act(observation)
            assert action in observation.legal
            state.apply(game.encode(action))


@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_steady_repeats_its_play(game):
    ruleset = game.make_ruleset()
    for board in boards(game, ruleset, 4, 3):
        once = play_deal(game, ruleset, board, [steady] * 4)
        assert once == play_deal(game, ruleset, board, [steady] * 4)


def test_steady_declines_a_game_that_it_does_not_know():
    class OtherRuleset:
        """Of a game to come."""

    assert steady.make_strategy("other", OtherRuleset(), 2) is None


def lead_over(other, game: Game, count: int) -> tuple[float, float]:
    """Points a board of steady over another bot on mirrored boards, and the half of the 95 % interval."""
    ruleset = game.make_ruleset()
    seats = game.seats(2)
    leads = []
    for board in boards(game, ruleset, seats, count):
        there = play_deal(game, ruleset, board, [steady, other, steady, other][:seats])[1]
        back = play_deal(game, ruleset, board, [other, steady, other, steady][:seats])[1]
        leads.append((there[0] - there[1] + back[1] - back[0]) / 2)
    mean = fmean(leads)
    error = math.sqrt(fmean((lead - mean) ** 2 for lead in leads) / (count - 1))
    return mean, 1.96 * error


# 120 boards of a fixed seed, so each figure below is the same in every run; 500 boards stand in docs/bots.md.


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_steady_beats_greedy_beyond_doubt(game):
    mean, half = lead_over(greedy, game, 120)
    assert mean > half


@pytest.mark.slow
@pytest.mark.parametrize("other", [bold, cautious, highest, lowest], ids=lambda bot: bot.__name__)
def test_steady_is_far_ahead_of_the_simpler_bots_at_eighty(other):
    mean, half = lead_over(other, GAMES["eighty"], 60)
    assert mean > 10 + half / 2


# Eighty


def turn(hand: str, **fields) -> eighty.Observation:
    """A turn of seat 0; `legal` defaults to playing any tile, the contract to seat 0 with trump 4."""
    tiles = parse_tiles(hand)
    values: dict = {
        "seat": 0,
        "clock_ms": 5000,
        "legal": tuple(eighty.Play(tile) for tile in dict.fromkeys(tiles)),
        "hand": tiles,
        "shaker": 3,
        "calls": (),
        "contract": eighty.Contract(seat=0, bid=50, nello=False, trump=4),
        "tricks": (),
        "trick": (),
        "points": (0, 0),
        "scores": (0, 0),
    }
    return eighty.Observation(**(values | fields))


def table(*plays: str) -> tuple[eighty.Played, ...]:
    """The tiles of a trick that seat 0 closes, in order."""
    return tuple(
        eighty.Played(seat, parse_tiles(tile)[0])
        for seat, tile in zip(range(4 - len(plays), 4), plays, strict=True)
    )


def answer(observation: eighty.Observation, **options: object) -> str:
    ruleset = GAMES["eighty"].make_ruleset(options)
    return str(steady.make_strategy("eighty", ruleset, 4).act(observation))


SEVEN_TRUMPS = "4-4 4-4 6-4 5-4 4-3 4-2 4-1 6-6 5-5 2-1"
NO_SUIT = "6-5 6-3 5-3 5-2 4-2 4-1 3-2 3-1 2-1 6-1"
LOW = "6-1 5-1 4-1 3-1 2-1 6-1 5-1 4-1 3-1 2-1"
CALLS = (eighty.Pass(), eighty.Nello(), *(eighty.Bid(points) for points in range(50, 81)))


def auction(hand: str, *calls: eighty.Call, lowest: int = 50, **fields) -> eighty.Observation:
    legal = tuple(c for c in CALLS if not isinstance(c, eighty.Bid) or c.points >= lowest)
    return turn(hand, contract=None, calls=calls, **({"legal": legal} | fields))


@pytest.mark.parametrize(
    ("hand", "expected"),
    [
        pytest.param(SEVEN_TRUMPS, "bid 50", id="long trumps with both doubles"),
        pytest.param(NO_SUIT, "pass", id="no suit and no double"),
        pytest.param(LOW, "nello", id="nothing but low ends"),
    ],
)
def test_steady_calls_what_its_hand_is_worth(hand, expected):
    assert answer(auction(hand)) == expected


def test_steady_leaves_the_auction_to_a_partner_who_has_it():
    hand = "4-4 4-4 6-4 5-4 4-3 4-2 6-6 3-2 2-1 6-1"
    rival = eighty.Call(1, eighty.Bid(50))
    partner = eighty.Call(2, eighty.Bid(50))
    assert answer(auction(hand, rival, lowest=51)) == "bid 51"
    assert answer(auction(hand, partner, lowest=51)) == "pass"


def test_steady_bids_when_it_must():
    legal = tuple(call for call in CALLS if isinstance(call, eighty.Bid))
    assert answer(auction(NO_SUIT, legal=legal)) == "bid 50"


def test_steady_bids_on_less_where_only_marks_count():
    ruleset = GAMES["eighty"].make_ruleset()
    marks = GAMES["eighty"].make_ruleset({"scoring": "marks"})
    assert steady.value_of_bid(50, 53, marks) > 0 > steady.value_of_bid(50, 53, ruleset)


def test_steady_names_the_suit_that_it_is_long_in():
    contract = eighty.Contract(seat=0, bid=50, nello=False, trump=None)
    legal = tuple(eighty.Trump(suit) for suit in range(1, 7))
    assert answer(turn(SEVEN_TRUMPS, contract=contract, legal=legal)) == "trump 4"


def test_shakers_pass_gives_nothing_away_where_an_earlier_one_may():
    shaker, earlier = auction(NO_SUIT, shaker=0), auction(NO_SUIT, shaker=3)
    assert steady.value_of_pass(shaker) == 0 > steady.value_of_pass(earlier)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param("4-4 4-2 4-1 6-5", "4-4 4-2 5-1 6-5", id="one trump more"),
        pytest.param("4-4 4-2 4-1 6-5", "5-4 4-2 4-1 6-5", id="the double of trumps"),
        pytest.param("4-4 4-2 4-1 6-6", "4-4 4-2 4-1 6-5", id="a double beside them"),
        pytest.param("4-4 4-2 4-1 5-5", "4-4 4-2 4-1 6-6", id="the double that counts"),
    ],
)
def test_hand_promises_more_with(better, worse):
    assert steady.promise(parse_tiles(better), 4) > steady.promise(parse_tiles(worse), 4)


def test_bidder_draws_trumps_with_one_that_cannot_be_beaten():
    # both 4-4 are here, so nothing beats 6-4, and its 10 points are safe now
    assert answer(turn("4-4 4-4 6-4 5-4 4-3 4-2 4-1 6-3 5-2 2-1")) == "play 6-4"


def test_bidder_cashes_the_double_that_counts_before_others_are_void():
    assert answer(turn(SEVEN_TRUMPS)) == "play 5-5"


def test_bidder_keeps_his_last_trump_once_the_others_have_none():
    fours = ["4-4 4-4 6-4 6-4", "5-4 5-4 4-3 4-3", "4-2 4-2 4-1 6-1"]
    tricks = tuple(
        eighty.Trick(
            plays=tuple(eighty.Played(seat, tile) for seat, tile in enumerate(parse_tiles(four))),
            winner=0,
            points=2,
        )
        for four in fours
    )
    assert answer(turn("4-1 6-6 3-1", tricks=tricks)) == "play 6-6"


def test_throws_away_the_last_tile_of_a_suit_to_ruff_it_later():
    position = turn("4-2 5-1 3-1 3-2 3-1", trick=table("6-1", "6-2", "4-4"))
    assert answer(position) == "play 5-1"


def test_defender_keeps_count_tiles_from_a_trick_that_the_bidder_may_take():
    contract = eighty.Contract(seat=3, bid=50, nello=False, trump=4)
    lead = (eighty.Played(3, Tile(6, 6)),)
    assert answer(turn("5-5 3-2 3-1 2-1", contract=contract, trick=lead)) == "play 3-1"


@pytest.mark.parametrize(
    ("hand", "trick", "expected"),
    [
        pytest.param("5-5 6-1", ["6-2", "6-6", "6-3"], "play 5-5", id="feeds the partner's trick"),
        pytest.param("5-5 5-3", ["6-6", "6-2", "6-3"], "play 5-3", id="keeps it from the others'"),
        pytest.param("6-6 6-5", ["6-3", "6-1", "6-2"], "play 6-5", id="takes it as low as it can"),
        pytest.param("4-1 4-4", ["5-3", "6-5", "5-2"], "play 4-1", id="trumps with a count tile"),
        pytest.param("6-6 6-1", ["6-5", "6-2", "6-3"], "play 6-6", id="takes what the others have"),
    ],
)
def test_steady_closes_a_trick_as_its_side_needs(hand, trick, expected):
    assert answer(turn(hand, trick=table(*trick))) == expected


def test_nello_bidder_follows_with_the_highest_tile_that_stays_below():
    contract = eighty.Contract(seat=0, bid=80, nello=True, trump=None)
    position = turn("6-6 6-4 6-1", contract=contract, trick=table("6-2", "6-5"))
    assert answer(position) == "play 6-4"


def test_nello_bidder_leads_what_the_others_must_beat():
    contract = eighty.Contract(seat=0, bid=80, nello=True, trump=None)
    assert answer(turn("6-6 5-5 2-1", contract=contract)) == "play 2-1"


def test_nello_defender_stays_below_the_bidder():
    contract = eighty.Contract(seat=3, bid=80, nello=True, trump=None)
    position = turn("6-6 6-1", contract=contract, trick=(eighty.Played(3, Tile(6, 4)),))
    assert answer(position) == "play 6-1"


def test_seat_that_did_not_follow_is_known_to_be_void():
    contract = eighty.Contract(seat=0, bid=50, nello=False, trump=4)
    ruleset = GAMES["eighty"].make_ruleset()
    plays = [
        eighty.Played(seat, parse_tiles(tile)[0])
        for seat, tile in enumerate(["6-5", "6-1", "4-1", "5-3"])
    ]
    voids = steady.find_voids([plays], contract, ruleset)
    assert voids == {2: {6}, 3: {6}}


@given(st.integers(0, 42), st.integers(0, 42), st.integers(0, 10))
def test_chance_of_drawing_none_is_the_share_of_all_draws(pool, marked, drawn):
    marked, drawn = min(marked, pool), min(drawn, pool)
    favourable, every = math.comb(pool - marked, drawn), math.comb(pool, drawn)
    assert steady.none_of(pool, marked, drawn) == pytest.approx(favourable / every)


# Podkidnoe


def podkidnoe_turn(hand: str, open_end: int, *others, **fields) -> podkidnoe.Observation:
    """A turn of seat 0 at a table of two; `others` are the legal actions besides laying what fits."""
    tiles = parse_tiles(hand)
    values: dict = {
        "seat": 0,
        "clock_ms": 5000,
        "legal": (*(podkidnoe.Lay(tile) for tile in tiles if tile.has(open_end)), *others),
        "hand": tiles,
        "first": 0,
        "starter": Tile(open_end, open_end),
        "line": (),
        "open_ends": (open_end,),
        "reserve_size": 10,
        "hand_sizes": (len(tiles), 5),
        "points": (0, 0),
        "penalties": (0, 0),
        "log": (),
        "draws": 0,
        "lays": 0,
        "circuit": 0,
        "circuit_place": 0,
        "circuit_is_quiet": True,
    }
    return podkidnoe.Observation(**(values | fields))


def lay(observation: podkidnoe.Observation, **options: object) -> str:
    ruleset = GAMES["podkidnoe"].make_ruleset(options)
    return str(steady.make_strategy("podkidnoe", ruleset, 2).act(observation))


DRAW_OR_PASS = (podkidnoe.Draw(), podkidnoe.Pass())


def test_steady_begins_the_longest_run():
    assert lay(podkidnoe_turn("6-3 3-1 2-1 2-0", 3, *DRAW_OR_PASS)) == "lay 3-1"


def test_steady_draws_rather_than_pays_for_a_pass():
    assert lay(podkidnoe_turn("6-6 5-4", 3, *DRAW_OR_PASS)) == "draw"


def test_steady_keeps_the_one_tile_that_is_topped_up():
    position = podkidnoe_turn("6-3", 3, podkidnoe.End(), lays=1)
    assert lay(position, top_up="end_of_circuit") == "end"


def test_steady_goes_out_when_nothing_is_left_to_draw():
    position = podkidnoe_turn("6-3", 3, podkidnoe.End(), lays=1, reserve_size=0)
    assert lay(position) == "lay 6-3"


def test_steady_draws_first_where_a_draw_that_lays_is_free():
    position = podkidnoe_turn("6-3 6-6", 3, *DRAW_OR_PASS)
    assert lay(position, penalise_successful_draw=False) == "draw"
    assert lay(position, penalise_successful_draw=True) == "lay 6-3"


def test_huge_hand_is_searched_only_so_far():
    tiles = " ".join(f"{high}-{low}" for high in range(6, -1, -1) for low in range(high, -1, -1))
    position = podkidnoe_turn(tiles, 3, podkidnoe.End(), lays=1)
    looked = steady.Turn(position, GAMES["podkidnoe"].make_ruleset())
    for action in position.legal:
        looked.value_of(action)
    assert len(looked.values) < 2 * steady.POSITIONS
