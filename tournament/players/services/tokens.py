"""Tokens for programs: ``PREFIX.SECRET``; only the secret's SHA-256 is kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from tournament.players.errors import TokenError
from tournament.players.models import ApiToken, Player, TokenScope
from tournament.store.clock import in_seconds, read_clock

DEFAULT_DAYS = 365
MAX_DAYS = 5 * 365
_NOTED_SECONDS = 60.0
"""A token in steady use costs no more than one write in so long."""


def create_token(
    *,
    player: Player,
    scope: str = TokenScope.READ,
    name: str = "",
    days: int = DEFAULT_DAYS,
    now: datetime | None = None,
) -> tuple[ApiToken, str]:
    """Make a token; the second value is its text, which cannot be had again.

    No two tokens in use have one name, so a form that is sent twice makes one. Raises TokenError.
    """
    if scope not in TokenScope.values:
        raise TokenError(f"there is no scope {scope!r}; there are: {', '.join(TokenScope.values)}")
    if not 1 <= days <= MAX_DAYS:
        raise TokenError(f"a token lives 1 to {MAX_DAYS} days, not {days}")
    if name and _living(ApiToken.objects.filter(player=player, name=name[:60])).exists():
        raise TokenError(f"you have a token named {name}: revoke it, or choose another name")
    secret = secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        player=player,
        name=name[:60],
        prefix=secrets.token_hex(6),
        sha256=_hash(secret),
        scope=scope,
        expires_at=(now or read_clock()) + timedelta(days=days),
    )
    return token, f"{token.prefix}.{secret}"


def revoke_token(*, token: ApiToken) -> None:
    """End a token at once; revoking it twice changes nothing."""
    ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=Now())
    token.refresh_from_db()


def revoke_tokens(*, player: Player) -> int:
    """End all tokens of a player at once; how many were in use."""
    return _living(ApiToken.objects.filter(player=player)).update(revoked_at=Now())


def authenticate_token(text: str) -> ApiToken:
    """The token whose text this is, its player loaded; that it was used is noted. Raises TokenError for any other."""
    prefix, _, secret = text.partition(".")
    token = (
        _living(ApiToken.objects.select_related("player"))
        .filter(prefix=prefix, player__is_active=True)
        .first()
    )
    known = token.sha256 if token else _hash("")
    if not hmac.compare_digest(known, _hash(secret)) or token is None or not secret:
        raise TokenError("this token is unknown, revoked or expired: make a new one on your page")
    long_ago = Q(last_used_at=None) | Q(last_used_at__lt=in_seconds(-_NOTED_SECONDS))
    ApiToken.objects.filter(long_ago, pk=token.pk).update(last_used_at=Now())
    return token


def _living(tokens: QuerySet[ApiToken]) -> QuerySet[ApiToken]:
    return tokens.filter(revoked_at__isnull=True, expires_at__gt=Now())


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
