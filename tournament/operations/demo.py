"""``manage.py demo``: a cup from an author's source to the leaderboard, on a real, temporary site.

With ``--formats all`` it is a small tournament of every format, each verified by its bundle.

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
from tournament.operations.stack import Address, Stack, running_stack

if TYPE_CHECKING:
    from tournament.operations.results import Results
    from tournament.operations.verified import VerifiedResults

INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Play the demo; 0 if everything ended well, else 1 with the cause on stderr."""
    options = read_arguments(arguments)
    console = Console()
    try:
        with private_files(), heard_interruptions() as interruptions:
            results, text, is_good = run(options, console, interruptions)
    except KeyboardInterrupt:
        console.say("Interrupted; everything that was started has been ended.")
        return INTERRUPTED
    except (OperationsError, ArenaError) as error:
        console.say(f"The demo failed: {error}")
        return 1
    console.say()
    print(msgspec.json.encode(results).decode() if options.json else text)
    return 0 if is_good else 1


def read_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line, its paths made absolute."""
    parser = argparse.ArgumentParser(
        prog="manage.py demo",
        description="Start a temporary site, submit bots, play a knock-out of Eighty and a round robin of "
        "Podkidnoe, print the tables, and end everything again. Takes a minute or two.",
    )
    parser.add_argument(
        "--formats",
        choices=("all",),
        help="play a small tournament of every format instead, and verify each as arena verify-tournament does",
    )
    parser.add_argument(
        "--bundles",
        type=Path,
        metavar="DIR",
        help="with --formats all: write every tournament there as one document that can be verified",
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
    if options.bundles and not options.formats:
        parser.error("--bundles goes with --formats all")
    options.records = options.records.absolute() if options.records else None
    options.bundles = options.bundles.absolute() if options.bundles else None
    return options


def run(
    options: argparse.Namespace, console: Console, interruptions: Interruptions
) -> tuple[Results | VerifiedResults, str, bool]:
    """The results, how they are printed for people, and whether all is as it should be.

    Raises OperationsError or ArenaError; the site's folder is kept then, since its logs say more.
    """
    require_sandbox()
    for folder, option in ((options.records, "--records"), (options.bundles, "--bundles")):
        if folder:
            make_folder(folder, option)
    home = Path(tempfile.mkdtemp(prefix="arena-demo-"))
    try:
        answer = play(home, options, console, interruptions)
    except OperationsError as error:
        raise OperationsError(f"{error}\nThe site's folder is kept: {home}") from error
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    shutil.rmtree(home)
    return answer


def make_folder(folder: Path, option: str) -> None:
    """Make the folder of an option before anything is played. Raises OperationsError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OperationsError(
            f"{folder} cannot hold {option[2:]} ({error.strerror}); choose another by {option}"
        ) from error


def play(
    home: Path, options: argparse.Namespace, console: Console, interruptions: Interruptions
) -> tuple[Results | VerifiedResults, str, bool]:
    """Play on a site in `home`."""
    console.say("Starting broker, workers and web server …")
    with running_stack(
        home, Address("127.0.0.1", 0), console.say, hurry=interruptions.is_urgent
    ) as stack:
        from tournament.operations.demonstration import Demonstration
        from tournament.operations.results import results_text

        console.say(f"The site is up at {stack.url}")
        if options.formats:
            return play_every_format(stack, console, options)
        results = Demonstration(stack, console, options.seed).play(options.records)
        return results, results_text(results), True


def play_every_format(
    stack: Stack, console: Console, options: argparse.Namespace
) -> tuple[VerifiedResults, str, bool]:
    """Play a small tournament of every format, download each as its bundle, and verify it."""
    from tournament.operations.cups import EVERY_FORMAT
    from tournament.operations.demonstration import Demonstration
    from tournament.operations.verified import (
        VerifiedResults,
        verified_text,
        verify_site_tournament,
    )

    demonstration = Demonstration(stack, console, options.seed, EVERY_FORMAT)
    lines = []
    for tournament in demonstration.play_cups():
        line = verify_site_tournament(
            stack.url, tournament.slug, bundles=options.bundles, records=options.records
        )
        console.say(f"{line.name}: {'true' if line.is_true else f'UNTRUE at {line.place}'}")
        lines.append(line)
    is_true = all(line.is_true for line in lines)
    results = VerifiedResults(
        seed=options.seed,
        tournaments=lines,
        is_true=is_true,
        seconds=round(console.seconds, 1),
    )
    return results, verified_text(results), is_true
