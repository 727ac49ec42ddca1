"""How a match ended: closed enums, a reason beside each member."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

import msgspec


class Termination(StrEnum):
    """What ended a match."""

    COMPLETED = "completed"
    """Played to its end."""
    ILLEGAL_ACTION = "illegal_action"
    """A bot answered with an action that was not among the legal ones."""
    TIME = "time"
    """A bot used up its CPU clock, or slept past the wall cap of an action."""
    CRASH = "crash"
    """A bot raised, exited, was killed by the kernel, or could not be imported."""
    PROTOCOL = "protocol"
    """A bot sent something that is no answer to what it was asked."""
    MEMORY = "memory"
    """A bot asked for more memory than it may have."""
    FORFEIT = "forfeit"
    """An organiser decided it; there is no record."""


FAULTS = frozenset(Termination) - {Termination.COMPLETED, Termination.FORFEIT}
"""The terminations that a bot causes."""


LONGEST_DETAIL = 200
"""Characters of a fault's detail."""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an entrant did wrong, and where it sat (`seat` is None where no single seat is meant)."""

    entrant: int
    seat: int | None
    kind: Termination
    detail: str

    def tell(self) -> str:
        """What it did as a sentence: ``it raised ValueError …``, ``its process ended …``."""
        return self.detail if self.detail.startswith("its ") else f"it {self.detail}"


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a match, by entrant.

    `points`: (k-1) × own score - the others' scores over the finished games; zeros after a fault.
    `places`: 1 is the best; ties share the place.
    """

    termination: Termination
    faults: tuple[Fault, ...]
    points: tuple[int, ...]
    places: tuple[int, ...]


def places_by(values: Sequence[float]) -> tuple[int, ...]:
    """Places for `values`, the highest first; equal values share the better place (1, 2, 2, 4)."""
    return tuple(1 + sum(other > value for other in values) for value in values)


def clean_detail(text: str) -> str:
    """`text` as a fault's detail: one printable line of at most 200 characters.

    Paths keep only their last part and addresses in memory are left out: they would tell of the
    machine, and differ from one to the next.
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = _ADDRESS.sub("0x…", _PATH.sub("", line))
    return line if len(line) <= LONGEST_DETAIL else line[: LONGEST_DETAIL - 1].rstrip() + "…"


_PATH = re.compile(
    r"(?<![\w.~:/\\-])(?:[A-Za-z]:|~|\.{1,2})?(?:[\\/]+[\w.@+~-]*)*[\\/]+(?=[\w.@+~-])"
)
_ADDRESS = re.compile(r"\b0x[0-9A-Fa-f]{6,}\b")
