"""The API of accounts and bots, and what all of the API shares: errors of one shape, tokens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from ninja.responses import Status
from ninja.security import HttpBearer

from engine.errors import WheelError
from engine.games import GAMES
from engine.wheels import too_large
from tournament.players import selectors
from tournament.players.errors import NameTakenError, QuotaError, TokenError, VersionExistsError
from tournament.players.models import ApiToken, BotVersion, TokenScope
from tournament.players.services import authenticate_token, find_or_submit_wheel
from tournament.store.waiting import QueuePlace

PAGE_SIZE = 100
PageNumber = Annotated[
    int, Query(1, ge=1, le=100_000, description="The number of the page, from 1.")
]


class ApiError(Exception):
    """An answer that is an error: HTTP status, code for programs, message for people, details, seconds to wait."""

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        message: str,
        details: Sequence[str] = (),
        *,
        wait: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = tuple(details)
        self.wait = wait


def error_body(code: str, message: str, details: Sequence[Any] = ()) -> dict[str, Any]:
    """The one shape of all errors of the API."""
    return {"error": {"code": code, "message": message, "details": list(details)}}


class ErrorDetail(Schema):
    """What went wrong."""

    code: str
    message: str
    details: list[Any]


class ErrorAnswer(Schema):
    """The body of every answer that is an error."""

    error: ErrorDetail


class TokenAuth(HttpBearer):
    """Lets a request in by its token, if the token's scope allows it; `request.auth` is the token.

    Cookies are not looked at, so no form of another site can act here in a player's name.
    """

    openapi_description = "A token from the page “Tokens”: `Authorization: Bearer PREFIX.SECRET`"

    def __init__(self, scope: TokenScope) -> None:
        super().__init__()
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken:  # noqa: ARG002 ninja's signature
        """The token. Raises ApiError for one that is unknown, or does not allow this."""
        try:
            found = authenticate_token(token)
        except TokenError as error:
            raise ApiError(HTTPStatus.UNAUTHORIZED, "bad_token", str(error)) from error
        if self.scope == TokenScope.SUBMIT and found.scope != TokenScope.SUBMIT:
            raise ApiError(
                HTTPStatus.FORBIDDEN,
                "scope",
                f"this token may only {found.get_scope_display()}; make one that may submit",
            )
        return found


reading = TokenAuth(TokenScope.READ)
submitting = TokenAuth(TokenScope.SUBMIT)


def token_of(request: HttpRequest) -> ApiToken:
    """The token by which a request came in. For routes behind `reading` or `submitting` only."""
    token: ApiToken = request.auth  # type: ignore[attr-defined]
    return token


class Me(Schema):
    """The player whose token this is."""

    username: str
    slug: str
    time_zone: str
    bots: list[str]
    scope: str
    token_expires_at: datetime


class QueueOut(Schema):
    """A place in the queue, 1 for the next, among so many that wait. `expected_seconds`: until it begins, by what was
    measured; null while that cannot be told. `text` says the same to people, and why something is delayed.
    """

    place: int
    waiting: int
    expected_seconds: float | None
    text: str


def queue_out(place: QueuePlace | None) -> QueueOut | None:
    """A place as the API tells it; None for what does not wait."""
    if place is None:
        return None
    seconds = None if place.seconds is None else round(place.seconds, 1)
    return QueueOut(
        place=place.place, waiting=place.waiting, expected_seconds=seconds, text=place.text
    )


class VersionOut(Schema):
    """A submitted version. `games` is empty until it is accepted, `queue` is null unless it waits for its check."""

    id: int
    bot: str
    version: str
    state: str
    is_decided: bool
    reason: str
    games: dict[str, dict[str, list[Any]]]
    wheel: str
    has_log: bool
    queue: QueueOut | None
    uploaded_at: datetime
    decided_at: datetime | None


class BotOut(Schema):
    """A bot with an accepted version."""

    name: str
    owner: str
    version: str
    games: list[str]


class BotPage(Schema):
    """Bots by name. `next`: the number of the next page; null at the end."""

    bots: list[BotOut]
    next: int | None


router = Router(tags=["bots"])


@router.get("/me", response=Me, auth=reading)
def me(request: HttpRequest) -> Me:
    """Whose token this is."""
    token = token_of(request)
    player = token.player
    return Me(
        username=player.username,
        slug=player.slug,
        time_zone=player.time_zone,
        bots=list(player.bots.order_by("name").values_list("name", flat=True)),
        scope=token.scope,
        token_expires_at=token.expires_at,
    )


_WHEEL_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["wheel"],
                    "properties": {"wheel": {"type": "string", "format": "binary"}},
                }
            },
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.post(
    "/versions",
    response={
        200: VersionOut,
        201: VersionOut,
        (400, 401, 403, 409, 413, 422, 429): ErrorAnswer,
    },
    auth=submitting,
    openapi_extra=_WHEEL_BODY,
)
def submit_version(request: HttpRequest) -> Status[VersionOut]:
    """Submit a wheel: as the field `wheel` of a form, or as the body itself.

    201: it is new and will be checked; 200: this very wheel was submitted before; 409: the version
    exists with other contents, or the bot's name is somebody else's; 422: no acceptable wheel, with
    every reason in `details`; 429: too many of yours are unchecked, or were uploaded within a day.
    """
    data = _read_wheel(request)
    try:
        version, is_new = find_or_submit_wheel(owner=token_of(request).player, data=data)
    except WheelError as error:
        raise ApiError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "bad_wheel", str(error), error.reasons
        ) from error
    except NameTakenError as error:
        raise ApiError(HTTPStatus.CONFLICT, "name_taken", str(error)) from error
    except VersionExistsError as error:
        raise ApiError(HTTPStatus.CONFLICT, "version_exists", str(error)) from error
    except QuotaError as error:
        raise ApiError(HTTPStatus.TOO_MANY_REQUESTS, "quota", str(error)) from error
    return Status(HTTPStatus.CREATED if is_new else HTTPStatus.OK, _version_out(version))


def _read_wheel(request: HttpRequest) -> bytes:
    """The wheel in the request. Raises ApiError if there is none, or it is too large."""
    limit = settings.WHEEL_MAX_BYTES
    if request.content_type == "multipart/form-data":
        file: UploadedFile | None = request.FILES.get("wheel")
        if file is None:
            raise ApiError(
                HTTPStatus.BAD_REQUEST, "no_wheel", "send the wheel as the form's field “wheel”"
            )
        data: bytes = file.read(limit + 1)
    else:
        data = request.read(limit + 1)
    if not data:
        raise ApiError(
            HTTPStatus.BAD_REQUEST,
            "no_wheel",
            "send the wheel as the request's body or as the form's field “wheel”",
        )
    if len(data) > limit:
        raise ApiError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "too_large",
            too_large(limit),
        )
    return data


def _version_out(version: BotVersion) -> VersionOut:
    status = selectors.version_status(version)
    return VersionOut(
        id=status.pk,
        bot=status.bot,
        version=status.version,
        state=status.state,
        is_decided=status.is_decided,
        reason=status.reason,
        games={
            game: {name: list(values) for name, values in options.items()}
            for game, options in status.games.items()
        },
        wheel=f"sha256:{version.wheel_sha256}",
        has_log=status.has_log,
        queue=queue_out(selectors.place_of_check(version)),
        uploaded_at=status.uploaded_at,
        decided_at=status.decided_at,
    )


def _own_version(request: HttpRequest, version_id: int) -> BotVersion:
    version = (
        BotVersion.objects.select_related("bot")
        .filter(pk=version_id, bot__owner=token_of(request).player)
        .first()
    )
    if version is None:
        raise ApiError(
            HTTPStatus.NOT_FOUND, "not_found", f"you have no version with the id {version_id}"
        )
    return version


@router.get(
    "/versions/{int:version_id}",
    response={200: VersionOut, (401, 404): ErrorAnswer},
    auth=reading,
)
def get_version(request: HttpRequest, version_id: int) -> VersionOut:
    """How far the check of a version of yours has come, and what came of it."""
    return _version_out(_own_version(request, version_id))


@router.get(
    "/versions/{int:version_id}/log",
    response={(401, 404): ErrorAnswer},
    auth=reading,
)
def get_log(request: HttpRequest, version_id: int) -> HttpResponse:
    """What a version of yours printed while it was checked, as plain text."""
    log = selectors.version_log(_own_version(request, version_id))
    return HttpResponse(log, content_type="text/plain; charset=utf-8")


@router.get("/bots", response=BotPage, auth=None)
def list_bots(
    request: HttpRequest,  # noqa: ARG001 ninja's signature
    q: str = "",
    game: str = "",
    page: PageNumber = 1,
) -> BotPage:
    """The bots with an accepted version by name; `q` is part of a bot's or owner's name."""
    if game and game not in GAMES:
        raise ApiError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "invalid",
            f"there is no game {game!r}; there are: {', '.join(GAMES)}",
        )
    first = (page - 1) * PAGE_SIZE
    rows = list(selectors.public_bots(search=q, game=game)[first : first + PAGE_SIZE + 1])
    bots = [selectors.public_bot(row) for row in rows[:PAGE_SIZE]]
    return BotPage(
        bots=[
            BotOut(name=bot.name, owner=bot.owner_slug, version=bot.version, games=list(bot.games))
            for bot in bots
        ],
        next=page + 1 if len(rows) > PAGE_SIZE else None,
    )
