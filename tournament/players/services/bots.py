"""Bots and their versions: submission, withdrawal, what staff may do."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from engine.wheels import WheelInfo, read_wheel
from tournament.players.errors import NameTakenError, SubmissionError, VersionExistsError
from tournament.players.models import (
    HOUSE,
    VERSION_TRANSITIONS,
    Bot,
    BotVersion,
    Player,
    VersionState,
)
from tournament.players.selectors import reserved_names
from tournament.store.leases import FREE_FIELDS
from tournament.store.services import put_blob


def submit_wheel(*, owner: Player, data: bytes) -> BotVersion:
    """Take a wheel: the row that this makes (or finds, for the same wheel) is the request to check it.

    Raises WheelError with every reason why the file is no acceptable wheel, NameTakenError if the
    bot's name is not the owner's, VersionExistsError if the version exists with other contents,
    SubmissionError if the bot is paused.
    """
    info = read_wheel(data)
    put_blob(data)
    try:
        return _submit(owner, info)
    except IntegrityError:  # the same bot or version was submitted at the same moment
        return _submit(owner, info)


@transaction.atomic
def _submit(owner: Player, info: WheelInfo) -> BotVersion:
    bot = _own_bot(owner, info.bot)
    existing = bot.versions.filter(wheel_sha256=info.sha256).first()
    if existing is not None:
        return existing
    if bot.paused_reason:
        raise SubmissionError(f"{bot.name} is paused by staff: {bot.paused_reason}")
    if bot.versions.filter(version=info.version).exists():
        raise VersionExistsError(bot.name, info.version)
    return BotVersion.objects.create(
        bot=bot,
        version=info.version,
        wheel_sha256=info.sha256,
        summary=info.summary[:300],
        parent=bot.versions.order_by("-pk").first(),
    )


def _own_bot(owner: Player, name: str) -> Bot:
    bot = Bot.objects.select_for_update().filter(name__iexact=name).first()
    if bot is None:
        if name in reserved_names() and owner.username != HOUSE:
            raise NameTakenError(name, "is reserved for a reference bot")
        return Bot.objects.create(owner=owner, name=name)
    if bot.owner_id != owner.pk:
        raise NameTakenError(name, "belongs to someone else")
    return bot


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
    """Accept a version again that was set aside. Raises SubmissionError for any other."""
    if version.state != VersionState.QUARANTINED:
        raise SubmissionError(f"{version} is not set aside")
    return _move(version, VersionState.ACCEPTED, "")


def retry_version(*, version: BotVersion) -> BotVersion:
    """Check a stuck version again. Raises SubmissionError for any other."""
    if version.state != VersionState.STUCK:
        raise SubmissionError(f"{version} is not stuck")
    return _move(version, VersionState.SUBMITTED, "", attempts=0, run_after=Now())


def pause_bot(*, bot: Bot, reason: str) -> Bot:
    """Keep a bot from entering tournaments and submitting versions. Raises SubmissionError without a reason."""
    _require(reason)
    bot.paused_reason = reason.strip()[:200]
    bot.save(update_fields=["paused_reason"])
    return bot


def lift_bot(*, bot: Bot) -> Bot:
    """End a bot's pause."""
    bot.paused_reason = ""
    bot.save(update_fields=["paused_reason"])
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
