"""Two addresses for machines: is the site well, and how much does it do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from tournament.operations.selectors import SiteStatus, dispatch_age_seconds, site_status

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while this process reaches the database, else 503; with the age of the last dispatch."""
    try:
        age = dispatch_age_seconds()
    except DatabaseError:
        return JsonResponse({"status": "no database"}, status=503)
    return JsonResponse({"status": "ok", "dispatch_age_seconds": age})


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Counts in the text format of Prometheus; they name nobody."""
    return HttpResponse(
        "".join(f"{line}\n" for line in metric_lines(site_status())), content_type=METRICS_TYPE
    )


def metric_lines(status: SiteStatus) -> Iterator[str]:
    """The metrics of a site, each with its help."""
    yield from gauge("arena_players", "Accounts.", {"": status.players})
    yield from gauge("arena_versions", "Bot versions by state.", by_state(status.versions))
    yield from gauge("arena_tournaments", "Tournaments by state.", by_state(status.tournaments))
    yield from gauge("arena_matches", "Matches by state.", by_state(status.matches))
    yield from gauge("arena_scrimmages", "Scrimmages by state.", by_state(status.scrimmages))
    yield from gauge("arena_workers", "Workers that play bots, by state.", by_state(status.workers))
    if status.dispatch_age_seconds is not None:
        yield from gauge(
            "arena_dispatch_age_seconds",
            "Seconds since dispatch last ran.",
            {"": round(status.dispatch_age_seconds, 3)},
        )


def by_state(counts: Mapping[str, int]) -> Mapping[str, int]:
    """The counts keyed by their labels."""
    return {f'{{state="{state}"}}': count for state, count in counts.items()}


def gauge(name: str, text: str, values: Mapping[str, float]) -> Iterator[str]:
    """One metric with its values by labels."""
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"
    for labels, value in values.items():
        yield f"{name}{labels} {value}"
