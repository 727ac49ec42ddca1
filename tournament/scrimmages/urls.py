"""The addresses of scrimmages."""

from __future__ import annotations

from django.urls import path

from tournament.scrimmages import views

app_name = "scrimmages"
urlpatterns = [
    path("scrimmages/", views.scrimmage_list, name="list"),
    path("scrimmages/new/", views.new, name="new"),
    path("scrimmages/allow/<slug:name>/", views.allow, name="allow"),
    path("scrimmages/<int:pk>/", views.scrimmage, name="scrimmage"),
    path("scrimmages/<int:pk>/cancel/", views.cancel, name="cancel"),
    path("scrimmages/<int:pk>/batches/<int:number>/", views.batch, name="batch"),
    path("scrimmages/<int:pk>/batches/<int:number>/record.json", views.record, name="record"),
]
