"""Why a wheel is refused: every reason at once, each with what its author has to change."""

from __future__ import annotations

from collections.abc import Iterable

from engine.errors import WheelError

BUILD_ADVICE = "build it with: python -m build --wheel"
_MAX_REASONS = 20


def refuse_any(reasons: Iterable[str]) -> None:
    """Raise WheelError with these reasons, the first twenty of them, if there is one."""
    found = list(dict.fromkeys(reasons))
    if found:
        more = len(found) - _MAX_REASONS
        shown = found[:_MAX_REASONS]
        raise WheelError(shown if more <= 0 else [*shown, f"and {more} more of the kind"])
