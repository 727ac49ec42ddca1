"""Small tournaments of the house: those of the demos, and the first of a fresh site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tournament.competitions.models import Seeding, Tournament
from tournament.competitions.services import Plan, StageWish, create_tournament
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
    """A small tournament: its game, its format or stages, how many play."""

    slug: str
    name: str
    description: str
    game: str
    entrants: int
    """How many bots play in it."""
    format: str = ""
    """Of a tournament of one stage; with `format_options` the short way to write `stages`."""
    format_options: Mapping[str, object] = field(default_factory=dict)
    stages: Sequence[StageWish] = ()
    seeding: str = Seeding.RATING


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

KNOCK_OUT = StageWish(format="single_elimination")


def small_cup(slug: str, name: str, description: str, game: str, entrants: int, **plan: Any) -> Cup:
    """A cup for the demo of all formats, its seeds drawn by lot: they depend on nothing that was played before."""
    return Cup(
        slug=slug,
        name=name,
        description=description,
        game=game,
        entrants=entrants,
        seeding=Seeding.LOT,
        **plan,
    )


EVERY_FORMAT: Sequence[Cup] = (
    # First, so that it begins before anything was rated: it pairs by the ratings that are there then.
    small_cup(
        "ladder",
        "Ladder",
        "One match after the other, until each of four bots has two.",
        "podkidnoe",
        4,
        format="ladder",
        format_options={"at_once": 1, "matches_each": 2},
    ),
    small_cup(
        "knock-out",
        "Knock-out",
        "Who loses is out; the losers of the semi-finals play for the third place.",
        "eighty",
        5,
        format="single_elimination",
        format_options={"third_place": True},
    ),
    small_cup(
        "two-losses",
        "Double Knock-out",
        "Who loses twice is out.",
        "podkidnoe",
        4,
        format="double_elimination",
    ),
    small_cup("table", "Table", "Each against each.", "eighty", 3, format="round_robin"),
    small_cup(
        "swiss",
        "Swiss",
        "Three rounds among bots with equal scores.",
        "podkidnoe",
        5,
        format="swiss",
        format_options={"rounds": 3},
    ),
    small_cup(
        "groups",
        "Groups",
        "Two groups, each against each.",
        "podkidnoe",
        6,
        format="groups",
        format_options={"groups": 2},
    ),
    small_cup("gauntlet", "Gauntlet", "One challenges all others.", "eighty", 4, format="gauntlet"),
    small_cup(
        "pods",
        "Pods",
        "Tables of four and three.",
        "podkidnoe",
        7,
        format="pods",
        format_options={"rounds": 2},
    ),
    small_cup(
        "swiss-finals",
        "Swiss with Finals",
        "Two Swiss rounds, then the best four knock each other out.",
        "podkidnoe",
        6,
        stages=(
            StageWish(format="swiss", format_options={"rounds": 2}, qualifiers=4),
            KNOCK_OUT,
        ),
    ),
    small_cup(
        "groups-finals",
        "Groups with Finals",
        "Two groups, then the best four knock each other out.",
        "eighty",
        6,
        stages=(
            StageWish(format="groups", format_options={"groups": 2}, qualifiers=4),
            KNOCK_OUT,
        ),
    ),
)
"""A small tournament of every format, and two of several stages."""


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
            stages=cup.stages,
            seeding=cup.seeding,
            contest={"kind": "boards", "boards": 8},
            time_control="fast",
            opens_at=schedule.opens_at,
            closes_at=schedule.closes_at,
            starts_at=schedule.starts_at,
        ),
    )
