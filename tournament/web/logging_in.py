"""Who may log in, and what is told to who may not: after the right password, since when and why an account is closed.

After a wrong one nothing is told, and it takes as long, so nobody else finds out.
"""

from __future__ import annotations

from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError

from tournament.moderation.selectors import why_closed
from tournament.players.models import Player


class PasswordBackend(ModelBackend):
    """Knows who somebody is by their password, also whose account is closed; the forms below turn them away.

    A session of theirs is nobody's.
    """

    def user_can_authenticate(self, user: Player | AnonymousUser | None) -> bool:
        """Whether the right password lets a form know them: always, so that it can tell why it refuses."""
        return isinstance(user, Player)

    def get_user(self, user_id: Any) -> Player | None:
        """Whose session it is; None if their account is closed."""
        user = super().get_user(user_id)
        return user if user is not None and user.is_active else None


class LogInForm(AuthenticationForm):
    """Of the site's own page."""

    def confirm_login_allowed(self, user: Player) -> None:
        """Raise ValidationError for an account that is closed, with the reason."""
        _refuse_closed(user)


class StaffLogInForm(AdminAuthenticationForm):
    """Of the admin's page."""

    def confirm_login_allowed(self, user: Player) -> None:
        """Raise ValidationError for an account that is closed, with the reason, and for who is no staff."""
        _refuse_closed(user)
        super().confirm_login_allowed(user)


def _refuse_closed(user: Player) -> None:
    if not user.is_active:
        raise ValidationError(why_closed(user), code="inactive")
