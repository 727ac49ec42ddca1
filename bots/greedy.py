"""Greedy takes what it can see, each turn anew, and never looks further.

Eighty: it bids what its best suit promises, takes a trick whenever it can, hands its count tiles to its
partner's tricks, and throws away what is worth least. Podkidnoe: it lays the longest run that it
holds, and draws when it holds none.
"""

from __future__ import annotations

from typing import Any

from engine.sdk import Ruleset, Strategy, Tile, eighty, hookimpl, podkidnoe
from engine.sdk.tricks import count_points, led_suit, strength, winning_play, would_win

MARGIN = 5
"""How much more than the bid a hand must promise: a bid that fails gives the others the bid as well."""
FORESIGHT = 6
"""How many tiles of a run greedy thinks through before each tile that it lays."""


@hookimpl
def make_strategy(game: str, ruleset: Ruleset, players: int) -> Strategy[Any, Any] | None:
    """Greedy plays both games, whatever their options and the number of players."""
    match ruleset:
        case eighty.Ruleset():
            return GreedyEighty(ruleset)
        case podkidnoe.Ruleset():
            return GreedyPodkidnoe()
    return None


class GreedyEighty(Strategy[eighty.Observation, eighty.Action]):
    """Counts what it holds, not what the others may hold."""

    def __init__(self, ruleset: eighty.Ruleset) -> None:
        self.ruleset = ruleset

    def act(self, observation: eighty.Observation) -> eighty.Action:
        """Call, then name the trump suit if the bid was ours, then play tiles."""
        contract = observation.contract
        if contract is None:
            return self.call(observation)
        if contract.trump is None and not contract.nello:
            return eighty.Trump(best_suit(observation.hand))
        if contract.nello:
            return self.play_nello(observation, contract)
        if observation.trick:
            return self.follow(observation, contract)
        return self.lead(observation, contract)

    def call(self, observation: eighty.Observation) -> eighty.Action:
        """Make the lowest bid there is, as long as the hand promises that much."""
        promised = promise(observation.hand, best_suit(observation.hand))
        bids = [action for action in observation.legal if isinstance(action, eighty.Bid)]
        if bids and bids[0].points <= promised - MARGIN:
            return bids[0]
        return eighty.Pass() if eighty.Pass() in observation.legal else bids[0]

    def lead(self, observation: eighty.Observation, contract: eighty.Contract) -> eighty.Action:
        """Lead the tile that stands highest in the suit it asks for."""

        def height(play: eighty.Play) -> tuple[int, int]:
            suit = led_suit(play.tile, contract, self.ruleset)
            return strength(play.tile, suit, contract, self.ruleset), -count_points(play.tile)

        return max(plays_in(observation), key=height)

    def follow(self, observation: eighty.Observation, contract: eighty.Contract) -> eighty.Action:
        """Take the trick if it is not ours yet; else add count tiles to it; else throw little away."""
        trick = observation.trick
        suit = led_suit(trick[0].tile, contract, self.ruleset)

        def height(play: eighty.Play) -> int:
            return strength(play.tile, suit, contract, self.ruleset)

        def worth(play: eighty.Play) -> int:
            return count_points(play.tile)

        plays = plays_in(observation)
        best = winning_play(trick, contract, self.ruleset)
        if best.seat == (observation.seat + 2) % 4:
            return max(plays, key=lambda play: (worth(play), -height(play)))
        taking = [p for p in plays if would_win(p.tile, trick, contract, self.ruleset)]
        if not taking:
            return min(plays, key=lambda play: (worth(play), height(play)))
        if len(trick) == 3:
            return max(taking, key=lambda play: (worth(play), -height(play)))
        return max(taking, key=height)

    def play_nello(
        self, observation: eighty.Observation, contract: eighty.Contract
    ) -> eighty.Action:
        """As the bidder follow with the highest tile that does not take the trick; else play low."""
        trick, plays = observation.trick, plays_in(observation)
        if trick and contract.seat == observation.seat:
            taking = [p for p in plays if would_win(p.tile, trick, contract, self.ruleset)]
            below = [play for play in plays if play not in taking]
            return max(below or taking, key=lambda play: play.tile.pips)

        def height(play: eighty.Play) -> int:
            led = trick[0].tile if trick else play.tile
            suit = led_suit(led, contract, self.ruleset)
            return strength(play.tile, suit, contract, self.ruleset)

        return min(plays, key=height)


class GreedyPodkidnoe(Strategy[podkidnoe.Observation, podkidnoe.Action]):
    """Counts the tiles it can lay now."""

    def act(self, observation: podkidnoe.Observation) -> podkidnoe.Action:
        """Lay the first tile of the longest run; else draw; else end the turn or pass."""
        runs = [longest_run(end, observation.hand) for end in observation.open_ends]
        run = max(runs, key=len)
        if run:
            return podkidnoe.Lay(run[0])
        if podkidnoe.Draw() in observation.legal:
            return podkidnoe.Draw()
        return observation.legal[-1]  # End or Pass stands last among the legal actions


def plays_in(observation: eighty.Observation) -> list[eighty.Play]:
    """The tiles that may be played now."""
    return [action for action in observation.legal if isinstance(action, eighty.Play)]


def best_suit(hand: tuple[Tile, ...]) -> int:
    """The trump suit that promises most."""
    return max(range(1, 7), key=lambda suit: promise(hand, suit))


def promise(hand: tuple[Tile, ...], trump: int) -> float:
    """About how many of the 80 points a hand and its partner take with `trump` as trumps.

    The weights are a least-squares fit over some thousand deals that greedy played against itself.
    """
    trumps = sum(tile.has(trump) for tile in hand)
    doubles = sum(tile.is_double for tile in hand)
    return 7 + 6.6 * trumps + 3.4 * doubles


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
