"""How long a match can last: what its bots may compute and idle at most, and how long a typical one takes."""

from __future__ import annotations

from engine.games.base import Game
from engine.record import BoardsContest, Contest
from engine.sdk.timecontrol import TimeControl


def longest_seconds(
    game: Game,
    contest: Contest,
    control: TimeControl,
    entrants: int,
    *,
    budget_percent: int = 100,
) -> float:
    """Seconds that a match lasts at most on a machine that is not busy, with bots that use up all they have.

    CPU budgets are `budget_percent` of the time control's; what a process may idle is not scaled.
    """
    seats = game.seats(entrants)
    sittings, games, deals = _counts(game, contest, entrants)
    questions = deals * game.most_questions
    cpu_ms = (
        sittings * control.start_cpu_ms
        + games * control.game_cpu_ms
        + questions * control.action_cpu_ms
    )
    idle_ms = sittings * control.action_wall_ms
    return seats * (cpu_ms * budget_percent / 100 + idle_ms) / 1000


def _counts(game: Game, contest: Contest, entrants: int) -> tuple[int, int, int]:
    """How many sets of processes, games and deals there are at most; as `engine.record.next_slot` tells them."""
    if isinstance(contest, BoardsContest):
        games = (contest.boards + contest.extra_boards) * entrants
        return entrants + contest.extra_boards * entrants, games, games
    return contest.best_of, contest.best_of, contest.best_of * game.most_deals


def spell_seconds(seconds: float) -> str:
    """``45 s``, ``12 min``, ``7 h 5 min``; rounded up."""
    whole = -int(-seconds // 1)
    if whole < 120:
        return f"{whole} s"
    minutes = -(-whole // 60)
    hours, rest = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {rest} min" if rest else f"{hours} h"
