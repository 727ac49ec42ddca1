"""The addresses of tournaments and matches."""

from __future__ import annotations

from django.urls import path

from tournament.competitions import views

app_name = "competitions"
urlpatterns = [
    path("tournaments/", views.tournament_list, name="list"),
    path("tournaments/<slug:slug>/", views.tournament, name="tournament"),
    path("tournaments/<slug:slug>/enter/", views.enter, name="enter"),
    path("tournaments/<slug:slug>/leave/", views.leave, name="leave"),
    path("tournaments/<slug:slug>/matches/<path:key>/record.json", views.record, name="record"),
    path("tournaments/<slug:slug>/matches/<path:key>/", views.match, name="match"),
]
