"""What each worker last said of itself."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class WorkerReport(models.Model):
    """A worker that plays bots, as it found its machine when it started."""

    name = models.CharField(max_length=200, primary_key=True)
    """Celery's name of it: ``matches@host``."""
    host = models.CharField(max_length=200)
    level = models.CharField(max_length=20, blank=True)
    """Of the walls that hold there; empty if no bot can be held."""
    trusts_bots = models.BooleanField(default=False)
    """Whether it plays bots without a sandbox, because the operator said so."""
    findings = models.JSONField(default=list)
    """What `engine.sandbox.findings` found, the level first."""
    python = models.CharField(max_length=30)
    packages = models.JSONField(default=dict)
    """What bots may use there, with versions."""
    rules_version = models.CharField(max_length=30)
    """A tournament of another version is not played there."""
    queues = models.JSONField(default=list)
    """What it takes from; by them `tournament.store.queues.Capacity` is counted."""
    slots = models.PositiveSmallIntegerField(default=1)
    """How many matches it plays at once."""
    budget_percent = models.PositiveSmallIntegerField()
    """What it grants of the time controls' CPU time, for its speed: 200 on a machine half as fast as the reference."""
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    """Its last sign of life, by the database's clock."""

    class Meta:
        verbose_name = "worker"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
