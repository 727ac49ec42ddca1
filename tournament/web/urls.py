"""The addresses of the pages that bring the features together."""

from __future__ import annotations

from django.contrib.auth.views import LoginView
from django.templatetags.static import static
from django.urls import path
from django.views.generic import RedirectView

from tournament.web import views
from tournament.web.logging_in import LogInForm

urlpatterns = [
    path("", views.home, name="home"),
    path("guide/", views.guide, name="guide"),
    path(
        "account/log-in/",
        LoginView.as_view(template_name="web/log_in.html", authentication_form=LogInForm),
        name="log-in",
    ),
    path("account/bots/", views.my_bots, name="my-bots"),
    path("bots/<slug:name>/", views.bot, name="bot"),
    path("robots.txt", views.robots, name="robots"),
    path("favicon.ico", RedirectView.as_view(url=static("web/favicon.svg"), permanent=True)),
]
