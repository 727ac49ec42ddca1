"""Accounts."""

from __future__ import annotations

import zoneinfo

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.text import slugify

from tournament.players.errors import AccountError
from tournament.players.models import HOUSE, Player


def sign_up(*, username: str, password: str, email: str = "", time_zone: str = "UTC") -> Player:
    """Make an account. Raises AccountError with the messages by field."""
    player = Player(username=username, email=email, slug=slugify(username), time_zone=time_zone)
    errors: dict[str, list[str]] = {}
    if not player.slug:
        errors["username"] = ["The user name needs at least one letter or digit of a to z, 0 to 9."]
    elif player.slug == HOUSE:
        errors["username"] = [f"The name {HOUSE} is reserved: choose another."]
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
    return _save(player)


def _save(player: Player) -> Player:
    try:
        with transaction.atomic():
            player.save(force_insert=True)
    except IntegrityError:  # another took the name between the check and here
        raise AccountError(
            {"username": ["An account with this or too similar a name exists: choose another."]}
        ) from None
    return player


@transaction.atomic
def ensure_house() -> Player:
    """The account that owns the reference bots; nobody can log in with it."""
    player, created = Player.objects.get_or_create(username=HOUSE, defaults={"slug": HOUSE})
    if created:
        player.set_unusable_password()
        player.save(update_fields=["password"])
    return player
