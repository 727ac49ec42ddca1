"""Time controls: how long a bot may think."""

from __future__ import annotations

import msgspec

from engine.errors import ContestError


class TimeControl(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """CPU time, not wall time, is what a bot spends.

    Each seat has `game_cpu_ms` for a game (in a boards match: for a deal) and gains
    `action_cpu_ms` with each question it is asked. Unspent time is not carried into the next game.
    """

    name: str
    start_cpu_ms: int
    """Once per process: importing the bot and making its strategy."""
    game_cpu_ms: int
    action_cpu_ms: int
    action_wall_ms: int
    """A generous cap in real time, against a bot that sleeps: so long may a process idle in all its answers together.

    What it computes, or waits for the machine, is no idling.
    """


TIME_CONTROLS = {
    control.name: control
    for control in (
        TimeControl("fast", 2000, 500, 10, 10_000),
        TimeControl("standard", 2000, 5000, 50, 60_000),
        TimeControl("long", 5000, 60_000, 500, 300_000),
    )
}
"""The named time controls."""


def time_control(name: str) -> TimeControl:
    """The time control called `name`. Raises ContestError for an unknown one."""
    try:
        return TIME_CONTROLS[name]
    except KeyError:
        raise ContestError(
            f"there is no time control {name!r}; there are: {', '.join(TIME_CONTROLS)}"
        ) from None
