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
"""By app and verb the models. "change" lets them do the operations, of tournaments only their own; nobody can write the rows."""
MODERATORS = "moderators"
"""The group whose members, being staff, suspend bots and players."""
MODERATORS_MAY: dict[str, dict[str, tuple[str, ...]]] = {
    "players": {
        "view": ("player", "bot", "botversion", "versiongame"),
        "audit": ("botversion",),
    },
    "moderation": {
        "view": ("suspension",),
        "add": ("suspension",),
        "change": ("suspension",),
    },
    "admin": {"view": ("logentry",)},
}
"""As for organisers; "add" a suspension is to suspend, "change" one to lift it."""


class WebConfig(AppConfig):
    """Base templates, components, static files and the home page."""

    name = "tournament.web"

    def ready(self) -> None:
        """Let the admin tell whose account is closed, and keep the rights of the groups of staff.

        Those can be named only once Django has made the permissions. Apps are told in the order of INSTALLED_APPS,
        and ours stand before `auth`.
        """
        from django.contrib import admin

        from tournament.web.logging_in import StaffLogInForm

        admin.site.login_form = StaffLogInForm
        post_migrate.connect(grant_groups, sender=apps.get_app_config("auth"))


def grant_groups(using: str, **_: Any) -> None:
    """Make the groups of staff, if there are none, and give them their rights."""
    for name, rights in ((ORGANISERS, ORGANISERS_MAY), (MODERATORS, MODERATORS_MAY)):
        _grant(using, name, rights)


def _grant(using: str, name: str, rights: dict[str, dict[str, tuple[str, ...]]]) -> None:
    from django.contrib.auth.models import Group, Permission

    group, _created = Group.objects.using(using).get_or_create(name=name)
    for app, verbs in rights.items():
        for verb, models in verbs.items():
            group.permissions.add(
                *Permission.objects.using(using).filter(
                    content_type__app_label=app,
                    codename__in=[f"{verb}_{model}" for model in models],
                )
            )
