"""The order in which a match's games are played, when it ends, and what comes out.

The referee plays by it and the judge judges by it. Games are counted here as they are *played*: in a
boards match rotation by rotation, so that a process never meets a deal twice; the record lists them
by board.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.games.base import Game
from engine.outcome import Fault, Outcome, Termination, places_by
from engine.record.values import BoardsContest, Contest


class Slot(NamedTuple):
    """One game of a match: what is played, and from which seats."""

    board: int | None
    """The board's index; None in a games match."""
    rotation: int
    """Entrant ``(s + rotation) mod k`` sits on seat s."""
    is_fresh: bool
    """Whether fresh agents sit down for it: the seating changes, or a board is replayed."""


class FinishedGame(NamedTuple):
    """What a finished game counts."""

    slot: Slot
    scores: tuple[int, ...]
    """By entrant."""
    places: tuple[int, ...] | None
    """By entrant; None in a boards match, where a game is but one deal."""


def seating_of(game: Game, entrants: int, rotation: int) -> tuple[int, ...]:
    """Who sits where: the entrant of each seat."""
    return tuple((seat + rotation) % entrants for seat in range(game.seats(entrants)))


def by_entrant(game: Game, seating: Sequence[int], by_side: Sequence[int]) -> tuple[int, ...]:
    """Values given by side, told by entrant."""
    side = {entrant: game.side_of(seat) for seat, entrant in enumerate(seating)}
    return tuple(by_side[side[entrant]] for entrant in range(len(by_side)))


def next_slot(
    game: Game, contest: Contest, entrants: int, played: Sequence[FinishedGame]
) -> Slot | None:
    """The game to play after those `played`; None once the match is over."""
    if isinstance(contest, BoardsContest):
        return _next_board(contest, entrants, played)
    number = len(played)
    if number >= contest.best_of:
        return None
    if game.stops_when_decided and 2 * max(_games_won(entrants, played)) > contest.best_of:
        return None
    return Slot(None, number % entrants, is_fresh=True)


def _next_board(
    contest: BoardsContest, entrants: int, played: Sequence[FinishedGame]
) -> Slot | None:
    regular = contest.boards * entrants
    if len(played) < regular:
        rotation, board = divmod(len(played), contest.boards)
        return Slot(board, rotation, is_fresh=board == 0)
    extra, rotation = divmod(len(played) - regular, entrants)
    if rotation == 0:
        points = _points(entrants, played)
        if extra >= contest.extra_boards or points.count(max(points)) == 1:
            return None
    return Slot(contest.boards + extra, rotation, is_fresh=True)


def outcome_of_games(contest: Contest, entrants: int, played: Sequence[FinishedGame]) -> Outcome:
    """The outcome of a match played to its end."""
    points = _points(entrants, played)
    ranked_by = points if isinstance(contest, BoardsContest) else _beaten(entrants, played)
    return Outcome(Termination.COMPLETED, (), points, places_by(ranked_by))


def outcome_of_faults(entrants: int, faults: Sequence[Fault]) -> Outcome:
    """The outcome of a match that `faults` ended: no points, the offenders last, the others first.

    The first of the faults names the termination.
    """
    offenders = {fault.entrant for fault in faults}
    places = places_by([-(entrant in offenders) for entrant in range(entrants)])
    return Outcome(faults[0].kind, tuple(faults), (0,) * entrants, places)


def _points(entrants: int, played: Iterable[FinishedGame]) -> tuple[int, ...]:
    totals = [0] * entrants
    for game in played:
        for entrant, score in enumerate(game.scores):
            totals[entrant] += score
    return tuple(entrants * own - sum(totals) for own in totals)


def _games_won(entrants: int, played: Iterable[FinishedGame]) -> list[int]:
    won = [0] * entrants
    for game in played:
        if game.places and game.places.count(1) == 1:
            won[game.places.index(1)] += 1
    return won


def _beaten(entrants: int, played: Iterable[FinishedGame]) -> list[int]:
    """Twice the beaten and once the tied, over all games; with two entrants it ranks as games won do."""
    sums = [0] * entrants
    for game in played:
        places = game.places or ()
        for entrant, own in enumerate(places):
            sums[entrant] += sum((other > own) + (other >= own) for other in places) - 1
    return sums
