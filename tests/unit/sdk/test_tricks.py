"""What the SDK says of a trick is what the referee's rules do."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.games.eighty import EIGHTY, Contract, Nello, Played
from engine.sdk.tricks import DOUBLES, count_points, led_suit, winning_play, would_win
from engine.shuffle import Stream
from engine.tiles import parse_tile, tile_set

RULESETS = st.builds(
    lambda doubles, twins: EIGHTY.make_ruleset({"nello_doubles": doubles, "twin_winner": twins}),
    st.sampled_from(["high", "own_suit", "low"]),
    st.sampled_from(["first", "last"]),
)


@given(RULESETS, st.binary(min_size=32, max_size=32), st.randoms(use_true_random=False))
def test_winner_of_every_trick_is_the_referees(ruleset, key: bytes, dice: Random):
    state = EIGHTY.start(ruleset, EIGHTY.deal(Stream(key), ruleset, 4))
    contract = None
    while not state.is_over:
        seen = state.observe(0)
        contract = seen.contract
        wants_nello = Nello() in seen.legal and dice.random() < 0.5
        action = Nello() if wants_nello else dice.choice(seen.legal)
        state.apply(EIGHTY.encode(action))
    for trick in state.tricks:
        assert contract is not None
        assert winning_play(trick.plays, contract, ruleset).seat == trick.winner
        assert sum(count_points(play.tile) for play in trick.plays) == max(trick.points - 2, 0) or (
            contract.nello
        )
        *before, last = trick.plays
        assert would_win(last.tile, before, contract, ruleset) == (last.seat == trick.winner)


def test_count_tiles_of_both_sets_hold_60_points():
    assert 2 * sum(count_points(tile) for tile in tile_set(1)) == 60


@pytest.mark.parametrize(
    ("trump", "options", "tile", "suit"),
    [
        (4, {}, "6-4", 4),  # a trump asks for trumps
        (4, {}, "6-5", 6),  # else the higher end
        (None, {}, "3-3", 3),  # in Nel-O a double is of its suit
        (None, {"nello_doubles": "own_suit"}, "3-3", DOUBLES),  # or of the doubles' own
    ],
)
def test_led_suit(trump, options, tile, suit):
    contract = Contract(seat=0, bid=80, nello=trump is None, trump=trump)
    assert led_suit(parse_tile(tile), contract, EIGHTY.make_ruleset(options)) == suit


@pytest.mark.parametrize(
    ("trump", "plays", "winner"),
    [
        (4, "6-4 4-4 4-4 4-1", 1),  # the double is the highest trump, the first of twins
        (4, "5-3 6-5 4-1 6-6", 2),  # a low trump beats all else
        (None, "6-5 6-6 6-6 6-4", 1),  # the double of the led suit
    ],
)
def test_examples_of_the_rules(trump, plays, winner):
    contract = Contract(seat=0, bid=50, nello=trump is None, trump=trump)
    trick = [Played(seat, parse_tile(text)) for seat, text in enumerate(plays.split())]
    assert winning_play(trick, contract, EIGHTY.make_ruleset()).seat == winner
