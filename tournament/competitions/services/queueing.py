"""What staff do to matches that are not over: put one back into the queue, keep its record or let that expire."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    IN_FLIGHT,
    MATCH_TRANSITIONS,
    Attempt,
    AttemptEnding,
    Match,
    MatchState,
    Tournament,
    TournamentState,
)
from tournament.store.leases import FREE_FIELDS

REQUEUEABLE = (*IN_FLIGHT, MatchState.STUCK)
PUT_BACK = "put back into the queue by staff"


@transaction.atomic
def requeue_match(*, match: Match) -> Match:
    """Put a match back into the queue that is stuck, or that a worker has and does not get on with.

    Whoever plays it now has lost it, and its failures are counted anew. The tournament stays paused, if it is.
    Raises TournamentStateError for any other match, and in a tournament that does not run.
    """
    tournament = Tournament.objects.select_for_update().get(pk=match.tournament_id)
    if tournament.state != TournamentState.RUNNING:
        raise TournamentStateError(f"{tournament.name} is {tournament.get_state_display()}")
    match.refresh_from_db()
    before = MatchState(match.state)
    if before not in REQUEUEABLE or not MATCH_TRANSITIONS.move_row(
        match,
        MatchState.PENDING,
        fence=match.fence + 1,
        attempts=0,
        run_after=Now(),
        **FREE_FIELDS,
    ):
        raise TournamentStateError(
            f"{match} is {match.get_state_display()}: only one that is stuck, handed out or being played is put back"
        )
    Attempt.objects.filter(match=match, ending=AttemptEnding.RUNNING).update(
        ending=AttemptEnding.CANCELLED, ended_at=Now(), detail=PUT_BACK
    )
    return match


def keep_record(*, match: Match, kept: bool) -> Match:
    """Keep the record and logs of a match however old they become, or let them expire like others.

    Raises TournamentStateError for a match without a record.
    """
    if kept and not match.record_sha256:
        raise TournamentStateError(f"{match} has no record that could be kept")
    Match.objects.filter(pk=match.pk).update(is_kept=kept)
    match.is_kept = kept
    return match
