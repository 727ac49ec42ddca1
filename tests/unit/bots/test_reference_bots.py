"""Every reference bot plays everything, answers legally, repeats itself, and is what it says it is."""

from __future__ import annotations

import importlib
import inspect
import itertools
from collections.abc import Iterator, Sequence
from statistics import fmean

import pytest

from engine.games import GAMES
from engine.games.base import Game
from engine.sdk import GameInfo, Strategy, Tile, eighty, podkidnoe
from engine.sdk.timecontrol import time_control
from engine.shuffle import Stream, deal_key, local_prk
from engine.tiles import parse_tiles

BOTS = ("bold", "cautious", "chance", "greedy", "highest", "lowest")
OPTION_VALUES = [
    (game.name, option.name, value)
    for game in GAMES.values()
    for option in game.options
    for value in (option.choices or (option.minimum,))
]


def sit_down(bot: str, game: Game, ruleset, seats: int, seat: int, seed: int = 0) -> Strategy:
    strategy = importlib.import_module(f"bots.{bot}").make_strategy(game.name, ruleset, seats)
    strategy.begin_game(
        GameInfo(
            game=game.name,
            ruleset=ruleset,
            seat=seat,
            players=("somebody",) * seats,
            time_control=time_control("standard"),
            random_seed=seed,
            number=0,
        )
    )
    return strategy


def play_deal(game: Game, ruleset, board, bots: Sequence[str]) -> tuple[list[str], tuple[int, ...]]:
    """The actions in notation, and the score."""
    seats = len(bots)
    table = [sit_down(bot, game, ruleset, seats, seat, seat) for seat, bot in enumerate(bots)]
    state = game.start(ruleset, board)
    actions = []
    while not state.is_over:
        observation = state.observe(5000)
        if len(observation.legal) > 1:
            action = table[observation.seat].act(observation)
            assert action in observation.legal
        else:
            (action,) = observation.legal
        actions.append(f"{observation.seat} {action}")
        state.apply(game.encode(action))
    return actions, state.score()


def boards(game: Game, ruleset, seats: int, count: int) -> Iterator[object]:
    for number in range(count):
        key = deal_key(local_prk("reference bots"), game.name, "local", "M1", number)
        yield game.deal(Stream(key), ruleset, seats)


@pytest.mark.parametrize("bot", BOTS)
@pytest.mark.parametrize(("game_name", "option", "value"), OPTION_VALUES)
def test_bot_answers_legally_under_every_option(bot, game_name, option, value):
    game = GAMES[game_name]
    ruleset = game.make_ruleset({option: value})
    seats = game.seats(game.entrant_counts[-1])
    table = [bot, "chance", bot, "chance"][:seats]
    for board in boards(game, ruleset, seats, 5):
        play_deal(game, ruleset, board, table)


@pytest.mark.parametrize("bot", BOTS)
@pytest.mark.parametrize("players", [2, 3, 4])
def test_bot_plays_podkidnoe_at_every_table(bot, players):
    game = GAMES["podkidnoe"]
    ruleset = game.make_ruleset()
    for board in boards(game, ruleset, players, 5):
        play_deal(game, ruleset, board, [bot] * players)


@pytest.mark.parametrize("bot", BOTS)
@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_bot_repeats_its_play_from_its_seed(bot, game):
    ruleset = game.make_ruleset()
    for board in boards(game, ruleset, 4, 5):
        once = play_deal(game, ruleset, board, [bot] * 4)
        again = play_deal(game, ruleset, board, [bot] * 4)
        assert once == again


@pytest.mark.parametrize("bot", BOTS)
def test_bot_declines_a_game_that_it_does_not_know(bot):
    class OtherRuleset:
        """Of a game to come."""

    if bot != "chance":
        assert (
            importlib.import_module(f"bots.{bot}").make_strategy("other", OtherRuleset(), 2) is None
        )


@pytest.mark.parametrize("bot", BOTS)
def test_bot_says_its_character(bot):
    doc = inspect.getdoc(importlib.import_module(f"bots.{bot}"))
    assert doc is not None
    assert len(doc.split()) > 20


