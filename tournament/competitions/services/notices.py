"""Notices: what the site tells the players of a tournament, on their pages."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models.functions import Now

from tournament.competitions.models import Notice, Tournament
from tournament.players.models import Player


def send_notice(tournament: Tournament, text: str) -> int:
    """Tell all who have a bot in a tournament, in the caller's transaction; how many those were."""
    players = Player.objects.filter(bots__entries__tournament=tournament).order_by("pk").distinct()
    return tell_players(players, tournament, text)


def tell_players(players: Iterable[Player], tournament: Tournament, text: str) -> int:
    """Tell these players something about a tournament; how many those were."""
    return len(
        Notice.objects.bulk_create(
            Notice(player=player, tournament=tournament, text=text[:500]) for player in players
        )
    )


def put_away_notices(*, player: Player) -> int:
    """Show a player's notices no more; how many those were."""
    return Notice.objects.filter(player=player, seen_at=None).update(seen_at=Now())
