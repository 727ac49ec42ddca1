"""`arena debug`: a moment of a match again, before a bot in this process, under Python's debugger."""

from __future__ import annotations

import bdb
import contextlib
import pdb  # noqa: T100 - what this command is for
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from engine.agents import strategy_here
from engine.cli.contestants import find_bot, find_named_bot
from engine.cli.exits import ExitCode
from engine.cli.output import note, say
from engine.cli.records import naming, read_record
from engine.cli.results import printable
from engine.errors import ArenaError, UsageError
from engine.record import BotRef, MatchRecord, Replay, replay
from engine.record.turns import Turn, earlier_games, info_of, turns_of
from engine.referee import spell_observation
from engine.sdk import Strategy
from engine.shuffle import bot_seed, deal_key, local_prk


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a record a seat had to act."""

    record: MatchRecord
    found: Replay
    game: int
    """Index into the record's games."""
    seat: int
    turn: Turn

    @property
    def entrant(self) -> int:
        """Who sat there."""
        return self.record.games[self.game].seating[self.seat]

    @property
    def bot(self) -> BotRef:
        """The bot that sat there."""
        seating, bots = (
            self.record.games[self.game].seating,
            self.record.entrants[self.entrant].bots,
        )
        return bots[seating[: self.seat].count(self.entrant) % len(bots)]


def run(
    file: Path,
    bot: str | None,
    *,
    seat: int | None,
    move: int | None,
    game: int | None,
    seed: str | None,
    random_seed: int | None,
    use_pdb: bool,
) -> ExitCode:
    """Show what the seat saw and ask the bot; NOT_GOOD if it fails. Raises UsageError and UntrueFileError.

    Without a name the bot that sat there is asked, if a plugin of its name is installed.
    """
    record = read_record(file)
    with naming(file):
        found = replay(record)
    moment = find_moment(record, found, seat=seat, move=move, game=game)
    _print_moment(moment)
    if moment.turn.is_forced:
        (only,) = moment.turn.observation.legal
        say(f"forced: {only} is the only legal action, so no bot is asked")
        return ExitCode.OK
    number = _random_seed(moment, seed, random_seed)
    name = moment.bot.bot if bot is None else bot
    with contextlib.ExitStack() as stack:
        stage = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="arena-debug-")))
        source = find_named_bot(name, stage) if bot is None else find_bot(bot, stage)
        note(f"{name} runs in this process, without a sandbox: trust it")
        try:
            strategy = stack.enter_context(
                strategy_here(
                    source,
                    game=record.game,
                    ruleset=moment.found.ruleset,
                    players=len(record.games[moment.game].seating),
                )
            )
        except ArenaError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a bot raises
            return _tell_failure(error, use_pdb=use_pdb)
        if strategy is None:
            raise UsageError(f"{name} does not play {record.game} at such a table")
        return _Session(moment, strategy, number, use_pdb=use_pdb).run()


# --- which moment ------------------------------------------------------------------------------------


def find_moment(
    record: MatchRecord,
    found: Replay,
    *,
    seat: int | None = None,
    move: int | None = None,
    game: int | None = None,
) -> Moment:
    """The moment before the `move`-th action, from 1, of `seat` in a game: by default that of the fault.

    `game`: by default the one that a fault cut, or else the first. Raises UsageError, naming what there
    is.
    """
    cut = _cut_game(record)
    if not record.games or (cut is None and (seat is None or move is None)):
        raise UsageError(_why_no_moment(record))
    game = _check(game, "game", len(record.games), default=cut or 0)
    fault_seat = record.outcome.faults[0].seat if game == cut else None
    seat = _check(seat, "seat", len(record.games[game].seating), default=fault_seat)
    turns = turns_of(record, found, game, seat)
    where = f"seat {seat} in game {game} ({_spell_game(record, game)})"
    if not turns:
        raise UsageError(f"{where} had nothing to do")
    if move is None and turns[-1].chosen is None:
        move = len(turns)
    if move is None:
        raise UsageError(f"say which move: --move K; {where} made moves 1 to {len(turns)}")
    if not 1 <= move <= len(turns):
        raise UsageError(f"there is no move {move}: {where} made moves 1 to {len(turns)}")
    return Moment(record=record, found=found, game=game, seat=seat, turn=turns[move - 1])


