"""What a seat saw: the moments at which it had to act, read back from a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from engine.record.judge import Replay, ReplayedDeal
from engine.record.values import BoardsContest, MatchRecord
from engine.sdk import GameInfo


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One moment at which a seat had to act."""

    deal: int
    """The deal's number."""
    action: int
    """Index among the deal's actions."""
    move: int
    """Counts the seat's actions in its game, forced ones too, from 1."""
    observation: Any
    chosen: Any
    """The action in the record; None where the seat's fault ended the match."""

    @property
    def is_forced(self) -> bool:
        """Whether only one action was legal: then nobody was asked."""
        return len(self.observation.legal) == 1


def turns_of(record: MatchRecord, found: Replay, game: int, seat: int) -> tuple[Turn, ...]:
    """The turns of `seat` in the record's game of that index; `found` is what `replay` made of it.

    Clocks follow from the record's timing; where that tells no action's cost, nothing was spent.
    """
    return tuple(_Reading(record, found, game, seat).turns())


def earlier_games(record: MatchRecord, game: int) -> tuple[int, ...]:
    """The games that the same processes had played before, as indexes in the order of play."""
    contest, entry = record.contest, record.games[game]
    if not isinstance(contest, BoardsContest) or entry.board is None:
        return ()
    board = entry.board
    if board >= contest.boards:
        return ()
    return tuple(
        index
        for index, other in enumerate(record.games)
        if other.rotation == entry.rotation and other.board is not None and other.board < board
    )


def info_of(record: MatchRecord, found: Replay, game: int, seat: int, random_seed: int) -> GameInfo:
    """What the strategy on `seat` was told when that game began, with this random seed."""
    return GameInfo(
        game=record.game,
        ruleset=found.ruleset,
        seat=seat,
        players=tuple(record.entrants[entrant].name for entrant in record.games[game].seating),
        time_control=record.time_control,
        random_seed=random_seed,
        number=len(earlier_games(record, game)),
    )


class _Reading:
    """One game through the eyes of one seat."""

    def __init__(self, record: MatchRecord, found: Replay, game: int, seat: int) -> None:
        self.record = record
        self.found = found
        self.game = game
        self.seat = seat
        self.move = 0
        self.clock_us = self._budget_us(record.time_control.game_cpu_ms)
        self.totals = [0] * len(record.entrants)

    def turns(self) -> Iterator[Turn]:
        """The turns in order."""
        for deal in self.found.deals:
            if deal.game == self.game:
                yield from self._turns_of_deal(deal)
                for side, score in enumerate(deal.score or ()):
                    self.totals[side] += score

    def _turns_of_deal(self, deal: ReplayedDeal) -> Iterator[Turn]:
        game = self.found.game
        number = self.record.games[self.game].deals[deal.deal].number
        state = game.start(self.found.ruleset, deal.board)
        for index, (seat, action) in enumerate((*deal.actions, (-1, None))):
            if state.seat == self.seat:
                self.move += 1
                if len(state.legal()) > 1:
                    self.clock_us += self._budget_us(self.record.time_control.action_cpu_ms)
                yield Turn(
                    deal=number,
                    action=index,
                    move=self.move,
                    observation=state.observe(self.clock_us // 1000, tuple(self.totals)),
                    chosen=action,
                )
                self.clock_us -= self._cost_us(deal.deal, index)
            if action is not None:
                game.apply_action(state, seat, action)

    def _budget_us(self, cpu_ms: int) -> int:
        percent = self.record.timing.budget_percent
        return cpu_ms * 10 * (100 if isinstance(percent, msgspec.UnsetType) else percent)

    def _cost_us(self, deal: int, action: int) -> int:
        times = self.record.timing.action_cpu_us
        if isinstance(times, msgspec.UnsetType):
            return 0
        costs = times[self.game][deal]
        return costs[action] if action < len(costs) else 0
