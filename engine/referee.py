"""Plays a match: seats the agents, asks them to act, applies the rules, keeps the clocks, writes the record.

What a bot does wrong is a value that ends the match; our own failures pass through as
InfrastructureError and leave no record. The referee must not know where a bot runs: it asks `Agent`s.

Fresh agents sit down for each rotation of a boards match, which is played rotation by rotation (its
extra boards each rotation anew), and for each game of a games match, where each game has a rotation of
its own. So no agent meets a board twice, and none remembers what another seat held.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from engine.agents import (
    Agent,
    AgentFactory,
    AgentLog,
    BotSource,
    Declined,
    Failure,
    Limits,
    Reply,
    never,
)
from engine.errors import ContestError
from engine.games import get_game
from engine.games.base import Board, State
from engine.outcome import Fault, Outcome, Termination, clean_detail
from engine.record import (
    FORMAT,
    DealRecord,
    FinishedGame,
    GameRecord,
    MatchRecord,
    MatchSpec,
    Slot,
    Timing,
    check_spec,
    compute_digest,
    deal_board,
    next_slot,
    outcome_of_faults,
    outcome_of_games,
    write_board,
)
from engine.record.contest import by_entrant, seating_of
from engine.sdk import GameInfo
from engine.shuffle import bot_seed, deal_key


class SeatLog(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent left behind, for the owner of its bot."""

    entrant: int
    bot: int
    """Index into the entrant's bots."""
    rotation: int
    seat: int
    sitting: int
    """Which of the match's sets of agents this one belonged to, from 0, in the order of play."""
    log: AgentLog
    fault: str = ""
    """After this seat's own fault: what it saw and the random seed it had, to play it again."""
    debug: str = ""
    """After a fault at a question: the arguments of `arena debug` that put it to the bot again."""

    def debug_command(self, record: str, bot: str = "") -> str:
        """The command that asks a bot (the one that is installed, if none is named) the fatal question again.

        `record` is the file of the match's record. Empty where no question was at fault.
        """
        if not self.debug:
            return ""
        words = [shlex.quote(word) for word in (record, bot) if word]
        return " ".join(["arena debug", *words, self.debug])


class PlayedMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A match that was played: what happened, for everybody, and the logs, for the owners."""

    record: MatchRecord
    logs: tuple[SeatLog, ...]


def unseen(_games: int) -> None:
    """A `progress` that nobody looks at."""


def play_match(
    spec: MatchSpec,
    sources: Sequence[Sequence[BotSource]],
    factory: AgentFactory,
    keep_alive: Callable[[], None] = never,
    progress: Callable[[int], None] = unseen,
    budget_percent: int = 100,
) -> PlayedMatch:
    """Play the match to its end or its first fault.

    `sources`: for each entrant its bots, as in `spec.entrants`. `keep_alive` is called before each question,
    and at least once a second while a sandboxed bot thinks; what it raises ends the play. `progress` is told after
    each game how many are finished. CPU budgets are `budget_percent` of the time control's: more on a slow
    machine. Raises ContestError for what cannot be played, InfrastructureError
    for our own failure. All agents are closed in any case.
    """
    check_spec(spec)
    _check_sources(spec, sources)
    return _Referee(spec, sources, factory, keep_alive, progress, budget_percent).play()


def _check_sources(spec: MatchSpec, sources: Sequence[Sequence[BotSource]]) -> None:
    named = [[bot.bot for bot in entrant.bots] for entrant in spec.entrants]
    given = [[source.bot for source in bots] for bots in sources]
    if named != given:
        raise ContestError(f"give the bots that the entrants name: {named}, not {given}")


FORCED = Reply(index=0, cpu_us=0)
"""What nobody is asked for: the only legal action."""


class _Faulted(Exception):  # noqa: N818 - no error: how the play of a match stops early
    """One or more bots did something wrong."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__()
        self.faults = tuple(faults)


