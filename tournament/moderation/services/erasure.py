"""Erasure: the person goes, what their bots played stays.

Records, bundles and ratings name bots and hashes of wheels, never players, so they verify as before. What is
left of an account is a number. Each erasure is appended to a list that outlives backups: it holds the account's
key, drawn at random, and so says nothing about whom.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC
from pathlib import Path

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Q

from engine.errors import UsageError
from tournament.competitions import services as competitions
from tournament.competitions.models import (
    Notice,
    PairInvitation,
    Ruling,
    SeriesEntry,
    Tournament,
)
from tournament.moderation.errors import ErasureListError, ModerationError
from tournament.moderation.models import Suspension
from tournament.moderation.selectors import (
    PLAYED,
    TEXTS,
    WAITING,
    entries_in,
    spell_names,
    texts_naming,
)
from tournament.moderation.services.ending import (
    answer_invitations,
    cancel_scrimmages,
    end_access,
)
from tournament.players import services as players
from tournament.players.models import (
    FORMER,
    HOUSE,
    BotVersion,
    Player,
    ResetRequest,
    VersionState,
    free_slug,
)
from tournament.scrimmages import services as scrimmages
from tournament.scrimmages.selectors import blobs_in_use as scrimmage_blobs
from tournament.store.clock import read_clock
from tournament.store.services import delete_blobs

LIST_NAME = "erasures.jsonl"
"""In the site's home; one line an erasure. Keep it apart from backups: it says what a restored one must not bring back."""
HAS_LEFT = "its owner has left this site"
REMOVED = "(removed with the account of who wrote it)"

_REASONS = tuple(
    (model, field)
    for model, field in TEXTS
    if field in {"reason", "note", "paused_reason", "cancelled_reason", "stopped_reason"}
)


def erasures_file() -> Path:
    """Where the list of erasures is."""
    home: Path = settings.ARENA_HOME
    return home / LIST_NAME


def erase_player(*, player: Player) -> str:
    """Remove a person from the site for good; what the account is called from now on.

    They leave what is played; account, tokens, sessions, notices, scrimmages, wheels, logs and what they wrote
    are deleted, and their name in what others wrote is replaced. Bots keep their names and results. The erasure
    is appended to the list before it is committed. Raises ModerationError for the house, and for somebody who
    has been erased; ErasureListError if the list cannot be written, and then nothing has happened.
    """
    return _erase(player, is_repeated=False)


def repeat_erasures(*, path: Path | None = None) -> tuple[str, ...]:
    """Erase again who is on the list and whom a restored backup has brought back; what they are called now.

    Run it after each restore, before the site is up again. `path`: by default the list in the site's home; what
    another one has more is added to that, for the next restore. Raises ErasureListError for a line that cannot be
    read, before anything is done.
    """
    keys = list(read_list(path or erasures_file()))
    if path is not None:
        _take_over(path)
    back = Player.objects.filter(key__in=keys, erased_at=None).order_by("pk")
    return tuple(_erase(player, is_repeated=True) for player in list(back))


