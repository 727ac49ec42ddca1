"""The document ``arena-match/1``, field by field, and the question that it answers.

All numbers are integers.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

import msgspec

from engine.games.base import Board
from engine.outcome import Outcome
from engine.sdk.timecontrol import TimeControl

FORMAT: Final = "arena-match/1"


class BoardsContest(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="boards"
):
    """`boards` mirrored sets; while the best points tie, up to `extra_boards` more, one at a time."""

    boards: int
    extra_boards: int = 0


class GamesContest(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="games"
):
    """`best_of` games to the target."""

    best_of: int


Contest = BoardsContest | GamesContest


class BotRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bot as the record names it. `version` and `wheel` are None for what has none."""

    bot: str
    version: str | None
    wheel: str | None


class EntrantRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entrant and its bots: one, or two for a pair of Eighty in the order of the side's seats."""

    name: str
    bots: tuple[BotRef, ...]


class DealSource(msgspec.Struct, frozen=True):
    """Where the deals of a match come from: the key of its tournament (or of local matches)."""

    prk: bytes
    tournament_id: str
    reveal: bool
    """Whether deal keys are written into the record now (local matches), or only once the secret is out."""


class GivenDeal(msgspec.Struct, frozen=True):
    """A deal that is known beforehand, with its key if that may be told."""

    board: Board
    key: bytes | None


class MatchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides a match, but for what its bots do."""

    game: str
    ruleset: Any
    match_key: str
    contest: Contest
    time_control: TimeControl
    entrants: tuple[EntrantRef, ...]
    deals: DealSource
    given: tuple[GivenDeal, ...] = ()
    """By board, the deals to play instead of those of `deals`, which then decides the bots' seeds alone."""


class DealRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One deal. Eighty has `dead`, Podkidnoe `starter` and `reserve`."""

    number: int
    """As in its key: the board's index, or counted through a games match."""
    key: str | None
    """The deal key in hex, once it may be known."""
    first: int
    """Eighty: the shaker. Podkidnoe: the first player."""
    hands: list[str]
    dead: str | msgspec.UnsetType = msgspec.UNSET
    starter: str | msgspec.UnsetType = msgspec.UNSET
    reserve: str | msgspec.UnsetType = msgspec.UNSET
    actions: list[str]
    """``SEAT ACTION`` each, forced ones too."""
    score: list[int] | None
    """By side; None for the deal that a fault cut."""


class GameRecord(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One game: in a boards match one deal, in a games match the deals to the target."""

    board: int | None
    rotation: int
    seating: list[int]
    deals: list[DealRecord]
    score: list[int]


class Timing(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Measured, so outside the digest."""

    cpu_us: list[list[int]]
    """CPU microseconds by game and seat."""
    wall_ms: int
    """Real milliseconds of the match."""
    action_cpu_us: list[list[list[int]]] | msgspec.UnsetType = msgspec.UNSET
    """CPU microseconds of each action, by game and deal, as `DealRecord.actions`; 0 for a forced one."""
    budget_percent: int | msgspec.UnsetType = msgspec.UNSET
    """What the time control's CPU budgets were made to fit the machine: 150 on one that is slower by half."""


class MatchRecord(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The document. Read it with `decode_record`, write it with `encode_record`."""

    format: Literal["arena-match/1"]
    game: str
    ruleset: dict[str, bool | int | str | None]
    match_key: str
    contest: Contest
    time_control: TimeControl
    entrants: list[EntrantRef]
    games: list[GameRecord]
    outcome: Outcome
    digest: str
    timing: Timing


def sha256_hex(data: bytes) -> str:
    """The SHA-256 of `data` in hex."""
    return hashlib.sha256(data).hexdigest()
