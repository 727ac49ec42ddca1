"""Accounts."""

from __future__ import annotations

import zoneinfo
from datetime import timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.text import slugify

from tournament.players.errors import AccountError
from tournament.players.models import FORMER, HOUSE, Player, SignUp
from tournament.store.clock import read_clock

_HOUR = timedelta(hours=1)


def sign_up(
    *,
    username: str,
    password: str,
    email: str = "",
    time_zone: str = "UTC",
    address: str | None = None,
) -> Player:
    """Make an account; from the network address `address` only so many an hour.

    Raises AccountError with the messages by field.
    """
    player = Player(username=username, email=email, slug=slugify(username), time_zone=time_zone)
    errors: dict[str, list[str]] = {}
    if not player.slug:
        errors["username"] = ["The user name needs at least one letter or digit of a to z, 0 to 9."]
    elif player.slug == HOUSE or player.slug.startswith(slugify(FORMER)):
        errors["username"] = [f"The name {username} is reserved: choose another."]
    if time_zone not in zoneinfo.available_timezones():
        errors["time_zone"] = [
            f"There is no time zone {time_zone!r}: use a name such as Europe/Paris."
        ]
    try:
        validate_password(password, player)
    except ValidationError as error:
        errors["password"] = list(error.messages)
    player.set_password(password)
    try:
        player.full_clean()
    except ValidationError as error:
        messages = error.message_dict
        if "slug" in messages and "username" not in messages:
            messages["username"] = ["An account with too similar a name exists: choose another."]
        messages.pop("slug", None)
        for field, texts in messages.items():
            errors.setdefault(field, []).extend(texts)
    if errors:
        raise AccountError(errors)
    return _save(player, address)


def _save(player: Player, address: str | None) -> Player:
    try:
        with transaction.atomic():
            if address is not None:
                _count_sign_up(address)
            player.save(force_insert=True)
    except IntegrityError:  # another took the name between the check and here
        raise AccountError(
            {"username": ["An account with this or too similar a name exists: choose another."]}
        ) from None
    return player


def network_of(address: str) -> str:
    """What visitors are counted by: an IPv4 address itself, of IPv6 the first of its /64.

    Who has one address of these has all others of that network, too.
    """
    found = ip_address(address)
    if isinstance(found, IPv6Address):
        return str(ip_network((found, 64), strict=False).network_address)
    return str(found)


def _count_sign_up(address: str) -> None:
    """Note an account from the address. Raises AccountError if its network has had its share of this hour."""
    now, address = read_clock(), network_of(address)
    SignUp.objects.filter(at__lt=now - _HOUR).delete()
    recent = SignUp.objects.filter(address=address).order_by("-at")
    oldest = recent[settings.SIGN_UPS_AN_HOUR - 1 : settings.SIGN_UPS_AN_HOUR].first()
    if oldest is not None:
        message = (
            f"From your address {settings.SIGN_UPS_AN_HOUR} accounts were made within an hour, which "
            f"is the most: try again at {oldest.at + _HOUR:%H:%M} UTC."
        )
        raise AccountError({"username": [message]})
    SignUp.objects.create(address=address, at=now)


@transaction.atomic
def ensure_house() -> Player:
    """The account that owns the reference bots; nobody can log in with it."""
    player, created = Player.objects.get_or_create(username=HOUSE, defaults={"slug": HOUSE})
    if created:
        player.set_unusable_password()
        player.save(update_fields=["password"])
    return player
