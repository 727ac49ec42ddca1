"""The commands of `arena` with their arguments; what they do lies in a module each.

Only Typer is imported here: a command brings in what it needs when it runs, so that ``arena --help``
answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from engine.cli.exits import exit_code_of
from engine.cli.output import error_line
from engine.errors import ArenaError

if TYPE_CHECKING:
    from engine.cli.exits import ExitCode


WRONG_USAGE: type[Any] = typer.BadParameter.__mro__[1]
"""What every wrong option or argument raises (click's UsageError, which Typer keeps a copy of its own of)."""


class ArenaGroup(TyperGroup):
    """A group whose errors are one line and an exit code, never a traceback."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Read the options that stand before a command."""
        with one_line():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            with one_line():
                return super().invoke(ctx)
        except ArenaError as error:
            error_line(str(error))
            raise typer.Exit(exit_code_of(error)) from error


@contextmanager
def one_line() -> Iterator[None]:
    """Tell a wrong option or argument in one line, with the command whose help knows better, and leave."""
    try:
        yield
    except WRONG_USAGE as error:
        message = error.format_message()
        if type(error).__name__ == "NoArgsIsHelpError":
            raise  # the help itself, where nothing was said
        command = "arena" if error.ctx is None else error.ctx.command_path
        error_line(f"{message.rstrip('.')}; see {command} --help")
        raise typer.Exit(error.exit_code) from error


BotsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="BOT",
        help="Each an installed bot's name, a folder with a pyproject.toml, or a wheel.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer with one JSON object on stdout.")]


def play(
    bots: BotsArgument,
    game: Annotated[
        str | None, typer.Option(metavar="GAME", help="eighty or podkidnoe.", show_default=False)
    ] = None,
    boards: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Mirrored sets: each deal is played from every side. [20]"
        ),
    ] = None,
    best_of: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Whole games instead of boards.")
    ] = None,
    deals_from: Annotated[
        Path | None,
        typer.Option(
            metavar="RECORD", help="Play the deals of this match again, by its rules, and compare."
        ),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Decides the deals; a random one is made and told."),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="OPTION=VALUE", help="An option of the game; may be repeated."),
    ] = None,
    time_control: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="How long bots may think: fast, standard or long. [standard]"
        ),
    ] = None,
    records: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the match record into this folder.")
    ] = None,
    logs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write what the bots printed into this folder."),
    ] = None,
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Run the bots in this process, without a sandbox.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Let bots play a match and tell who is better.

    Eighty takes two bots, the sides, or four, in the order of the seats (so that the first and the
    third are partners). Podkidnoe takes two to four. One bot may be named several times.
    """
    from engine.cli.play import run

    _leave(
        run(
            bots,
            game=game,
            boards=boards,
            best_of=best_of,
            deals_from=deals_from,
            seed=seed,
            rules=rule or (),
            time_control=time_control,
            records=records,
            logs=logs,
            trusted=trusted,
            as_json=as_json,
        )
    )


def compare(
    bots: BotsArgument,
    game: Annotated[
        str, typer.Option(metavar="GAME", help="eighty, podkidnoe, or both of them.")
    ] = "both",
    elo0: Annotated[
        float | None,
        typer.Option(metavar="ELO", help="No gain: the difference that is to be refuted. [0]"),
    ] = None,
    elo1: Annotated[
        float | None, typer.Option(metavar="ELO", help="A gain worth having. [10]")
    ] = None,
    max_sets: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, metavar="N", help="Give up after N sets. [10000]"),
    ] = None,
    sets: Annotated[
        int | None,
        typer.Option(
            min=1, max=1_000_000, metavar="N", help="Play N sets, without a sequential test."
        ),
    ] = None,
    calibrate: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000,
            metavar="RUNS",
            help="Try the test itself: how often does it call a copy of the one BOT better?",
        ),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Decides the deals; a random one is made and told."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=1024, metavar="N", help="Matches at a time. [one for each core]"),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="OPTION=VALUE", help="An option of the game; may be repeated."),
    ] = None,
    time_control: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="How long bots may think: fast, standard or long. [standard]"
        ),
    ] = None,
    records: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the match records into this folder.")
    ] = None,
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Run the bots without a sandbox.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Is the first bot better than the second? Plays until it is known.

    Mirrored sets are played until a sequential test (GSPRT) accepts a gain of --elo1 or of --elo0.
    Exit code 0: better; 1: not better, or a fault; 5: the sets do not say.
    """
    from engine.cli.compare import run

    _leave(
        run(
            bots,
            game=game,
            elo0=elo0,
            elo1=elo1,
            max_sets=max_sets,
            sets=sets,
            calibrate=calibrate,
            seed=seed,
            jobs=jobs,
            rules=rule or (),
            time_control=time_control,
            records=records,
            trusted=trusted,
            as_json=as_json,
        )
    )


