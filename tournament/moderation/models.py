"""Suspensions: fields, constraints, questions about one row."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tournament.players.models import Bot


class Suspension(models.Model):
    """That a player or a bot was suspended: by whom, why, what it meant, and when it was lifted."""

    player = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="suspensions",
    )
    bot = models.ForeignKey(
        Bot, on_delete=models.PROTECT, null=True, blank=True, related_name="suspensions"
    )
    reason = models.CharField(max_length=200)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    """Who did it; None: the site's own commands."""
    at = models.DateTimeField(db_default=Now())
    effects = models.JSONField(default=list)
    """What it did, a line each."""
    paused_bots = models.JSONField(default=list)
    """The ids of the bots that it paused; only these go on when it is lifted."""
    lifted_at = models.DateTimeField(null=True)
    lifted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        ordering = ("-pk",)
        constraints = [
            models.CheckConstraint(
                name="suspension_of_a_player_or_a_bot",
                condition=Q(player__isnull=False, bot__isnull=True)
                | Q(player__isnull=True, bot__isnull=False),
            ),
            models.CheckConstraint(name="suspension_for_a_reason", condition=~Q(reason="")),
            models.UniqueConstraint(
                fields=("player",),
                condition=Q(lifted_at__isnull=True),
                name="suspension_of_player_once",
            ),
            models.UniqueConstraint(
                fields=("bot",), condition=Q(lifted_at__isnull=True), name="suspension_of_bot_once"
            ),
        ]

    def __str__(self) -> str:
        return f"suspension of {self.player or self.bot}"
