"""What is kept of a person, for themselves to read: rows as JSON, wheels and logs as files."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any

import msgspec
from axes.models import AccessAttempt
from django.contrib.admin.models import LogEntry
from django.db.models import F, Q, QuerySet

from tournament.competitions.models import (
    Entrant,
    EntryTrial,
    Match,
    Notice,
    PairInvitation,
    Ruling,
    SeriesEntry,
)
from tournament.competitions.selectors import match_logs, matches_of_bot, tournaments_with_seals
from tournament.moderation.models import Suspension
from tournament.players.models import BotVersion, Player
from tournament.players.selectors import sessions_of
from tournament.scrimmages.models import Batch, Scrimmage
from tournament.scrimmages.selectors import batch_logs
from tournament.store.errors import BlobError
from tournament.store.services import read_blob

_CHUNK_BYTES = 1 << 16


def personal_data(player: Player) -> dict[str, Any]:
    """All that the site keeps of a player, but the files, as values that JSON can hold.

    Results that are sealed are left out: nobody may know them yet.
    """
    sealed = tournaments_with_seals().values("pk")
    entrants = Entrant.objects.filter(bots__bot__owner=player)
    log_ins = AccessAttempt.objects.filter(username=player.username)
    groups: dict[str, Any] = {
        "account": _rows(
            Player.objects.filter(pk=player.pk),
            "username",
            "email",
            "confirmed_email",
            "confirmation_at",
            "wants_mail",
            "slug",
            "time_zone",
            "date_joined",
            "last_login",
            "is_active",
            "is_staff",
        ),
        "groups": list(player.groups.order_by("name").values_list("name", flat=True)),
        "sessions": len(sessions_of(player)),
        "failed_log_ins": _rows(
            log_ins, "attempt_time", "ip_address", "user_agent", "failures_since_start"
        ),
        "tokens": _rows(
            player.tokens.all(),
            "prefix",
            "name",
            "scope",
            "created_at",
            "expires_at",
            "revoked_at",
            "last_used_at",
        ),
        "bots": _rows(
            player.bots.all(), "name", "created_at", "paused_reason", "allows_scrimmages"
        ),
        "versions": _rows(
            BotVersion.objects.filter(bot__owner=player),
            "version",
            "state",
            "summary",
            "reason",
            "wheel_sha256",
            "uploaded_at",
            "decided_at",
            of_bot=F("bot__name"),
        ),
        "trials": _rows(
            EntryTrial.objects.filter(version__bot__owner=player),
            "conditions",
            "state",
            "reason",
            "created_at",
            "decided_at",
            of_bot=F("version__bot__name"),
            of_version=F("version__version"),
        ),
        "entries": _rows(
            entrants,
            "name",
            "state",
            "reason",
            "entered_at",
            in_tournament=F("tournament__slug"),
            with_bot=F("bots__bot__name"),
        ),
        "places": _rows(
            entrants.exclude(tournament__in=sealed).exclude(place=None),
            "name",
            "place",
            in_tournament=F("tournament__slug"),
        ),
        "series_entries": _rows(
            SeriesEntry.objects.filter(bots__bot__owner=player),
            "name",
            "entered_at",
            of_series=F("series__slug"),
        ),
        "invitations": _rows(
            PairInvitation.objects.filter(Q(bot__owner=player) | Q(invited__owner=player)),
            "name",
            "state",
            "at",
            "answered_at",
            in_tournament=F("tournament__slug"),
            from_bot=F("bot__name"),
            to_bot=F("invited__name"),
        ),
        "scrimmages": _rows(
            Scrimmage.objects.filter(asked_by=player),
            "game",
            "ruleset",
            "difference",
            "state",
            "counts",
            "answer",
            "reason",
            "asked_at",
            "ended_at",
            first_bot=F("first__bot__name"),
            first_version=F("first__version"),
            other_bot=F("other__bot__name"),
            other_version=F("other__version"),
        ),
        "notices": _rows(
            Notice.objects.filter(player=player),
            "text",
            "at",
            "seen_at",
            about=F("tournament__slug"),
        ),
        "mails_to_be_sent": _rows(player.mails.all(), "subject", "text", "created_at"),
        "tournaments_organised": _rows(
            player.tournaments.all(), "slug", "name", "description", "created_at"
        ),
        "series_organised": _rows(player.series.all(), "slug", "name", "created_at"),
        "rulings": _rows(
            Ruling.objects.filter(by=player),
            "subject",
            "kind",
            "reason",
            "at",
            in_tournament=F("tournament__slug"),
        ),
        "acts_in_the_admin": _rows(
            LogEntry.objects.filter(user=player), "action_time", "object_repr", "change_message"
        ),
        "suspensions": _rows(
            Suspension.objects.filter(Q(player=player) | Q(bot__owner=player)),
            "reason",
            "at",
            "effects",
            "lifted_at",
        ),
    }
    return groups


def _rows(rows: QuerySet[Any], *fields: str, **named: F) -> list[dict[str, Any]]:
    ordered = rows.order_by("pk").distinct()
    return [dict(row) for row in ordered.values(*fields, **named)]


def personal_files(player: Player) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The files of a player: name, and how to read it, which may raise BlobError."""
    for version in (
        BotVersion.objects.filter(bot__owner=player).select_related("bot").order_by("pk")
    ):
        name = f"{version.bot.name}-{version.version}"
        yield f"wheels/{name}.whl", partial(read_blob, version.wheel_sha256)
        if version.log_sha256:
            yield f"logs/checks/{name}.txt", partial(read_blob, version.log_sha256)
    trials = EntryTrial.objects.filter(version__bot__owner=player).exclude(log_sha256="")
    for trial in trials.order_by("pk"):
        yield f"logs/trials/{trial.pk}.txt", partial(read_blob, trial.log_sha256)
    for bot in player.bots.order_by("name"):
        for match in matches_of_bot(bot).exclude(logs_sha256="").distinct().iterator(200):
            yield (
                f"logs/matches/{match.tournament.slug}/{match.pairing.key}.json",
                partial(_match_prints, match, player),
            )
    theirs = Q(scrimmage__first__bot__owner=player) | Q(scrimmage__other__bot__owner=player)
    batches = Batch.objects.filter(theirs).exclude(logs_sha256="").order_by("pk")
    for batch in batches.select_related("scrimmage__first__bot", "scrimmage__other__bot"):
        yield (
            f"logs/scrimmages/{batch.scrimmage_id}/{batch}.json",
            partial(_batch_prints, batch, player),
        )


