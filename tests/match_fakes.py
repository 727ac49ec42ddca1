"""Agents that do as they are told, and matches between them: what tests of the referee share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from engine.agents import AgentLog, BotSource, Declined, Failure, GameInfo, Limits, Reply
from engine.games import get_game
from engine.record import (
    BoardsContest,
    BotRef,
    Contest,
    DealSource,
    EntrantRef,
    MatchSpec,
    make_spec,
)
from engine.referee import PlayedMatch, play_match
from engine.sdk.timecontrol import TimeControl, time_control
from engine.shuffle import local_prk

Policy = Callable[["FakeAgent", Any, Sequence[Any]], int | Failure | Reply]
"""Index of the choice, or what goes wrong instead."""


def first_legal(agent: FakeAgent, observation: Any, legal: Sequence[Any]) -> int:
    return 0


def last_legal(agent: FakeAgent, observation: Any, legal: Sequence[Any]) -> int:
    return len(legal) - 1


def at_random(agent: FakeAgent, observation: Any, legal: Sequence[Any]) -> int:
    """Any, by the seat's own random seed: equal matches are equal."""
    return agent.random.randrange(len(legal))


def fails_at(turn: int, failure: Failure, otherwise: Policy = at_random) -> Policy:
    """Does something wrong at its question `turn`, counted from 0 for each agent."""

    def policy(agent: FakeAgent, observation: Any, legal: Sequence[Any]) -> int | Failure | Reply:
        return failure if len(agent.asked) - 1 == turn else otherwise(agent, observation, legal)

    return policy


def fails_on_seat(seat: int, game: int, failure: Failure) -> Policy:
    """Does something wrong at its first question of its game `game` when it sits on `seat`."""

    def policy(agent: FakeAgent, observation: Any, legal: Sequence[Any]) -> int | Failure | Reply:
        here = agent.infos[-1]
        if (here.seat, here.number) == (seat, game):
            return failure
        return at_random(agent, observation, legal)

    return policy


@dataclass
class FakeAgent:
    """One seat's agent: notes what happens to it in `diary`, which all agents of a match share."""

    bot: str
    policy: Policy
    ready: int | Declined | Failure
    diary: list[str]
    limits: list[Limits] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    asked_in: list[int] = field(default_factory=list)
    """The agent's own game, of each question."""
    infos: list[GameInfo] = field(default_factory=list)
    start_limits: Limits | None = None
    is_closed: bool = False

    def start(self) -> None:
        self.diary.append(f"start {self.bot}")

    def wait_ready(self, limits: Limits) -> int | Declined | Failure:
        self.diary.append(f"ready {self.bot}")
        self.start_limits = limits
        return self.ready

    def begin_game(self, info: GameInfo) -> None:
        self.infos.append(info)
        self.random = Random(f"{info.random_seed}/{info.number}")

    def ask(
        self,
        observation: Any,
        legal: Sequence[Any],
        limits: Limits,
        *,
        deal: int,
        turn: int,
        move: int,
    ) -> Reply | Failure:
        assert not self.is_closed
        assert observation.seat == self.infos[-1].seat
        self.diary.append(f"ask {self.bot} {deal}/{turn}")
        self.asked.append(observation)
        self.asked_in.append(self.infos[-1].number)
        self.limits.append(limits)
        answer = self.policy(self, observation, legal)
        return Reply(answer, 7) if isinstance(answer, int) else answer

    def close(self) -> AgentLog:
        if not self.is_closed:
            self.diary.append(f"close {self.bot}")
        self.is_closed = True
        return AgentLog(text=f"log of {self.bot}")


@dataclass
class FakeFactory:
    """Makes agents by the name of their bot, and keeps them."""

    policies: dict[str, Policy]
    ready: dict[str, int | Declined | Failure] = field(default_factory=dict)
    ready_from: int = 0
    """The sitting from which on `ready` counts; before it all start well."""
    seats: int = 1
    agents: list[FakeAgent] = field(default_factory=list)
    diary: list[str] = field(default_factory=list)

    def __call__(self, source: BotSource, **_: Any) -> FakeAgent:
        counts = len(self.agents) // self.seats >= self.ready_from
        ready = self.ready.get(source.bot, 5) if counts else 5
        agent = FakeAgent(source.bot, self.policies[source.bot], ready, self.diary)
        self.agents.append(agent)
        return agent


NAMES = ("alpha", "beta", "gamma", "delta")
ONE_BOARD = BoardsContest(boards=1)
DEALS = DealSource(local_prk("tests"), "local", reveal=True)


def entrant(*bots: str, name: str = "") -> EntrantRef:
    """An entrant of bots that are no wheels."""
    return EntrantRef(name or bots[0].title(), tuple(BotRef(bot, "1.0", None) for bot in bots))


def spec_of(
    game: str = "eighty",
    contest: Contest = ONE_BOARD,
    *,
    entrants: Sequence[EntrantRef] | int = 2,
    options: dict[str, Any] | None = None,
    control: TimeControl | None = None,
    deals: DealSource = DEALS,
    match_key: str = "M1",
) -> MatchSpec:
    """A match between entrants called Alpha, Beta, …"""
    if isinstance(entrants, int):
        entrants = [entrant(name) for name in NAMES[:entrants]]
    return make_spec(
        game=game,
        contest=contest,
        entrants=entrants,
        options=options,
        time_control=control or time_control("fast"),
        deals=deals,
        match_key=match_key,
    )


def sources_of(spec: MatchSpec) -> list[list[BotSource]]:
    """Sources of code that does not exist: fake agents need none."""
    return [
        [
            BotSource(bot=bot.bot, version=bot.version, wheel=None, folder="", entry_point=bot.bot)
            for bot in one.bots
        ]
        for one in spec.entrants
    ]


def play(
    spec: MatchSpec,
    *policies: Policy,
    ready: dict[str, int | Declined | Failure] | None = None,
    ready_from: int = 0,
    keep_alive: Callable[[], None] = lambda: None,
) -> tuple[PlayedMatch, FakeFactory]:
    """Play `spec`; the policies are given to the bots in their order, the last one to the rest too."""
    bots = list(dict.fromkeys(bot.bot for one in spec.entrants for bot in one.bots))
    chosen = policies or (at_random,)
    factory = FakeFactory(
        {bot: chosen[min(i, len(chosen) - 1)] for i, bot in enumerate(bots)},
        ready or {},
        ready_from,
        get_game(spec.game).seats(len(spec.entrants)),
    )
    return play_match(spec, sources_of(spec), factory, keep_alive), factory
