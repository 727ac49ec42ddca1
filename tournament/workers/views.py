"""The page of what bots get here."""

from __future__ import annotations

from collections import Counter

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from tournament.workers import selectors


@require_GET
def limits(request: HttpRequest) -> HttpResponse:
    """Python, packages, memory, wheels, clocks, and how fast this site is."""
    workers = Counter(
        (worker.budget_percent, worker.python, "" if worker.trusts_bots else worker.level)
        for worker in selectors.living_workers()
    )
    context = {
        "section": "guide",
        "limits": selectors.site_limits(),
        "workers": [
            {"budget_percent": percent, "python": python, "level": level, "count": count}
            for (percent, python, level), count in sorted(workers.items())
        ],
        "silent_seconds": selectors.SILENT_SECONDS,
        "site_root": f"{request.scheme}://{request.get_host()}",
    }
    return render(request, "workers/limits.html", context)
