"""What is kept of a player, for themselves."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from tournament.moderation.selectors import export_name, personal_archive
from tournament.players.views import player_of


@login_required
@require_GET
def own_data(request: HttpRequest) -> HttpResponse:
    """What is kept, and where to have it."""
    return render(request, "moderation/own_data.html", {"section": "account"})


@login_required
@never_cache
@require_GET
def archive(request: HttpRequest) -> StreamingHttpResponse:
    """All that the site keeps of the player, as a ZIP archive."""
    player = player_of(request)
    return StreamingHttpResponse(
        personal_archive(player),
        content_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{export_name(player)}"'},
    )
