"""Fields for what the site does not write itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    _TextField = models.TextField[str, str]
else:
    _TextField = models.TextField  # it takes no type arguments at run time


class ReportField(_TextField):
    """What errors, bots and other programs say: a NUL in it, which PostgreSQL takes in no text, becomes U+FFFD.

    Else the note of a failure would fail itself. To migrations it is Django's own field.
    """

    def get_prep_value(self, value: Any) -> Any:
        """The text as databases take it."""
        text = super().get_prep_value(value)
        return text.replace("\0", "\ufffd") if isinstance(text, str) else text

    def deconstruct(self) -> Any:
        """As of a TextField."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.TextField", arguments, options
