"""The verdict on a record: is every value what the rules make of the tiles and the actions?

Nothing is asked of who played it. The judge walks the games in the order in which they were played
and stops at the first untruth. What no rule can tell (names, versions, the text of a fault) it leaves
to the digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from engine.errors import ArenaError, NotationError, RecordError, RulesetError, UsageError
from engine.games import get_game
from engine.games.base import Board, Game, State
from engine.outcome import FAULTS, LONGEST_DETAIL, Fault, Outcome, Termination
from engine.record.checks import complaints, terms_complaints
from engine.record.codec import canonical_json, compute_digest
from engine.record.contest import (
    FinishedGame,
    Slot,
    by_entrant,
    next_slot,
    outcome_of_faults,
    outcome_of_games,
    seating_of,
)
from engine.record.dealing import check_key, parse_board
from engine.record.values import (
    FORMAT,
    BoardsContest,
    Contest,
    DealRecord,
    GameRecord,
    MatchRecord,
)
from engine.sdk.timecontrol import TimeControl


class ReplayedDeal(msgspec.Struct, frozen=True, kw_only=True):
    """One deal of a record, read back."""

    game: int
    """Index into the record's games."""
    deal: int
    """Index into that game's deals."""
    board: Board
    actions: tuple[tuple[int, Any], ...]
    """Seat and typed action."""
    score: tuple[int, ...] | None
    """By side; None for the deal that a fault cut."""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A record found true, read back into typed values."""

    game: Game
    ruleset: Any
    deals: tuple[ReplayedDeal, ...]
    """As the record lists them."""


def replay(record: MatchRecord) -> Replay:
    """Judge a record completely by the rules alone.

    Raises RecordError, whose `place` names the value, at the first untruth.
    """
    return _Judge(record).judge()


def judge_terms(
    game: Game, ruleset: dict[str, Any], contest: Contest, time_control: TimeControl
) -> None:
    """Raise RecordError, with the place, unless matches of `game` can be played so."""
    _judge_ruleset(game, ruleset)
    for place, message in terms_complaints(contest, time_control):
        raise RecordError(place, message)


class _Cut(msgspec.Struct, frozen=True):
    """Where a fault stopped a deal."""

    seat: int
    had_choice: bool


class _Judge:
    """One reading of one record."""

    def __init__(self, record: MatchRecord) -> None:
        self.record = record
        self.game, self.ruleset = _judge_claims(record)
        self.entrants = len(record.entrants)
        self.has_boards = isinstance(record.contest, BoardsContest)
        self.is_completed = record.outcome.termination is Termination.COMPLETED
        self.boards_seen: dict[int, tuple[str, DealRecord]] = {}
        self.deals_seen = 0
        self.deals: dict[tuple[int, int], ReplayedDeal] = {}
        self.cut: _Cut | None = None

    def judge(self) -> Replay:
        """Walk through all of it."""
        played, slot = self._judge_games()
        outcome = self.record.outcome
        if self.is_completed:
            if slot is not None:
                raise RecordError("games", f"{_spell(slot)} is missing: the match was not over")
            wanted = outcome_of_games(self.record.contest, self.entrants, played)
        else:
            self._judge_faults(slot)
            wanted = outcome_of_faults(self.entrants, outcome.faults)
        _compare_outcomes(outcome, wanted)
        self._judge_timing()
        digest = compute_digest(self.record)
        if self.record.digest != digest:
            raise RecordError("digest", f"the record's digest is {digest}")
        return Replay(
            game=self.game,
            ruleset=self.ruleset,
            deals=tuple(self.deals[index] for index in sorted(self.deals)),
        )

    def _judge_timing(self) -> None:
        """Only its form: what was measured nobody can measure again."""
        timing, seats = self.record.timing, self.game.seats(self.entrants)
        if timing.wall_ms < 0:
            raise RecordError("timing.wall_ms", "no match takes less than no time")
        if len(timing.cpu_us) != len(self.record.games):
            raise RecordError("timing.cpu_us", f"it has one list a game: {len(self.record.games)}")
        for g, spent in enumerate(timing.cpu_us):
            if len(spent) != seats or min(spent) < 0:
                raise RecordError(f"timing.cpu_us[{g}]", f"it has {seats} numbers from 0 up")
        if not isinstance(timing.budget_percent, msgspec.UnsetType) and timing.budget_percent < 1:
            raise RecordError("timing.budget_percent", "it is a number from 1 up")
        if not isinstance(timing.action_cpu_us, msgspec.UnsetType):
            self._judge_action_times(timing.action_cpu_us)

    def _judge_action_times(self, times: list[list[list[int]]]) -> None:
        games = self.record.games
        if len(times) != len(games):
            raise RecordError("timing.action_cpu_us", f"it has one list a game: {len(games)}")
        for g, (game, by_deal) in enumerate(zip(games, times, strict=True)):
            if len(by_deal) != len(game.deals):
                place = f"timing.action_cpu_us[{g}]"
                raise RecordError(place, f"it has one list a deal: {len(game.deals)}")
            for d, (deal, spent) in enumerate(zip(game.deals, by_deal, strict=True)):
                if len(spent) != len(deal.actions) or min(spent, default=0) < 0:
                    place = f"timing.action_cpu_us[{g}][{d}]"
                    raise RecordError(place, f"it has {len(deal.actions)} numbers from 0 up")

    def _judge_games(self) -> tuple[list[FinishedGame], Slot | None]:
        """The finished games as played, and the slot that was not finished (None: the match is over)."""
        waiting = _Listing(self.record, has_boards=self.has_boards)
        played: list[FinishedGame] = []
        while (
            slot := next_slot(self.game, self.record.contest, self.entrants, played)
        ) is not None:
            index = waiting.pop(len(played) if slot.board is None else slot.board, slot.rotation)
            if index is None:
                break
            finished = self._judge_game(index, slot)
            if finished is None:
                break
            played.append(finished)
        waiting.refuse_rest(self._reason_to_stop(slot))
        return played, slot

    def _reason_to_stop(self, slot: Slot | None) -> str:
        if slot is None:
            return "the match was over"
        if self.cut is not None:
            return "a fault had ended the match"
        return f"{_spell(slot)} comes before it and is missing"

    def _judge_game(self, index: int, slot: Slot) -> FinishedGame | None:
        """The finished game; None if a fault cut it."""
        entry, place = self.record.games[index], f"games[{index}]"
        seating = seating_of(self.game, self.entrants, slot.rotation)
        _compare_numbers(entry.seating, seating, f"{place}.seating")
        totals, places = self._judge_deals(index, entry, slot)
        _compare_numbers(entry.score, totals, f"{place}.score")
        if self.cut is not None:
            return None
        return FinishedGame(
            slot,
            by_entrant(self.game, seating, totals),
            None if places is None else by_entrant(self.game, seating, places),
        )

    def _judge_deals(
        self, index: int, entry: GameRecord, slot: Slot
    ) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        """Totals and places by side; no places for a board or for a game that a fault cut."""
        totals = (0,) * self.entrants
        for d, deal in enumerate(entry.deals):
            place = f"games[{index}].deals[{d}]"
            state = self._judge_deal(index, d, slot)
            if deal.score is None:
                self._judge_cut(state, place)
                _refuse_more_deals(entry, index, d, "a fault had ended the match")
                return totals, None
            score = state.score() if state.is_over else None
            if score is None:
                raise RecordError(
                    f"{place}.actions", f"the deal is not over: seat {state.seat} has to act"
                )
            _compare_numbers(deal.score, score, f"{place}.score")
            totals = tuple(map(sum, zip(totals, score, strict=True)))
            if self.has_boards:
                _refuse_more_deals(entry, index, d, "a board is one deal")
                return totals, None
            places = self.game.game_places(self.ruleset, totals, d + 1, state)
            if places is not None:
                _refuse_more_deals(entry, index, d, "the game was over")
                return totals, places
        raise RecordError(f"games[{index}].deals", "the game is not over: a deal is missing")

    def _judge_deal(self, index: int, d: int, slot: Slot) -> State:
        """The deal's position after its last action."""
        deal, place = self.record.games[index].deals[d], f"games[{index}].deals[{d}]"
        self._judge_number(deal, slot, place)
        board = parse_board(self.game, self.ruleset, self.entrants, deal, place)
        self._judge_origin(deal, d, slot, place)
        try:
            state = self.game.start(self.ruleset, board)
        except UsageError as error:
            raise RecordError(place, str(error)) from error
        actions = tuple(
            _judge_action(self.game, state, text, f"{place}.actions[{a}]")
            for a, text in enumerate(deal.actions)
        )
        self.deals[index, d] = ReplayedDeal(
            game=index,
            deal=d,
            board=board,
            actions=actions,
            score=None if deal.score is None else tuple(deal.score),
        )
        return state

    def _judge_number(self, deal: DealRecord, slot: Slot, place: str) -> None:
        wanted = self.deals_seen if slot.board is None else slot.board
        if deal.number != wanted:
            raise RecordError(f"{place}.number", f"this is the match's deal {wanted}")
        self.deals_seen += 1

    def _judge_origin(self, deal: DealRecord, d: int, slot: Slot, place: str) -> None:
        """Where the tiles and the first seat come from: the key, the board, the deal before."""
        if slot.board is not None:
            where, other = self.boards_seen.setdefault(slot.board, (place, deal))
            if other is not deal:
                _compare_boards(deal, other, where, place)
                if deal.key == other.key:
                    return  # which has been found to yield this board
                if None in (deal.key, other.key):
                    message = (
                        f"it is {'hidden' if deal.key is None else 'shown'} here and not in {where}"
                    )
                    raise RecordError(f"{place}.key", message)
        else:
            first = (self.record.games[0].deals[0].first + d) % self.game.seats(self.entrants)
            if deal.first != first:
                raise RecordError(f"{place}.first", f"it is seat {first}'s turn to be first")
        if deal.key is not None:
            check_key(self.record, deal, place)

    def _judge_cut(self, state: State, place: str) -> None:
        if self.is_completed:
            raise RecordError(f"{place}.score", "only a deal that a fault cut has no score")
        if state.is_over:
            raise RecordError(
                f"{place}.score", f"the deal is over; it scores {list(state.score())}"
            )
        self.cut = _Cut(state.seat, len(state.legal()) > 1)

    def _judge_faults(self, slot: Slot | None) -> None:
        faults = self.record.outcome.faults
        if not faults:
            raise RecordError(
                "outcome.faults", f"the match ended by {self.record.outcome.termination}: by whom?"
            )
        if slot is None:
            raise RecordError("outcome.termination", "the match was played to its end")
        for f, fault in enumerate(faults):
            self._judge_fault(fault, slot, f"outcome.faults[{f}]")
        if self.cut is not None:
            _judge_fault_at_turn(faults, self.cut)
        else:
            _judge_faults_at_start(faults, slot)

    def _judge_fault(self, fault: Fault, slot: Slot, place: str) -> None:
        if fault.kind not in FAULTS:
            raise RecordError(f"{place}.kind", f"{fault.kind} is not a bot's fault")
        if len(fault.detail) > LONGEST_DETAIL or not fault.detail.isprintable():
            raise RecordError(
                f"{place}.detail", f"it must be one line of at most {LONGEST_DETAIL} characters"
            )
        seating = seating_of(self.game, self.entrants, slot.rotation)
        if fault.seat is None:
            if not 0 <= fault.entrant < self.entrants:
                raise RecordError(f"{place}.entrant", f"there is no entrant {fault.entrant}")
        elif not 0 <= fault.seat < len(seating):
            raise RecordError(f"{place}.seat", f"there is no seat {fault.seat}")
        elif seating[fault.seat] != fault.entrant:
            raise RecordError(
                f"{place}.entrant", f"entrant {seating[fault.seat]} sat on seat {fault.seat}"
            )


