"""``manage.py up``: keeps a site running here until it is told to stop.

What Django has to know stands in `tournament.operations.first_start`, since the site's home must be
settled before.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from engine.errors import ArenaError
from engine.sandbox.probe import require_sandbox
from tournament.operations.console import Console
from tournament.operations.errors import OperationsError
from tournament.operations.home import default_home, private_files
from tournament.operations.interruptions import Interruptions, heard_interruptions
from tournament.operations.roles import slots_to_fill
from tournament.operations.stack import ANY_HOSTS, Address, Stack, running_stack

STATUS_SECONDS = 2.0


def main(arguments: Sequence[str]) -> int:
    """Run a site until Ctrl-C or SIGTERM; 0 then, 1 with the cause on stderr if it cannot run."""
    console = Console()
    try:
        home, address = read_arguments(arguments)
        with private_files(), heard_interruptions() as interruptions:
            run(home, address, console, interruptions)
    except KeyboardInterrupt:
        console.say(
            "The site has stopped; what was being played is played again at the next start."
        )
        return 0
    except (OperationsError, ArenaError) as error:
        console.say(f"The site cannot run: {error}")
        return 1
    return 0


def read_arguments(arguments: Sequence[str]) -> tuple[Path, Address]:
    """The command line: the site's home and its address. Raises ListenError for no address."""
    parser = argparse.ArgumentParser(
        prog="manage.py up",
        description="Keep a site running here: web server, broker, workers and schedule. Its database "
        "and files are kept in its home. Ctrl-C stops it.",
    )
    parser.add_argument(
        "--listen", default="127.0.0.1:8000", metavar="HOST:PORT", help="default: %(default)s"
    )
    parser.add_argument(
        "--home", type=Path, default=default_home(), metavar="DIR", help="default: %(default)s"
    )
    options = parser.parse_args(arguments)
    return options.home.absolute(), Address.parse(options.listen)


def run(home: Path, address: Address, console: Console, interruptions: Interruptions) -> None:
    """Run the site. Raises KeyboardInterrupt when it is told to stop, OperationsError if it cannot run."""
    if os.environ.get("ARENA_TRUST_BOTS") == "1":
        console.say("ARENA_TRUST_BOTS=1: bots run WITHOUT a sandbox, and no match is rated.")
    else:
        require_sandbox()
    console.say("Starting broker, workers and web server …")
    with running_stack(
        home, address, console.say, slots=slots_to_fill(None), hurry=interruptions.is_urgent
    ) as stack:
        from tournament.operations.first_start import prepare_site

        prepare_site(stack, console)
        welcome(stack, address, console)
        keep_going(stack, console)


def welcome(stack: Stack, address: Address, console: Console) -> None:
    """Say where the site is."""
    console.say(f"Domino Arena is up at {stack.url}  (Ctrl-C stops it)")
    console.say(f"  home {stack.home.path}, logs in {stack.home.logs}")
    if address.host in ANY_HOSTS:
        console.say(
            "  It listens to the whole network and answers to any host name: set ARENA_ALLOWED_HOSTS "
            "to its own, and put TLS before it (ARENA_HTTPS=1)."
        )


def keep_going(stack: Stack, console: Console) -> None:
    """Watch the site, and show how it is, until it is told to stop."""
    shown_at = -STATUS_SECONDS

    def is_over() -> bool:
        nonlocal shown_at
        if console.is_terminal and console.seconds - shown_at >= STATUS_SECONDS:
            shown_at = console.seconds
            console.status(f"up {format_duration(console.seconds)} · {status_line()}")
        return False

    stack.watch(is_over)


def status_line() -> str:
    """How the site is, in one line."""
    from django.db import DatabaseError, close_old_connections

    from tournament.operations.selectors import site_status

    close_old_connections()
    try:
        return site_status().line
    except DatabaseError as error:
        return f"the database does not answer: {error}".splitlines()[0]


def format_duration(seconds: float) -> str:
    """``3 min``, ``2 h 5 min``, ``4 d 1 h``."""
    minutes = int(seconds // 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
