"""Cautious risks nothing that it can keep: it wants certainty before it spends.

Eighty: it bids only on a hand that can hardly fail, spends its trumps last, and lays a count tile only
on a trick that is its side's already. Podkidnoe: it lays no more than it must, so that it can go on
laying in later turns while others draw and pay.
"""

from __future__ import annotations

from typing import Any

from engine.sdk import Ruleset, Strategy, Tile, eighty, hookimpl, podkidnoe
from engine.sdk.tricks import count_points, led_suit, strength, winning_play, would_win

SURE_TRUMPS = 5
"""With so many trumps, their double among them, it dares to bid …"""
SURE_DOUBLES = 3
"""… if it holds so many doubles in all."""


@hookimpl
def make_strategy(game: str, ruleset: Ruleset, players: int) -> Strategy[Any, Any] | None:
    """Cautious plays both games, whatever their options and the number of players."""
    match ruleset:
        case eighty.Ruleset():
            return CautiousEighty(ruleset)
        case podkidnoe.Ruleset():
            return CautiousPodkidnoe()
    return None


class CautiousEighty(Strategy[eighty.Observation, eighty.Action]):
    """Would rather be given points than fight for them."""

    def __init__(self, ruleset: eighty.Ruleset) -> None:
        self.ruleset = ruleset

    def act(self, observation: eighty.Observation) -> eighty.Action:
        """Call, then name the longest suit if the bid was ours, then play tiles."""
        contract = observation.contract
        if contract is None:
            return self.call(observation)
        if contract.trump is None and not contract.nello:
            return eighty.Trump(longest_suit(observation.hand))
        return self.play(observation, contract)

    def call(self, observation: eighty.Observation) -> eighty.Action:
        """Bid the least on a hand that can hardly fail, else pass where the rules allow it."""
        bids = [action for action in observation.legal if isinstance(action, eighty.Bid)]
        must_bid = eighty.Pass() not in observation.legal
        return bids[0] if bids and (must_bid or is_sure(observation.hand)) else eighty.Pass()

    def play(self, observation: eighty.Observation, contract: eighty.Contract) -> eighty.Action:
        """Spend what costs least; only a trick with points in it is worth a fight."""
        trick = observation.trick
        plays = [action for action in observation.legal if isinstance(action, eighty.Play)]

        def cost(play: eighty.Play) -> tuple[int, int]:
            led = trick[0].tile if trick else play.tile
            suit = led_suit(led, contract, self.ruleset)
            return count_points(play.tile), strength(play.tile, suit, contract, self.ruleset)

        def is_taking(play: eighty.Play) -> bool:
            return would_win(play.tile, trick, contract, self.ruleset)

        cheapest = min(plays, key=cost)
        if contract.nello or not trick:
            return cheapest
        partner_takes = (
            winning_play(trick, contract, self.ruleset).seat == (observation.seat + 2) % 4
        )
        is_last = len(trick) == 3
        if partner_takes:
            return max(plays, key=lambda play: count_points(play.tile)) if is_last else cheapest
        taking = [play for play in plays if is_taking(play)]
        is_worth_it = is_last or any(count_points(played.tile) for played in trick)
        return min(taking, key=cost) if taking and is_worth_it else cheapest


class CautiousPodkidnoe(Strategy[podkidnoe.Observation, podkidnoe.Action]):
    """Keeps something for the next turn."""

    def act(self, observation: podkidnoe.Observation) -> podkidnoe.Action:
        """Lay the one tile after which most others would fit, then end; draw only to lay."""
        lays = [action for action in observation.legal if isinstance(action, podkidnoe.Lay)]
        if lays and (not observation.lays or observation.reserve_size == 0):
            return max(lays, key=lambda lay: fitting_after(lay.tile, observation))
        if podkidnoe.Draw() in observation.legal:
            return podkidnoe.Draw()
        return observation.legal[-1]  # End or Pass stands last among the legal actions


def longest_suit(hand: tuple[Tile, ...]) -> int:
    """The suit with most tiles; among equals one with a double, then the higher."""
    return max(
        range(1, 7),
        key=lambda suit: (sum(t.has(suit) for t in hand), Tile(suit, suit) in hand, suit),
    )


def is_sure(hand: tuple[Tile, ...]) -> bool:
    """Whether a hand can hardly fail a low bid."""
    suit = longest_suit(hand)
    return (
        sum(tile.has(suit) for tile in hand) >= SURE_TRUMPS
        and Tile(suit, suit) in hand
        and sum(tile.is_double for tile in hand) >= SURE_DOUBLES
    )


def fitting_after(tile: Tile, observation: podkidnoe.Observation) -> int:
    """How many of the other tiles in hand would fit once `tile` is laid."""
    end = next(end for end in observation.open_ends if tile.has(end))
    return sum(other.has(tile.other(end)) for other in observation.hand if other != tile)
