"""The errors of the engine, as one tree.

::

    ArenaError                     everything the engine raises on purpose
    ├── UsageError                 the caller asked for something that cannot be: says what to change
    │   ├── NotationError          a text that is no tile, action or hand
    │   ├── RulesetError           an unknown option of a game, or a value it does not take
    │   ├── ContestError           a contest, time control or number of bots that cannot be played
    │   ├── FormatError            a tournament format that cannot be run so
    │   ├── PluginError            a bot that cannot be found or loaded
    │   └── WheelError             a file that is no acceptable wheel (carries every reason)
    ├── IllegalActionError         an action that the rules do not allow here
    ├── RecordError                a match record that is not true (carries the place)
    │   └── BundleError            a tournament bundle that is not true
    ├── UntrueFileError            a file with such a record, named by the user (carries the file)
    ├── SandboxUnavailableError    this machine cannot hold a bot (carries what is missing)
    └── InfrastructureError        our own failure: the match is void and is played again
        └── StarvedError           this machine was too busy to let a bot run

What a *bot* does wrong during a match is no error but a value: `engine.agents.Failure`.
"""

from __future__ import annotations

from collections.abc import Sequence


class ArenaError(Exception):
    """Everything that the engine raises on purpose."""


class UsageError(ArenaError):
    """The caller asked for something that cannot be; the message says what to change."""


class NotationError(UsageError):
    """A text that should be a tile, an action or a hand, and is not."""

    def __init__(self, text: str, expected: str) -> None:
        super().__init__(f"{text!r} is not {expected}")
        self.text = text
        self.expected = expected


class RulesetError(UsageError):
    """An unknown option of a game, or a value that the option does not take."""

    def __init__(self, game: str, option: str, message: str) -> None:
        super().__init__(message)
        self.game = game
        self.option = option


class ContestError(UsageError):
    """A contest, time control or number of bots that cannot be played."""


class FormatError(UsageError):
    """A tournament format that cannot be run with these options or entrants."""


class PluginError(UsageError):
    """A bot that cannot be found, or whose plugin cannot be loaded."""


class WheelError(UsageError):
    """A file that is not an acceptable wheel."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)


class IllegalActionError(ArenaError):
    """An action that the rules do not allow in this position."""

    def __init__(self, action: str, legal: Sequence[str]) -> None:
        super().__init__(f"{action} is not allowed here; allowed: {', '.join(legal) or 'nothing'}")
        self.action = action
        self.legal = tuple(legal)


class UntrueFileError(ArenaError):
    """A file holds a record that is not true, so nothing can be done with it but judge it."""

    def __init__(self, file: str, error: RecordError) -> None:
        self.file = file
        self.error = error
        super().__init__(
            f"{file} is untrue at {error}; only a true record can be used: fetch it anew where it came from "
            "(arena verify judges files)"
        )


class RecordError(ArenaError):
    """A match record that is not true; `place` is the path of the wrong value, e.g. ``games[0].score``.

    Both may quote a document from anywhere, so they are kept short and printable.
    """

    def __init__(self, place: str, message: str) -> None:
        self.place = _quote(place, 120)
        self.message = _quote(message, 500)
        super().__init__(f"{self.place}: {self.message}")


class BundleError(RecordError):
    """A tournament bundle that is not true; `place` as in ``stages[0].rounds[1].pairings[0].key``."""


class SandboxUnavailableError(ArenaError):
    """This machine cannot hold a bot. Bots that are not trusted are refused, never played unprotected."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)


class InfrastructureError(ArenaError):
    """Our own failure (a lost lease, a sandbox that did not start): no result, the match is played again."""


class StarvedError(InfrastructureError):
    """A bot gave no answer in real time, since this machine did not let it run: nobody's fault at the table."""


def _quote(text: str, longest: int) -> str:
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: longest + 1])
    return line if len(line) <= longest else line[:longest] + "…"
