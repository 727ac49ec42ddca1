"""The pulses of the site: when a thing that should happen again and again last happened."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Pulse(models.Model):
    """One beating thing, e.g. ``dispatch``, and its last beat by the database's clock."""

    name = models.CharField(max_length=100, primary_key=True)
    at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name
