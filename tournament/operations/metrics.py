"""How the site is, for Prometheus. Every value comes from the database, so each process of the site tells the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from django.conf import settings
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from tournament.competitions.models import AttemptEnding
from tournament.competitions.services.tallying import (
    ATTEMPTS,
    ENDLESS,
    WAIT_BOUNDS,
    WAITED,
    WAITS,
)
from tournament.operations.selectors import SiteStatus, site_status
from tournament.store.tallies import STORE_BYTES, STORE_FILES, read_tallies
from tournament.store.waiting import QueueState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text() -> bytes:
    """All metrics in the text format of Prometheus; they name no player, bot or tournament."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_SiteCollector())
    return generate_latest(registry)


class _SiteCollector(Collector):
    def collect(self) -> Iterable[Metric]:
        """The metrics; the number of queries does not depend on how much the site holds."""
        status, tallies = site_status(), read_tallies()
        yield from _queue_metrics(status)
        yield from _attempt_metrics(tallies)
        yield from _worker_metrics(status)
        yield from _store_metrics(tallies)
        yield from _site_metrics(status)


def _queue_metrics(status: SiteStatus) -> Iterator[Metric]:
    depth = GaugeMetricFamily(
        "arena_queue",
        "Work that is not over, by kind (match, check, trial, scrimmage) and how it stands: waiting, handed out "
        "(queued), running, delayed after a failure, held since what it belongs to is paused, or stuck.",
        labels=["kind", "state"],
    )
    oldest = GaugeMetricFamily(
        "arena_queue_oldest_seconds",
        "For how long the oldest work of a kind that is due has waited for a worker; 0 if none waits.",
        labels=["kind"],
    )
    for kind, queue in status.queues.items():
        for state in QueueState:
            depth.add_metric([kind, state.value], queue.counts[state])
        oldest.add_metric([kind], queue.oldest_seconds)
    yield depth
    yield oldest
    yield _gauge(
        "arena_matches_per_second", "Matches recorded, in the last minute.", status.matches_a_second
    )
    if status.dispatch_age_seconds is not None:
        yield _gauge(
            "arena_dispatch_age_seconds",
            "Seconds since work was last handed out; some seconds mean that beat, the broker or the control worker is down.",
            status.dispatch_age_seconds,
        )


def _attempt_metrics(tallies: Mapping[str, Mapping[str, float]]) -> Iterator[Metric]:
    attempts = CounterMetricFamily(
        "arena_attempts",
        "Attempts to play a match that are over, by how they ended.",
        labels=["ending"],
    )
    for ending in AttemptEnding:
        if ending != AttemptEnding.RUNNING:
            attempts.add_metric([ending.value], tallies.get(ATTEMPTS, {}).get(ending.value, 0.0))
    yield attempts
    found, so_far = tallies.get(WAITS, {}), 0.0
    buckets = []
    for bound in (*map(str, WAIT_BOUNDS), ENDLESS):
        so_far += found.get(bound, 0.0)
        buckets.append((bound, so_far))
    yield HistogramMetricFamily(
        "arena_match_claim_wait_seconds",
        "How long recorded matches had waited for a worker since they were due, pauses of their tournament included.",
        buckets=buckets,
        sum_value=tallies.get(WAITED, {}).get("", 0.0),
    )


def _worker_metrics(status: SiteStatus) -> Iterator[Metric]:
    workers = GaugeMetricFamily(
        "arena_workers",
        "Workers that play bots, by whether they were heard of lately.",
        labels=["state"],
    )
    for state, count in status.workers.items():
        workers.add_metric([state], count)
    yield workers
    sandbox = GaugeMetricFamily(
        "arena_worker_sandbox",
        "1 for the level of the walls that hold bots on a worker that is there; level none: it plays no bot, "
        "trusted: it plays bots without walls.",
        labels=["worker", "level"],
    )
    for name, level in status.sandboxes:
        sandbox.add_metric([name, level], 1)
    yield sandbox


def _store_metrics(tallies: Mapping[str, Mapping[str, float]]) -> Iterator[Metric]:
    for name, text, tally in (
        (
            "arena_store_bytes",
            "What wheels, records and logs take, when last measured.",
            STORE_BYTES,
        ),
        ("arena_store_files", "How many they are, when last measured.", STORE_FILES),
    ):
        if tally in tallies:
            yield _gauge(name, text, tallies[tally][""])
    if settings.ARENA_STORE_BYTES:
        yield _gauge("arena_store_budget_bytes", "What they may take.", settings.ARENA_STORE_BYTES)


def _site_metrics(status: SiteStatus) -> Iterator[Metric]:
    yield _gauge("arena_players", "Accounts.", status.players)
    for name, text, counts in (
        ("arena_versions", "Bot versions by state.", status.versions),
        ("arena_tournaments", "Tournaments by state.", status.tournaments),
        ("arena_trials", "Trials of versions for tournaments by state.", status.trials),
        ("arena_scrimmages", "Scrimmages by state.", status.scrimmages),
    ):
        metric = GaugeMetricFamily(name, text, labels=["state"])
        for state, count in counts.items():
            metric.add_metric([state], count)
        yield metric


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)
