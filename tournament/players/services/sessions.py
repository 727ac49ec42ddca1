"""Logging somebody out everywhere."""

from __future__ import annotations

from django.contrib.sessions.models import Session

from tournament.players.models import Player
from tournament.players.selectors import sessions_of


def end_sessions(*, player: Player) -> int:
    """Log a player out everywhere; of how many sessions that was."""
    return Session.objects.filter(pk__in=sessions_of(player)).delete()[0]
