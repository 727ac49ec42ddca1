"""Passwords that are forgotten: a link, sent to the confirmed address alone, sets another.

Asking notes the address, whosever it is, and no more; who sends the mail finds out whether an account has it. So neither
the answer nor the time that it takes tells a visitor who has an account here.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from tournament.players.models import MailKind, OutgoingMail, Player, ResetRequest
from tournament.players.services.sessions import end_sessions
from tournament.players.services.tokens import revoke_tokens
from tournament.store.clock import read_clock

BETWEEN_LINKS = timedelta(minutes=10)
"""An address is sent a link at most so often, however many ask."""


def ask_for_password(*, email: str) -> None:
    """Note that somebody wants another password for the account of an address, if there is one."""
    row = ResetRequest(email=email.lower(), at=read_clock())
    ResetRequest.objects.bulk_create([row], ignore_conflicts=True)


def queue_links(now: datetime) -> None:
    """Queue the mails that were asked for; forget who asked longer ago than `BETWEEN_LINKS`."""
    for request in ResetRequest.objects.filter(is_answered=False).order_by("pk")[:100]:
        with transaction.atomic():
            if ResetRequest.objects.filter(pk=request.pk, is_answered=False).update(
                is_answered=True
            ):
                OutgoingMail.objects.bulk_create(
                    OutgoingMail(
                        player=player,
                        kind=MailKind.PASSWORD,
                        subject="Domino Arena: another password",
                        run_after=now,
                    )
                    for player in Player.objects.filter(confirmed_email__iexact=request.email)
                    if may_reset(player)
                )
    ResetRequest.objects.filter(at__lt=now - BETWEEN_LINKS).delete()


def may_reset(player: Player) -> bool:
    """Whether a link may set the password of this account: not where no mail is confirmed, nor while it is shut."""
    return player.is_active and player.has_confirmed_mail and player.has_usable_password()


def reset_path(player: Player) -> str:
    """The address by which the password can be set: once, for `PASSWORD_RESET_TIMEOUT` seconds, until they log in."""
    uid = urlsafe_base64_encode(force_bytes(player.pk))
    return reverse("players:set-password", args=[uid, default_token_generator.make_token(player)])


@transaction.atomic
def reset_password(*, player: Player, token: str, password: str) -> int | None:
    """Set the password by a link's token, log out everywhere and revoke all tokens; how many tokens that were.

    None if the link is not good, or not any more: of two at once only one sets it.
    """
    player = Player.objects.select_for_update().get(pk=player.pk)
    if not may_reset(player) or not default_token_generator.check_token(player, token):
        return None
    player.set_password(password)
    player.save(update_fields=["password"])
    end_sessions(player=player)
    return revoke_tokens(player=player)
