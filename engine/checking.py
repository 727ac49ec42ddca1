"""What a bot must pass before it may enter anything: it is played, and the referee's side judges.

For each game that the bot claims (by the default rules it makes a strategy) it plays at every number of
players on every seat, and by every value of every option (of those that take any integer: by the least and a
large one), against opponents that choose at random. Deals
and opponents are the same each time, so a fault comes again. A bot may also be tried under given `Conditions` alone,
those of a tournament that it has entered. This module must not know accounts or
databases; nothing that it reports can be forged by the bot.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import structs

from engine.agents import (
    Agent,
    AgentFactory,
    AgentLog,
    BotSource,
    Declined,
    Failure,
    Limits,
    Reply,
    in_process_factory,
    never,
)
from engine.errors import ContestError, InfrastructureError, RulesetError, WheelError
from engine.games import GAMES, get_game
from engine.games.base import Game, Option
from engine.outcome import Fault, Termination
from engine.record import (
    BoardsContest,
    BotRef,
    Contest,
    DealSource,
    EntrantRef,
    GamesContest,
    MatchSpec,
    encode_record,
    make_spec,
)
from engine.referee import PlayedMatch, play_match
from engine.runner import repeat_if_void, unheard
from engine.sandbox.starvation import OwnPace
from engine.sdk import GameInfo
from engine.sdk.timecontrol import TimeControl
from engine.shuffle import local_prk
from engine.wheels import wheel_source

CHECK_SECONDS = 600.0
"""The real time that a whole check may take, longer on a busy machine; a bot that is slower is rejected."""
MOST_TIMES = 6
"""After so many times that long every check ends, whatever happens: with a rejection, or, if void attempts took of it, without a verdict."""
CHECK_TIME = TimeControl("check", 2000, 5000, 50, 10_000)
"""The standard time control, but with less patience for a bot that sleeps."""
LOG_CHARACTERS = 64 * 1024
_MOST_FAULTS = 3
_KEY_CHARACTERS = 120
"""The longest match key."""
_FAR = 10
"""A value that is so many times the default one makes games that are too long to be tried."""
_OPPONENT = BotSource(bot="random", version=None, wheel=None, folder="", entry_point="random")


class AcceptedGame(msgspec.Struct, frozen=True):
    """A game that the bot plays, and what of it."""

    game: str
    options: dict[str, list[Any]]
    """``players``: the numbers of seats; by option of the ruleset the values that it plays by.

    An option that takes any integer is left out if the bot declined none of the values that were tried.
    """


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """What a tournament asks of a bot: by which rules, at which table, in which time."""

    game: str
    seats: int
    ruleset: dict[str, Any]
    """The options of the game with their values; what is left out has its default."""
    time_control: TimeControl

    @property
    def are_checked_anyhow(self) -> bool:
        """Whether the check of every bot that plays such tables plays just this: default rules, standard control."""
        like_checked = structs.replace(
            self.time_control,
            name=CHECK_TIME.name,
            action_wall_ms=min(self.time_control.action_wall_ms, CHECK_TIME.action_wall_ms),
        )
        return like_checked == CHECK_TIME and not _trial_under(self).options

    def __str__(self) -> str:
        return _trial_under(self).title()


class FaultyTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A match of the check that the bot's fault ended, kept so that its moment can be played again."""

    name: str
    """A file's name for its record."""
    record: bytes
    """The record as a document."""
    debug: tuple[str, ...]
    """For each of the bot's faults at a question the arguments of `arena debug` after the record and the bot."""


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a check."""

    verdict: Literal["accepted", "rejected"]
    reasons: tuple[str, ...] = ()
    """Why it was rejected, each with what to change or how to see it again."""
    games: tuple[AcceptedGame, ...] = ()
    """What it plays; nothing is told of that by a trial under given conditions."""
    log: str = ""
    """What the bot printed and the tracebacks of its crashes, for its owner; its head if it is long."""
    faulty: tuple[FaultyTrial, ...] = ()
    """The matches that its faults ended, in the order of the reasons that tell of a match."""


def check_wheel(
    data: bytes,
    cache: Path,
    *,
    factory: AgentFactory | None = None,
    trusted: bool = False,
    keep_alive: Callable[[], None] = never,
    progress: Callable[[int, int], None] | None = None,
    tell_void: Callable[[str], None] = unheard,
    seconds: float = CHECK_SECONDS,
    only: Conditions | None = None,
) -> CheckReport:
    """As `check_bot`, for whatever bytes were uploaded; `cache` is where wheels are unpacked."""
    try:
        source = wheel_source(data, cache)
    except WheelError as error:
        return CheckReport(verdict="rejected", reasons=error.reasons)
    return check_bot(
        source,
        factory=factory,
        trusted=trusted,
        keep_alive=keep_alive,
        progress=progress,
        tell_void=tell_void,
        seconds=seconds,
        only=only,
    )


def check_bot(
    source: BotSource,
    *,
    factory: AgentFactory | None = None,
    trusted: bool = False,
    keep_alive: Callable[[], None] = never,
    progress: Callable[[int, int], None] | None = None,
    tell_void: Callable[[str], None] = unheard,
    seconds: float = CHECK_SECONDS,
    only: Conditions | None = None,
) -> CheckReport:
    """Play a bot in the sandbox (`trusted`: in this process) and say whether it may enter tournaments.

    With `only` it plays just one deal a rotation under those conditions, on every seat, and must not decline;
    raises UsageError if no match can be played under them.
    `progress` is told how many trials are done, and of how many. `seconds` bounds the real time of the
    whole; where other programs take the machine's time it is longer by as much, up to `MOST_TIMES`. A trial that
    is void by our own failure is played again, which `tell_void` is told in a line; its time is not the bot's,
    but after `MOST_TIMES` as long with all of that the check ends by InfrastructureError. Raises SandboxUnavailableError where no bot can be held, and InfrastructureError for our own
    failure that does not pass, or if `keep_alive` does: both say nothing of the bot.
    """
    if factory is not None or trusted:
        factory = factory or in_process_factory
        return _Check(source, factory, keep_alive, progress, tell_void, seconds).run(only)
    # Here, since a machine that cannot sandbox (it may lack even the modules) can check trusted bots.
    from engine.sandbox.agent import sandbox_factory
    from engine.sandbox.core import one_core
    from engine.sandbox.speed import budget_percent

    with one_core():
        return _Check(
            source,
            sandbox_factory(),
            keep_alive,
            progress,
            tell_void,
            seconds,
            budget_percent(),
        ).run(only)


class _OutOfTimeError(Exception):
    """The check has taken its time."""


class _Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One match of the check."""

    game: str
    seats: int
    entrants: int
    place: int
    """Which of the entrants the bot is."""
    contest: Contest
    options: dict[str, Any] = {}
    """What differs from the default rules: in a whole check nothing, or one option."""
    time_control: TimeControl = CHECK_TIME

    def title(self) -> str:
        """For people: game, rules and table, and the time control if it is not that of every check."""
        rules = ", ".join(f"{name}={_spell(value)}" for name, value in self.options.items())
        title = f"{GAMES[self.game].title} by {rules or 'the default rules'} at {self.seats} seats"
        control = self.time_control.name
        return title if control == CHECK_TIME.name else f"{title} in the time control {control}"

    def spec(self, bot: str) -> MatchSpec:
        """The match, whose deals follow from what is tried."""
        key = "/".join(
            [self.game, str(self.seats), *(f"{n}:{_spell(v)}" for n, v in self.options.items())]
        )
        if len(key) > _KEY_CHARACTERS:
            key = f"{self.game}/{self.seats}/{hashlib.sha256(key.encode()).hexdigest()}"
        return make_spec(
            game=self.game,
            entrants=[
                EntrantRef(bot, (BotRef(bot, None, None),))
                if place == self.place
                else EntrantRef(f"random#{place + 1}", (BotRef(_OPPONENT.bot, None, None),))
                for place in range(self.entrants)
            ],
            contest=self.contest,
            time_control=self.time_control,
            deals=DealSource(local_prk("check"), "local", reveal=True),
            options=self.options,
            match_key=key,
        )


