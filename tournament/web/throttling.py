"""How often an address or a player may ask: counted over all processes by the broker, and by each alone while that is away.

Limits keep one visitor from taking what all share. So a broker that is away must neither shut everybody out nor let
anybody do what they like: meanwhile each process counts for itself, which lets through at most as many times more as
there are processes. No request waits for a broker that does not answer for longer than `PATIENCE_SECONDS`, and only one
in `AWAY_SECONDS` finds out.
"""

from __future__ import annotations

import functools
import logging
import math
import time
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from limits import RateLimitItem, RateLimitItemPerMinute
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import RateLimiter, SlidingWindowCounterRateLimiter
from redis import ConnectionPool
from redis.exceptions import RedisError

from tournament.players.models import Player
from tournament.players.services.accounts import network_of
from tournament.players.views import client_address

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 0.25
AWAY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests in so many minutes."""

    kind: str
    requests: int
    minutes: int = 1


PAGES = Rate("pages", 600)
FILES = Rate("files", 120)
"""Records and logs, which are read from the store."""
COSTLY = Rate("costly", 20)
"""What takes seconds to make: bundles, archives."""
WRITES = Rate("writes", 120)
LOG_INS = Rate("log-ins", 30, minutes=5)
"""By address, whatever the name: axes counts by name and address."""
PASSWORDS = Rate("passwords", 20, minutes=5)
"""Of who is logged in: a cookie that was stolen is no way to find out the password."""
RATES = {
    "competitions:bundle": COSTLY,
    "moderation:archive": COSTLY,
    "api:get_bundle": COSTLY,
    "api:get_own_data": COSTLY,
    "competitions:record": FILES,
    "competitions:superseded-record": FILES,
    "scrimmages:record": FILES,
    "players:wheel": FILES,
    "players:log": FILES,
    "api:get_record": FILES,
    "api:get_log": FILES,
}
"""By route what is not simply a page; `rate_of` judges the method, too."""
_LOG_IN_ROUTES = {
    *("log-in", "players:sign-up", "admin:login"),
    *("players:forgotten-password", "players:set-password"),
}
_PASSWORD_ROUTES = {"players:account", "admin:password_change"}


def rate_of(request: HttpRequest) -> Rate:
    """Which limit a request counts for, by its route and method. Probes never come so far: `answer_probes` does them."""
    match = request.resolver_match
    route = match.view_name if match is not None else ""
    if request.method in {"GET", "HEAD", "OPTIONS"}:
        return RATES.get(route, PAGES)
    if route in _PASSWORD_ROUTES:
        return PASSWORDS
    return LOG_INS if route in _LOG_IN_ROUTES else WRITES


def asker(request: HttpRequest, *, by_cookie: bool) -> str:
    """Who asks, for counting: a player by their cookie, else the network address."""
    if by_cookie and isinstance(request.user, Player):
        return name_of(request.user)
    return network_of(client_address(request) or "0.0.0.0")  # noqa: S104 a Unix socket has none


def name_of(player: Player) -> str:
    """A player, for counting."""
    return f"player {player.pk}"


class Limiter:
    """Counts requests in windows that slide."""

    def __init__(self, broker_url: str) -> None:
        self._alone: RateLimiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._shared = _shared(broker_url)
        self._away_until = 0.0

    def take(self, rate: Rate, who: str) -> int | None:
        """Count a request; the seconds to wait if there have been too many, else None."""
        percent = settings.ARENA_RATE_PERCENT
        if percent == 0:
            return None
        most = math.ceil(rate.requests * percent / 100)
        item = RateLimitItemPerMinute(most, rate.minutes, namespace="arena")
        if self._shared is not None and time.monotonic() >= self._away_until:
            try:
                return _take(self._shared, item, rate.kind, who)
            except (RedisError, OSError) as error:
                self._away_until = time.monotonic() + AWAY_SECONDS
                logger.warning(
                    "the broker does not answer (%s): this process counts requests alone", error
                )
        return _take(self._alone, item, rate.kind, who)


def _take(limiter: RateLimiter, item: RateLimitItem, kind: str, who: str) -> int | None:
    if limiter.hit(item, kind, who):
        return None
    ends = limiter.get_window_stats(item, kind, who).reset_time
    return max(1, math.ceil(ends - time.time()))


def _shared(broker_url: str) -> RateLimiter | None:
    """The counter that all processes share; None if the broker is no Redis."""
    scheme, _, rest = broker_url.partition("://")
    if scheme == "redis+socket":
        path, _, query = rest.partition("?")
        host = query.removeprefix("virtual_host=") or "0"
        broker_url = f"unix://{path}?db={host}"
    elif scheme not in {"redis", "rediss"}:
        return None
    pool = ConnectionPool.from_url(
        broker_url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS
    )
    return SlidingWindowCounterRateLimiter(RedisStorage("redis://", connection_pool=pool))


@functools.cache
def limiter() -> Limiter:
    """The limiter of this process."""
    return Limiter(settings.CELERY_BROKER_URL)


def spell_wait(seconds: int) -> str:
    """What to tell who asks too often."""
    return (
        f"Too many requests of this kind came from you: try again in {seconds} s. Programs wait as long as the "
        "header Retry-After says."
    )
