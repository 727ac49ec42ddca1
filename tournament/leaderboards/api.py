"""The API of the leaderboards."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus

from django.http import HttpRequest
from ninja import Router, Schema

from tournament.leaderboards import selectors
from tournament.leaderboards.errors import LogError
from tournament.leaderboards.selectors import RatingLine
from tournament.players.api import ApiError, ErrorAnswer
from tournament.players.selectors import bot_by_name, public_versions


class RatingOut(Schema):
    """A version's rating: `rating` is μ - 3σ; `low` and `high` hold μ with 95 % confidence."""

    version: str
    rating: float
    low: float
    high: float
    mu: float
    sigma: float
    is_provisional: bool
    matches: int
    wins: int
    ties: int
    win_rate: float | None
    changed_at: datetime
    last_match_at: datetime | None


class LeaderboardLine(RatingOut):
    """A bot's place, by the version that stands for it; `newer` is one that is not settled yet."""

    rank: int
    bot: str
    owner: str
    newer: RatingOut | None
    is_inactive: bool
    """No rated match of the bot for 30 days; its rank and rating stay."""


class HistoryPointOut(Schema):
    """A version's rating after a rated match; `low` and `high` hold μ with 95 % confidence."""

    seq: int
    match: str
    at: datetime
    version: str
    rating: float
    low: float
    high: float
    mu: float
    sigma: float


class History(Schema):
    """How a bot's ratings went in a pool, in the order of its log; the last 500 steps of it."""

    game: str
    kind: str
    bot: str
    points: list[HistoryPointOut]


class Leaderboard(Schema):
    """Some lines in order. `next`: give it as `after` for the next ones; null at the end."""

    game: str
    kind: str
    total: int
    rows: list[LeaderboardLine]
    next: str | None


router = Router(tags=["leaderboards"])


@router.get(
    "/leaderboards/{slug:game}/{slug:kind}",
    response={200: Leaderboard, (404, 422): ErrorAnswer},
    auth=None,
)
def get_leaderboard(
    request: HttpRequest,  # noqa: ARG001 ninja's signature
    game: str,
    kind: str,
    q: str = "",
    after: str | None = None,
) -> Leaderboard:
    """A leaderboard; `q` is part of a bot's or owner's name."""
    _require_leaderboard(game, kind)
    try:
        page = selectors.leaderboard_page(game=game, kind=kind, search=q, after=after)
    except LogError as error:
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", str(error)) from error
    return Leaderboard(
        game=game,
        kind=kind,
        total=page.total,
        rows=[
            LeaderboardLine(
                rank=row.rank,
                bot=row.bot,
                owner=row.owner_slug,
                newer=_rating_out(row.provisional) if row.provisional else None,
                is_inactive=row.is_inactive,
                **_rating_out(row.line).dict(),
            )
            for row in page.rows
        ],
        next=page.after,
    )


@router.get(
    "/leaderboards/{slug:game}/{slug:kind}/bots/{slug:bot}",
    response={200: History, 404: ErrorAnswer},
    auth=None,
)
def get_history(
    request: HttpRequest,  # noqa: ARG001 ninja's signature
    game: str,
    kind: str,
    bot: str,
) -> History:
    """How a bot's rating went, match by match; no points for one that was never rated there."""
    _require_leaderboard(game, kind)
    row = bot_by_name(bot)
    if row is None or not public_versions(row).exists():
        raise ApiError(HTTPStatus.NOT_FOUND, "not_found", f"there is no bot {bot!r} to be seen")
    points = selectors.rating_history(bot=row, game=game, kind=kind)
    return History(
        game=game,
        kind=kind,
        bot=row.name,
        points=[
            HistoryPointOut(
                seq=point.seq,
                match=point.match_key,
                at=point.at,
                version=point.version,
                rating=point.shown,
                low=point.low,
                high=point.high,
                mu=point.mu,
                sigma=point.sigma,
            )
            for point in points
        ],
    )


def _require_leaderboard(game: str, kind: str) -> None:
    known = [f"{each.game}/{each.kind}" for each in selectors.leaderboards()]
    if f"{game}/{kind}" not in known:
        raise ApiError(
            HTTPStatus.NOT_FOUND,
            "not_found",
            f"there is no leaderboard {game}/{kind}; there are: {', '.join(known)}",
        )


def _rating_out(line: RatingLine) -> RatingOut:
    return RatingOut(
        version=line.version,
        rating=line.shown,
        low=line.low,
        high=line.high,
        mu=line.mu,
        sigma=line.sigma,
        is_provisional=not line.is_settled,
        matches=line.matches,
        wins=line.wins,
        ties=line.ties,
        win_rate=line.win_rate,
        changed_at=line.changed_at,
        last_match_at=line.last_match_at,
    )
