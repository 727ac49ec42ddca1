"""Why a wheel is refused: every reason at once, each with what its author has to change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from engine.errors import WheelError

BUILD_ADVICE = "build it with: python -m build --wheel"
_MAX_REASONS = 20
_LONGEST_REASON = 600
_LONGEST_QUOTE = 120


def refuse_any(reasons: Iterable[str]) -> None:
    """Raise WheelError with these reasons, the first twenty of them, if there is one."""
    found = list(dict.fromkeys(map(_printable, reasons)))
    if found:
        more = len(found) - _MAX_REASONS
        shown = found[:_MAX_REASONS]
        raise WheelError(shown if more <= 0 else [*shown, f"and {more} more of the kind"])


def refuse(reason: str) -> NoReturn:
    """Raise WheelError with this reason."""
    raise WheelError([_printable(reason)])


def quote(text: str) -> str:
    """A text of the wheel as reasons name it: in quotes, in printable ASCII, its head if it is long."""
    return ascii(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}...")


def _printable(reason: str) -> str:
    """One line of bounded length, whatever of the wheel it names: reasons reach terminals and pages."""
    head = reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in head)