def _default_trials(game: Game) -> list[_Trial]:
    """By the default rules at every number of players; the rotations of a board lead to every seat."""
    return [
        _Trial(
            game=game.name,
            seats=game.seats(entrants),
            entrants=entrants,
            place=0,
            contest=BoardsContest(1),
        )
        for entrants in game.entrant_counts
    ]


def _trial_under(conditions: Conditions) -> _Trial:
    """One board, whose rotations lead to every seat. Raises UsageError for what the game does not have."""
    game = get_game(conditions.game)
    ruleset = game.make_ruleset(conditions.ruleset)
    tables = {game.seats(entrants): entrants for entrants in game.entrant_counts}
    if conditions.seats not in tables:
        raise ContestError(
            f"{game.title} has no table of {conditions.seats} seats; it has those of "
            f"{', '.join(map(str, tables))}"
        )
    return _Trial(
        game=game.name,
        seats=conditions.seats,
        entrants=tables[conditions.seats],
        place=0,
        contest=BoardsContest(1),
        options=_deviations(game, ruleset),
        time_control=conditions.time_control,
    )


def _deviations(game: Game, ruleset: Any) -> dict[str, Any]:
    """The options that make this ruleset of the default one; all of them where a default hangs on another option."""
    options: dict[str, Any] = msgspec.to_builtins(ruleset)
    defaults = msgspec.to_builtins(game.make_ruleset({}))
    fewer = {name: value for name, value in options.items() if value != defaults[name]}
    return fewer if game.make_ruleset(fewer) == ruleset else options


