"""The addresses of the operations app, at the root of the site."""

from __future__ import annotations

from django.urls import path

from tournament.operations import views

urlpatterns = [
    path("healthz", views.healthz, name="healthz"),
    path("metrics", views.metrics, name="metrics"),
]
