"""The root of the API: the features' routes, and one shape for all errors."""

from __future__ import annotations

from http import HTTPStatus

from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, Throttled, ValidationError
from ninja.throttling import BaseThrottle

from engine.errors import UsageError
from tournament.competitions.api import router as competitions
from tournament.leaderboards.api import router as leaderboards
from tournament.moderation.api import router as moderation
from tournament.players.api import ApiError, error_body
from tournament.players.api import router as players
from tournament.players.models import ApiToken
from tournament.scrimmages.api import router as scrimmages
from tournament.web.throttling import limiter, name_of, rate_of, spell_wait
from tournament.workers.api import router as workers


class PlayerThrottle(BaseThrottle):
    """Counts for the player whose token let a request in, however many tokens and addresses they use."""

    def allow_request(self, request: HttpRequest) -> bool:
        """Whether it may go on; if not, the request bears how long to wait."""
        token = getattr(request, "auth", None)
        if not isinstance(token, ApiToken):
            return True
        wait = limiter().take(rate_of(request), name_of(token.player))
        request.seconds_to_wait = wait  # type: ignore[attr-defined] # for the answer below
        return wait is None


api = NinjaAPI(
    title="Domino Arena",
    version="1",
    description=(
        "Submit bots, enter tournaments, read results. Public data needs no token; the rest takes "
        "`Authorization: Bearer PREFIX.SECRET`, a token from the site's page “Tokens”. Every error "
        'has the body `{"error": {"code", "message", "details"}}`.'
    ),
    urls_namespace="api",
)
for _router in (players, leaderboards, competitions, workers, scrimmages, moderation):
    api.add_router("", _router, throttle=PlayerThrottle())


@api.exception_handler(Throttled)
def _answer_too_often(request: HttpRequest, error: Throttled) -> HttpResponse:  # noqa: ARG001 ninja's signature
    wait: int = request.seconds_to_wait  # type: ignore[attr-defined] # the throttle has set it
    return _answer_error(
        request,
        ApiError(HTTPStatus.TOO_MANY_REQUESTS, "too_many_requests", spell_wait(wait), wait=wait),
    )


@api.exception_handler(ApiError)
def _answer_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    response = api.create_response(
        request, error_body(error.code, error.message, error.details), status=error.status
    )
    if error.wait is not None:
        response.headers["Retry-After"] = str(error.wait)
    if error.status == HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


@api.exception_handler(AuthenticationError)
def _answer_no_token(request: HttpRequest, error: AuthenticationError) -> HttpResponse:  # noqa: ARG001 ninja's signature
    return _answer_error(
        request,
        ApiError(
            HTTPStatus.UNAUTHORIZED,
            "no_token",
            "send a token: “Authorization: Bearer PREFIX.SECRET”; the site's page “Tokens” makes one",
        ),
    )


@api.exception_handler(UsageError)
def _answer_usage(request: HttpRequest, error: UsageError) -> HttpResponse:
    return _answer_error(request, ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "refused", str(error)))


@api.exception_handler(ValidationError)
def _answer_invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    details = [
        f"{'.'.join(str(part) for part in each['loc'][1:])}: {each['msg']}" for each in error.errors
    ]
    return _answer_error(
        request,
        ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", "; ".join(details), details),
    )


@api.exception_handler(Http404)
def _answer_missing(request: HttpRequest, error: Http404) -> HttpResponse:  # noqa: ARG001 ninja's signature
    return _answer_error(
        request, ApiError(HTTPStatus.NOT_FOUND, "not_found", "there is no such thing here")
    )


@api.exception_handler(HttpError)
def _answer_http(request: HttpRequest, error: HttpError) -> HttpResponse:
    return _answer_error(
        request, ApiError(HTTPStatus(error.status_code), "bad_request", error.message)
    )
