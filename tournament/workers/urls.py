"""The address of the page of limits."""

from __future__ import annotations

from django.urls import path

from tournament.workers import views

app_name = "workers"
urlpatterns = [path("limits/", views.limits, name="limits")]
