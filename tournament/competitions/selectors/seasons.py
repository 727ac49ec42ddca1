"""Series as people see them: the rule in words, the season's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, QuerySet

from tournament.competitions.models import (
    Entrant,
    Series,
    SeriesEntry,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors.pages import tournaments_with_seals
from tournament.players.models import Player


@dataclass(frozen=True, slots=True)
class SeasonEvent:
    """A tournament of a series."""

    slug: str
    name: str
    state: str
    state_label: str
    starts_at: datetime
    counts: bool
    """Whether its places count for the season: it is finished, and nothing of it is sealed."""


@dataclass(frozen=True, slots=True)
class SeasonRow:
    """A line of a season's table."""

    place: int
    """Who has as many points shares it."""
    name: str
    points: int
    events: int
    """How many it has played in."""
    results: tuple[tuple[int, int] | None, ...]
    """(place, points) by event, in the order of the events that count; None where it did not play."""


@dataclass(frozen=True, slots=True)
class SeasonPage:
    """A series with its tournaments and its table."""

    series: Series
    events: tuple[SeasonEvent, ...]
    """The last to start first."""
    table: tuple[SeasonRow, ...]
    entries: tuple[str, ...]
    """Who is entered for the whole series."""


def all_series() -> QuerySet[Series]:
    """The series, those that go on first, with the number of their tournaments."""
    return Series.objects.annotate(event_count=Count("slots__tournament")).order_by(
        "-is_active", "name"
    )


def season_page(series: Series) -> SeasonPage:
    """The page of a series."""
    sealed = set(tournaments_with_seals().values_list("pk", flat=True))
    rows = list(_tournaments_of(series))
    counting = [
        row for row in rows if row.state == TournamentState.FINISHED and row.pk not in sealed
    ]
    return SeasonPage(
        series=series,
        events=tuple(
            SeasonEvent(
                slug=row.slug,
                name=row.name,
                state=row.state,
                state_label=row.get_state_display(),
                starts_at=row.starts_at,
                counts=row in counting,
            )
            for row in reversed(rows)
        ),
        table=season_table(series.points_table, counting),
        entries=tuple(series.entries.order_by("name").values_list("name", flat=True)),
    )


def _tournaments_of(series: Series) -> QuerySet[Tournament]:
    """The tournaments of a series that have been announced, in the order of their starts."""
    return (
        Tournament.objects.filter(slot__series=series)
        .exclude(state=TournamentState.DRAFT)
        .exclude(state=TournamentState.CANCELLED, commitment="")
        .order_by("starts_at", "pk")
    )


def season_table(
    points_table: Sequence[int], events: Sequence[Tournament]
) -> tuple[SeasonRow, ...]:
    """The sum of what each place was worth; more points, then more first places, then the name go first.

    A place beyond the table is worth nothing; who ties gets what the shared place is worth.
    """
    results: dict[str, dict[int, tuple[int, int]]] = {}
    placed = Entrant.objects.filter(tournament__in=[event.pk for event in events], place__gte=1)
    for name, event, found_place in placed.values_list("name", "tournament", "place"):
        place = found_place or 0
        points = points_table[place - 1] if place <= len(points_table) else 0
        results.setdefault(name, {})[event] = (place, points)
    totals = {name: sum(points for _, points in found.values()) for name, found in results.items()}
    firsts = {
        name: sum(place == 1 for place, _ in found.values()) for name, found in results.items()
    }
    order = sorted(results, key=lambda name: (-totals[name], -firsts[name], name))
    return tuple(
        SeasonRow(
            place=1 + sum(total > totals[name] for total in totals.values()),
            name=name,
            points=totals[name],
            events=len(results[name]),
            results=tuple(results[name].get(event.pk) for event in events),
        )
        for name in order
    )


def series_entries_of(series: Series, player: Player) -> QuerySet[SeriesEntry]:
    """The entries of a player for a whole series, by name."""
    return series.entries.filter(bots__bot__owner=player).distinct().order_by("name")
