"""The port that the referee asks. `engine.sandbox.agent` is the other implementation.

An agent stands for one seat in one rotation of a match: it is started, asked, closed, and never used
again. What a bot does wrong comes back as a `Failure`; only our own failures are raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from engine.outcome import Termination
from engine.sdk import GameInfo
from engine.sdk.timecontrol import TimeControl


class Limits(msgspec.Struct, frozen=True):
    """What one question may cost."""

    cpu_us: int
    """CPU time in microseconds."""
    wall_ms: int
    """Real time in milliseconds."""


class Reply(msgspec.Struct, frozen=True):
    """The index of the chosen action among the legal ones, and the CPU time it cost."""

    index: int
    cpu_us: int


class Failure(msgspec.Struct, frozen=True):
    """What a bot did wrong. `detail` is one line for its author and the record: no paths, no ids."""

    kind: Termination
    detail: str
    cpu_us: int = 0


class Declined(msgspec.Struct, frozen=True):
    """The plugin made no strategy: it does not play this game, ruleset or number of players."""

    cpu_us: int = 0


class AgentLog(msgspec.Struct, frozen=True, kw_only=True):
    """What a bot printed (head only, `truncated` if cut) and the traceback of its crash, for its owner."""

    text: str = ""
    truncated: bool = False
    traceback: str = ""


class Agent(Protocol):
    """One seat's bot in one rotation."""

    def start(self) -> None:
        """Begin to start the bot, without waiting. Raises InfrastructureError for our own failure."""

    def wait_ready(self, limits: Limits) -> int | Declined | Failure:
        """Wait until the bot has been imported and has made its strategy: the CPU microseconds it cost."""

    def begin_game(self, info: GameInfo) -> None:
        """Tell the bot that a game begins; the cost counts for its first answer."""

    def ask(
        self, observation: Any, legal: Sequence[Any], limits: Limits, *, deal: int, turn: int
    ) -> Reply | Failure:
        """Ask for one of the `legal` actions. `deal` and `turn` mark the log."""

    def close(self) -> AgentLog:
        """End the bot and everything it started; idempotent."""


class BotSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where a bot's code lies, and how the record names it."""

    bot: str
    version: str | None
    """None: a local plugin without a version."""
    wheel: str | None
    """``sha256:`` and 64 hex digits; None for a local plugin that is no wheel."""
    folder: str
    """The folder that goes on the bot's import path: an unpacked wheel, holding nothing else."""
    entry_point: str
    """``module`` or ``module:attribute``."""


class AgentFactory(Protocol):
    """Makes the agent of one seat, not yet started."""

    def __call__(
        self,
        source: BotSource,
        *,
        game: str,
        ruleset: Any,
        players: int,
        time_control: TimeControl,
        keep_alive: Callable[[], None],
    ) -> Agent: ...


def never() -> None:
    """A `keep_alive` for plays that hold no lease."""
