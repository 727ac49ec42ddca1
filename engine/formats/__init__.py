"""Tournament formats, one a module behind the protocol of `engine.formats.base`.

A format pairs frozen values and ranks them. It knows no games, bots, databases or clocks, and no
other format.
"""

from __future__ import annotations

from engine.errors import FormatError
from engine.formats.base import (
    DecidedBy,
    Format,
    FormatOptions,
    Pairing,
    PairingResult,
    Round,
    SeededEntrant,
    StageView,
)
from engine.formats.double_elimination import DoubleElimination
from engine.formats.elimination import SingleElimination
from engine.formats.gauntlet import Gauntlet
from engine.formats.groups import Groups
from engine.formats.ladder import Ladder
from engine.formats.options import FormatOption
from engine.formats.pods import Pods
from engine.formats.results import forfeit_outcome, void_result
from engine.formats.round_robin import RoundRobin
from engine.formats.swiss import Swiss

FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        SingleElimination(),
        DoubleElimination(),
        RoundRobin(),
        Swiss(),
        Groups(),
        Gauntlet(),
        Pods(),
        Ladder(),
    )
}
"""Every format by its name."""


def get_format(name: str) -> Format:
    """The format called `name`. Raises FormatError, naming the known ones."""
    try:
        return FORMATS[name]
    except KeyError:
        raise FormatError(f"there is no format {name!r}; there are: {', '.join(FORMATS)}") from None


__all__ = [
    "FORMATS",
    "DecidedBy",
    "Format",
    "FormatOption",
    "FormatOptions",
    "Pairing",
    "PairingResult",
    "Round",
    "SeededEntrant",
    "StageView",
    "forfeit_outcome",
    "get_format",
    "void_result",
]
