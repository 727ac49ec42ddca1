"""Every address of the site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from tournament.web.api import api

urlpatterns = [
    path("", include("tournament.web.urls")),
    path("", include("tournament.operations.urls")),
    path("", include("tournament.players.urls")),
    path("", include("tournament.leaderboards.urls")),
    path("", include("tournament.competitions.urls")),
    path("", include("tournament.workers.urls")),
    path("", include("tournament.scrimmages.urls")),
    path("", include("tournament.moderation.urls")),
    path("api/", api.urls),
    path("admin/", admin.site.urls),
]

handler404 = "tournament.web.failures.not_found"
handler500 = "tournament.web.failures.server_error"
