"""Letting go of what a player's bots printed in matches."""

from __future__ import annotations

import msgspec
from django.db import transaction

from engine.referee import SeatLog
from tournament.competitions.models import EntryTrial, Match
from tournament.players.models import Player
from tournament.store.services import put_blob, read_blob


def forget_logs(*, owner: Player) -> int:
    """Keep nothing of what the owner's bots printed in matches and trials; of how many rows that was.

    What other players' bots printed stays. The blobs that no row names then are swept. Raises BlobError if logs
    cannot be read.
    """
    trials = EntryTrial.objects.filter(version__bot__owner=owner).exclude(log_sha256="")
    matches = (
        Match.objects.filter(pairing__entrants__entrant__bots__bot__owner=owner)
        .exclude(logs_sha256="")
        .distinct()
    )
    return trials.update(log_sha256="") + sum(_forget(match, owner) for match in matches)


@transaction.atomic
def _forget(match: Match, owner: Player) -> int:
    own = set(
        match.pairing.entrants.filter(entrant__bots__bot__owner=owner).values_list(
            "index", "entrant__bots__position"
        )
    )
    logs = msgspec.json.decode(read_blob(match.logs_sha256), type=tuple[SeatLog, ...])
    left = tuple(log for log in logs if (log.entrant, log.bot) not in own)
    return Match.objects.filter(pk=match.pk, logs_sha256=match.logs_sha256).update(
        logs_sha256=put_blob(msgspec.json.encode(left)) if left else ""
    )
