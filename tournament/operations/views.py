"""Addresses for machines, answered before anything else of the site is asked: does it live, can it serve, how much does it do.

They stand in no table of addresses: `answer_probes` answers them whatever the request's host is, since balancers and
Prometheus call a process by its network address.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from tournament.operations.health import recent_readiness
from tournament.operations.metrics import CONTENT_TYPE, metrics_text
from tournament.players.views import client_address

GetResponse = Callable[[HttpRequest], HttpResponse]


def answer_probes(get_response: GetResponse) -> GetResponse:
    """Middleware: answers what machines ask, and hands all else on."""

    def answer(request: HttpRequest) -> HttpResponse:
        view = PROBES.get(request.path)
        return get_response(request) if view is None else view(request)

    return answer


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """200: this process answers. It asks nothing of anybody else, so that no trouble elsewhere gets it restarted."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 while it can serve (``ready``, or ``degraded`` while work waits), else 503; each thing that was tried by name."""
    found = recent_readiness()
    return JsonResponse(
        {"status": found.status, "needed": dict(found.needed), "helpful": dict(found.helpful)},
        status=HTTPStatus.OK if found.is_ready else HTTPStatus.SERVICE_UNAVAILABLE,
    )


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics, for who has the token or comes from where the operator allows it."""
    if not may_read_metrics(request):
        return HttpResponse(
            "Metrics are for machines that ARENA_METRICS_FROM names, or with the token of "
            "ARENA_METRICS_TOKEN_FILE as “Authorization: Bearer TOKEN”.\n",
            content_type="text/plain; charset=utf-8",
            status=HTTPStatus.FORBIDDEN,
        )
    return HttpResponse(metrics_text(), content_type=CONTENT_TYPE)


def may_read_metrics(request: HttpRequest) -> bool:
    """Whether the settings let this reader in.

    A request that came through a proxy which is not trusted (no ``ARENA_HTTPS``) tells nothing true of where it
    is from, so by its address it is not let in.
    """
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    if settings.METRICS_TOKEN and scheme.lower() == "bearer":
        return secrets.compare_digest(sent.strip().encode(), settings.METRICS_TOKEN.encode())
    is_forwarded = bool(
        request.META.get("HTTP_X_FORWARDED_FOR") or request.META.get("HTTP_FORWARDED")
    )
    if is_forwarded and not settings.HTTPS:
        return False
    address = client_address(request)
    return address is not None and any(
        ip_address(address) in network for network in settings.METRICS_FROM
    )


PROBES: dict[str, Callable[[HttpRequest], HttpResponse]] = {
    "/healthz": healthz,
    "/readyz": readyz,
    "/metrics": metrics,
}