def advantage(game_name: str, bot: str, other: str, count: int) -> tuple[float, float]:
    """The mean of `bot`'s points minus `other`'s over mirrored sets of two, and 1.96 standard errors."""
    game = GAMES[game_name]
    ruleset = game.make_ruleset()
    seats = game.seats(2)
    differences = []
    for board in boards(game, ruleset, seats, count):
        there = play_deal(game, ruleset, board, [bot, other, bot, other][:seats])[1]
        back = play_deal(game, ruleset, board, [other, bot, other, bot][:seats])[1]
        differences.append(there[0] - there[1] + back[1] - back[0])
    mean = fmean(differences)
    variance = fmean((difference - mean) ** 2 for difference in differences)
    return mean, 1.96 * (variance / count) ** 0.5


@pytest.mark.parametrize(
    ("game", "bot", "other"),
    [
        *itertools.product(GAMES, ["greedy"], ["chance"]),  # the tutorial promises it
        *itertools.product(
            GAMES, ["bold", "cautious", "highest", "lowest"], ["chance"]
        ),  # some sense
        *itertools.product(GAMES, ["greedy"], ["highest", "lowest"]),  # looking beats a fixed habit
    ],
)
def test_better_bot_wins_beyond_doubt(game, bot, other):
    mean, error = advantage(game, bot, other, 80)
    assert mean > 2 * error


def eighty_turn(hand: str, **fields) -> eighty.Observation:
    """A turn of seat 0 in Eighty, in notation; `legal` defaults to playing any tile."""
    tiles = parse_tiles(hand)
    values: dict = {
        "seat": 0,
        "clock_ms": 5000,
        "legal": tuple(eighty.Play(tile) for tile in dict.fromkeys(tiles)),
        "hand": tiles,
        "shaker": 3,
        "calls": (),
        "contract": eighty.Contract(seat=1, bid=50, nello=False, trump=4),
        "tricks": (),
        "trick": (),
        "points": (0, 0),
        "scores": (0, 0),
    }
    return eighty.Observation(**(values | fields))


def trick(*plays: str) -> tuple[eighty.Played, ...]:
    """The tiles of a trick that seat 0 closes, in order."""
    return tuple(
        eighty.Played(seat, parse_tiles(tile)[0])
        for seat, tile in zip(range(4 - len(plays), 4), plays, strict=True)
    )


def answer(bot: str, observation) -> str:
    is_eighty = isinstance(observation, eighty.Observation)
    game = GAMES["eighty" if is_eighty else "podkidnoe"]
    seats = 4 if is_eighty else len(observation.hand_sizes)
    return str(sit_down(bot, game, game.make_ruleset(), seats, 0).act(observation))


AUCTION: dict = {"contract": None, "legal": (eighty.Pass(), eighty.Bid(50), eighty.Bid(51))}
SIX_TRUMPS = "5-5 4-4 4-4 6-4 5-4 4-3 4-2 3-3 6-6 2-1"
NO_SUIT = "6-5 6-3 5-3 5-2 4-2 4-1 3-2 3-1 2-1 6-1"


@pytest.mark.parametrize(
    ("bot", "hand", "expected"),
    [
        ("greedy", SIX_TRUMPS, "bid 50"),  # promises far more than 50
        ("greedy", NO_SUIT, "pass"),  # no suit and no double
        ("cautious", SIX_TRUMPS, "bid 50"),  # hardly can fail
        ("cautious", "6-6 6-5 6-5 6-4 6-3 5-4 4-3 3-1 2-1 2-1", "pass"),  # one double: not sure
        ("bold", "6-6 6-5 6-5 6-4 6-3 5-4 4-3 3-1 2-1 2-1", "bid 50"),  # five trumps: hope enough
        ("lowest", SIX_TRUMPS, "pass"),  # never bids
        ("highest", "6-6 6-6 6-5 6-5 6-4 5-5 5-5 5-4 4-3 4-3", "bid 50"),  # many pips
    ],
)
def test_bid_follows_character(bot, hand, expected):
    assert answer(bot, eighty_turn(hand, **AUCTION)) == expected


