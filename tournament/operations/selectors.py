"""How the site is, in numbers: for its health page, its metrics and the status line of `up`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, Model, QuerySet

from tournament.competitions.models import (
    IN_FLIGHT,
    Match,
    MatchState,
    Tournament,
    TournamentState,
)
from tournament.players.models import BotVersion, Player, VersionState
from tournament.scrimmages.models import Scrimmage, ScrimmageState
from tournament.store.clock import read_clock
from tournament.store.models import Pulse
from tournament.workers.selectors import count_workers

DISPATCH = "dispatch"


@dataclass(frozen=True, slots=True)
class SiteStatus:
    """Counts of what the site holds and does, each by state."""

    players: int
    versions: Mapping[str, int]
    tournaments: Mapping[str, int]
    matches: Mapping[str, int]
    scrimmages: Mapping[str, int]
    workers: Mapping[str, int]
    """Those that play bots: ``there``, or ``silent``."""
    dispatch_age_seconds: float | None
    """Since dispatch last ran; None if it never did. Some seconds mean that workers or beat are down."""

    @property
    def line(self) -> str:
        """One line for people."""
        playing = sum(self.matches[state] for state in IN_FLIGHT)
        waiting, finished = self.matches[MatchState.PENDING], self.matches[MatchState.FINISHED]
        parts = [
            f"{self.versions[VersionState.ACCEPTED]} bots",
            f"{self.tournaments[TournamentState.RUNNING]} tournaments running",
            f"{waiting} matches waiting, {playing} in play, {finished} finished",
        ]
        if self.matches[MatchState.STUCK]:
            parts.append(f"{self.matches[MatchState.STUCK]} STUCK (see the admin)")
        return " · ".join(parts)


def site_status() -> SiteStatus:
    """How the site is now."""
    return SiteStatus(
        players=Player.objects.count(),
        versions=count_by_state(BotVersion.objects.all(), VersionState.values),
        tournaments=count_by_state(Tournament.objects.all(), TournamentState.values),
        matches=count_by_state(Match.objects.all(), MatchState.values),
        scrimmages=count_by_state(Scrimmage.objects.all(), ScrimmageState.values),
        workers=count_workers(),
        dispatch_age_seconds=dispatch_age_seconds(),
    )


def count_by_state(rows: QuerySet[Model], states: list[str]) -> Mapping[str, int]:
    """How many rows are in each of `states`, zeros included."""
    counted = dict(rows.order_by().values_list("state").annotate(Count("pk")))
    return {state: counted.get(state, 0) for state in states}


def dispatch_age_seconds() -> float | None:
    """Seconds since dispatch last ran, by the database's clock; None if it never did."""
    pulse = Pulse.objects.filter(name=DISPATCH).first()
    return None if pulse is None else (read_clock() - pulse.at).total_seconds()
