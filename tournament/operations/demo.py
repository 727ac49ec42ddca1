"""``manage.py demo``: a cup from an author's source to the leaderboard, on a real, temporary site.

Starts the whole stack in a folder of its own, plays, prints, and ends all it started. What Django has to
know stands in `tournament.operations.demonstration`, since the site's home must be settled before.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engine.errors import ArenaError
from engine.sandbox.probe import require_sandbox
from tournament.operations.console import Console
from tournament.operations.errors import OperationsError
from tournament.operations.home import private_files
from tournament.operations.interruptions import Interruptions, heard_interruptions
from tournament.operations.stack import Address, running_stack

if TYPE_CHECKING:
    from tournament.operations.results import Results

INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Play the demo; 0 if everything ended well, else 1 with the cause on stderr."""
    options = read_arguments(arguments)
    console = Console()
    try:
        with private_files(), heard_interruptions() as interruptions:
            results, text = run(options, console, interruptions)
    except KeyboardInterrupt:
        console.say("Interrupted; everything that was started has been ended.")
        return INTERRUPTED
    except (OperationsError, ArenaError) as error:
        console.say(f"The demo failed: {error}")
        return 1
    console.say()
    print(msgspec.json.encode(results).decode() if options.json else text)
    return 0


def read_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line, its paths made absolute."""
    parser = argparse.ArgumentParser(
        prog="manage.py demo",
        description="Start a temporary site, submit bots, play a knock-out of Eighty and a round robin of "
        "Podkidnoe, print the tables, and end everything again. Takes a minute or two.",
    )
    parser.add_argument(
        "--records", type=Path, metavar="DIR", help="write every match record there"
    )
    parser.add_argument(
        "--seed",
        metavar="TEXT",
        help="make the tournaments' secret and times from TEXT: equal texts give equal matches",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of tables"
    )
    options = parser.parse_args(arguments)
    options.records = options.records.absolute() if options.records else None
    return options


def run(
    options: argparse.Namespace, console: Console, interruptions: Interruptions
) -> tuple[Results, str]:
    """The results, and how they are printed for people.

    Raises OperationsError or ArenaError; the site's folder is kept then, since its logs say more.
    """
    require_sandbox()
    if options.records:
        make_folder(options.records)
    home = Path(tempfile.mkdtemp(prefix="arena-demo-"))
    try:
        results, text = play(home, options, console, interruptions)
    except OperationsError as error:
        raise OperationsError(f"{error}\nThe site's folder is kept: {home}") from error
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    shutil.rmtree(home)
    return results, text


def make_folder(folder: Path) -> None:
    """Make the folder for records before anything is played. Raises OperationsError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OperationsError(
            f"{folder} cannot hold records ({error.strerror}); choose another by --records"
        ) from error


def play(
    home: Path, options: argparse.Namespace, console: Console, interruptions: Interruptions
) -> tuple[Results, str]:
    """Play on a site in `home`."""
    console.say("Starting broker, workers and web server …")
    with running_stack(
        home, Address("127.0.0.1", 0), console.say, hurry=interruptions.is_urgent
    ) as stack:
        from tournament.operations.demonstration import Demonstration
        from tournament.operations.results import results_text

        console.say(f"The site is up at {stack.url}")
        results = Demonstration(stack, console, options.seed).play(options.records)
        return results, results_text(results)