def _match_prints(match: Match, player: Player) -> bytes:
    return msgspec.json.encode(match_logs(match, player))


def _batch_prints(batch: Batch, player: Player) -> bytes:
    return msgspec.json.encode(batch_logs(batch, player))


def write_personal_data(player: Player, file: IO[bytes]) -> int:
    """Write all that the site keeps of a player as a ZIP archive; how many files are in it.

    `data.json` has the rows, and under `unreadable` the files that could not be read, with the reason.
    """
    written: set[str] = set()
    unreadable: dict[str, str] = {}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, read in personal_files(player):
            if name in written:
                continue  # two bots of theirs met in one match
            try:
                _add(archive, name, read())
                written.add(name)
            except BlobError as error:
                unreadable[name] = str(error)
        data = {**personal_data(player), "unreadable": unreadable}
        _add(archive, "data.json", msgspec.json.format(msgspec.json.encode(data), indent=2))
    return len(written) + 1


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a file without a time, so that equal data gives equal bytes."""
    archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def personal_archive(player: Player) -> Iterator[bytes]:
    """That archive piece by piece, made while it is read."""
    with tempfile.TemporaryFile() as file:
        write_personal_data(player, file)
        file.seek(0)
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def export_name(player: Player) -> str:
    """The name of that archive as a file."""
    return f"{player.slug}-data.zip"