def _option_trials(game: Game, accepted_seats: Sequence[int]) -> Iterator[_Trial]:
    """By each other value of each option, a whole game at each accepted number of players."""
    for number, (name, value) in enumerate(_other_values(game)):
        for entrants in game.entrant_counts:
            if game.seats(entrants) in accepted_seats:
                yield _Trial(
                    game=game.name,
                    seats=game.seats(entrants),
                    entrants=entrants,
                    place=number % entrants,
                    contest=GamesContest(1),
                    options={name: value},
                )


def _other_values(game: Game) -> Iterator[tuple[str, Any]]:
    """The values of options that are no defaults and make a ruleset by themselves."""
    for option in game.options:
        for value in option.choices or _some_integers(option):
            if value != option.default or type(value) is not type(option.default):
                try:
                    game.make_ruleset({option.name: value})
                except RulesetError:
                    continue  # it only makes sense with another option's other value
                yield option.name, value


def _some_integers(option: Option) -> Iterator[int]:
    """Of an option that takes any integer of a range, the ends; where the end is out of reach, a larger one."""
    assert isinstance(option.default, int)
    low, high = option.minimum, option.maximum
    if low is not None:
        yield low
    yield high if high is not None and high <= _FAR * option.default else 2 * option.default


class _Check:
    """One check of one bot."""

    def __init__(
        self,
        source: BotSource,
        factory: AgentFactory,
        keep_alive: Callable[[], None],
        progress: Callable[[int, int], None] | None,
        tell_void: Callable[[str], None],
        seconds: float,
        budget_percent: int = 100,
    ) -> None:
        self._tell_void = tell_void
        self._end: InfrastructureError | None = None
        """What ended the whole check, and so no trial's own failure."""
        self._budget_percent = budget_percent
        self._source = source
        self._factory = factory
        self._keep_lease = keep_alive
        self._progress = progress
        self._seconds = seconds
        self._began = time.monotonic()
        self._deadline = self._began + seconds
        self._pace = OwnPace()
        self._slept = 0.0
        self._seated: list[Agent] = []
        self._done = 0
        self._planned = 0
        self._reasons: list[str] = []
        self._log: list[str] = []
        self._faulty: list[FaultyTrial] = []
        self._starts: list[int | Declined | Failure] = []
        """How the bot's processes of the present trial have started."""
        self._is_hopeless = False

    def run(self, only: Conditions | None) -> CheckReport:
        """All trials, or those under the conditions that are given."""
        return self._check() if only is None else self._try(_trial_under(only))

    def _check(self) -> CheckReport:
        """All trials, until there are faults enough or no time is left."""
        games: list[AcceptedGame] = []
        self._planned = sum(len(_default_trials(game)) for game in GAMES.values())
        try:
            claims = {name: self._try_default_rules(game) for name, game in GAMES.items()}
            claims = {name: seats for name, seats in claims.items() if seats}
            self._planned += sum(
                len(list(_option_trials(GAMES[name], seats))) for name, seats in claims.items()
            )
            games = [self._try_options(GAMES[name], seats) for name, seats in claims.items()]
        except _OutOfTimeError:
            self._blame_slowness()
        if not games and not self._reasons:
            self._reasons.append(
                f"it plays no game: make_strategy answered None for {' and '.join(GAMES)}"
            )
        return self._report(games)

    def _try(self, trial: _Trial) -> CheckReport:
        """One trial alone, which the bot must not decline."""
        self._planned = 1
        try:
            if not self._passes(trial) and not self._reasons:
                self._reasons.append(
                    f"{trial.title()}: make_strategy answered None; it has to play what it has entered for"
                )
        except _OutOfTimeError:
            self._blame_slowness()
        return self._report(())

    def _blame_slowness(self) -> None:
        self._reasons.append(
            f"it is too slow: after {time.monotonic() - self._began:.0f} seconds {self._done} of {self._planned} "
            f"trials were done, and {self._seconds:g} are given; answer faster, and do not sleep"
        )

    def _report(self, games: Sequence[AcceptedGame]) -> CheckReport:
        return CheckReport(
            verdict="rejected" if self._reasons else "accepted",
            reasons=tuple(self._reasons),
            games=() if self._reasons else tuple(games),
            log=_head("\n".join(self._log)),
            faulty=tuple(self._faulty),
        )

    def _try_default_rules(self, game: Game) -> list[int]:
        """The numbers of seats at which it plays."""
        return [trial.seats for trial in _default_trials(game) if self._passes(trial)]

    def _try_options(self, game: Game, seats: list[int]) -> AcceptedGame:
        """What of the game it plays: a value that it declines at one table is not accepted.

        Of an option that takes any integer only some were tried: a bot that plays by all of those plays by
        all others, so nothing is told of it; else those are told by which it plays.
        """
        accepted: dict[str, list[Any]] = {option.name: [option.default] for option in game.options}
        played = [(trial, self._passes(trial)) for trial in _option_trials(game, seats)]
        refused = {_key(trial.options) for trial, passed in played if not passed}
        for trial, _ in played:
            ((name, value),) = trial.options.items()
            if _key(trial.options) not in refused and value not in accepted[name]:
                accepted[name].append(value)
        refused_options = {name for ((name, _),) in refused}
        for option in game.options:
            if not option.choices and option.name not in refused_options:
                del accepted[option.name]
        return AcceptedGame(game.name, {"players": seats, **accepted})

    def _passes(self, trial: _Trial) -> bool:
        """Whether the bot plays this without fault; False also if it declines or enough is known."""
        if self._is_hopeless or len(self._reasons) >= _MOST_FAULTS:
            return False
        match = repeat_if_void(
            lambda: self._play(trial),
            self._tell_void,
            is_void=lambda error: error is not self._end,
        )
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._planned)
        self._write_log(trial, match)
        if self._starts and all(isinstance(start, Declined) for start in self._starts):
            return False
        faults = [f for f in match.record.outcome.faults if f.entrant == trial.place]
        if faults:  # a crash says more than that another seat then declined
            telling = min(faults, key=lambda fault: fault.kind is Termination.PROTOCOL)
            self._reasons.append(self._explain(trial, telling))
            self._faulty.append(self._keep(trial, match))
        self._is_hopeless |= bool(faults) and not match.record.games  # it cannot even start
        return not faults

    def _play(self, trial: _Trial) -> PlayedMatch:
        sources = [
            (self._source if place == trial.place else _OPPONENT,)
            for place in range(trial.entrants)
        ]
        spec = trial.spec(self._source.bot)
        self._starts = []
        self._look_at_the_time()
        began = time.monotonic()
        try:
            return play_match(
                spec,
                sources,
                self._make_agent,
                self._keep_alive,
                budget_percent=self._budget_percent,
            )
        except InfrastructureError:
            self._deadline += time.monotonic() - began  # our failure takes none of the bot's time
            raise

    def _keep_alive(self) -> None:
        try:
            self._keep_lease()
        except InfrastructureError as error:
            self._end = error
            raise
        self._look_at_the_time()

    def _look_at_the_time(self) -> None:
        """Raises _OutOfTimeError when the bot has had its time, or what `_end_if_endless` does."""
        late = time.monotonic() - self._deadline
        if late <= 0:
            self._end_if_endless()
            return
        slept = self._slept + sum(agent.idle_seconds() for agent in self._seated)
        not_slept = max(self._seconds - slept, 0)  # to sleep takes no longer on a busy machine
        if late > not_slept * (min(self._pace.slowdown(), MOST_TIMES) - 1):
            raise _OutOfTimeError
        self._end_if_endless()

    def _end_if_endless(self) -> None:
        """Raises InfrastructureError when no check may go on: what took so long was not the bot."""
        passed = time.monotonic() - self._began
        if passed > self._seconds * MOST_TIMES:
            self._end = InfrastructureError(
                f"this machine is too busy: after {passed:.0f} seconds {self._done} of {self._planned} trials were "
                f"done, of which a check may take {self._seconds:g}; try again when other programs leave it more time"
            )
            raise self._end

    def _make_agent(self, source: BotSource, **table: Any) -> Agent:
        if source is _OPPONENT:
            return _RandomAgent()
        agent = self._factory(source, **table)
        self._seated.append(agent)
        return _Watched(agent, self._starts.append, self._note_end)

    def _note_end(self, agent: Agent) -> None:
        if agent in self._seated:  # it may be closed again
            self._seated.remove(agent)
            self._slept += agent.idle_seconds()

    def _explain(self, trial: _Trial, fault: Fault) -> str:
        seat = "" if fault.seat is None else f", seat {fault.seat}"
        return (
            f"{trial.title()}{seat}: {fault.tell()} ({fault.kind}); "
            f"`arena check{_arguments(trial)}` on this bot plays the same deals again"
        )

    def _keep(self, trial: _Trial, match: PlayedMatch) -> FaultyTrial:
        return FaultyTrial(
            name=f"check-{len(self._faulty) + 1}-{trial.game}-{trial.seats}.json",
            record=encode_record(match.record),
            debug=tuple(
                left.debug for left in match.logs if left.entrant == trial.place and left.debug
            ),
        )

    def _write_log(self, trial: _Trial, match: PlayedMatch) -> None:
        for left in match.logs:
            parts = (left.log.text, left.log.traceback, left.fault, left.debug_command("RECORD"))
            if left.entrant == trial.place and any(parts):
                header = f"=== {trial.title()}, seat {left.seat}"
                self._log += [header, *(part.rstrip() for part in parts if part)]


