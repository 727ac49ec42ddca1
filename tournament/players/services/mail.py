"""Mail to players: what they are told goes out to them, too, if the site sends mail and they like it.

A mail is a row, written in the transaction of what it tells of, so that what was taken back tells nobody. Later
`send_due_mail` sends it outside of any transaction and deletes it. If a process dies between the two it is sent twice.

Nobody gets mail at an address that is not known to be theirs: a player confirms it by a link that is sent there, and
each mail has a link that ends it without logging in.
"""

from __future__ import annotations

import logging
import smtplib
import time
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.core import signing
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db import transaction
from django.db.models import F
from django.urls import reverse

from tournament.players.errors import AccountError
from tournament.players.models import MailKind, OutgoingMail, Player, ResetRequest
from tournament.players.services.passwords import may_reset, queue_links, reset_path
from tournament.store.clock import read_clock

logger = logging.getLogger(__name__)

RETRY_AFTER = timedelta(minutes=10)
GIVE_UP_AFTER = timedelta(days=3)
A_DAY = timedelta(days=1)
BETWEEN_CONFIRMATIONS = timedelta(minutes=10)
"""An account can make the site write to a stranger at most so often."""
ASKED_A_DAY = 3
"""So many accounts may have one address asked within a day; further ones wait. Whose it is did perhaps none of it."""
LINK_DAYS = 7
"""For how long the link that confirms an address is good."""
SECONDS_AT_ONCE = 2.0
"""After so long sending stops until the next ring: the process that dispatches does it."""
_AUTOMATIC = {"Auto-Submitted": "auto-generated"}
"""No out-of-office answers, please (RFC 3834)."""
_CONFIRM, _STOP = "arena.mail.confirm", "arena.mail.stop"


def queue_mail(players: Iterable[Player], *, subject: str, text: str, path: str) -> None:
    """Mail these players a text about the page at `path`, those who take mail; in the caller's transaction.

    Hosts that play bots do it, too, and they know no mail server. On a site that has none nobody has confirmed an address.
    """
    OutgoingMail.objects.bulk_create(
        OutgoingMail(player=player, subject=subject[:200], text=text, path=path)
        for player in players
        if player.takes_mail
    )


@transaction.atomic
def ask_to_confirm(*, player: Player) -> bool:
    """Mail a link to an address that is not confirmed; False if there is none, or the site sends no mail."""
    player = Player.objects.select_for_update().get(pk=player.pk)
    waits, _ = OutgoingMail.objects.filter(player=player, kind=MailKind.CONFIRMATION).delete()
    if not settings.ARENA_SENDS_MAIL or not player.email or player.has_confirmed_mail:
        return False
    due = now = read_clock()
    if player.confirmation_at is not None:
        pause = timedelta() if waits else BETWEEN_CONFIRMATIONS
        due = max(now, player.confirmation_at + pause)
    due = max(due, _free_from(player, now))
    OutgoingMail.objects.create(
        player=player,
        kind=MailKind.CONFIRMATION,
        subject="Domino Arena: confirm your address",
        path="",
        run_after=due,
    )
    Player.objects.filter(pk=player.pk).update(confirmation_at=due)
    return True


def _free_from(player: Player, now: datetime) -> datetime:
    """From when on a player's address, which others may have given as theirs, can be asked."""
    others = Player.objects.filter(email__iexact=player.email, confirmation_at__gt=now - A_DAY)
    times = others.exclude(pk=player.pk).order_by("-confirmation_at")
    asked = times.values_list("confirmation_at", flat=True)[ASKED_A_DAY - 1 : ASKED_A_DAY].first()
    return now if asked is None else asked + A_DAY


def confirm_mail(*, token: str) -> Player:
    """The player whose address the link confirms. Raises AccountError for a link that is none, or none any more."""
    player = read_link(token=token)
    if not player.has_confirmed_mail:
        Player.objects.filter(pk=player.pk, email=player.email).update(confirmed_email=F("email"))
    return player


def read_link(*, token: str) -> Player:
    """Whose address a link would confirm. Raises AccountError."""
    try:
        pk, address = signing.loads(token, salt=_CONFIRM, max_age=timedelta(days=LINK_DAYS))
    except signing.SignatureExpired:
        message = f"This link is older than {LINK_DAYS} days: have a new one sent from your account's page."
        raise AccountError({"email": [message]}) from None
    except signing.BadSignature:
        raise AccountError({"email": ["This link is not whole: copy all of it."]}) from None
    player = Player.objects.filter(pk=pk, email=address, is_active=True).first()
    if player is None or not address:
        raise AccountError({"email": ["The account has another address by now."]})
    return player


def stop_mail(*, token: str) -> Player | None:
    """Send no more mail to whom the link was sent; None if they are not to be found any more. Raises AccountError."""
    try:
        pk = signing.loads(token, salt=_STOP)
    except signing.BadSignature:
        raise AccountError({"email": ["This link is not whole: copy all of it."]}) from None
    player = Player.objects.filter(pk=pk).first()
    if player is not None:
        with transaction.atomic():
            Player.objects.filter(pk=pk).update(wants_mail=False)
            OutgoingMail.objects.filter(player=player).delete()
    return player


