"""The API of scrimmages. All of it wants a token: results are for the owners of the two bots."""

from __future__ import annotations

import math
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Field, Router, Schema
from ninja.responses import Status

from engine.statistics import Elo, Estimate
from tournament.players.api import (
    PAGE_SIZE,
    ApiError,
    ErrorAnswer,
    PageNumber,
    QueueOut,
    queue_out,
    reading,
    submitting,
    token_of,
)
from tournament.scrimmages import selectors
from tournament.scrimmages.errors import (
    InvalidScrimmageError,
    ScrimmageError,
    ScrimmageQuotaError,
)
from tournament.scrimmages.models import Difference, Scrimmage
from tournament.scrimmages.services import CANCELLED_BY_OWNER, Wish, ask, cancel_scrimmage
from tournament.store.waiting import QueuePlace

Text = Annotated[str, Field(max_length=64, pattern=r"^[^\x00]*$")]


class ScrimmageIn(Schema):
    """Is `bot` better than `against`? Without versions the newest that plays the game; `difference` is what matters.

    `ruleset` holds options of the game that are not as usual.
    """

    bot: Text
    version: Text = ""
    against: Text
    against_version: Text = ""
    game: Text
    difference: Difference = Difference.CLEAR
    most_sets: int = 500
    time_control: Text = "standard"
    ruleset: dict[Text, Any] = Field(default_factory=dict)


class ScrimmageOut(Schema):
    """A scrimmage in a list.

    `place`: in the queue, 1 for the next; null unless it waits; `queue` tells more. `counts`: how many sets `bot` ended with 0, ¼, ½, ¾
    and 1. `verdict` is null until it is finished: better, not_better, undecided or fault. `reason` says which fault
    ended it, or why it was cancelled.
    """

    id: int
    bot: str
    version: str
    against: str
    against_version: str
    game: str
    state: str
    is_over: bool
    place: int | None
    queue: QueueOut | None
    sets: int
    most_sets: int
    counts: list[int]
    likelihood_ratio: float | None
    verdict: str | None
    reason: str
    asked_at: datetime
    ended_at: datetime | None


class EstimateOut(Schema):
    """A mean with its 95 % interval; null where one set alone says nothing of the spread."""

    mean: float
    low: float | None
    high: float | None


class EloOut(Schema):
    """A difference in Elo with its 95 % interval; null for an end that no finite difference explains."""

    value: float | None
    low: float | None
    high: float | None


class ScrimmageDetail(ScrimmageOut):
    """All about a scrimmage. `command` plays the same sets on a machine that has both wheels."""

    ruleset: dict[str, Any]
    time_control: str
    difference: str
    elo0: float
    elo1: float
    bound: float
    seed: str
    command: str
    answer: str
    score: EstimateOut | None
    points: EstimateOut | None
    elo: EloOut | None
    superiority: float | None
    digests: list[str]
    sandboxed: bool


class ScrimmagePage(Schema):
    """Scrimmages, the newest first. `next`: the number of the next page; null at the end."""

    scrimmages: list[ScrimmageOut]
    next: int | None


router = Router(tags=["scrimmages"])


@router.post(
    "/scrimmages",
    response={201: ScrimmageDetail, (400, 401, 403, 422, 429): ErrorAnswer},
    auth=submitting,
)
def create_scrimmage(request: HttpRequest, body: ScrimmageIn) -> Status[ScrimmageDetail]:
    """Ask whether a version of yours is better than another version.

    422: what was asked for is wrong, with a message by field in `details`; 429: too many of yours are open, or were
    asked for within 24 hours; `details` has the moment from which on the next is possible, where it is known.
    """
    player = token_of(request).player
    try:
        first = selectors.find_own(player, body.bot, body.version, body.game)
        other = selectors.find_opponent(
            player, body.against, body.against_version, body.game, first
        )
        wish = Wish(
            first=first,
            other=other,
            game=body.game,
            difference=body.difference,
            most_sets=body.most_sets,
            time_control=body.time_control,
            ruleset=body.ruleset,
        )
        row = ask(wish=wish, by=player)
    except InvalidScrimmageError as error:
        details = [f"{field}: {message}" for field, message in error.fields.items()]
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", str(error), details) from error
    except ScrimmageQuotaError as error:
        details = [error.next_at.isoformat()] if error.next_at else []
        raise ApiError(HTTPStatus.TOO_MANY_REQUESTS, "quota", str(error), details) from error
    return Status(HTTPStatus.CREATED, _detail(row))


