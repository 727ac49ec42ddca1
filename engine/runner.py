"""Plays a match where its bots may be played: behind walls, or here if they are trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from engine.agents import BotSource, in_process_factory, never
from engine.errors import InfrastructureError
from engine.record import MatchSpec
from engine.referee import PlayedMatch, play_match, unseen

MOST_ATTEMPTS = 5
"""So often a play that is void is tried in all, before it is told as a failure."""

T = TypeVar("T")


def unheard(_line: str) -> None:
    """A `tell` that nobody hears."""


def repeat_if_void(
    play: Callable[[], T],
    tell: Callable[[str], None] = unheard,
    *,
    is_void: Callable[[InfrastructureError], bool] = lambda _error: True,
) -> T:
    """What `play` returns; an attempt that is void by our own failure is made again.

    `tell` gets a line for each void one. Raises InfrastructureError if the last of `MOST_ATTEMPTS` is void too,
    or as soon as an error is none that makes an attempt void.
    """
    for attempt in range(1, MOST_ATTEMPTS):
        try:
            return play()
        except InfrastructureError as error:
            if not is_void(error):
                raise
            tell(f"attempt {attempt} of {MOST_ATTEMPTS} is void and made again: {error}")
    return play()


def run_match(
    spec: MatchSpec,
    sources: Sequence[Sequence[BotSource]],
    *,
    trusted: bool = False,
    keep_alive: Callable[[], None] = never,
    progress: Callable[[int], None] = unseen,
) -> PlayedMatch:
    """Play `spec` with each entrant's bots; `trusted` ones play in this process, all others sandboxed.

    Sandboxed bots and this thread share one core, and CPU budgets follow the speed of this machine.

    `progress` is told after each game how many are finished.
    Raises SandboxUnavailableError where the sandbox cannot work: there is no falling back.
    InfrastructureError is our own failure: no result, play it again. ContestError says what cannot be
    played.
    """
    if trusted:
        return play_match(spec, sources, in_process_factory, keep_alive, progress)
    # Here, since a machine that cannot sandbox (it may lack even the modules) can play trusted bots.
    from engine.sandbox.agent import sandbox_factory
    from engine.sandbox.core import one_core
    from engine.sandbox.speed import budget_percent

    with one_core():
        return play_match(spec, sources, sandbox_factory(), keep_alive, progress, budget_percent())
