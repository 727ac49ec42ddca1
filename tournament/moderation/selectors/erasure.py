"""Where a person stands written, and what an erasure would change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from django.contrib.admin.models import LogEntry
from django.db.models import Model, Q

from tournament.competitions.models import (
    Entrant,
    EntryTrial,
    Notice,
    Ruling,
    Series,
    Stage,
    Tournament,
)
from tournament.moderation.models import Suspension
from tournament.moderation.selectors.activity import (
    PLAYED,
    WAITING,
    entries_in,
    living_tokens,
    open_scrimmages,
)
from tournament.players.models import FORMER, Bot, BotVersion, OutgoingMail, Player
from tournament.players.selectors import sessions_of
from tournament.scrimmages.models import Scrimmage

TEXTS: tuple[tuple[type[Model], str], ...] = (
    (LogEntry, "object_repr"),
    (LogEntry, "change_message"),
    (Notice, "text"),
    (OutgoingMail, "text"),
    (Ruling, "reason"),
    (Entrant, "reason"),
    (Stage, "note"),
    (Tournament, "description"),
    (Tournament, "paused_reason"),
    (Tournament, "cancelled_reason"),
    (Series, "stopped_reason"),
    (Bot, "paused_reason"),
    (BotVersion, "reason"),
    (EntryTrial, "reason"),
    (Scrimmage, "reason"),
    (Scrimmage, "failure"),
    (Suspension, "reason"),
)
"""Where somebody may have written a name. None of it is hashed, sealed or rated."""


def spell_names(player: Player) -> re.Pattern[str]:
    """Where a text names somebody: user name or address of mail as whole words, in any case."""
    names = filter(None, (player.username, player.email))
    return re.compile(
        r"(?<![\w@.+-])(?:" + "|".join(map(re.escape, names)) + r")(?![\w@+-]|\.\w)", re.IGNORECASE
    )


def texts_naming(player: Player) -> Iterator[tuple[type[Model], str, int, str]]:
    """The texts of the site that name a player: model, field, id, text."""
    pattern = spell_names(player)
    for model, field in TEXTS:
        holds = Q(**{f"{field}__icontains": player.username})
        if player.email:
            holds |= Q(**{f"{field}__icontains": player.email})
        rows = model._default_manager.filter(holds)  # noqa: SLF001 Django's name of it
        for pk, text in rows.values_list("pk", field):
            if pattern.search(text):
                yield model, field, pk, text


def erasure_preview(player: Player) -> list[str]:
    """What an erasure would change now, a line each."""
    bots = list(player.bots.order_by("name"))
    versions = BotVersion.objects.filter(bot__owner=player).count()
    lines = [
        f"the account {player.username} becomes “{FORMER} {player.pk}”: nobody can log in with it",
        _count(living_tokens(player).count(), "token is", "tokens are", "revoked"),
        _count(len(sessions_of(player)), "session", "sessions", "ended"),
        _count(player.notices.count(), "notice is", "notices are", "deleted"),
        _count(
            player.scrimmages.count(),
            "scrimmage of theirs is",
            "scrimmages of theirs are",
            "deleted",
        ),
        _count(
            open_scrimmages(None, bots).count(),
            "open scrimmage is",
            "open scrimmages are",
            "cancelled",
        ),
        _count(
            versions, "wheel is", "wheels are", "deleted with logs and descriptions; hashes stay"
        ),
    ]
    lines += [f"{bot.name} keeps its name and results and plays no more" for bot in bots]
    lines += [
        f"{entrant.tournament.name}, {entrant.tournament.get_state_display()}: {entrant.name} is withdrawn"
        for entrant in entries_in(PLAYED, bots)
    ]
    lines += [
        f"{entrant.tournament.name}, {entrant.tournament.get_state_display()}: {entrant.name} leaves"
        for entrant in entries_in(WAITING, bots)
    ]
    lines += [
        f"{tournament.name}, which they organise, goes on; staff who may oversee all tournaments run it"
        for tournament in player.tournaments.filter(state__in=_GOING_ON).order_by("pk")
    ]
    lines += [
        f"the series {series.name} is switched off"
        for series in player.series.filter(is_active=True)
    ]
    named = Counter(model._meta.verbose_name for model, *_ in texts_naming(player))  # noqa: SLF001 Django's name of it
    lines += [
        _count(
            count,
            f"text of a {model} names them and is",
            f"texts of a {model} name them and are",
            "changed",
        )
        for model, count in sorted(named.items())
    ]
    return lines


_GOING_ON = (*WAITING, *PLAYED)


def _count(number: int, one: str, many: str, what: str) -> str:
    return f"{number} {one if number == 1 else many} {what}"
