"""Bots and their versions: submission, withdrawal, what staff may do."""

from __future__ import annotations

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from engine.wheels import WheelInfo, read_wheel
from tournament.players.errors import (
    NameTakenError,
    QuotaError,
    SubmissionError,
    VersionExistsError,
)
from tournament.players.models import (
    HOUSE,
    TO_BE_CHECKED,
    VERSION_TRANSITIONS,
    Bot,
    BotVersion,
    Player,
    VersionState,
)
from tournament.players.selectors import reserved_names
from tournament.store.clock import in_seconds
from tournament.store.leases import FREE_FIELDS
from tournament.store.services import put_blob


def submit_wheel(*, owner: Player, data: bytes) -> BotVersion:
    """Take a wheel: the row that this makes (or finds, for the same wheel) is the request to check it.

    Raises WheelError with every reason why the file is no acceptable wheel, NameTakenError if the
    bot's name is not the owner's, VersionExistsError if the version exists with other contents,
    QuotaError if the owner has uploaded too many, SubmissionError if the bot is paused. Nothing of a
    wheel that is refused is kept.
    """
    return find_or_submit_wheel(owner=owner, data=data)[0]


def find_or_submit_wheel(*, owner: Player, data: bytes) -> tuple[BotVersion, bool]:
    """As `submit_wheel`; and whether this call made the version: of several at once with the same wheel one does."""
    info = read_wheel(data)
    _find_or_refuse(owner, info, Bot.objects.filter(name__iexact=info.bot).first())
    put_blob(data)
    try:
        return _submit(owner, info)
    except IntegrityError:  # the same bot or version was submitted at the same moment
        return _submit(owner, info)


@transaction.atomic
def _submit(owner: Player, info: WheelInfo) -> tuple[BotVersion, bool]:
    Player.objects.select_for_update(no_key=True).get(pk=owner.pk)  # one upload of theirs at a time
    bot = Bot.objects.select_for_update().filter(name__iexact=info.bot).first()
    existing = _find_or_refuse(owner, info, bot)
    if existing is not None:
        return existing, False
    if bot is None:
        bot = Bot.objects.create(owner=owner, name=info.bot)
    made = BotVersion.objects.create(
        bot=bot,
        version=info.version,
        wheel_sha256=info.sha256,
        summary=info.summary[:300],
        parent=bot.versions.order_by("-pk").first(),
    )
    return made, True


def _find_or_refuse(owner: Player, info: WheelInfo, bot: Bot | None) -> BotVersion | None:
    """The version that this very wheel is already; None for a new one that may be taken."""
    if bot is None:
        if info.bot in reserved_names() and owner.username != HOUSE:
            raise NameTakenError(info.bot, "is reserved for a reference bot")
        _check_quota(owner)
        return None
    if bot.owner_id != owner.pk:
        raise NameTakenError(info.bot, "belongs to someone else")
    existing = bot.versions.filter(wheel_sha256=info.sha256).first()
    if existing is not None:
        return existing
    if bot.paused_reason:
        raise SubmissionError(f"{bot.name} is paused by staff: {bot.paused_reason}")
    if bot.versions.filter(version=info.version).exists():
        raise VersionExistsError(bot.name, info.version)
    _check_quota(owner)
    return None


def _check_quota(owner: Player) -> None:
    """Raise QuotaError if the owner's uploads would keep the site from checking those of others."""
    if owner.username == HOUSE:
        return
    own = BotVersion.objects.filter(bot__owner=owner)
    if own.filter(state__in=TO_BE_CHECKED).count() >= settings.ARENA_MAX_UNCHECKED:
        raise QuotaError(
            f"{settings.ARENA_MAX_UNCHECKED} of your versions are still to be checked: wait until "
            "one is decided, or withdraw one that you no longer need"
        )
    day_ago = in_seconds(-24 * 3600)
    if own.filter(uploaded_at__gt=day_ago).count() >= settings.ARENA_UPLOADS_A_DAY:
        raise QuotaError(
            f"you have uploaded {settings.ARENA_UPLOADS_A_DAY} versions within 24 hours, the most "
            "that this site takes: upload the next one later"
        )


def withdraw_version(*, version: BotVersion, reason: str = "") -> BotVersion:
    """Retire a version: it enters nothing any more; what it played stays, frozen entries play on.

    Raises SubmissionError if it is withdrawn already.
    """
    return _move(version, VersionState.WITHDRAWN, reason or version.reason)


def quarantine_version(*, version: BotVersion, reason: str) -> BotVersion:
    """Set an accepted version aside. Raises SubmissionError for any other, or without a reason."""
    _require(reason)
    return _move(version, VersionState.QUARANTINED, reason)


def release_version(*, version: BotVersion) -> BotVersion:
    """Accept a version again that was set aside; its crashes are counted anew.

    Raises SubmissionError for any other.
    """
    if version.state != VersionState.QUARANTINED:
        raise SubmissionError(f"{version} is not set aside")
    return _move(
        version, VersionState.ACCEPTED, "", matches_played=0, crashes=0, crashes_in_a_row=0
    )


def retry_version(*, version: BotVersion) -> BotVersion:
    """Put a version back into the queue whose check is stuck, or that a worker has and does not get on with.

    Whoever checks it now has lost it, and failures are counted anew. Raises SubmissionError for any other.
    """
    if version.state not in {VersionState.STUCK, VersionState.QUEUED, VersionState.RUNNING}:
        raise SubmissionError(f"{version} is not stuck")
    return _move(version, VersionState.SUBMITTED, "", attempts=0, run_after=Now())


def pause_bot(*, bot: Bot, reason: str) -> Bot:
    """Keep a bot from entering tournaments and submitting versions.

    Raises SubmissionError without a reason, and for a bot that is paused: its reason is who paused it's to change.
    """
    _require(reason)
    reason = reason.strip()[:200]
    if not Bot.objects.filter(pk=bot.pk, paused_reason="").update(paused_reason=reason):
        bot.refresh_from_db(fields=["paused_reason"])
        raise SubmissionError(f"{bot.name} is paused already: {bot.paused_reason}")
    bot.paused_reason = reason
    return bot


def lift_bot(*, bot: Bot) -> Bot:
    """End a bot's pause."""
    bot.paused_reason = ""
    bot.save(update_fields=["paused_reason"])
    return bot


def allow_scrimmages(*, bot: Bot, allowed: bool) -> Bot:
    """Say whether others may ask for scrimmages against a bot; open ones of theirs end if they may not."""
    bot.allows_scrimmages = allowed
    bot.save(update_fields=["allows_scrimmages"])
    return bot


def _require(reason: str) -> None:
    if not reason.strip():
        raise SubmissionError("give a reason: its owner will read it")


def _move(version: BotVersion, target: VersionState, reason: str, **fields: object) -> BotVersion:
    before = version.state
    if not VERSION_TRANSITIONS.move_row(
        version, target, reason=reason, fence=version.fence + 1, **FREE_FIELDS, **fields
    ):
        raise SubmissionError(
            f"{version} is {version.get_state_display()} and cannot become {target.label}"
            + (f" (it was {before} a moment ago)" if before != version.state else "")
        )
    return version
