"""What a visitor reads instead of what was asked for: something broke, is not there, or was asked for too often."""

from __future__ import annotations

import sys
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views.defaults import page_not_found

from tournament.players.api import error_body
from tournament.store.outages import Outage, outage_of, spell_outage
from tournament.web.throttling import PAGES, asker, limiter, spell_wait

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


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The answer where there is no such page. An address that leads nowhere counts as a page of the network address.

    `LimitRates` counts what has a route; this has none, and is counted without asking the database who the visitor is.
    """
    if request.resolver_match is None:
        wait = limiter().take(PAGES, asker(request, by_cookie=False))
        if wait is not None:
            return refuse_for(request, wait)
    return page_not_found(request, exception)


def refuse_for(request: HttpRequest, seconds: int) -> HttpResponse:
    """The refusal of who asks too often, with when to come back."""
    status = HTTPStatus.TOO_MANY_REQUESTS
    answer = refuse(request, status, "too_many_requests", spell_wait(seconds))
    answer.headers["Retry-After"] = str(seconds)
    return answer


def refuse(request: HttpRequest, status: HTTPStatus, code: str, message: str) -> HttpResponse:
    """The refusal of a request before anything is done for it, as a page or in the API's one shape."""
    if request.path.startswith("/api/"):
        return JsonResponse(error_body(code, message), status=status)
    # Who the visitor is has not been found out yet, so the page is made without the request: it says neither
    # that they are logged in nor that they are not, and leads back to where that is known.
    context = {"title": status.phrase, "message": message, "is_wheel": takes_wheels(request)}
    return HttpResponse(render_to_string("web/refused.html", context), status=status)


def takes_wheels(request: HttpRequest) -> bool:
    """Whether what is sent there is meant to be a wheel."""
    return request.path in {"/account/upload/", "/api/versions"}