class _Listing:
    """The games of a record that have not been walked through yet."""

    def __init__(self, record: MatchRecord, *, has_boards: bool) -> None:
        self._waiting: dict[tuple[int, int], int] = {}
        before = (-1, 0)
        for index, entry in enumerate(record.games):
            place = f"games[{index}]"
            if (entry.board is None) == has_boards:
                raise RecordError(f"{place}.board", "boards have an index, games have null")
            here = (index if entry.board is None else entry.board, entry.rotation)
            if here <= before:
                raise RecordError(f"{place}.board", "games stand sorted by board and rotation")
            self._waiting[here] = index
            before = here

    def pop(self, number: int, rotation: int) -> int | None:
        """The index of that board (or game) in that rotation; None if it is not listed."""
        return self._waiting.pop((number, rotation), None)

    def refuse_rest(self, reason: str) -> None:
        """Raise RecordError if games are left that cannot have been played."""
        for index in self._waiting.values():
            raise RecordError(f"games[{index}]", f"this game cannot have been played: {reason}")


def _judge_claims(record: MatchRecord) -> tuple[Game, Any]:
    """The game and ruleset, once all that stands before the games can be played."""
    if record.format != FORMAT:
        raise RecordError("format", f"this judge reads {FORMAT}")
    try:
        game = get_game(record.game)
    except UsageError as error:
        raise RecordError("game", str(error)) from error
    ruleset = _judge_ruleset(game, record.ruleset)
    for place, message in complaints(
        game, record.match_key, record.contest, record.time_control, record.entrants
    ):
        raise RecordError(place, message)
    return game, ruleset


