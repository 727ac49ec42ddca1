"""What every answer of the site carries, and what no request may bring."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from tournament.players.api import error_body

GetResponse = Callable[[HttpRequest], HttpResponse]

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
# The admin's Alpine compiles its attributes, and both the admin and Swagger set styles on elements.
_RELAXED = {
    "/admin/": {"script-src": "'self' 'unsafe-eval'", "style-src": "'self' 'unsafe-inline'"},
    "/api/docs": {"style-src": "'self' 'unsafe-inline'"},
}
_FORM_OVERHEAD_BYTES = 256 * 1024


def content_security_policy(path: str) -> str:
    """The policy of the page at `path`: everything from the site itself, no inline scripts."""
    relaxed = next((more for start, more in _RELAXED.items() if path.startswith(start)), {})
    return "; ".join(f"{name} {value}" for name, value in {**_POLICY, **relaxed}.items())


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


def limit_uploads(get_response: GetResponse) -> GetResponse:
    """Refuses a body that no form of the site needs before a byte of it is parsed or stored."""
    limit = settings.WHEEL_MAX_BYTES + _FORM_OVERHEAD_BYTES

    def answer(request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if length.isdecimal() and int(length) <= limit:
            return get_response(request)
        message = f"A request may have at most {limit:,} bytes; this one has {length[:20]}."
        if request.path.startswith("/api/"):
            return JsonResponse(
                error_body("too_large", message), status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            )
        return render(
            request,
            "web/too_large.html",
            {"message": message},
            status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        )

    return answer
