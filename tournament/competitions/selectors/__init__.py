"""Questions about tournaments; answers are QuerySets or frozen rows."""

from __future__ import annotations

from tournament.competitions.selectors.entries import (
    entrants_with_bots,
    entries_of,
    preview_disqualification,
    version_that_would_play,
    versions_awaited,
)
from tournament.competitions.selectors.pages import (
    AttemptRow,
    EntrantRow,
    MatchPage,
    PairingPart,
    PairingRow,
    RoundRow,
    TournamentPage,
    TournamentProgress,
    can_enter,
    match_logs,
    match_page,
    match_record,
    matches_of_bot,
    progress_of,
    records_are_public,
    revealed_secret,
    tournament_page,
    tournaments,
)

__all__ = [
    "AttemptRow",
    "EntrantRow",
    "MatchPage",
    "PairingPart",
    "PairingRow",
    "RoundRow",
    "TournamentPage",
    "TournamentProgress",
    "can_enter",
    "entrants_with_bots",
    "entries_of",
    "match_logs",
    "match_page",
    "match_record",
    "matches_of_bot",
    "preview_disqualification",
    "progress_of",
    "records_are_public",
    "revealed_secret",
    "tournament_page",
    "tournaments",
    "version_that_would_play",
    "versions_awaited",
]