def _cut_game(record: MatchRecord) -> int | None:
    for index, entry in enumerate(record.games):
        if entry.deals and entry.deals[-1].score is None:
            return index
    return None


def _why_no_moment(record: MatchRecord) -> str:
    if not record.outcome.faults:
        return "no fault ended this match: say which moment, --seat S --move K"
    fault = record.outcome.faults[0]
    name = record.entrants[fault.entrant].name
    return (
        f"the fault came before any question ({name}: {fault.tell()}), so nothing had been seen: arena "
        "check shows how a bot starts" + ("; or say --seat S --move K" if record.games else "")
    )


def _check(number: int | None, what: str, count: int, *, default: int | None) -> int:
    number = default if number is None else number
    if number is None:
        raise UsageError(f"say which {what}: --{what} 0 to {count - 1}")
    if not 0 <= number < count:
        raise UsageError(f"there is no {what} {number}; the record has {what}s 0 to {count - 1}")
    return number


def _spell_game(record: MatchRecord, game: int) -> str:
    entry = record.games[game]
    if entry.board is None:
        return f"rotation {entry.rotation}"
    return f"board {entry.board}, rotation {entry.rotation}"


# --- what the seat had -------------------------------------------------------------------------------


def _print_moment(moment: Moment) -> None:
    record, turn = moment.record, moment.turn
    version = f" {moment.bot.version}" if moment.bot.version else ""
    say(
        f"{moment.bot.bot}{version} on seat {moment.seat}, game {moment.game} "
        f"({_spell_game(record, moment.game)}), move {turn.move}: "
        f"deal {turn.deal}, action {turn.action}"
    )
    for line in spell_observation(turn.observation):
        say(line)
    if turn.chosen is not None:
        say(f"in the record: {turn.chosen}")
    else:
        say(f"in the record: {printable(record.outcome.faults[0].detail)}")


def _random_seed(moment: Moment, seed: str | None, random_seed: int | None) -> int:
    """The seat's own: as given, or that of a local match. 0, and a word about it, if nobody knows."""
    if seed is not None and random_seed is not None:
        raise UsageError("give --seed or --random-seed, not both")
    if random_seed is not None:
        return random_seed
    if seed is None:
        note("the seat's random seed is not known, 0 is taken: give --seed TEXT or --random-seed N")
        return 0
    record, prk = moment.record, local_prk(seed)
    deal = record.games[moment.game].deals[0]
    key = deal_key(prk, record.game, "local", record.match_key, deal.number).hex()
    if deal.key is not None and deal.key != key:
        note(f"the deals are not those of the seed {printable(seed)}, unless by --deals-from")
    rotation = record.games[moment.game].rotation
    drawn = bot_seed(prk, record.game, "local", record.match_key, rotation, moment.seat)
    return int.from_bytes(drawn, "big")


# --- time ----------------------------------------------------------------------------------------------


_MORE_FOR_EARLIER = 10
"""So many times as long as then may what came before take: only what never ends is to be ended."""


class OutOfPatience(BaseException):
    """A bot went on longer than it may; no Exception, which a bot may catch in passing."""


