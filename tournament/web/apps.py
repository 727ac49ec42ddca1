"""The web app of the site."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate

ORGANISERS = "organisers"
"""The group whose members, being staff, run tournaments."""
ORGANISERS_MAY: dict[str, dict[str, tuple[str, ...]]] = {
    "competitions": {
        "view": (
            "tournament",
            "stage",
            "entrant",
            "entrantbot",
            "round",
            "pairing",
            "pairingentrant",
            "match",
            "attempt",
            "series",
            "seriesslot",
            "ruling",
            "supersededmatch",
            "entrytrial",
        ),
        "add": ("tournament", "series"),
        "change": ("tournament", "entrant", "pairing", "match", "series", "entrytrial"),
    },
    "players": {
        "view": ("bot", "botversion", "versiongame"),
        "change": ("bot", "botversion"),
    },
    "leaderboards": {"view": ("rating", "ratingpool", "ratingevent")},
    "workers": {"view": ("workerreport",)},
    "scrimmages": {"view": ("scrimmage", "batch"), "change": ("scrimmage",)},
}
"""By app and verb the models. "change" lets them do the operations; nobody can write the rows."""


class WebConfig(AppConfig):
    """Base templates, components, static files and the home page."""

    name = "tournament.web"

    def ready(self) -> None:
        """Keep the organisers' rights: they can be named only once Django has made the permissions.

        Apps are told in the order of INSTALLED_APPS, and ours stand before `auth`.
        """
        post_migrate.connect(grant_organisers, sender=apps.get_app_config("auth"))


def grant_organisers(using: str, **_: Any) -> None:
    """Make the group of organisers, if there is none, and give it its rights."""
    from django.contrib.auth.models import Group, Permission

    group, _created = Group.objects.using(using).get_or_create(name=ORGANISERS)
    for app, verbs in ORGANISERS_MAY.items():
        for verb, models in verbs.items():
            group.permissions.add(
                *Permission.objects.using(using).filter(
                    content_type__app_label=app,
                    codename__in=[f"{verb}_{model}" for model in models],
                )
            )