class _Table:
    """The agents of one sitting, with their clocks."""

    def __init__(self, spec: MatchSpec, slot: Slot, sitting: int, budget_percent: int) -> None:
        game = get_game(spec.game)
        self.spec = spec
        self.budget_percent = budget_percent
        self.rotation = slot.rotation
        self.sitting = sitting
        self.seating = seating_of(game, len(spec.entrants), slot.rotation)
        self.games_begun = 0
        self.agents: list[Agent] = []
        self.seeds = [
            int.from_bytes(
                bot_seed(
                    spec.deals.prk,
                    spec.game,
                    spec.deals.tournament_id,
                    spec.match_key,
                    slot.rotation,
                    seat,
                ),
                "big",
            )
            for seat in range(len(self.seating))
        ]
        self.clocks_us = [0] * len(self.seating)
        self.spent_us = [0] * len(self.seating)
        self.moves = [0] * len(self.seating)
        self.notes: dict[int, str] = {}
        self.debug_arguments: dict[int, str] = {}

    def bot_of(self, seat: int) -> int:
        """Which of its entrant's bots sits here: a pair's in the order of their seats."""
        entrant = self.seating[seat]
        return self.seating[:seat].count(entrant) % len(self.spec.entrants[entrant].bots)

    def start(
        self,
        sources: Sequence[Sequence[BotSource]],
        factory: AgentFactory,
        keep_alive: Callable[[], None],
    ) -> None:
        """Start all agents, in the order of the seats. Raises _Faulted naming every one that failed."""
        for seat, entrant in enumerate(self.seating):
            agent = factory(
                sources[entrant][self.bot_of(seat)],
                game=self.spec.game,
                ruleset=self.spec.ruleset,
                players=len(self.seating),
                time_control=self.spec.time_control,
                keep_alive=keep_alive,
            )
            self.agents.append(agent)
            agent.start()
        control = self.spec.time_control
        limits = Limits(self._budget_us(control.start_cpu_ms), control.action_wall_ms)
        failures = {
            seat: failure
            for seat, agent in enumerate(self.agents)
            if (failure := self._wait_ready(agent, limits)) is not None
        }
        if failures:
            raise _Faulted([self._fault(seat, failure) for seat, failure in failures.items()])

    def _budget_us(self, cpu_ms: int) -> int:
        """What the time control grants, on this machine."""
        return cpu_ms * 10 * self.budget_percent

    def _wait_ready(self, agent: Agent, limits: Limits) -> Failure | None:
        ready = agent.wait_ready(limits)
        if isinstance(ready, Declined):
            return Failure(
                Termination.PROTOCOL,
                f"does not play {self.spec.game} at a table of {len(self.seating)} by these rules",
            )
        return ready if isinstance(ready, Failure) else None

    def begin_game(self) -> None:
        """Tell every seat, and set the clocks."""
        names = tuple(self.spec.entrants[entrant].name for entrant in self.seating)
        budget_us = self._budget_us(self.spec.time_control.game_cpu_ms)
        self.clocks_us = [budget_us] * len(self.seating)
        self.spent_us = [0] * len(self.seating)
        self.moves = [0] * len(self.seating)
        for seat, agent in enumerate(self.agents):
            agent.begin_game(
                GameInfo(
                    game=self.spec.game,
                    ruleset=self.spec.ruleset,
                    seat=seat,
                    players=names,
                    time_control=self.spec.time_control,
                    random_seed=self.seeds[seat],
                    number=self.games_begun,
                )
            )
        self.games_begun += 1

    def ask(self, state: State, history: Sequence[int], *, deal: int, turn: int) -> Reply:
        """What the seat that has to act chose among its legal actions. Raises _Faulted."""
        seat, control = state.seat, self.spec.time_control
        self.clocks_us[seat] += self._budget_us(control.action_cpu_ms)
        limits = Limits(self.clocks_us[seat], control.action_wall_ms)
        observation = state.observe(limits.cpu_us // 1000, history)
        move = self.moves[seat] + 1
        answer = self.agents[seat].ask(
            observation, observation.legal, limits, deal=deal, turn=turn, move=move
        )
        self.clocks_us[seat] -= answer.cpu_us
        self.spent_us[seat] += answer.cpu_us
        if isinstance(answer, Failure):
            where = f"match {self.spec.match_key}, deal {deal}, action {turn}, move {move}"
            self.notes[seat] = _spell_fault(where, observation, self.seeds[seat])
            self.debug_arguments[seat] = (
                f"--seat {seat} --move {move} --random-seed {self.seeds[seat]}"
            )
            raise _Faulted([self._fault(seat, answer)])
        return answer

    def _fault(self, seat: int, failure: Failure) -> Fault:
        return Fault(self.seating[seat], seat, failure.kind, clean_detail(failure.detail))

    def close(self) -> list[SeatLog]:
        """Close all agents, whatever happens while closing one; the first error is raised in the end."""
        logs: list[SeatLog] = []
        errors: list[Exception] = []
        for seat, agent in enumerate(self.agents):
            try:
                log = agent.close()
            except Exception as error:  # noqa: BLE001 - raised below, once all are closed
                errors.append(error)
                continue
            logs.append(
                SeatLog(
                    entrant=self.seating[seat],
                    bot=self.bot_of(seat),
                    rotation=self.rotation,
                    seat=seat,
                    sitting=self.sitting,
                    log=log,
                    fault=self.notes.get(seat, ""),
                    debug=self.debug_arguments.get(seat, ""),
                )
            )
        self.agents = []
        if errors:
            raise errors[0]
        return logs


class _Referee:
    """One play of one match."""

    def __init__(
        self,
        spec: MatchSpec,
        sources: Sequence[Sequence[BotSource]],
        factory: AgentFactory,
        keep_alive: Callable[[], None],
        progress: Callable[[int], None],
        budget_percent: int,
    ) -> None:
        self.spec = spec
        self.game = get_game(spec.game)
        self.entrants = len(spec.entrants)
        self.sources = sources
        self.factory = factory
        self.keep_alive = keep_alive
        self.progress = progress
        self.budget_percent = budget_percent
        self.table: _Table | None = None
        self.sittings = 0
        self.logs: list[SeatLog] = []
        self.entries: list[GameRecord] = []
        self.spent_us: list[list[int]] = []
        self.action_times_us: list[list[list[int]]] = []
        self.played: list[FinishedGame] = []
        self.deals_begun = 0
        self.first: int | None = None

    def play(self) -> PlayedMatch:
        """The whole match."""
        began_ns = time.monotonic_ns()
        try:
            outcome = self._play_games()
        except _Faulted as stop:
            outcome = outcome_of_faults(self.entrants, stop.faults)
        finally:
            self._close_table()
        wall_ms = (time.monotonic_ns() - began_ns) // 1_000_000
        return PlayedMatch(record=self._write(outcome, wall_ms), logs=tuple(self.logs))

    def _play_games(self) -> Outcome:
        while (slot := self._next_slot()) is not None:
            table = self._seat(slot)
            self._play_game(table, slot)
            self.progress(len(self.played))
        return outcome_of_games(self.spec.contest, self.entrants, self.played)

    def _next_slot(self) -> Slot | None:
        return next_slot(self.game, self.spec.contest, self.entrants, self.played)

    def _seat(self, slot: Slot) -> _Table:
        """The table for this game: a fresh one where the slot says so."""
        if self.table is None or slot.is_fresh:
            self._close_table()
            self.table = _Table(self.spec, slot, self.sittings, self.budget_percent)
            self.sittings += 1
            self.table.start(self.sources, self.factory, self.keep_alive)
        return self.table

    def _close_table(self) -> None:
        table, self.table = self.table, None
        if table is not None:
            self.logs += table.close()

    def _play_game(self, table: _Table, slot: Slot) -> None:
        totals = [0] * self.entrants
        entry = GameRecord(
            board=slot.board,
            rotation=slot.rotation,
            seating=list(table.seating),
            deals=[],
            score=totals,
        )
        self.entries.append(entry)
        table.begin_game()
        self.spent_us.append(table.spent_us)
        self.action_times_us.append([])
        places = None
        while places is None:
            state = self._play_deal(table, slot, entry)
            for side, score in enumerate(state.score()):
                totals[side] += score
            if slot.board is not None:
                break
            places = self.game.game_places(self.spec.ruleset, totals, len(entry.deals), state)
        self.played.append(
            FinishedGame(
                slot,
                by_entrant(self.game, table.seating, totals),
                None if places is None else by_entrant(self.game, table.seating, places),
            )
        )

    def _play_deal(self, table: _Table, slot: Slot, entry: GameRecord) -> State:
        board, deal = self._deal(slot, entry)
        entry.deals.append(deal)
        state = self.game.start(self.spec.ruleset, board)
        history = tuple(entry.score)
        spent_us: list[int] = []
        self.action_times_us[-1].append(spent_us)
        while not state.is_over:
            codes = state.legal()
            reply = FORCED
            if len(codes) > 1:
                self.keep_alive()  # many quick answers take long, too
                reply = table.ask(state, history, deal=deal.number, turn=len(deal.actions))
            table.moves[state.seat] += 1
            chosen = codes[reply.index]
            deal.actions.append(f"{state.seat} {self.game.decode(chosen)}")
            spent_us.append(reply.cpu_us)
            state.apply(chosen)
        deal.score = list(state.score())
        return state

    def _deal(self, slot: Slot, entry: GameRecord) -> tuple[Board, DealRecord]:
        """The next board and the beginning of its record."""
        spec, first = self.spec, None
        if slot.board is not None:
            number = slot.board
        else:
            number = self.deals_begun
            if self.first is not None:
                first = (self.first + len(entry.deals)) % self.game.seats(self.entrants)
        self.deals_begun += 1
        if spec.given:
            board, shown = spec.given[number].board, spec.given[number].key
            return board, write_board(board, number=number, key=shown)
        key = deal_key(spec.deals.prk, spec.game, spec.deals.tournament_id, spec.match_key, number)
        board = deal_board(self.game, spec.ruleset, self.entrants, key, first=first)
        if self.first is None:
            self.first = board.first
        return board, write_board(board, number=number, key=key if spec.deals.reveal else None)

    def _write(self, outcome: Outcome, wall_ms: int) -> MatchRecord:
        """The record: a boards match lists its games by board, however they were played."""
        spec = self.spec
        order = sorted(
            range(len(self.entries)),
            key=lambda index: (
                self.entries[index].board or 0,
                0 if self.entries[index].board is None else self.entries[index].rotation,
            ),
        )
        record = MatchRecord(
            format=FORMAT,
            game=spec.game,
            ruleset=msgspec.to_builtins(spec.ruleset),
            match_key=spec.match_key,
            contest=spec.contest,
            time_control=spec.time_control,
            entrants=list(spec.entrants),
            games=[self.entries[index] for index in order],
            outcome=outcome,
            digest="",
            timing=Timing(
                cpu_us=[self.spent_us[index] for index in order],
                wall_ms=wall_ms,
                action_cpu_us=[self.action_times_us[index] for index in order],
                budget_percent=self.budget_percent,
            ),
        )
        record.digest = compute_digest(record)
        return record


def _spell_fault(where: str, observation: Any, random_seed: int) -> str:
    """What a bot at fault had before it, for its owner to play it again."""
    return "\n".join([where, f"random_seed: {random_seed}", *spell_observation(observation)])


def spell_observation(observation: Any) -> list[str]:
    """An observation in notation, a line a field."""
    fields = msgspec.structs.asdict(observation)
    return [f"{name}: {_spell(value)}" for name, value in fields.items()]


def _spell(value: Any) -> str:
    """A tuple as a list; what a seat did as ``2 bid 60``; any other struct by its fields."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return "[" + ", ".join(map(_spell, value)) + "]"
    if not isinstance(value, msgspec.Struct) or type(value).__str__ is not msgspec.Struct.__str__:
        return str(value)
    fields = msgspec.structs.asdict(value)
    if len(fields) == 2 and "seat" in fields:
        return " ".join(map(_spell, fields.values()))
    return "(" + ", ".join(f"{name}: {_spell(each)}" for name, each in fields.items()) + ")"
