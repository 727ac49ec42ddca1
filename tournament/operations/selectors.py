"""How the site is, in numbers: for its metrics, its page of the queue and the status line of `up`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Min, Model, Q, QuerySet

from tournament.competitions.models import (
    Attempt,
    AttemptEnding,
    EntryTrial,
    Match,
    Tournament,
    TournamentState,
    TrialState,
)
from tournament.competitions.selectors import open_matches, open_trials
from tournament.competitions.services.tallying import ATTEMPTS
from tournament.players.models import BotVersion, Player, VersionState
from tournament.players.selectors import open_checks
from tournament.scrimmages.models import Scrimmage, ScrimmageState
from tournament.scrimmages.selectors import open_scrimmages
from tournament.store.clock import in_seconds, read_clock
from tournament.store.models import Tally
from tournament.store.pulses import DISPATCH, pulse_age
from tournament.store.waiting import QueueState
from tournament.workers.models import WorkerReport
from tournament.workers.selectors import is_silent

RATE_SECONDS = 60
RATE_ATTEMPTS = 2000
"""Of so many attempts at most the rate is told: that bounds what it costs."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The work of one kind that is not over."""

    counts: Mapping[str, int]
    """By `QueueState`, zeros included."""
    oldest_seconds: float
    """For how long the oldest that is due and not held has waited; 0 if none does."""

    @property
    def total(self) -> int:
        """How much it is."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class SiteStatus:
    """What the site holds and does; counts are by state."""

    players: int
    versions: Mapping[str, int]
    tournaments: Mapping[str, int]
    trials: Mapping[str, int]
    scrimmages: Mapping[str, int]
    queues: Mapping[str, Queue]
    """By kind of work, as in `KINDS`."""
    recorded: int
    """Matches that have been played and recorded, some seconds ago."""
    matches_a_second: float
    """Recorded in the last minute."""
    workers: Mapping[str, int]
    """Those that play bots: ``there``, or ``silent``."""
    sandboxes: Sequence[tuple[str, str]]
    """Of the workers that are there the name and the level of the walls; ``trusted`` without, ``none`` if it plays no bot."""
    dispatch_age_seconds: float | None
    """Since work was last handed out; None if it never was."""

    @property
    def line(self) -> str:
        """One line for people."""
        counts = self.queues["match"].counts
        waiting = counts[QueueState.WAITING] + counts[QueueState.DELAYED] + counts[QueueState.HELD]
        playing = counts[QueueState.QUEUED] + counts[QueueState.RUNNING]
        parts = [
            f"{self.versions[VersionState.ACCEPTED]} bots",
            f"{self.tournaments[TournamentState.RUNNING]} tournaments running",
            f"{waiting} matches waiting, {playing} in play, {self.recorded} finished",
        ]
        if counts[QueueState.STUCK]:
            parts.append(f"{counts[QueueState.STUCK]} STUCK (see the admin)")
        return " · ".join(parts)


_OPEN: Mapping[str, Callable[[], QuerySet[Any]]] = {
    "match": open_matches,
    "check": open_checks,
    "trial": open_trials,
    "scrimmage": open_scrimmages,
}
MODELS: Mapping[str, type[Model]] = {
    "match": Match,
    "check": BotVersion,
    "trial": EntryTrial,
    "scrimmage": Scrimmage,
}
KINDS = tuple(MODELS)
"""Of work that workers do."""


def open_work(kind: str) -> QuerySet[Any]:
    """The rows of a kind of work that are not over, each with its `QueueState` as ``standing``."""
    return _OPEN[kind]()


def may_view(user: Player | AnonymousUser, kind: str) -> bool:
    """Whether somebody may see in the admin how work of a kind stands."""
    meta = MODELS[kind]._meta  # noqa: SLF001 Django's name of it
    return user.has_perm(f"{meta.app_label}.view_{meta.model_name}")


def site_status() -> SiteStatus:
    """How the site is now; in so many queries however much it holds."""
    workers = list(WorkerReport.objects.order_by("name"))
    now = read_clock()
    there = [worker for worker in workers if not is_silent(worker, now=now)]
    return SiteStatus(
        players=Player.objects.count(),
        versions=count_by_state(BotVersion.objects.all(), VersionState.values),
        tournaments=count_by_state(Tournament.objects.all(), TournamentState.values),
        trials=count_by_state(EntryTrial.objects.all(), TrialState.values),
        scrimmages=count_by_state(Scrimmage.objects.all(), ScrimmageState.values),
        queues={kind: queue_of(kind) for kind in KINDS},
        recorded=int(
            Tally.objects.filter(name=ATTEMPTS, label=AttemptEnding.RECORDED)
            .values_list("value", flat=True)
            .first()
            or 0
        ),
        matches_a_second=matches_a_second(),
        workers={"there": len(there), "silent": len(workers) - len(there)},
        sandboxes=[
            (worker.name, "trusted" if worker.trusts_bots else worker.level or "none")
            for worker in there
        ],
        dispatch_age_seconds=pulse_age(DISPATCH),
    )


def queue_of(kind: str) -> Queue:
    """How the work of a kind stands, by one query over what is not over."""
    rows = (
        open_work(kind)
        .order_by()
        .values_list("standing")
        .annotate(found=Count("pk"), since=Min("run_after"))
    )
    found = {standing: (count, since) for standing, count, since in rows}
    due = [found[state][1] for state in (QueueState.WAITING, QueueState.QUEUED) if state in found]
    return Queue(
        counts={state: found[state][0] if state in found else 0 for state in QueueState},
        oldest_seconds=(max(0.0, (read_clock() - min(due)).total_seconds()) if due else 0.0),
    )


def count_by_state(rows: QuerySet[Model], states: list[str]) -> Mapping[str, int]:
    """How many rows are in each of `states`, zeros included."""
    counted = dict(rows.order_by().values_list("state").annotate(Count("pk")))
    return {state: counted.get(state, 0) for state in states}


def matches_a_second() -> float:
    """How many matches were recorded a second in the last minute, by the newest attempts."""
    newest = Attempt.objects.order_by("-pk").values("pk")[:RATE_ATTEMPTS]
    lately = Q(ending=AttemptEnding.RECORDED, ended_at__gt=in_seconds(-RATE_SECONDS))
    found = Attempt.objects.filter(lately, pk__in=newest).aggregate(
        count=Count("pk"), since=Min("ended_at")
    )
    if not found["count"]:
        return 0.0
    is_cut = found["count"] >= RATE_ATTEMPTS // 2
    seconds = (read_clock() - found["since"]).total_seconds() if is_cut else RATE_SECONDS
    return float(found["count"] / max(1.0, seconds))
