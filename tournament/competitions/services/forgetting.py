"""Letting go of what a player's bots printed in matches."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from django.db import transaction
from django.db.models import QuerySet

from engine.referee import SeatLog
from tournament.competitions.models import EntryTrial, Match
from tournament.players.models import Player
from tournament.store.errors import BlobError
from tournament.store.services import put_packed, read_packed


def logs_to_forget(*, owner: Player) -> set[str]:
    """The hashes of the stored logs that hold what the owner's bots printed in matches and trials.

    What `forget_logs` keeps of others is stored anew; these blobs may be deleted then, as far as no row names them.
    """
    return {
        *_trials(owner).values_list("log_sha256", flat=True),
        *_matches(owner).values_list("logs_sha256", flat=True),
    }


def forget_logs(*, owner: Player) -> int:
    """Keep nothing of what the owner's bots printed in matches and trials; of how many rows that was.

    What other players' bots printed stays. The blobs that no row names then are still there: see `logs_to_forget`.
    Raises StoreUnavailableError.
    """
    return _trials(owner).update(log_sha256="") + sum(
        _forget(match, owner) for match in _matches(owner)
    )


def _trials(owner: Player) -> QuerySet[EntryTrial]:
    return EntryTrial.objects.filter(version__bot__owner=owner).exclude(log_sha256="")


def _matches(owner: Player) -> QuerySet[Match]:
    theirs = Match.objects.filter(pairing__entrants__entrant__bots__bot__owner=owner)
    return theirs.exclude(logs_sha256="").distinct()


@transaction.atomic
def _forget(match: Match, owner: Player) -> int:
    own = set(
        match.pairing.entrants.filter(entrant__bots__bot__owner=owner).values_list(
            "index", "entrant__bots__position"
        )
    )
    left = logs_without(match.logs_sha256, lambda log: (log.entrant, log.bot) in own)
    return Match.objects.filter(pk=match.pk, logs_sha256=match.logs_sha256).update(logs_sha256=left)


def logs_without(sha256: str, is_theirs: Callable[[SeatLog], bool]) -> str:
    """The hash of stored logs without those that are theirs; empty if none is left.

    Of logs that are lost or damaged nothing can be kept: an older backup may have them whole, and must not bring
    them back. Raises StoreUnavailableError.
    """
    try:
        logs = msgspec.json.decode(read_packed(sha256), type=tuple[SeatLog, ...])
    except BlobError:
        return ""
    left = tuple(log for log in logs if not is_theirs(log))
    return put_packed(msgspec.json.encode(left)) if left else ""