def _judge_ruleset(game: Game, given: dict[str, Any]) -> Any:
    for option in game.options:
        if option.name not in given:
            raise RecordError(f"ruleset.{option.name}", "the option is missing")
    try:
        ruleset = game.make_ruleset(given)
    except RulesetError as error:
        raise RecordError(f"ruleset.{error.option}", str(error)) from error
    full = msgspec.to_builtins(ruleset)
    for name, value in given.items():
        if canonical_json(value) != canonical_json(full[name]):
            raise RecordError(
                f"ruleset.{name}", f"write it as {canonical_json(full[name]).decode()}"
            )
    return ruleset


def _judge_action(game: Game, state: State, text: str, place: str) -> tuple[int, Any]:
    """Play one action's notation."""
    if state.is_over:
        raise RecordError(place, "the deal was over")
    seat, _, notation = text.partition(" ")
    try:
        action = game.parse_action(notation)
    except NotationError as error:
        raise RecordError(place, str(error)) from error
    if seat != str(state.seat):
        raise RecordError(place, f"seat {state.seat} has to act")
    if notation != str(action):
        raise RecordError(place, f"write the action as {action}")
    seat_to_act = state.seat
    try:
        state.apply(game.encode(action))
    except ArenaError as error:
        raise RecordError(place, str(error)) from error
    return seat_to_act, action


