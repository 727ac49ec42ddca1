"""Bold pays now for more later, and would rather be set than let the others have it.

Eighty: it bids on hope, calls Nel-O on low tiles, and strikes with its strongest tile at once. Podkidnoe:
it draws before it lays, since a bigger hand lays longer runs and empties the reserve for the others.
"""

from __future__ import annotations

from typing import Any

from engine.sdk import Ruleset, Strategy, Tile, eighty, hookimpl, podkidnoe
from engine.sdk.tricks import count_points, led_suit, strength, winning_play, would_win

HOPE = {3: 50, 4: 54, 5: 60, 6: 66}
"""How high it bids on so many trumps; with fewer not at all, with more any height."""
LOW_HAND = 14
"""Calls Nel-O when the low ends of its ten tiles show no more pips than this."""
DRAWS = 2
"""How many tiles it draws in a turn of its own free will."""
FORESIGHT = 6
"""How many tiles of a run it thinks through before each tile that it lays."""


@hookimpl
def make_strategy(game: str, ruleset: Ruleset, players: int) -> Strategy[Any, Any] | None:
    """Bold plays both games, whatever their options and the number of players."""
    match ruleset:
        case eighty.Ruleset():
            return BoldEighty(ruleset)
        case podkidnoe.Ruleset():
            return BoldPodkidnoe()
    return None


class BoldEighty(Strategy[eighty.Observation, eighty.Action]):
    """Strikes first."""

    def __init__(self, ruleset: eighty.Ruleset) -> None:
        self.ruleset = ruleset

    def act(self, observation: eighty.Observation) -> eighty.Action:
        """Call, then name the longest suit if the bid was ours, then play tiles."""
        contract = observation.contract
        if contract is None:
            return self.call(observation)
        if contract.nello:
            return self.play_nello(observation, contract)
        if contract.trump is None:
            return eighty.Trump(longest_suit(observation.hand))
        return self.play(observation, contract)

    def call(self, observation: eighty.Observation) -> eighty.Action:
        """Nel-O on low tiles; else the lowest bid, as long as there is hope for it."""
        is_low = sum(tile.low for tile in observation.hand) <= LOW_HAND
        if is_low and eighty.Nello() in observation.legal:
            return eighty.Nello()
        suit = longest_suit(observation.hand)
        hope = HOPE.get(sum(tile.has(suit) for tile in observation.hand), 80)
        bids = [action for action in observation.legal if isinstance(action, eighty.Bid)]
        must_bid = eighty.Pass() not in observation.legal
        return bids[0] if bids and (must_bid or bids[0].points <= hope) else eighty.Pass()

    def play(self, observation: eighty.Observation, contract: eighty.Contract) -> eighty.Action:
        """Lead and take with the strongest tile; feed the partner's trick; else throw little away."""
        trick = observation.trick
        plays = plays_in(observation)

        def force(play: eighty.Play) -> int:
            led = trick[0].tile if trick else play.tile
            suit = led_suit(led, contract, self.ruleset)
            return strength(play.tile, suit, contract, self.ruleset)

        if not trick:
            return max(plays, key=force)
        if winning_play(trick, contract, self.ruleset).seat == (observation.seat + 2) % 4:
            return max(plays, key=lambda play: (count_points(play.tile), -force(play)))
        taking = [p for p in plays if would_win(p.tile, trick, contract, self.ruleset)]
        if taking:
            return max(taking, key=force)
        return min(plays, key=lambda play: (count_points(play.tile), force(play)))

    def play_nello(
        self, observation: eighty.Observation, contract: eighty.Contract
    ) -> eighty.Action:
        """Lead the tile that is the easiest to beat, follow as high as the trick lets it."""
        trick = observation.trick
        if not trick:
            return min(plays_in(observation), key=lambda play: (play.tile.low, play.tile.high))
        plays = plays_in(observation)
        below = [p for p in plays if not would_win(p.tile, trick, contract, self.ruleset)]
        return max(below or plays, key=lambda play: play.tile.pips)


class BoldPodkidnoe(Strategy[podkidnoe.Observation, podkidnoe.Action]):
    """Grows its hand, then lays all that it can."""

    def act(self, observation: podkidnoe.Observation) -> podkidnoe.Action:
        """Draw, then lay the longest run, then end the turn."""
        may_draw = podkidnoe.Draw() in observation.legal
        if may_draw and observation.draws < DRAWS:
            return podkidnoe.Draw()
        run = max((longest_run(end, observation.hand) for end in observation.open_ends), key=len)
        if run:
            return podkidnoe.Lay(run[0])
        return observation.legal[-1]  # End or Pass stands last among the legal actions


def plays_in(observation: eighty.Observation) -> list[eighty.Play]:
    """The tiles that may be played now."""
    return [action for action in observation.legal if isinstance(action, eighty.Play)]


def longest_suit(hand: tuple[Tile, ...]) -> int:
    """The suit with most tiles; among equals one with a double, then the higher."""
    return max(
        range(1, 7),
        key=lambda suit: (sum(t.has(suit) for t in hand), Tile(suit, suit) in hand, suit),
    )


def longest_run(end: int, hand: tuple[Tile, ...], foresight: int = FORESIGHT) -> tuple[Tile, ...]:
    """The longest run of up to `foresight` tiles of `hand` that begins at the open end."""
    longest: tuple[Tile, ...] = ()
    if foresight:
        for place, tile in enumerate(hand):
            if tile.has(end):
                rest = hand[:place] + hand[place + 1 :]
                run = (tile, *longest_run(tile.other(end), rest, foresight - 1))
                longest = max(longest, run, key=len)
    return longest
