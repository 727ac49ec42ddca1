"""Highest plays high: the highest bid that it dares, the highest tile that it may.

It shows what a fixed habit is worth. Eighty: it bids when it holds high tiles, and always plays the
tile with the most pips. Podkidnoe: it always lays the tile with the most pips, and draws when it has none.
"""

from __future__ import annotations

from typing import Any

from engine.sdk import Ruleset, Strategy, Tile, eighty, hookimpl, podkidnoe

ENOUGH_PIPS = 80
"""Ten tiles show 70 pips on average; with so many it bids."""


@hookimpl
def make_strategy(game: str, ruleset: Ruleset, players: int) -> Strategy[Any, Any] | None:
    """Highest plays both games, whatever their options and the number of players."""
    match ruleset:
        case eighty.Ruleset():
            return HighestEighty()
        case podkidnoe.Ruleset():
            return HighestPodkidnoe()
    return None


class HighestEighty(Strategy[eighty.Observation, eighty.Action]):
    """Believes in pips."""

    def act(self, observation: eighty.Observation) -> eighty.Action:
        """Bid once with many pips, name the suit that it holds most of, play the highest tile."""
        if observation.contract is None:
            return call(observation)
        return max(observation.legal, key=lambda action: height(action, observation.hand))


class HighestPodkidnoe(Strategy[podkidnoe.Observation, podkidnoe.Action]):
    """Gets rid of heavy tiles first."""

    def act(self, observation: podkidnoe.Observation) -> podkidnoe.Action:
        """Lay the tile with the most pips; else draw; else end the turn or pass."""
        lays = [action for action in observation.legal if isinstance(action, podkidnoe.Lay)]
        if lays:
            return max(lays, key=lambda lay: (lay.tile.pips, lay.tile))
        if podkidnoe.Draw() in observation.legal:
            return podkidnoe.Draw()
        return observation.legal[-1]  # End or Pass stands last among the legal actions


def call(observation: eighty.Observation) -> eighty.Action:
    """The lowest bid with many pips in hand, else a pass, where the rules allow one."""
    bids = [action for action in observation.legal if isinstance(action, eighty.Bid)]
    pips = sum(tile.pips for tile in observation.hand)
    must_bid = eighty.Pass() not in observation.legal
    return bids[0] if bids and (must_bid or pips >= ENOUGH_PIPS) else eighty.Pass()


def height(action: eighty.Action, hand: tuple[Tile, ...]) -> tuple[int, int]:
    """How high an action stands: a trump suit by its tiles in hand, a play by its pips."""
    match action:
        case eighty.Trump(suit):
            return sum(tile.has(suit) for tile in hand), suit
        case eighty.Play(tile):
            return tile.pips, tile.high
    return 0, 0
