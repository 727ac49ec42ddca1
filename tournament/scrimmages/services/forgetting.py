"""Letting go of a player's scrimmages, and of what their bots printed in those of others."""

from __future__ import annotations

from django.db.models import Q

from tournament.competitions.services.forgetting import logs_without
from tournament.players.models import Player
from tournament.scrimmages.models import Batch, Scrimmage


def scrimmage_blobs_to_forget(*, player: Player) -> set[str]:
    """The hashes of the records of what a player has asked for, and of the logs that hold what their bots printed.

    `forget_scrimmages` lets them go; these blobs may be deleted then, as far as no row names them.
    """
    asked = Batch.objects.filter(scrimmage__asked_by=player)
    logs = Batch.objects.filter(_theirs(player) | Q(scrimmage__asked_by=player))
    return {
        *asked.values_list("record_sha256", flat=True),
        *logs.values_list("logs_sha256", flat=True),
    } - {""}


def forget_scrimmages(*, player: Player) -> int:
    """Delete what a player has asked for, and what their bots printed for others; of how many rows that was.

    The scrimmages of others against their bots keep what their sets said. The blobs that no row names then are
    still there: see `scrimmage_blobs_to_forget`. Raises StoreUnavailableError.
    """
    asked = Scrimmage.objects.filter(asked_by=player)
    count = asked.count()
    asked.delete()
    batches = Batch.objects.filter(_theirs(player)).exclude(logs_sha256="")
    return count + sum(
        _forget(batch, player)
        for batch in batches.select_related("scrimmage__first__bot", "scrimmage__other__bot")
    )


def _theirs(player: Player) -> Q:
    return Q(scrimmage__first__bot__owner=player) | Q(scrimmage__other__bot__owner=player)


def _forget(batch: Batch, player: Player) -> int:
    versions = (batch.scrimmage.first, batch.scrimmage.other)
    left = logs_without(
        batch.logs_sha256, lambda log: versions[log.entrant].bot.owner_id == player.pk
    )
    return Batch.objects.filter(pk=batch.pk, logs_sha256=batch.logs_sha256).update(logs_sha256=left)
