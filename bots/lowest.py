"""Lowest plays low and keeps out of trouble that costs nothing today.

Eighty: it never bids unless it must, and always plays the tile with the fewest pips. Podkidnoe: it lays
its lightest tile and stops there, one tile a turn, and passes rather than draws.
"""

from __future__ import annotations

from typing import Any

from engine.sdk import Ruleset, Strategy, eighty, hookimpl, podkidnoe


@hookimpl
def make_strategy(game: str, ruleset: Ruleset, players: int) -> Strategy[Any, Any] | None:
    """Lowest plays both games, whatever their options and the number of players."""
    match ruleset:
        case eighty.Ruleset():
            return LowestEighty()
        case podkidnoe.Ruleset():
            return LowestPodkidnoe()
    return None


class LowestEighty(Strategy[eighty.Observation, eighty.Action]):
    """Lets the others have it."""

    def act(self, observation: eighty.Observation) -> eighty.Action:
        """Pass; as the shaker who must not, bid the least; play the lowest tile."""
        if eighty.Pass() in observation.legal:
            return eighty.Pass()
        return min(observation.legal, key=depth)


class LowestPodkidnoe(Strategy[podkidnoe.Observation, podkidnoe.Action]):
    """One light tile a turn."""

    def act(self, observation: podkidnoe.Observation) -> podkidnoe.Action:
        """Lay the tile with the fewest pips, then end; pass without one."""
        lays = [action for action in observation.legal if isinstance(action, podkidnoe.Lay)]
        if lays and not observation.lays:
            return min(lays, key=lambda lay: (lay.tile.pips, lay.tile))
        return observation.legal[-1]  # End or Pass stands last among the legal actions


def depth(action: eighty.Action) -> tuple[int, int]:
    """How low an action stands: bids and suits by their number, tiles by their pips."""
    match action:
        case eighty.Bid(points):
            return points, 0
        case eighty.Trump(suit):
            return suit, 0
        case eighty.Play(tile):
            return tile.pips, tile.high
    return 100, 0
