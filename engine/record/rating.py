"""Which matches are rated: what a record must be to say something about strength."""

from __future__ import annotations

from typing import Final

from engine.record.values import BoardsContest, Contest, MatchRecord

MIN_RATED_BOARDS: Final = 8
"""Fewer boards than that, or whole games, say too little."""


def is_rated_contest(contest: Contest) -> bool:
    """Whether matches of this contest are rated: they have 8 boards or more."""
    return isinstance(contest, BoardsContest) and contest.boards >= MIN_RATED_BOARDS


def is_ratable(record: MatchRecord) -> bool:
    """Whether a record's outcome says something about strength.

    A match that ran to its end does. One that a fault ended counts as the offenders' loss from their
    first action on (else a losing bot would crash to save its rating), unless all were at fault.
    """
    offenders = {fault.entrant for fault in record.outcome.faults}
    if not offenders:
        return True
    return len(offenders) < len(record.entrants) and all(
        has_acted(record, entrant) for entrant in offenders
    )


def has_acted(record: MatchRecord, entrant: int) -> bool:
    """Whether any action in the record is this entrant's."""
    return any(
        game.seating[int(action.split(" ", 1)[0])] == entrant
        for game in record.games
        for deal in game.deals
        for action in deal.actions
    )
