"""Small tournaments of the house: the ones of the demo, and the first of a fresh site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tournament.competitions.models import Tournament
from tournament.competitions.services import Plan, create_tournament
from tournament.players.models import Player


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a tournament opens for entries, closes and starts."""

    opens_at: datetime
    closes_at: datetime
    starts_at: datetime

    @classmethod
    def soon(cls, now: datetime, *, open_seconds: int) -> Schedule:
        """Open from the next full second on, for so many seconds, and started a second later."""
        opens_at = now.replace(microsecond=0) + timedelta(seconds=1)
        closes_at = opens_at + timedelta(seconds=open_seconds)
        return cls(opens_at, closes_at, closes_at + timedelta(seconds=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cup:
    """A small tournament: its game, its format, who plays."""

    slug: str
    name: str
    description: str
    game: str
    format: str
    entrants: int
    """How many bots play in it."""
    format_options: Mapping[str, object] = field(default_factory=dict)


EIGHTY_CUP = Cup(
    slug="eighty-cup",
    name="Eighty Cup",
    description="A knock-out. A match is eight boards, each played from every side.",
    game="eighty",
    format="single_elimination",
    entrants=8,
)
PODKIDNOE_ROUND = Cup(
    slug="podkidnoe-round",
    name="Podkidnoe Round",
    description="Four bots, each against each.",
    game="podkidnoe",
    format="round_robin",
    entrants=4,
)
CUPS: Sequence[Cup] = (EIGHTY_CUP, PODKIDNOE_ROUND)


def draft(cup: Cup, *, organiser: Player, schedule: Schedule) -> Tournament:
    """The cup as a tournament that is not open yet. Raises InvalidTournamentError."""
    return create_tournament(
        organiser=organiser,
        plan=Plan(
            slug=cup.slug,
            name=cup.name,
            description=cup.description,
            game=cup.game,
            format=cup.format,
            format_options=cup.format_options,
            contest={"kind": "boards", "boards": 8},
            time_control="fast",
            opens_at=schedule.opens_at,
            closes_at=schedule.closes_at,
            starts_at=schedule.starts_at,
        ),
    )