def _refuse_more_deals(entry: GameRecord, index: int, last: int, reason: str) -> None:
    if len(entry.deals) > last + 1:
        raise RecordError(f"games[{index}].deals[{last + 1}]", f"it was not played: {reason}")


def _compare_boards(deal: DealRecord, other: DealRecord, where: str, place: str) -> None:
    for field in ("hands", "first", "dead", "starter", "reserve"):
        if getattr(deal, field) != getattr(other, field):
            raise RecordError(f"{place}.{field}", f"it differs from the same board in {where}")


def _judge_fault_at_turn(faults: Sequence[Fault], cut: _Cut) -> None:
    if len(faults) > 1:
        raise RecordError("outcome.faults[1]", "the first fault at the table ended the match")
    if faults[0].seat != cut.seat:
        raise RecordError("outcome.faults[0].seat", f"seat {cut.seat} had to act")
    if not cut.had_choice:
        raise RecordError(
            "outcome.faults[0]", "what is forced is not asked: the cut deal must go on to a choice"
        )


def _judge_faults_at_start(faults: Sequence[Fault], slot: Slot) -> None:
    if not slot.is_fresh:
        raise RecordError(
            "games", f"{_spell(slot)} is missing: no agent starts there, so none can fail to"
        )
    for f, fault in enumerate(faults):
        place = f"outcome.faults[{f}]"
        if fault.kind is Termination.ILLEGAL_ACTION:
            raise RecordError(f"{place}.kind", "nothing had been asked: no deal was cut")
        earlier = faults[:f]
        if any(
            e.entrant == fault.entrant and (e.seat == fault.seat or None in (e.seat, fault.seat))
            for e in earlier
        ):
            raise RecordError(place, "the same fault is named twice")
        if fault.seat is not None and any((e.seat or 0) > fault.seat for e in earlier):
            raise RecordError(place, "faults stand in the order of the seats")


def _compare_outcomes(found: Outcome, wanted: Outcome) -> None:
    if found.termination is not wanted.termination:
        raise RecordError("outcome.termination", f"the first fault was {wanted.termination}")
    if found.faults != wanted.faults:
        raise RecordError("outcome.faults", "a match played to its end has none")
    _compare_numbers(found.points, wanted.points, "outcome.points")
    _compare_numbers(found.places, wanted.places, "outcome.places")


def _compare_numbers(found: Sequence[int], wanted: Sequence[int], place: str) -> None:
    if len(found) != len(wanted):
        raise RecordError(place, f"it must be {list(wanted)}")
    for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if one != other:
            raise RecordError(f"{place}[{i}]", f"it must be {other}, not {one}")


def _spell(slot: Slot) -> str:
    if slot.board is None:
        return f"the next game, in rotation {slot.rotation},"
    return f"board {slot.board} in rotation {slot.rotation}"
