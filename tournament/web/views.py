"""Pages that bring the features together: home, guide, a bot's page, the viewer's own bots."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from engine.games import GAMES
from tournament.competitions import selectors as competitions
from tournament.competitions.models import EntrantBot, TournamentState
from tournament.competitions.views import (
    current_tournaments,
    ended_tournaments,
    entry_rows,
    match_row,
    tournament_rows,
)
from tournament.leaderboards import selectors as leaderboards
from tournament.players import selectors as players
from tournament.players.forms import UploadForm
from tournament.players.models import Bot, Player
from tournament.players.views import player_of
from tournament.store.clock import read_clock
from tournament.web.charts import draw_history

MATCHES_A_PAGE = 25
RECENT = 5
ROBOTS = "User-agent: *\nDisallow: /account/\nDisallow: /admin/\nDisallow: /api/\n"


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """What this is, what is on, who leads, how to take part."""
    boards = leaderboards.leaderboard_tops()
    context = {
        "current": current_tournaments(),
        "recent": tournament_rows(ended_tournaments()[:RECENT]),
        "boards": boards,
        "is_rated": any(board.rows for board in boards),
        "notices": (
            competitions.notices_of(request.user) if isinstance(request.user, Player) else ()
        ),
    }
    return render(request, "web/home.html", context)


@require_GET
def guide(request: HttpRequest) -> HttpResponse:
    """How to write a bot and bring it here."""
    context = {
        "section": "guide",
        "site_root": f"{request.scheme}://{request.get_host()}",
        "wheel_max_bytes": settings.WHEEL_MAX_BYTES,
    }
    return render(request, "web/guide.html", context)


@require_GET
def bot(request: HttpRequest, name: str) -> HttpResponse:
    """A bot's public page: accepted versions, ratings, tournaments, matches."""
    row = players.bot_by_name(name)
    if row is None:
        raise Http404
    versions = list(players.public_versions(row))
    if not versions and row.owner_id != request.user.pk:
        raise Http404
    page = Paginator(competitions.matches_of_bot(row), MATCHES_A_PAGE).get_page(
        request.GET.get("page")
    )
    context = {
        "section": "bots",
        "bot": row,
        "versions": versions,
        "summary": versions[0].summary if versions else "",
        "ratings": _ratings(row),
        "charts": _charts(row),
        "entries": _entries(row, only_public=True),
        "page": page,
        "matches": [
            match_row(match.tournament.slug, competitions.pairing_row(match), match.tournament.name)
            for match in page.object_list
        ],
    }
    return render(request, "web/bot.html", context)


def _ratings(row: Bot) -> list[dict[str, Any]]:
    """The ratings of a bot's versions by leaderboard; it is inactive where none of them has played for long."""
    rows = [each for each in leaderboards.ratings_of_bot(row) if each.pool.game in GAMES]
    lines = [(rating, leaderboards.rating_line(rating)) for rating in rows]
    last: dict[int, datetime] = {}
    for rating, line in lines:
        if line.last_match_at is not None:
            last[rating.pool_id] = max(
                line.last_match_at, last.get(rating.pool_id, line.last_match_at)
            )
    now = read_clock()
    return [
        {
            "game": rating.pool.game,
            "kind": rating.pool.kind,
            "title": leaderboards.leaderboard_title(rating.pool.game, rating.pool.kind),
            "rank": rating.rank,
            "line": line,
            "is_inactive": leaderboards.is_inactive(last.get(rating.pool_id), now),
        }
        for rating, line in lines
    ]


def _charts(row: Bot) -> list[dict[str, Any]]:
    """The history of a bot on each leaderboard on which it has one to draw."""
    drawn = (
        (
            board.title,
            draw_history(leaderboards.rating_history(bot=row, game=board.game, kind=board.kind)),
        )
        for board in leaderboards.leaderboards()
    )
    return [{"title": title, "chart": chart} for title, chart in drawn if chart is not None]


def _entries(row: Bot, *, only_public: bool) -> list[dict[str, Any]]:
    """The tournaments that a bot has entered, the newest first."""
    parts = (
        EntrantBot.objects.filter(bot=row, tournament__in=competitions.public_tournaments())
        .select_related("tournament", "entrant", "version")
        .order_by("-tournament__starts_at", "-pk")
    )
    if not only_public:
        parts = parts.exclude(tournament__state=TournamentState.OPEN)
    sealed = set(competitions.tournaments_with_seals().values_list("pk", flat=True))
    return [
        {
            "tournament": part.tournament,
            "entrant": part.entrant,
            "place": None if part.tournament_id in sealed else part.entrant.place,
            "version": part.version.version if part.version else "",
        }
        for part in parts
    ]


@login_required
@require_GET
def my_bots(request: HttpRequest) -> HttpResponse:
    """The viewer's bots: upload, versions, entries."""
    player = player_of(request)
    open_ones = list(
        competitions.public_tournaments().filter(state=TournamentState.OPEN).order_by("closes_at")
    )
    entries = [entry for row in open_ones for entry in entry_rows(player, tournament=row)]
    context = {
        "section": "account",
        "form": UploadForm(),
        "notices": competitions.notices_of(player),
        "open_tournaments": open_ones,
        "bots": [
            {
                "bot": row,
                "versions": row.versions.all(),
                "entries": [entry for entry in entries if entry.bot.pk == row.pk],
                "played": _entries(row, only_public=False),
            }
            for row in players.bots_of(player)
        ],
    }
    return render(request, "web/my_bots.html", context)


@require_GET
def robots(request: HttpRequest) -> HttpResponse:
    """What crawlers may read: everything public but the API."""
    return HttpResponse(ROBOTS, content_type="text/plain; charset=utf-8")
