"""What the first page of a process would need before it can be shown, done before the process takes requests."""

from __future__ import annotations

from pathlib import Path

from django.apps import apps
from django.template.loader import get_template
from django.urls import reverse


def warm_up() -> None:
    """Import what addresses lead to, and parse the site's own templates. Asks neither the database nor the broker."""
    reverse("home")  # which makes the table of all addresses
    for name in _template_names():
        get_template(name)


def _template_names() -> list[str]:
    """Of the site's own apps."""
    folders = [
        Path(config.path) / "templates"
        for config in apps.get_app_configs()
        if config.name.startswith("tournament.")
    ]
    return sorted(
        str(path.relative_to(folder)) for folder in folders for path in folder.rglob("*.html")
    )