def read_list(path: Path) -> Iterator[uuid.UUID]:
    """The keys of the accounts on a list of erasures; none if there is no such file. Raises ErasureListError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise ErasureListError(f"the list of erasures {path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            yield uuid.UUID(json.loads(line)["player"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ErasureListError(
                f"line {number} of the list of erasures {path} is none ({error}): mend or delete it; "
                'each is {"player": KEY, "at": TIME}'
            ) from error


def _erase(player: Player, *, is_repeated: bool) -> str:
    check_erasable(player)
    files = _files(player)
    with transaction.atomic():
        player = Player.objects.select_for_update().get(pk=player.pk)
        check_erasable(player)
        name = f"{FORMER} {player.pk}"
        _leave_play(player)
        _forget_play(player)
        _forget_texts(player, name)
        _forget_person(player, name)
        if not is_repeated:
            _append(player)
    _delete_files(files)
    return name


def check_erasable(player: Player) -> None:
    """Raise ModerationError if this account cannot be erased."""
    if player.username == HOUSE:
        raise ModerationError(f"{HOUSE} is no person: the reference bots are the site's own")
    if player.erased_at is not None:
        raise ModerationError(f"{player.username} has been erased at {player.erased_at:%Y-%m-%d}")


def _leave_play(player: Player) -> None:
    """Leave all that goes on, so that nothing needs their wheels any more."""
    for bot in player.bots.filter(paused_reason=""):
        players.pause_bot(bot=bot, reason=HAS_LEFT)
    player.bots.update(allows_scrimmages=False)
    bots = list(player.bots.all())
    for entrant in entries_in(PLAYED, bots):
        competitions.withdraw_entrant(
            entrant=entrant, by=player, reason="its player has left the site"
        )
    for entrant in entries_in(WAITING, bots):
        with contextlib.suppress(UsageError):  # at its close the pause keeps it out
            competitions.leave(entrant=entrant, by=player)
    answer_invitations(bots)
    for entry in SeriesEntry.objects.filter(bots__bot__owner=player).distinct():
        competitions.leave_series(entry=entry, by=player)
    for series in player.series.filter(is_active=True):
        competitions.stop_series(series=series, reason="its organiser has left the site")
    cancel_scrimmages(player=player, bots=bots, reason=HAS_LEFT)
    for version in BotVersion.objects.filter(bot__owner=player).exclude(
        state=VersionState.WITHDRAWN
    ):
        players.withdraw_version(version=version, reason=HAS_LEFT)


def _forget_play(player: Player) -> None:
    """Keep nothing of what their bots printed, said or asked; hashes, results and names of bots stay."""
    competitions.forget_logs(owner=player)
    scrimmages.forget_scrimmages(player=player)
    BotVersion.objects.filter(bot__owner=player).update(summary="", reason="", log_sha256="")
    invitations = PairInvitation.objects.filter(
        Q(bot__owner=player) | Q(invited__owner=player)
    ).exclude(name="")
    invitations.update(name="")


def _forget_texts(player: Player, name: str) -> None:
    """Delete what they wrote, and put their new name where others wrote the old one."""
    written = set(Ruling.objects.filter(by=player).values_list("reason", flat=True))
    for entry in LogEntry.objects.filter(user=player).exclude(change_message=""):
        label, _, reason = entry.change_message.partition(": ")
        if reason and not label.startswith("["):  # Django's own are JSON and hold names of fields
            written.add(reason)
            LogEntry.objects.filter(pk=entry.pk).update(change_message=f"{label}: {REMOVED}")
    for model, field in _REASONS if written else ():
        rows = model._default_manager.filter(**{f"{field}__in": written})  # noqa: SLF001 Django's name of it
        rows.update(**{field: REMOVED})
    Suspension.objects.filter(by=player).update(reason=REMOVED)
    Tournament.objects.filter(organiser=player).update(description="")
    own = ContentType.objects.get_for_model(Player)
    LogEntry.objects.filter(content_type=own, object_id=str(player.pk)).update(object_repr=name)
    Notice.objects.filter(player=player).delete()
    player.mails.all().delete()
    for model, field, pk, text in texts_naming(player):
        limit: int | None = getattr(model._meta.get_field(field), "max_length", None)  # noqa: SLF001 Django's name of it
        changed = spell_names(player).sub(name, text)[:limit]
        model._default_manager.filter(pk=pk).update(**{field: changed})  # noqa: SLF001


def _forget_person(player: Player, name: str) -> None:
    end_access(player)
    player.tokens.all().delete()
    for attempts in (AccessAttempt, AccessLog, AccessFailureLog):
        attempts.objects.filter(username__iexact=player.username).delete()
    ResetRequest.objects.filter(email=player.email.lower()).delete()
    player.groups.clear()
    player.user_permissions.clear()
    player.username, player.slug = name, ""
    player.first_name = player.last_name = player.email = player.confirmed_email = ""
    player.confirmation_at = None
    player.time_zone = "UTC"
    player.last_login = None
    player.is_active = player.is_staff = player.is_superuser = False
    player.set_unusable_password()
    player.erased_at = read_clock()
    player.date_joined = player.erased_at
    player.slug = free_slug(name)
    player.save()


def _append(player: Player) -> None:
    """Write the erasure down, whole and on the disk. Raises ErasureListError."""
    assert player.erased_at is not None
    line = {"player": str(player.key), "at": player.erased_at.astimezone(UTC).isoformat()}
    _write([json.dumps(line)])


def _take_over(path: Path) -> None:
    """Add the lines of another list to that of the home. Raises ErasureListError."""
    known = set(read_list(erasures_file()))
    lines = path.read_text(encoding="utf-8").splitlines()
    _write([line for line, key in zip(lines, read_list(path), strict=True) if key not in known])


def _write(lines: Sequence[str]) -> None:
    path = erasures_file()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ErasureListError(
            f"erasures cannot be noted in {path} ({error.strerror}), so nobody was erased: a restored "
            "backup would bring the person back"
        ) from error


def _files(player: Player) -> set[str]:
    """The hashes of their wheels, and of all that holds what their bots printed."""
    rows = BotVersion.objects.filter(bot__owner=player)
    own = {
        *rows.values_list("wheel_sha256", flat=True),
        *rows.values_list("log_sha256", flat=True),
    } - {""}
    return (
        own
        | competitions.logs_to_forget(owner=player)
        | scrimmages.scrimmage_blobs_to_forget(player=player)
    )


def _delete_files(hashes: set[str]) -> None:
    """Delete those that no row needs any more.

    What rows need is asked a part at a time: of a big site never all hashes are in memory.
    """
    for part in sorted({sha256[0] for sha256 in hashes}):
        mine = {sha256 for sha256 in hashes if sha256.startswith(part)}
        delete_blobs(mine - competitions.blobs_in_use(part) - scrimmage_blobs(part))
    for sha256 in hashes:
        shutil.rmtree(settings.WHEEL_CACHE / sha256, ignore_errors=True)
