"""Questions about players, bots and versions; answers are QuerySets or frozen rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db.models import Max, Prefetch, Q, QuerySet, Subquery

from tournament.players.models import (
    UNDECIDED,
    ApiToken,
    Bot,
    BotVersion,
    Player,
    VersionGame,
    VersionState,
)
from tournament.store.clock import read_clock
from tournament.store.services import read_blob
from tournament.store.waiting import QueuePlace, mean_seconds, place_behind, queue_state, slots_now

RESERVED_BOT_NAMES = frozenset(
    {"bold", "cautious", "chance", "greedy", "highest", "house", "lowest", "random", "steady"}
)
"""Only the house account may submit bots of these names."""


def reserved_names() -> frozenset[str]:
    """The bot names that only the house account may use."""
    return RESERVED_BOT_NAMES


def bots_of(player: Player) -> QuerySet[Bot]:
    """The bots of `player` by name, each with its versions (newest first) and their games loaded."""
    return (
        Bot.objects.filter(owner=player)
        .order_by("name")
        .prefetch_related(
            Prefetch(
                "versions",
                BotVersion.objects.order_by("-pk").prefetch_related("games"),
            )
        )
    )


def bot_by_name(name: str) -> Bot | None:
    """The bot called `name`, in any case; its owner loaded."""
    return Bot.objects.select_related("owner").filter(name__iexact=name).first()


def versions_of(bot: Bot) -> QuerySet[BotVersion]:
    """A bot's versions, the newest first, their games loaded."""
    return bot.versions.order_by("-pk").prefetch_related("games")


def tokens_of(player: Player) -> QuerySet[ApiToken]:
    """The tokens of `player`, the newest first."""
    return player.tokens.order_by("-pk")


@dataclass(frozen=True, slots=True)
class VersionStatus:
    """How far a version has come, for its owner."""

    pk: int
    bot: str
    version: str
    state: str
    state_label: str
    is_decided: bool
    reason: str
    games: Mapping[str, Mapping[str, Sequence[object]]]
    """What it was accepted for: by game the numbers of players and the values of options."""
    attempts: int
    has_log: bool
    uploaded_at: datetime
    decided_at: datetime | None


def version_status(version: BotVersion) -> VersionStatus:
    """The status of a version as its row tells it."""
    return VersionStatus(
        pk=version.pk,
        bot=version.bot.name,
        version=version.version,
        state=version.state,
        state_label=version.get_state_display(),
        is_decided=not version.is_undecided,
        reason=version.reason,
        games={game.game: game.options for game in version.games.all()},
        attempts=version.attempts,
        has_log=bool(version.log_sha256),
        uploaded_at=version.uploaded_at,
        decided_at=version.decided_at,
    )


def version_log(version: BotVersion) -> str:
    """What it printed while it was checked, empty if nothing. Only its owner and staff may see it.

    Raises BlobError if the log cannot be read.
    """
    return read_blob(version.log_sha256).decode() if version.log_sha256 else ""


def version_log_parts(version: BotVersion) -> list[tuple[str, str]]:
    """The parts of its log, each with its heading; one part under an empty heading for what no match caused.

    Raises BlobError if the log cannot be read.
    """
    before, *parts = re.split(r"^##### (.*)\n", version_log(version), flags=re.MULTILINE)
    found = list(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))
    return [("", before), *found] if before.strip() or not found else found


def wheel_of(version: BotVersion) -> bytes:
    """The wheel as it was submitted. Only its owner and staff may have it. Raises BlobError."""
    return read_blob(version.wheel_sha256)


def wheel_name(version: BotVersion) -> str:
    """The name of its wheel as a file."""
    return f"{version.bot.name.replace('-', '_')}-{version.version}-py3-none-any.whl"


def accepted_versions(bot: Bot, game: str) -> QuerySet[BotVersion]:
    """The versions of `bot` that were accepted for `game` and may play, the newest first."""
    return bot.versions.filter(state=VersionState.ACCEPTED, games__game=game).order_by("-pk")


def fits(
    options: Mapping[str, Sequence[object]], seats: int, ruleset: Mapping[str, object]
) -> bool:
    """Whether what a version was accepted for covers a table of `seats` seats and `ruleset`.

    Options of the game that were not tried with several values are not named in `options`.
    """
    if seats not in options.get("players", (seats,)):
        return False
    return all(value in options[name] for name, value in ruleset.items() if name in options)


def playable_game(version: BotVersion, game: str) -> VersionGame | None:
    """What `version` was accepted for in `game`; None if it was not."""
    return version.games.filter(game=game).first()


def ancestors_of(versions: Sequence[BotVersion]) -> dict[int, tuple[int, ...]]:
    """By version its bot's earlier versions along the line of parents, the newest first."""
    bots = {version.bot_id for version in versions}
    parents = dict(BotVersion.objects.filter(bot__in=bots).values_list("pk", "parent"))

    def walk(pk: int) -> tuple[int, ...]:
        line = []
        parent = parents.get(pk)
        while parent is not None:
            line.append(parent)
            parent = parents.get(parent)
        return tuple(line)

    return {version.pk: walk(version.pk) for version in versions}


