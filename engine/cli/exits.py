"""How `arena` ends: the exit codes, and which error means which."""

from __future__ import annotations

from enum import IntEnum

from engine.errors import ArenaError, InfrastructureError, SandboxUnavailableError, UsageError


class ExitCode(IntEnum):
    """The codes that `arena` ends with; scripts may rely on them."""

    OK = 0
    """Done, and what was judged is good."""
    NOT_GOOD = 1
    """What was judged is not good: an untrue record, a rejected bot, a broken plugin, a fault in a match."""
    USAGE = 2
    """The command cannot be carried out as it was given; the message says what to change."""
    NO_SANDBOX = 3
    """This machine cannot hold bots that are not trusted."""
    FAILURE = 4
    """A failure of the arena itself, of no bot: nothing was judged, run it again."""
    UNDECIDED = 5
    """The sets that were played do not say whether one bot is better than the other."""
    INTERRUPTED = 130
    """Ctrl-C; what was finished until then is told."""


def exit_code_of(error: ArenaError) -> ExitCode:
    """The exit code that tells a script what kind of `error` ended the command."""
    if isinstance(error, UsageError):
        return ExitCode.USAGE
    if isinstance(error, SandboxUnavailableError):
        return ExitCode.NO_SANDBOX
    if isinstance(error, InfrastructureError):
        return ExitCode.FAILURE
    return ExitCode.NOT_GOOD
