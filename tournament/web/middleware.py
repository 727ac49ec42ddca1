"""What every answer of the site carries, and what no request may bring."""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from structlog.contextvars import bound_contextvars

from engine.wheels import too_large
from tournament.players.api import error_body
from tournament.store.pulses import MEMORY
from tournament.web.failures import CAUSE, refuse, refuse_for, takes_wheels
from tournament.web.policy import content_security_policy
from tournament.web.throttling import LOG_INS, asker, limiter, rate_of

GetResponse = Callable[[HttpRequest], HttpResponse]

_LONGEST_LENGTH = 19
"""More digits are no length of anything."""
_FORM_OVERHEAD_BYTES = 256 * 1024


DELAYED_HEADER = "Arena-Delayed"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
"""What is taken over of what a proxy or a client calls its request: nothing that could forge a line of a log."""
_SLOW_SECONDS = 1.0

logger = logging.getLogger(__name__)


def identify_request(get_response: GetResponse) -> GetResponse:
    """Gives each request an id that its answer and all lines logged meanwhile carry: its own ``X-Request-ID``, or a fresh one.

    What fails, or takes long, is logged with its address, but without the query, which may hold what is private.
    """

    def answer(request: HttpRequest) -> HttpResponse:
        sent = request.headers.get("X-Request-ID", "")
        request_id = sent if _REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex
        began = time.monotonic()
        with bound_contextvars(request=request_id):
            response = get_response(request)
            seconds = time.monotonic() - began
            is_loud = (
                seconds > _SLOW_SECONDS or response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
            )
            logger.log(
                logging.WARNING if is_loud else logging.DEBUG,
                "%s %s: %s after %.0f ms%s",
                request.method,
                request.path,
                response.status_code,
                1000 * seconds,
                f": {cause}" if (cause := request.META.get(CAUSE)) else "",
            )
        response.headers["X-Request-ID"] = request_id
        return response

    return answer


def security_headers(get_response: GetResponse) -> GetResponse:
    """Adds the headers that Django's own middleware has no setting for."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if settings.DEBUG and response.status_code >= HTTPStatus.BAD_REQUEST:
            return response  # Django's own pages for developers bring inline styles and scripts
        response.headers.setdefault(
            "Content-Security-Policy", content_security_policy(request.path)
        )
        response.headers.setdefault(
            "Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"
        )
        return response

    return answer


def refuse_nul(get_response: GetResponse) -> GetResponse:
    """Refuses an address with a NUL in it, which no name here has and PostgreSQL takes in no text."""

    def answer(request: HttpRequest) -> HttpResponse:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            raise BadRequest("The address has a NUL character in it; leave it out.")
        return get_response(request)

    return answer


def answer_head(get_response: GetResponse) -> GetResponse:
    """Answers HEAD wherever GET is answered: by the same headers without the body."""

    def answer(request: HttpRequest) -> HttpResponse:
        if request.method != "HEAD":
            return get_response(request)
        request.method = "GET"
        response = get_response(request)
        if not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
            response.content = b""
        return response

    return answer


_CAUSES = {
    HTTPStatus.BAD_REQUEST: (
        "bad_request",
        "the request cannot be read: check its address, its Content-Type and its body",
    ),
    HTTPStatus.NOT_FOUND: ("not_found", "there is no such address; /api/docs lists all of them"),
    HTTPStatus.METHOD_NOT_ALLOWED: (
        "method_not_allowed",
        "this address does not take that method; the header Allow says which it takes",
    ),
    HTTPStatus.INTERNAL_SERVER_ERROR: (
        "our_fault",
        "the site failed, and its operators can read why in its log; try again later",
    ),
}


def shape_api_errors(get_response: GetResponse) -> GetResponse:
    """Gives the API's one shape to the errors that Django answers before or after the API's own code."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if (
            request.path.startswith("/api/")
            and response.status_code >= HTTPStatus.BAD_REQUEST
            and not response.headers.get("Content-Type", "").startswith("application/json")
        ):
            status = HTTPStatus(response.status_code)
            code, message = _CAUSES.get(
                status, (status.name.lower(), status.description or status.phrase)
            )
            response.content = json.dumps(error_body(code, message)).encode()
            response.headers["Content-Type"] = "application/json"
            response.headers["Content-Length"] = str(len(response.content))
        return response

    return answer


def tell_delays(get_response: GetResponse) -> GetResponse:
    """Tells programs in a header of every answer of the API why work is done later; pages have it in words.

    By pulses in the database that this process remembers for some seconds: no page waits for the broker.
    """

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if request.path.startswith("/api/") and (reason := MEMORY.reason()):
            response.headers[DELAYED_HEADER] = reason
        return response

    return answer


class LimitRates:
    """Refuses requests of an address, or of a player who is logged in, that come too often for their kind.

    Those of the API count for the address here; who has a token counts once more, in `tournament.web.api`.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Go on; it is judged once the route is known."""
        return self._get_response(request)

    def process_view(self, request: HttpRequest, *_: object) -> HttpResponse | None:
        """The refusal, or None."""
        rate = rate_of(request)
        by_cookie = not request.path.startswith("/api/") and rate != LOG_INS
        wait = limiter().take(rate, asker(request, by_cookie=by_cookie))
        if wait is None:
            return None
        return refuse_for(request, wait)


def limit_uploads(get_response: GetResponse) -> GetResponse:
    """Refuses a body that no form of the site needs before a byte of it is parsed or stored.

    A body without a length (sent in chunks) would look empty to Django; it is refused with what to do.
    """
    limit = settings.WHEEL_MAX_BYTES + _FORM_OVERHEAD_BYTES

    def answer(request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if request.META.get("HTTP_TRANSFER_ENCODING"):
            return refuse(
                request,
                HTTPStatus.LENGTH_REQUIRED,
                "length_required",
                "A request must tell its length: send it with the header Content-Length, not in chunks.",
            )
        if length.isdecimal() and len(length) < _LONGEST_LENGTH and int(length) <= limit:
            return get_response(request)
        return refuse(
            request,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "too_large",
            too_large(settings.WHEEL_MAX_BYTES)
            if takes_wheels(request)
            else f"A request may have at most {limit:,} bytes; this one has {length[:20]}.",
        )

    return answer
