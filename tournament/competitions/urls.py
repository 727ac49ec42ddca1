"""The addresses of tournaments and matches."""

from __future__ import annotations

from django.urls import path

from tournament.competitions import views

app_name = "competitions"
urlpatterns = [
    path("tournaments/", views.tournament_list, name="list"),
    path("account/trials/<int:pk>/", views.trial, name="trial"),
    path("account/notices/put-away/", views.put_away, name="put-away"),
    path("series/", views.series_list, name="series-list"),
    path("series/<slug:slug>/", views.series, name="series"),
    path("series/<slug:slug>/enter/", views.enter_for_series, name="enter-series"),
    path("series/<slug:slug>/leave/", views.leave_for_series, name="leave-series"),
    path("tournaments/<slug:slug>/", views.tournament, name="tournament"),
    path("tournaments/<slug:slug>/bundle.json.gz", views.bundle, name="bundle"),
    path("tournaments/<slug:slug>/enter/", views.enter, name="enter"),
    path("tournaments/<slug:slug>/leave/", views.leave, name="leave"),
    path("tournaments/<slug:slug>/invite/", views.invite, name="invite"),
    path(
        "tournaments/<slug:slug>/invitations/<int:pk>/",
        views.answer_invitation,
        name="answer-invitation",
    ),
    path(
        "tournaments/<slug:slug>/superseded/<int:pk>/record.json",
        views.superseded_record,
        name="superseded-record",
    ),
    path("tournaments/<slug:slug>/matches/<path:key>/record.json", views.record, name="record"),
    path("tournaments/<slug:slug>/matches/<path:key>/", views.match, name="match"),
]
