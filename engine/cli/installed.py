"""`arena bots`: which bots are installed here, and what does each play?

Each is started where it can do no harm: in the sandbox, or in a process of its own where there is none.
A broken bot is listed with its error, and keeps no other from being listed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from engine.agents import AgentFactory, AgentLog, BotSource, Declined, Failure, Limits, never
from engine.cli.exits import ExitCode
from engine.cli.output import note, print_json, print_table, progress, say
from engine.cli.results import printable
from engine.errors import ArenaError, SandboxUnavailableError
from engine.games import GAMES
from engine.games.base import Game
from engine.plugins import InstalledPlugin, installed_plugins, source_of_plugin
from engine.sdk.timecontrol import time_control

TRIAL_SECONDS = 60
"""How long a bot may take to start for everything, where no sandbox watches it."""


class Trial(msgspec.Struct, frozen=True):
    """What became of starting a bot for every game and number of players."""

    games: dict[str, list[int]]
    """The numbers of seats at which it plays each game, by the usual rules."""
    error: str | None
    """Why it cannot be started; None if it can."""


class ListedBot(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list."""

    name: str
    version: str
    distribution: str
    games: dict[str, list[int]]
    error: str | None


def run(*, as_json: bool) -> ExitCode:
    """List the bots; NOT_GOOD if one of them is broken."""
    factory = _sandbox()
    plugins = installed_plugins()
    bots = []
    with (
        tempfile.TemporaryDirectory(prefix="arena-bots-") as folder,
        progress("starting bots", len(plugins), quiet=as_json) as show,
    ):
        for plugin in plugins:
            bots.append(_list_bot(plugin, Path(folder), factory))
            show(len(bots))
    if as_json:
        listed = [msgspec.to_builtins(bot) for bot in bots]
        print_json({"bots": listed, "sandboxed": factory is not None})
    else:
        _print(bots)
        if factory is None:
            note("not sandboxed: this machine cannot hold bots, each was started as a process")
    return ExitCode.NOT_GOOD if any(bot.error for bot in bots) else ExitCode.OK


def try_bot(source: BotSource, factory: AgentFactory) -> Trial:
    """Start the bot for every game and number of seats, by the usual rules, until it fails."""
    games: dict[str, list[int]] = {}
    for game in GAMES.values():
        for seats in map(game.seats, game.entrant_counts):
            start, log = _start(source, factory, game, seats)
            if isinstance(start, Failure):
                return Trial({}, _spell_failure(start, log.traceback))
            if not isinstance(start, Declined):
                games.setdefault(game.name, []).append(seats)
    return Trial(games, None)


def _start(
    source: BotSource, factory: AgentFactory, game: Game, seats: int
) -> tuple[int | Declined | Failure, AgentLog]:
    control = time_control("standard")
    agent = factory(
        source,
        game=game.name,
        ruleset=game.make_ruleset(),
        players=seats,
        time_control=control,
        keep_alive=never,
    )
    try:
        agent.start()
        start = agent.wait_ready(Limits(control.start_cpu_ms * 1000, control.action_wall_ms))
    finally:
        log = agent.close()
    return start, log


def _sandbox() -> AgentFactory | None:
    try:
        from engine.sandbox.agent import sandbox_factory
        from engine.sandbox.probe import require_sandbox

        require_sandbox()
    except (SandboxUnavailableError, ImportError):
        return None
    return sandbox_factory()


def _list_bot(plugin: InstalledPlugin, stage: Path, factory: AgentFactory | None) -> ListedBot:
    trial = Trial({}, plugin.problem)
    if plugin.problem is None:
        try:
            source = source_of_plugin(plugin.name, stage)
            trial = _try_as_process(source) if factory is None else try_bot(source, factory)
        except ArenaError as error:
            trial = Trial({}, str(error))
    return ListedBot(
        name=plugin.name,
        version=plugin.version,
        distribution=plugin.distribution,
        games=trial.games,
        error=trial.error,
    )


def _try_as_process(source: BotSource) -> Trial:
    """Try the bot in a process of its own, which may hang, crash or say anything."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "engine.cli.trial"],
            input=msgspec.json.encode(source),
            capture_output=True,
            check=False,
            timeout=TRIAL_SECONDS,
        )
        return msgspec.json.decode(done.stdout, type=Trial)
    except subprocess.TimeoutExpired:
        return Trial({}, f"did not start within {TRIAL_SECONDS} seconds")
    except msgspec.DecodeError:
        return Trial({}, f"ended its process with exit code {done.returncode} while starting")


def _spell_failure(failure: Failure, traceback: str) -> str:
    """One line: what happened, and the last line of the traceback, where the cause stands."""
    cause = traceback.strip().splitlines()[-1:]
    return printable(": ".join([failure.detail, *cause]))


def _print(bots: list[ListedBot]) -> None:
    if not bots:
        say("No bots are installed here; arena new starts one.")
        return
    rows = [(bot.name, bot.version, bot.distribution, _spell_games(bot)) for bot in bots]
    print_table(("bot", "version", "distribution", "plays"), rows)


def _spell_games(bot: ListedBot) -> str:
    if bot.error is not None:
        return f"broken: {bot.error}"
    played = (f"{game} ({', '.join(map(str, seats))})" for game, seats in bot.games.items())
    return ", ".join(played) or "nothing"