@pytest.mark.parametrize("bot", ["bold", "cautious", "greedy", "highest", "lowest"])
def test_shaker_who_must_bid_does(bot):
    legal = (eighty.Bid(50), eighty.Bid(51), eighty.Nello())
    assert answer(bot, eighty_turn(NO_SUIT, contract=None, legal=legal)) == "bid 50"


@pytest.mark.parametrize(
    ("bot", "hand", "table", "expected"),
    [
        # the partner (seat 2) takes it: count tiles go there
        ("greedy", "5-5 6-1", ["6-2", "6-6", "6-3"], "play 5-5"),
        # the others take it: a count tile is kept
        ("greedy", "5-5 5-3", ["6-6", "6-2", "6-3"], "play 5-3"),
        # the cheapest tile that takes it will do for the last
        ("greedy", "6-6 6-5", ["6-3", "6-1", "6-2"], "play 6-5"),
        ("bold", "6-6 6-5", ["6-3", "6-1", "6-2"], "play 6-6"),  # strikes with the strongest
        # nothing in it and seats still to play: not worth a fight
        ("cautious", "6-6 6-1", ["6-3"], "play 6-1"),
        ("cautious", "6-6 6-1", ["6-3", "6-2", "3-2"], "play 6-6"),  # the last, with five in it
        ("highest", "6-6 6-1", ["6-3"], "play 6-6"),
        ("lowest", "6-6 6-1", ["6-3"], "play 6-1"),
    ],
)
def test_tile_follows_character(bot, hand, table, expected):
    assert answer(bot, eighty_turn(hand, trick=trick(*table))) == expected


def test_bold_calls_nello_on_low_tiles():
    hand = "6-1 5-1 4-1 3-1 2-1 6-1 5-1 4-1 3-1 2-1"
    legal = (eighty.Pass(), eighty.Nello(), eighty.Bid(50))
    assert answer("bold", eighty_turn(hand, contract=None, legal=legal)) == "nello"


@pytest.mark.parametrize("bot", ["bold", "greedy"])
def test_nello_bidder_stays_below_the_trick_as_high_as_it_can(bot):
    contract = eighty.Contract(seat=0, bid=80, nello=True, trump=None)
    turn = eighty_turn("6-6 6-4 6-1", contract=contract, trick=trick("6-2", "6-5"))
    assert answer(bot, turn) == "play 6-4"


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


DRAW_OR_PASS = (podkidnoe.Draw(), podkidnoe.Pass())


@pytest.mark.parametrize(
    ("bot", "hand", "expected"),
    [
        (
            "greedy",
            "6-3 3-1 3-0 2-1 2-0",
            "lay 3-1",
        ),  # 3-1 2-1 2-0 is longer than 6-3, and than 3-0 2-0 2-1
        ("bold", "6-3 3-1", "draw"),  # a bigger hand first
        ("highest", "6-3 3-1", "lay 6-3"),  # nine pips
        ("lowest", "6-3 3-1", "lay 3-1"),  # four pips
        ("cautious", "6-3 3-1 6-6 6-2 1-0", "lay 6-3"),  # two sixes would fit next
        ("greedy", "6-6 5-4", "draw"),  # nothing fits
        ("lowest", "6-6 5-4", "pass"),  # would rather pass than draw
    ],
)
def test_turn_of_podkidnoe_follows_character(bot, hand, expected):
    assert answer(bot, podkidnoe_turn(hand, 3, *DRAW_OR_PASS)) == expected


@pytest.mark.parametrize(
    ("bot", "expected"),
    [("cautious", "end"), ("lowest", "end"), ("greedy", "lay 6-3"), ("highest", "lay 6-3")],
)
def test_cautious_and_lowest_stop_after_one_tile(bot, expected):
    assert answer(bot, podkidnoe_turn("6-3 3-1 6-6", 3, podkidnoe.End(), lays=1)) == expected


@pytest.mark.parametrize("bot", ["bold", "greedy"])
def test_run_of_a_huge_hand_is_found_by_looking_only_so_far_ahead(bot):
    everything = [Tile(high, low) for high in range(7) for low in range(high + 1)]
    module = importlib.import_module(f"bots.{bot}")
    run = module.longest_run(3, tuple(everything))
    assert len(run) == module.FORESIGHT
