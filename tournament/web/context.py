"""What every page can say."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from tournament.store.pulses import MEMORY


def delays(request: HttpRequest) -> dict[str, object]:  # noqa: ARG001 Django's signature
    """Why work is done later than usual, if it is; asked only by pages that show it."""
    return {"site_delay": SimpleLazyObject(MEMORY.reason)}