def verify(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Match records.", show_default=False)
    ],
    as_json: JsonOption = False,
) -> None:
    """Judge match records by the rules of their games.

    Each file is told to be true, or what is wrong with it and where.
    """
    from engine.cli.verify import run

    _leave(run(files, as_json=as_json))


def verify_tournament(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|URL",
            help="A tournament's bundle, plain or packed by gzip, or the address of its page.",
            show_default=False,
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Judge a whole finished tournament: every deal, match, pairing, table and rating.

    All of it is recomputed from the published secret and the rules. Told is what was checked, or what is
    wrong and where.
    """
    from engine.cli.verify_tournament import run

    _leave(run(source, as_json=as_json))


def replay(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A match record.", show_default=False)
    ],
    deal: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Only the deal with this number in the record, from 0."
        ),
    ] = None,
) -> None:
    """Show a match record as text, deal by deal."""
    from engine.cli.replay import run

    _leave(run(file, deal=deal))


def debug(
    file: Annotated[
        Path, typer.Argument(metavar="RECORD", help="A match record.", show_default=False)
    ],
    bot: Annotated[
        str | None,
        typer.Argument(
            metavar="[BOT]", help="As for play; by default the installed one that sat there."
        ),
    ] = None,
    seat: Annotated[
        int | None,
        typer.Option(metavar="S", help="The seat, from 0. [that of the fault]", show_default=False),
    ] = None,
    move: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Before its K-th action in the game, from 1. [that of the fault]"
        ),
    ] = None,
    game: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="The game's number in the record, from 0. [that of the fault, else 0]"
        ),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="That of the match, if it was a local one."),
    ] = None,
    random_seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The seat's own, as its log tells it.")
    ] = None,
    no_pdb: Annotated[
        bool, typer.Option("--no-pdb", help="Only print the answer, without a debugger.")
    ] = False,
) -> None:
    """Ask a bot again at one moment of a match, under Python's debugger.

    Prints what the seat saw, lets the bot see what came before, and stops at the first line of its
    act(). The bot runs in this process, without a sandbox.
    """
    from engine.cli.debug import run

    _leave(
        run(
            file,
            bot,
            seat=seat,
            move=move,
            game=game,
            seed=seed,
            random_seed=random_seed,
            use_pdb=not no_pdb,
        )
    )


def check(
    bot: Annotated[
        Path,
        typer.Argument(metavar="WHEEL|FOLDER", help="The bot to check.", show_default=False),
    ],
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Run the bot in this process, without a sandbox.")
    ] = False,
    seconds: Annotated[
        int,
        typer.Option(
            min=1,
            max=600,
            metavar="N",
            help="Real time for all of it, on a busy machine up to six times as long; the server gives 600.",
        ),
    ] = 600,
    game: Annotated[
        str | None,
        typer.Option(
            metavar="GAME", help="Try it only as a tournament of this game does at entry."
        ),
    ] = None,
    seats: Annotated[
        int | None,
        typer.Option(min=2, metavar="N", help="With --game: the table's size. [the smallest]"),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="OPTION=VALUE", help="With --game: an option of it; may be repeated."),
    ] = None,
    time_control: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --game: fast, standard or long. [standard]"),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the record of each match that a fault ended here."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a bot as the server does after an upload, or with --game as it does at the entry into a tournament."""
    from engine.cli.check import read_conditions, run

    only = read_conditions(game, seats=seats, rules=rule or (), time_control=time_control)
    _leave(run(bot, trusted=trusted, as_json=as_json, seconds=seconds, only=only, records=records))


def bots(as_json: JsonOption = False) -> None:
    """List the installed bots and what each plays."""
    from engine.cli.installed import run

    _leave(run(as_json=as_json))


def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The bot's name: lower-case letters, digits, - and _.",
            show_default=False,
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to write the project. [./NAME]"),
    ] = None,
) -> None:
    """Start a bot of your own.

    Writes a project with a strategy for both games and tests that pass.
    """
    from engine.cli.new import run

    _leave(run(name, folder=folder))