def version_ids(names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The ids of versions by (bot, version)."""
    bots = {bot for bot, _ in names}
    wanted = set(names)
    rows = BotVersion.objects.filter(bot__name__in=bots).values_list("bot__name", "version", "pk")
    return {(bot, version): pk for bot, version, pk in rows if (bot, version) in wanted}


@dataclass(frozen=True, slots=True)
class PublicBot:
    """A bot as everybody may see it."""

    name: str
    owner: str
    owner_slug: str
    is_paused: bool
    version: str
    """The newest accepted one."""
    games: tuple[str, ...]
    """What that version plays."""
    accepted_at: datetime | None


def public_bots(*, search: str = "", game: str = "", owner: Player | None = None) -> QuerySet[Bot]:
    """Bots with an accepted version, by name; `public_bot` makes a row of each.

    `search` is part of the bot's or the owner's name; `game` is one that the bot plays.
    """
    accepted = BotVersion.objects.filter(state=VersionState.ACCEPTED)
    if game:
        accepted = accepted.filter(games__game=game)
    bots = Bot.objects.filter(pk__in=accepted.values("bot")).select_related("owner")
    if search:
        bots = bots.filter(Q(name__icontains=search) | Q(owner__username__icontains=search))
    if owner is not None:
        bots = bots.filter(owner=owner)
    newest = BotVersion.objects.filter(state=VersionState.ACCEPTED).order_by("-pk")
    return bots.order_by("name").prefetch_related(
        Prefetch("versions", newest.prefetch_related("games"), to_attr="accepted")
    )


def public_bot(bot: Bot) -> PublicBot:
    """One of `public_bots`."""
    newest: BotVersion = bot.accepted[0]  # type: ignore[attr-defined]
    return PublicBot(
        name=bot.name,
        owner=bot.owner.username,
        owner_slug=bot.owner.slug,
        is_paused=bool(bot.paused_reason),
        version=newest.version,
        games=tuple(sorted(game.game for game in newest.games.all())),
        accepted_at=newest.decided_at,
    )


PUBLIC_STATES = (VersionState.ACCEPTED, VersionState.QUARANTINED, VersionState.WITHDRAWN)


def public_versions(bot: Bot) -> QuerySet[BotVersion]:
    """The versions of `bot` that were accepted once, the newest first, their games loaded."""
    return versions_of(bot).filter(state__in=PUBLIC_STATES, games__isnull=False).distinct()


def locked_until(*, username: str, address: str | None) -> datetime | None:
    """Until when an address must wait before it logs in by a name; None if it failed at none."""
    failures = AccessAttempt.objects.filter(username=username, ip_address=address)
    last: datetime | None = failures.aggregate(last=Max("attempt_time"))["last"]
    cool_off: timedelta = settings.AXES_COOLOFF_TIME
    return None if last is None else last + cool_off


UNKNOWN_CHECK_SECONDS = 5.0
"""What a check is taken to last where none has been done."""
_MEASURED_CHECKS = 20


def open_checks() -> QuerySet[BotVersion]:
    """The versions that are still to be checked, each with its `QueueState` as ``standing``."""
    return BotVersion.objects.filter(state__in=UNDECIDED).annotate(
        standing=queue_state(
            running=VersionState.RUNNING,
            queued=VersionState.QUEUED,
            stuck=VersionState.STUCK,
            held=~Q(bot__paused_reason=""),
        )
    )


def place_of_check(version: BotVersion) -> QueuePlace | None:
    """Where a version stands among those that wait for their check; None if it does not. Wants its bot loaded."""
    if version.state not in {VersionState.SUBMITTED, VersionState.QUEUED}:
        return None
    paused = version.bot.paused_reason
    others = BotVersion.objects.filter(
        state__in=(VersionState.SUBMITTED, VersionState.QUEUED), bot__paused_reason=""
    )
    # Compared within the database: SQLite keeps its own times with fewer digits than those that it is sent.
    due = Subquery(BotVersion.objects.filter(pk=version.pk).values("run_after"))
    before = Q(run_after__lt=due) | Q(run_after=due, pk__lt=version.pk)
    checked = BotVersion.objects.filter(decided_at__isnull=False, claimed_at__isnull=False)
    last = checked.order_by("-pk").values_list("claimed_at", "decided_at")[:_MEASURED_CHECKS]
    return place_behind(
        others.filter(before).count(),
        others.count(),
        each_seconds=mean_seconds(last, UNKNOWN_CHECK_SECONDS),
        slots=slots_now(),
        not_before=(version.run_after - read_clock()).total_seconds(),
        held_by=f"{version.bot.name} is paused: {paused}" if paused else "",
    )


def sessions_of(player: Player) -> list[str]:
    """The keys of a player's sessions that have not expired. Reads all sessions: they name nobody in a column."""
    living = Session.objects.filter(expire_date__gt=read_clock())
    return [
        session.session_key
        for session in living.iterator()
        if session.get_decoded().get(SESSION_KEY) == str(player.pk)
    ]
