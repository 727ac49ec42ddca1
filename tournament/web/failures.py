"""What a visitor reads when something broke: a page of its own where the cause passes, and no fault of the code is."""

from __future__ import annotations

import sys
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from tournament.players.api import error_body
from tournament.store.outages import Outage, outage_of, spell_outage

RETRY_SECONDS = 15
CAUSE = "arena.cause"
"""Where a request keeps why it could not be answered, for its line in the log."""


def server_error(request: HttpRequest) -> HttpResponse:
    """The answer to the error that is being handled: 503 with the cause for an outage, else 500. Asks no database."""
    error = sys.exception()
    outage = outage_of(error)
    if error is None or outage is None:
        return HttpResponse(
            render_to_string("500.html"), status=HTTPStatus.INTERNAL_SERVER_ERROR
        )  # which `shape_api_errors` words for programs
    request.META[CAUSE] = spell_outage(outage, error)
    answer = _tell(request, outage)
    answer.headers["Retry-After"] = str(RETRY_SECONDS)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _tell(request: HttpRequest, outage: Outage) -> HttpResponse:
    status = HTTPStatus.SERVICE_UNAVAILABLE
    if request.path.startswith("/api/"):
        message = f"the site cannot answer: {outage.value}. What it had accepted is safe; try again in a minute"
        return JsonResponse(error_body("unavailable", message), status=status)
    page = render_to_string("503.html", {"cause": outage.value})
    return HttpResponse(page, status=status)
