"""Pages of the leaderboards."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from tournament.leaderboards import selectors
from tournament.leaderboards.errors import LogError


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """All leaderboards, the first rows of each."""
    context = {"section": "leaderboards", "boards": selectors.leaderboard_tops()}
    return render(request, "leaderboards/index.html", context)


@require_GET
def board(request: HttpRequest, game: str, kind: str) -> HttpResponse:
    """One leaderboard: ranks, search, pages."""
    name = next(
        (each for each in selectors.leaderboards() if (each.game, each.kind) == (game, kind)), None
    )
    if name is None:
        raise Http404
    query = request.GET.get("q", "").strip()[:60]
    try:
        page = selectors.leaderboard_page(
            game=game, kind=kind, search=query, after=request.GET.get("after")
        )
    except LogError as error:
        raise Http404(str(error)) from error
    context = {
        "section": "leaderboards",
        "board": name,
        "boards": selectors.leaderboards(),
        "page": page,
        "query": query,
        "is_first": "after" not in request.GET,
    }
    return render(request, "leaderboards/board.html", context)
