"""Plays a match where its bots may be played: behind walls, or here if they are trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.agents import BotSource, in_process_factory, never
from engine.record import MatchSpec
from engine.referee import PlayedMatch, play_match, unseen


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