@contextlib.contextmanager
def patience(cpu_ms: int, wall_ms: int, where: str) -> Iterator[None]:
    """Raise OutOfPatience in the block if it takes more CPU time of this process, or real time.

    Where the system has no such timers (Windows) nothing is bounded.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return
    clocks = (
        (signal.SIGPROF, signal.ITIMER_PROF, cpu_ms, "CPU time"),
        (signal.SIGALRM, signal.ITIMER_REAL, wall_ms, "real time"),
    )
    with contextlib.ExitStack() as stack:
        for number, timer, milliseconds, kind in clocks:
            words = f"it took more than {max(milliseconds, 1)} ms of {kind} {where}"
            stack.callback(signal.signal, number, signal.signal(number, _raiser(words)))
            seconds = max(milliseconds, 1) / 1000
            stack.callback(
                signal.setitimer, timer, *signal.setitimer(timer, seconds, _AGAIN_SECONDS)
            )
        yield


_AGAIN_SECONDS = 1.0
"""So often is it raised again, for a bot that catches everything."""


def _raiser(words: str) -> Callable[[int, FrameType | None], None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise OutOfPatience(words)

    return stop


# --- the bot -----------------------------------------------------------------------------------------


class _Debugger(pdb.Pdb):
    """Remembers that its user left it: `runcall` ends then as if the call had returned None."""

    has_quit = False

    def set_quit(self) -> None:
        """Stop everything."""
        self.has_quit = True
        super().set_quit()


class _Session:
    """One strategy, led to the moment and asked."""

    def __init__(
        self, moment: Moment, strategy: Strategy[Any, Any], random_seed: int, *, use_pdb: bool
    ) -> None:
        self.moment = moment
        self.strategy = strategy
        self.random_seed = random_seed
        self.use_pdb = use_pdb
        self.asked = 0
        self.differing: list[str] = []

    def run(self) -> ExitCode:
        """Let it see what came before, then ask."""
        try:
            with contextlib.redirect_stdout(sys.stderr):
                self._catch_up()
            self._tell_differences()
            answer = self._ask()
        except bdb.BdbQuit:
            return ExitCode.OK
        except OutOfPatience as stop:
            say(f"answer: none, {stop}")
            return ExitCode.NOT_GOOD
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a bot raises is what is looked for
            return _tell_failure(error, use_pdb=self.use_pdb)
        if answer not in self.moment.turn.observation.legal:
            say(f"answer: {printable(repr(answer))}, which is not one of the legal actions")
            return ExitCode.NOT_GOOD
        say(f"answer: {answer}")
        return ExitCode.OK

    def _catch_up(self) -> None:
        """Everything since its process began, answered as in the record."""
        moment = self.moment
        for game in (*earlier_games(moment.record, moment.game), moment.game):
            info = info_of(moment.record, moment.found, game, moment.seat, self.random_seed)
            with self._patience(moment.turn, times=_MORE_FOR_EARLIER):
                self.strategy.begin_game(info)
            for turn in self._earlier_turns(game):
                self.asked += 1
                with self._patience(turn, times=_MORE_FOR_EARLIER):
                    answer = self.strategy.act(turn.observation)
                if answer != turn.chosen:
                    now = printable(repr(answer) if answer is None else str(answer))
                    self.differing.append(
                        f"game {game}, move {turn.move}: {now}, not {turn.chosen}"
                    )

    def _earlier_turns(self, game: int) -> Iterator[Turn]:
        moment = self.moment
        for turn in turns_of(moment.record, moment.found, game, moment.seat):
            if game == moment.game and turn.move == moment.turn.move:
                return
            if not turn.is_forced:
                yield turn

    def _tell_differences(self) -> None:
        if self.differing:
            note(
                f"{len(self.differing)} of its {self.asked} earlier answers are not those of the record "
                f"(first: {self.differing[0]}): another version, another random seed, or play that "
                "cannot be repeated"
            )

    def _ask(self) -> Any:
        observation = self.moment.turn.observation
        if self.use_pdb:
            debugger = _Debugger()
            answer = debugger.runcall(self.strategy.act, observation)
            if debugger.has_quit:
                raise bdb.BdbQuit
            return answer
        with contextlib.redirect_stdout(sys.stderr), self._patience(self.moment.turn):
            return self.strategy.act(observation)

    def _patience(self, turn: Turn, times: int = 1) -> contextlib.AbstractContextManager[None]:
        """Bounds a call by what the record's clock and its cap of real time left for that turn."""
        where = f"at move {turn.move}"
        cap_ms = self.moment.record.time_control.action_wall_ms
        return patience(turn.observation.clock_ms * times, cap_ms * times, where)


def _tell_failure(error: BaseException, *, use_pdb: bool) -> ExitCode:
    """Show what the bot raised, and where, if asked for under the debugger."""
    note("".join(traceback.format_exception(error)).rstrip())
    say(f"answer: none, it raised {type(error).__name__}")
    if use_pdb:
        with contextlib.suppress(bdb.BdbQuit):
            pdb.post_mortem(error.__traceback__)
    return ExitCode.NOT_GOOD
