"""The digests of finished tournaments' bundles, noted once all of a tournament is public."""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Exists, OuterRef

from engine.errors import ArenaError
from tournament.competitions.models import Round, Tournament, TournamentState
from tournament.competitions.selectors.bundles import tournament_bundle, why_no_bundle
from tournament.store.services import guard_each

logger = logging.getLogger(__name__)

NONE = "-"
"""Stands for the digest of a bundle that cannot be made: the log of dispatch tells why."""
AT_ONCE = 3
"""So many are noted in one run of dispatch: one of ten thousand matches takes some seconds."""


def note_bundle_digests() -> int:
    """Note the digests that are missing, of a few tournaments at a time; of how many."""
    sealed = Round.objects.filter(stage__tournament=OuterRef("pk"), published_at__isnull=True)
    missing = Tournament.objects.filter(
        ~Exists(sealed), state=TournamentState.FINISHED, bundle_digest=""
    )
    return guard_each(missing.order_by("-pk")[:AT_ONCE], _note)


@transaction.atomic
def _note(tournament: Tournament) -> bool:
    """Under the tournament's lock, so that no ruling comes between."""
    tournament = Tournament.objects.select_for_update().get(pk=tournament.pk)
    if why_no_bundle(tournament):
        return False
    try:
        digest = tournament_bundle(tournament).digest
    except ArenaError:
        logger.exception("there is no bundle of %s", tournament.slug)
        digest = NONE
    return bool(Tournament.objects.filter(pk=tournament.pk).update(bundle_digest=digest))