@router.get("/scrimmages", response={200: ScrimmagePage, 401: ErrorAnswer}, auth=reading)
def list_scrimmages(request: HttpRequest, page: PageNumber = 1) -> ScrimmagePage:
    """Those that you have asked for, and those that others have asked for against a bot of yours."""
    first = (page - 1) * PAGE_SIZE
    rows = list(
        selectors.scrimmages_seen_by(token_of(request).player)[first : first + PAGE_SIZE + 1]
    )
    places = selectors.places_in_queue(rows)
    return ScrimmagePage(
        scrimmages=[
            ScrimmageOut.model_validate(_line(row, places.get(row.pk))) for row in rows[:PAGE_SIZE]
        ],
        next=page + 1 if len(rows) > PAGE_SIZE else None,
    )


@router.get(
    "/scrimmages/{int:scrimmage_id}",
    response={200: ScrimmageDetail, (401, 404): ErrorAnswer},
    auth=reading,
)
def get_scrimmage(request: HttpRequest, scrimmage_id: int) -> ScrimmageDetail:
    """What came of a scrimmage so far (`is_over` tells when to stop asking)."""
    return _detail(_find(request, scrimmage_id))


@router.delete(
    "/scrimmages/{int:scrimmage_id}",
    response={200: ScrimmageDetail, (401, 403, 404, 409): ErrorAnswer},
    auth=submitting,
)
def delete_scrimmage(request: HttpRequest, scrimmage_id: int) -> ScrimmageDetail:
    """Cancel a scrimmage that you have asked for; what its sets say so far stays."""
    row = _find(request, scrimmage_id)
    if row.asked_by_id != token_of(request).player.pk:
        raise ApiError(
            HTTPStatus.FORBIDDEN, "not_yours", "only who has asked for a scrimmage can cancel it"
        )
    try:
        return _detail(cancel_scrimmage(scrimmage=row, reason=CANCELLED_BY_OWNER))
    except ScrimmageError as error:
        raise ApiError(HTTPStatus.CONFLICT, "not_open", str(error)) from error


def _find(request: HttpRequest, scrimmage_id: int) -> Scrimmage:
    seen = selectors.scrimmages_seen_by(token_of(request).player)
    row = seen.filter(pk=scrimmage_id).first()
    if row is None:
        raise ApiError(
            HTTPStatus.NOT_FOUND,
            "not_found",
            f"there is no scrimmage {scrimmage_id} of a bot of yours",
        )
    return row


def _line(row: Scrimmage, place: QueuePlace | None) -> dict[str, Any]:
    return {
        "id": row.pk,
        "bot": row.first.bot.name,
        "version": row.first.version,
        "against": row.other.bot.name,
        "against_version": row.other.version,
        "game": row.game,
        "state": row.state,
        "is_over": not row.is_open,
        "place": place and place.place,
        "queue": queue_out(place),
        "sets": row.sets,
        "most_sets": row.most_sets,
        "counts": row.counts,
        "likelihood_ratio": row.likelihood_ratio,
        "verdict": row.answer or None,
        "reason": row.reason,
        "asked_at": row.asked_at,
        "ended_at": row.ended_at,
    }


def _detail(row: Scrimmage) -> ScrimmageDetail:
    findings = selectors.scrimmage_findings(row)
    compared, test = findings.compared, row.question.test
    assert test is not None
    first = compared.entrants[0] if compared else None
    return ScrimmageDetail.model_validate(
        {
            **_line(row, selectors.place_in_queue(row)),
            "ruleset": row.ruleset,
            "time_control": row.time_control,
            "difference": row.difference,
            "elo0": row.elo0,
            "elo1": row.elo1,
            "bound": test.bound,
            "seed": row.seed,
            "command": selectors.compare_command(row),
            "answer": selectors.spell_scrimmage(row, findings),
            "score": first and _estimate(first.score),
            "points": first and _estimate(first.points),
            "elo": compared and compared.elo and _elo(compared.elo),
            "superiority": compared and compared.superiority,
            "digests": list(row.batches.order_by("number").values_list("digest", flat=True)),
            "sandboxed": not row.batches.filter(is_sandboxed=False).exists(),
        }
    )


def _estimate(found: Estimate) -> dict[str, float | None]:
    return {"mean": found.mean, "low": found.low, "high": found.high}


def _elo(found: Elo) -> dict[str, float | None]:
    return {
        name: value if math.isfinite(value) else None
        for name, value in (("value", found.value), ("low", found.low), ("high", found.high))
    }
