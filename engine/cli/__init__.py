"""The `arena` command: plays, verifies, draws, checks and starts bots from a shell.

It needs only the engine and files. It must not know Django, a database or a broker, and it never
imports a bot into its own process unless it is told to trust it.
"""

from __future__ import annotations


def main() -> None:
    """Run `arena` with the arguments of the process; the exit codes are `engine.cli.exits.ExitCode`."""
    from engine.cli.app import make_app

    make_app()(prog_name="arena")