class _Watched:
    """The bot's agent, with an ear for how it starts and when it ends."""

    def __init__(
        self,
        agent: Agent,
        on_start: Callable[[int | Declined | Failure], None],
        on_end: Callable[[Agent], None],
    ) -> None:
        self._agent = agent
        self._on_start = on_start
        self._on_end = on_end
        self.start = agent.start
        self.begin_game = agent.begin_game
        self.ask = agent.ask
        self.idle_seconds = agent.idle_seconds

    def wait_ready(self, limits: Limits) -> int | Declined | Failure:
        ready = self._agent.wait_ready(limits)
        self._on_start(ready)
        return ready

    def close(self) -> AgentLog:
        self._on_end(self._agent)
        return self._agent.close()


class _RandomAgent:
    """An opponent of our own: plays any legal action, always the same ones in the same match."""

    def __init__(self) -> None:
        self._random = random.Random()  # noqa: S311 - seeded below; the game, not a secret

    def start(self) -> None:
        pass

    def wait_ready(self, limits: Limits) -> int | Declined | Failure:  # noqa: ARG002 - the port's
        return 0

    def begin_game(self, info: GameInfo) -> None:
        self._random.seed(info.random_seed)

    def ask(
        self,
        observation: Any,  # noqa: ARG002 - the port's
        legal: Sequence[Any],
        limits: Limits,  # noqa: ARG002 - the port's
        *,
        deal: int,  # noqa: ARG002 - the port's
        turn: int,  # noqa: ARG002 - the port's
        move: int,  # noqa: ARG002 - the port's
    ) -> Reply | Failure:
        return Reply(self._random.randrange(len(legal)), 0)

    def idle_seconds(self) -> float:
        return 0.0

    def close(self) -> AgentLog:
        return AgentLog()


def _arguments(trial: _Trial) -> str:
    """What makes `arena check` try just this; nothing for a trial of every check."""
    if trial.time_control is CHECK_TIME:
        return ""
    rules = "".join(f" --rule {name}={_spell(value)}" for name, value in trial.options.items())
    control = trial.time_control.name
    return f" --game {trial.game} --seats {trial.seats}{rules} --time-control {control}"


def _key(options: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Options as a key that tells 1 from True."""
    return tuple((name, _spell(value)) for name, value in options.items())


def _spell(value: object) -> str:
    return msgspec.json.encode(value).decode().strip('"')


def _head(text: str) -> str:
    if len(text) <= LOG_CHARACTERS:
        return text
    return f"{text[:LOG_CHARACTERS]}\n... cut: only the head of {len(text)} characters is kept\n"


__all__ = [
    "CHECK_SECONDS",
    "AcceptedGame",
    "CheckReport",
    "Conditions",
    "FaultyTrial",
    "check_bot",
    "check_wheel",
]
