"""What people type in about accounts, tokens and wheels; the services judge what it means."""

from __future__ import annotations

import functools
import zoneinfo
from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import PasswordChangeForm, PasswordResetForm
from django.core.files.uploadedfile import UploadedFile

from engine.wheels import too_large
from tournament.players.errors import AccountError
from tournament.players.models import Player, TokenScope
from tournament.players.services import ask_for_password, ask_to_confirm, sign_up

_FIELDS = {"password": "password1"}


@functools.cache
def time_zone_choices() -> Sequence[tuple[str, str]]:
    """UTC, then every zone that has a region and a city. Read once: each zone is a file."""
    names = sorted(zone for zone in zoneinfo.available_timezones() if "/" in zone)
    zones = [name for name in names if not name.startswith(("Etc/", "posix/"))]
    return (("UTC", "UTC"), *((name, name.replace("_", " ")) for name in zones))


class SignUpForm(forms.Form):
    """A new account."""

    username = forms.CharField(
        max_length=150,
        help_text="Shown beside your bots. Letters, digits and @ . + - _",
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    email = forms.EmailField(
        required=False,
        help_text="Shown to nobody.",
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )
    password1 = forms.CharField(
        label="Password",
        strip=False,
        help_text="At least 8 characters, not only digits, not a common one.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    password2 = forms.CharField(
        label="Password again",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def clean_password2(self) -> str:
        """The second password, once it is found equal to the first."""
        second: str = self.cleaned_data["password2"]
        if self.cleaned_data.get("password1") not in {None, second}:
            raise forms.ValidationError("The two passwords differ: type the same one twice.")
        return second

    def save(self, address: str | None) -> Player | None:
        """The account, made from a network address; None if it cannot be, with the reasons at their fields."""
        try:
            player = sign_up(
                username=self.cleaned_data["username"],
                email=self.cleaned_data["email"],
                password=self.cleaned_data["password1"],
                address=address,
            )
        except AccountError as error:
            for field, messages in error.fields.items():
                for message in messages:
                    name = _FIELDS.get(field, field)
                    self.add_error(name if name in self.fields else None, message)
            return None
        ask_to_confirm(player=player)
        return player


class AccountForm(forms.ModelForm):  # type: ignore[type-arg] # generic for mypy only
    """What a player may change of their account."""

    time_zone = forms.ChoiceField(
        choices=time_zone_choices, help_text="Times are shown in UTC and in this zone."
    )

    class Meta:
        """Which fields."""

        model = Player
        fields = ("time_zone", "email", "wants_mail")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        address = self.fields["email"]
        if not settings.ARENA_SENDS_MAIL:
            del self.fields["wants_mail"]
            address.help_text = "Shown to nobody; for the operators of this site."
        elif self.instance.has_confirmed_mail:
            address.help_text = "Shown to nobody. It is confirmed."
        else:
            address.help_text = (
                "Shown to nobody. A link is sent there that confirms it; before, nothing else is."
            )


class PasswordForm(PasswordChangeForm):
    """Another password, by whoever knows the old one."""

    revoke_tokens = forms.BooleanField(
        label="Revoke my API tokens, too",
        required=False,
        initial=True,
        help_text="Programs that use them need new ones. Leave it if nobody else can have known the old password.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["old_password"].widget.attrs["autofocus"]  # the page begins above it


class ForgottenForm(PasswordResetForm):
    """The address of an account whose password is forgotten."""

    def save(self, *_args: Any, **_kwargs: Any) -> None:
        """Note it; Django's own would look for the account now, and write to it, which takes longer if there is one."""
        ask_for_password(email=self.cleaned_data["email"])


class TokenForm(forms.Form):
    """A new token."""

    name = forms.CharField(max_length=60, help_text="What it is for, e.g. “laptop”.")
    scope = forms.ChoiceField(label="It may", choices=TokenScope.choices, initial=TokenScope.SUBMIT)
    days = forms.TypedChoiceField(
        label="It lives",
        coerce=int,
        initial=90,
        choices=[(30, "30 days"), (90, "90 days"), (365, "a year")],
    )


class UploadForm(forms.Form):
    """A wheel."""

    wheel = forms.FileField(
        help_text="The .whl file that “arena pack” or any build tool makes.",
        widget=forms.ClearableFileInput(attrs={"accept": ".whl"}),
    )

    def clean_wheel(self) -> bytes:
        """The bytes of the wheel."""
        file: UploadedFile = self.cleaned_data["wheel"]
        name = file.name or ""
        if not name.endswith(".whl"):
            raise forms.ValidationError(
                f"{name} is no wheel: its name must end in .whl (“arena pack” makes one)."
            )
        if (file.size or 0) > settings.WHEEL_MAX_BYTES:
            raise forms.ValidationError(f"{name}: {too_large(settings.WHEEL_MAX_BYTES)}.")
        data: bytes = file.read()
        return data


class ConfirmForm(forms.Form):
    """Nothing but the button."""


class ReasonForm(forms.Form):
    """Why something is done to a player's bot or a tournament."""

    reason = forms.CharField(
        max_length=200,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="The players concerned will read it.",
    )
