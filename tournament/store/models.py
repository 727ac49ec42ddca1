"""What the site knows of itself: when a thing that should happen again and again last did, and how much was counted."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Pulse(models.Model):
    """One beating thing, e.g. ``dispatch``, and its last beat by the database's clock."""

    name = models.CharField(max_length=100, primary_key=True)
    at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name


class Tally(models.Model):
    """A number that is counted up, or measured now and then: one value of a metric."""

    name = models.CharField(max_length=60)
    """Of the metric: ``attempts``."""
    label = models.CharField(max_length=60, blank=True, default="")
    """Which of its values: ``recorded``; empty if it has one only."""
    value = models.FloatField(default=0)

    class Meta:
        verbose_name_plural = "tallies"
        constraints = [models.UniqueConstraint("name", "label", name="tally_unique")]

    def __str__(self) -> str:
        return f"{self.name} {self.label}".rstrip()