def send_due_mail() -> int:
    """Send what is due; how many mails went. What cannot be sent is tried again, for three days.

    Several at once send each mail once. One that the server refuses for good is dropped with a warning.
    """
    now = read_clock()
    drop_old_mail(now)
    queue_links(now)
    due = list(
        OutgoingMail.objects.filter(run_after__lte=now)
        .order_by("run_after", "pk")
        .values_list("pk", flat=True)[:100]
    )
    if not due:
        return 0
    sent, until = 0, time.monotonic() + SECONDS_AT_ONCE
    connection = get_connection()
    try:
        connection.open()
        for pk in due:
            if time.monotonic() > until:
                break
            sent += _send(pk, now, connection)
    except (smtplib.SMTPException, OSError) as error:
        # All wait: a server that is away would hold up each try by its patience.
        OutgoingMail.objects.filter(run_after__lte=now).update(run_after=now + RETRY_AFTER)
        logger.warning("mail waits for %s: %s", settings.EMAIL_HOST, error)
    finally:
        _close(connection)
    return sent


def drop_old_mail(now: datetime) -> None:
    """Give up what could not be sent for three days, since the server was away or is no more set."""
    ResetRequest.objects.filter(at__lt=now - GIVE_UP_AFTER).delete()
    lost, _ = OutgoingMail.objects.filter(created_at__lt=now - GIVE_UP_AFTER).delete()
    if lost:
        logger.warning("%d mails could not be sent for three days and are dropped", lost)


def _send(pk: int, now: datetime, connection: BaseEmailBackend) -> bool:
    due = OutgoingMail.objects.filter(pk=pk, run_after__lte=now)
    if not due.update(run_after=now + RETRY_AFTER):
        return False  # another process sends it, or nobody wants it any more
    mail = OutgoingMail.objects.select_related("player").get(pk=pk)
    message = _compose(mail)
    try:
        if message is not None:
            message.connection = connection
            message.send()
    except (smtplib.SMTPRecipientsRefused, smtplib.SMTPDataError, ValueError) as error:
        logger.warning("mail %d to player %d is refused: %s", pk, mail.player_id, _codes(error))
        if not _is_for_good(error):
            return False  # tried again
        message = None
    mail.delete()
    return message is not None


_FOR_GOOD = 500
"""From this answer of a mail server on it is no use to try again (RFC 5321, 4.2.1)."""


def _codes(error: smtplib.SMTPException | ValueError) -> list[int]:
    """What the server answered; nothing of an address that is none, which never comes so far."""
    match error:
        case smtplib.SMTPRecipientsRefused():
            return [code for code, _ in error.recipients.values()]
        case smtplib.SMTPDataError():
            return [error.smtp_code]
    return []


def _is_for_good(error: smtplib.SMTPException | ValueError) -> bool:
    return all(code >= _FOR_GOOD for code in _codes(error))


def _compose(mail: OutgoingMail) -> EmailMessage | None:
    """The mail as it goes out; None if its player does not take it any more."""
    player = mail.player
    if mail.kind == MailKind.CONFIRMATION:
        if not (player.is_active and player.email) or player.has_confirmed_mail:
            return None
        token = signing.dumps([player.pk, player.email], salt=_CONFIRM)
        text = (
            f"{player.username} gave this address as theirs on the Domino Arena at {settings.ARENA_SITE}. If that is you, "
            f"confirm it, and you get the notices of your tournaments here:\n\n{_link('players:confirm-mail', token)}\n\n"
            f"The link is good for {LINK_DAYS} days. If it is not you, do nothing: no notices will come.\n"
        )
        return EmailMessage(_one_line(mail.subject), text, to=[player.email], headers=_AUTOMATIC)
    if mail.kind == MailKind.PASSWORD:
        if not may_reset(player):
            return None
        text = (
            f"Somebody asked for another password for {player.username} on the Domino Arena at {settings.ARENA_SITE}. If that "
            f"was you, choose one here:\n\n{settings.ARENA_SITE}{reset_path(player)}\n\n"
            f"The link is good once, for {settings.PASSWORD_RESET_TIMEOUT // 3600} hours, until the next login. If it was not "
            "you, do nothing: the password stays as it is.\n"
        )
        return EmailMessage(_one_line(mail.subject), text, to=[player.email], headers=_AUTOMATIC)
    if not player.takes_mail:
        return None
    stop = _link("players:stop-mail", signing.dumps(player.pk, salt=_STOP))
    text = f"{mail.text}\n\n{settings.ARENA_SITE}{mail.path}\n\n-- \nNo more mail of this kind: {stop}\n"
    headers = {
        "List-Unsubscribe": f"<{stop}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",  # RFC 8058
        **_AUTOMATIC,
    }
    return EmailMessage(_one_line(mail.subject), text, to=[player.email], headers=headers)


def _link(route: str, token: str) -> str:
    return f"{settings.ARENA_SITE}{reverse(route, args=[token])}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _close(connection: BaseEmailBackend) -> None:
    try:
        connection.close()
    except (smtplib.SMTPException, OSError) as error:
        logger.info("the mail server did not say good-bye: %s", error)
