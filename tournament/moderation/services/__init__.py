"""What can be done about people; each function is one use case."""

from __future__ import annotations

from tournament.moderation.services.erasure import (
    check_erasable,
    erase_player,
    erasures_file,
    repeat_erasures,
)
from tournament.moderation.services.suspension import lift_pause, lift_suspension, suspend

__all__ = [
    "check_erasable",
    "erase_player",
    "erasures_file",
    "lift_pause",
    "lift_suspension",
    "repeat_erasures",
    "suspend",
]
