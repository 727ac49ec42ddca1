"""The web app of the site."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Base templates, components, static files and the home page."""

    name = "tournament.web"
