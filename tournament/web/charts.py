"""A rating's history as a drawing: the strength match by match, and the interval around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tournament.leaderboards.selectors import HistoryPoint

WIDTH, HEIGHT = 640, 200
"""Of the drawing in its own units; the page stretches it to its place."""
STEP = 5.0
"""The scale begins and ends at a multiple of it."""


@dataclass(frozen=True, slots=True)
class VersionCurve:
    """What is drawn of one version."""

    version: str
    matches: int
    line: str
    """The strength μ, as the path of an SVG."""
    band: str
    """The 95 % interval around it, as a closed path."""
    start: float
    """Where its first match is drawn."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A history that can be drawn."""

    curves: tuple[VersionCurve, ...]
    """In the order of the versions' first matches."""
    scale: tuple[float, ...]
    """What stands beside the drawing, from the top to the bottom, at equal distances."""
    first: datetime
    last: datetime
    matches: int
    now: HistoryPoint
    """The last step."""
    width: int = WIDTH
    height: int = HEIGHT


def draw_history(points: Sequence[HistoryPoint]) -> Chart | None:
    """The chart of a bot's history in a pool; None for fewer than two steps, which show no way."""
    if len(points) < 2:
        return None
    low = STEP * math.floor(min(point.low for point in points) / STEP)
    high = STEP * math.ceil(max(point.high for point in points) / STEP)
    placed = [(index * WIDTH / (len(points) - 1), point) for index, point in enumerate(points)]
    versions = list(dict.fromkeys(point.version for point in points))
    return Chart(
        curves=tuple(
            _draw_version(
                version, [each for each in placed if each[1].version == version], low, high
            )
            for version in versions
        ),
        scale=(high, (high + low) / 2, low),
        first=points[0].at,
        last=points[-1].at,
        matches=len(points),
        now=points[-1],
    )


def _draw_version(
    version: str, placed: Sequence[tuple[float, HistoryPoint]], low: float, high: float
) -> VersionCurve:
    def height_of(value: float) -> float:
        return HEIGHT * (high - value) / (high - low)

    above = [(x, height_of(point.high)) for x, point in placed]
    below = [(x, height_of(point.low)) for x, point in placed]
    return VersionCurve(
        version=version,
        matches=len(placed),
        line=_path([(x, height_of(point.mu)) for x, point in placed]),
        band=f"{_path([*above, *reversed(below)])} Z",
        start=round(placed[0][0], 1),
    )


def _path(corners: Sequence[tuple[float, float]]) -> str:
    """A path through these points; through one alone a dot."""
    through = corners if len(corners) > 1 else [*corners, *corners]
    return "M " + " L ".join(f"{x:.1f},{y:.1f}" for x, y in through)
