"""Puts one bot on stage: starts it in the sandbox, asks it a few times, and reports how it ended."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.agents import AgentLog, BotSource, Declined, Failure, Limits, Reply, never
from engine.games import get_game
from engine.sandbox.agent import sandbox_factory
from engine.sandbox.core import one_core
from engine.sandbox.launcher import BubblewrapLauncher
from engine.sandbox.memory import shown_files
from engine.sandbox.runtime import find_runtime
from engine.sandbox.zygote_launcher import shared_launcher
from engine.sdk import GameInfo
from engine.sdk.timecontrol import time_control
from engine.shuffle import Stream

HERE = Path(__file__).parent
GENEROUS = Limits(cpu_us=5_000_000, wall_ms=60_000)
TIGHT = Limits(cpu_us=300_000, wall_ms=60_000)
IMPATIENT = Limits(cpu_us=300_000, wall_ms=1500)
CONTROL = time_control("standard")


@dataclass(frozen=True)
class Show:
    """What came of a bot on stage."""

    ready: int | Declined | Failure
    answers: tuple[Reply | Failure, ...]
    log: AgentLog

    @property
    def fault(self) -> Failure | None:
        """The first thing that it did wrong."""
        faults = (answer for answer in (self.ready, *self.answers) if isinstance(answer, Failure))
        return next(faults, None)


def source_in(folder: Path, bot: str) -> BotSource:
    """A hostile bot alone in a folder, as an unpacked wheel would be."""
    folder.mkdir(exist_ok=True)
    shutil.copy(HERE / f"{bot}.py", folder)
    return BotSource(bot=bot, version=None, wheel=None, folder=str(folder), entry_point=bot)


def make_agent(source: BotSource, game="eighty", players=4, keep_alive=never, launcher=None):
    """A sandboxed agent of that bot, not started; behind the walls that a tournament has, or `launcher`'s."""
    return sandbox_factory(launcher)(
        source,
        game=game,
        ruleset=get_game(game).make_ruleset(),
        players=players,
        time_control=CONTROL,
        keep_alive=keep_alive,
    )


def first_question(game="eighty", players=4):
    """The observation of the first seat that has a choice."""
    rules = get_game(game)
    ruleset = rules.make_ruleset()
    state = rules.start(ruleset, rules.deal(Stream(b"stage" * 7), ruleset, players))
    while len(state.legal()) == 1:
        state.apply(state.legal()[0])
    return state.observe(1000)


def game_info(seat=0, number=0, game="eighty", players=4):
    """What a strategy is told when a game begins."""
    return GameInfo(
        game=game,
        ruleset=get_game(game).make_ruleset(),
        seat=seat,
        players=tuple("abcd"[:players]),
        time_control=CONTROL,
        random_seed=2**255 + 1,
        number=number,
    )


def perform(agent, questions=3, start=GENEROUS, limits=TIGHT) -> Show:
    """Start, ask up to `questions` times, close."""
    answers = []
    try:
        agent.start()
        ready = agent.wait_ready(start)
        if isinstance(ready, int):
            agent.begin_game(game_info())
            observation = first_question()
            for turn in range(questions):
                answers.append(
                    agent.ask(observation, observation.legal, limits, deal=0, turn=turn, move=1)
                )
                if isinstance(answers[-1], Failure):
                    break
    finally:
        log = agent.close()
    return Show(ready, tuple(answers), log)


@contextmanager
def nothing_left_behind():
    """Assert that no child process and no open file of ours is left, once the zygotes are told to go."""
    close_zygotes()
    shown_files(find_runtime())  # which is held as long as the process lives
    with one_core():  # which is claimed once a process
        pass
    files = open_files()
    children = own_children()
    yield
    close_zygotes()
    assert own_children() == children
    assert open_files() == files


LAUNCHERS = {
    "bubblewrap": shared_launcher("bubblewrap"),
    "landlock": shared_launcher("landlock"),
    "a bubblewrap each": BubblewrapLauncher(),
}
"""Every way to start a bot's process."""


def close_zygotes():
    """End the zygotes that wait for the next match."""
    for level in ("bubblewrap", "landlock"):
        shared_launcher(level).close()


def open_files() -> int:
    """How many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def own_children() -> set[str]:
    """The pids of this process's children, zombies included."""
    return {
        pid
        for task in Path("/proc/self/task").iterdir()
        for pid in (task / "children").read_text().split()
    }
