"""Letting go of a player's scrimmages, and of what their bots printed in those of others."""

from __future__ import annotations

from django.db.models import Q

from tournament.competitions.services.forgetting import logs_without
from tournament.players.models import Player
from tournament.scrimmages.models import Batch, Scrimmage


def forget_scrimmages(*, player: Player) -> int:
    """Delete what a player has asked for, and what their bots printed for others; of how many rows that was.

    The scrimmages of others against their bots keep what their sets said. The blobs that no row names then are
    swept. Raises StoreUnavailableError.
    """
    asked = Scrimmage.objects.filter(asked_by=player)
    count = asked.count()
    asked.delete()
    theirs = Q(scrimmage__first__bot__owner=player) | Q(scrimmage__other__bot__owner=player)
    batches = Batch.objects.filter(theirs).exclude(logs_sha256="")
    return count + sum(
        _forget(batch, player)
        for batch in batches.select_related("scrimmage__first__bot", "scrimmage__other__bot")
    )


def _forget(batch: Batch, player: Player) -> int:
    versions = (batch.scrimmage.first, batch.scrimmage.other)
    left = logs_without(
        batch.logs_sha256, lambda log: versions[log.entrant].bot.owner_id == player.pk
    )
    return Batch.objects.filter(pk=batch.pk, logs_sha256=batch.logs_sha256).update(logs_sha256=left)
