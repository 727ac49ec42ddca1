"""Letting go of a player's scrimmages, and of what their bots printed in those of others."""

from __future__ import annotations

import msgspec
from django.db.models import Q

from engine.referee import SeatLog
from tournament.players.models import Player
from tournament.scrimmages.models import Batch, Scrimmage
from tournament.store.services import put_blob, read_blob


def forget_scrimmages(*, player: Player) -> int:
    """Delete what a player has asked for, and what their bots printed for others; of how many rows that was.

    The scrimmages of others against their bots keep what their sets said. The blobs that no row names then are
    swept. Raises BlobError if logs cannot be read.
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
    logs = msgspec.json.decode(read_blob(batch.logs_sha256), type=tuple[SeatLog, ...])
    left = tuple(log for log in logs if versions[log.entrant].bot.owner_id != player.pk)
    return Batch.objects.filter(pk=batch.pk, logs_sha256=batch.logs_sha256).update(
        logs_sha256=put_blob(msgspec.json.encode(left)) if left else ""
    )
