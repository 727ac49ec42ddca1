"""The addresses of what is kept of a player."""

from __future__ import annotations

from django.urls import path

from tournament.moderation import views

app_name = "moderation"
urlpatterns = [
    path("account/data/", views.own_data, name="own-data"),
    path("account/data/archive/", views.archive, name="archive"),
]
