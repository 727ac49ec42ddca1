"""The queue in the admin's menu, beside the models: in Django's own admin and in Unfold's alike."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import reverse

from tournament.operations.selectors import KINDS, may_view


def add_queue(site: AdminSite) -> None:
    """Let the site's list of apps begin with the queue, for who may see any of it."""
    models_only = site.get_app_list

    def get_app_list(request: HttpRequest, app_label: str | None = None) -> list[dict[str, Any]]:
        listed = models_only(request, app_label)
        if app_label is not None or not any(may_view(request.user, kind) for kind in KINDS):
            return listed
        return [_entry(), *listed]

    setattr(site, "get_app_list", get_app_list)  # noqa: B010 - which site it is the admin's packages decide


def _entry() -> dict[str, Any]:
    url = reverse("queue")
    return {
        "name": "Operations",
        "app_label": "operations",
        "app_url": url,
        "has_module_perms": True,
        "models": [
            {
                "name": "Queue",
                "object_name": "Queue",
                "admin_url": url,
                "add_url": None,
                "view_only": True,
                "perms": {"add": False, "change": False, "delete": False, "view": True},
            }
        ],
    }
