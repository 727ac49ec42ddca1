"""The addresses of the leaderboards."""

from __future__ import annotations

from django.urls import path

from tournament.leaderboards import views

app_name = "leaderboards"
urlpatterns = [
    path("leaderboards/", views.index, name="index"),
    path("leaderboards/<slug:game>/<slug:kind>/", views.board, name="board"),
]