def pack(
    project: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="The bot's project.", show_default=False),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to write the wheel. [FOLDER/dist]"),
    ] = None,
) -> None:
    """Make the wheel of a bot, ready to be uploaded.

    Equal files make equal bytes, and none of the project's code runs.
    """
    from engine.cli.pack import run

    _leave(run(project, folder=folder))


def strength(
    bots: Annotated[
        list[str] | None,
        typer.Argument(metavar="[BOT]", help="As for play; all installed bots if none is named."),
    ] = None,
    game: Annotated[
        list[str] | None, typer.Option(metavar="GAME", help="May be repeated. [every game]")
    ] = None,
    boards: Annotated[
        int, typer.Option(min=2, metavar="N", help="Mirrored sets for each two bots.")
    ] = 500,
    seed: Annotated[str, typer.Option(metavar="TEXT", help="Decides the deals.")] = "strength",
) -> None:
    """Let trusted bots all meet, two by two.

    Prints who beats whom, and by how much, as a Markdown table. The bots run in this process.
    """
    from engine.cli.strength import run

    _leave(run(bots or [], games=game or [], boards=boards, seed=seed))


def simulate_formats(
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="NAME", help="May be repeated. [every format]"),
    ] = None,
    tournaments: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many tournaments of each format.")
    ] = 1000,
    seed: Annotated[
        str, typer.Option(metavar="TEXT", help="Decides all that is random.")
    ] = "formats",
    as_json: JsonOption = False,
) -> None:
    """Play random tournaments of every format, and check what must hold in each.

    No bots play: who wins, ties, crashes, does not appear, withdraws or comes late is drawn at random.
    """
    from engine.cli.simulate_formats import run

    _leave(run(formats or [], tournaments=tournaments, seed=seed, as_json=as_json))


def doctor(
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Compare with what bots get on this site.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Try whether this machine can hold bots, and tell what a bot gets here.

    A bot of our own attempts what is forbidden. Told are the level of the walls, what could be stronger
    and how, and the limits, with how fast this machine is; with --server URL also in what a site differs.
    """
    from engine.cli.doctor import run

    _leave(run(server=server, as_json=as_json))


def version() -> None:
    """Tell the versions of arena, protocol and record."""
    from engine.cli.version import run

    _leave(run())


def make_app() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        cls=ArenaGroup,
        help="Play, verify, draw, check and start domino bots.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich" if sys.stdout.isatty() else None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    commands = (
        play, compare, verify, verify_tournament, replay, debug, check, pack, bots, new, strength, simulate_formats, doctor, version,
    )  # fmt: skip
    for command in commands:
        app.command()(command)
    app.add_typer(_make_bench(), name="bench")
    return app


def _make_bench() -> typer.Typer:
    from engine.cli import bench, bench_fairness, bench_formats, bench_sandbox

    app = typer.Typer(help="Measure the engine on this machine.", no_args_is_help=True)
    app.command("engine")(bench.command)
    app.command("sandbox")(bench_sandbox.command)
    app.command("formats")(bench_formats.command)
    app.command("fairness")(bench_fairness.command)
    return app


def _leave(code: ExitCode) -> None:
    if code:
        raise typer.Exit(code)
