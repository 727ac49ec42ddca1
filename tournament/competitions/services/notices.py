"""Notices: what the site tells the players of a tournament, on their pages and by mail."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models.functions import Now
from django.urls import reverse

from tournament.competitions.models import Notice, Tournament
from tournament.players.models import Player
from tournament.players.services import queue_mail


def send_notice(tournament: Tournament, text: str) -> int:
    """Tell all who have a bot in a tournament, in the caller's transaction; how many those were."""
    players = Player.objects.filter(bots__entries__tournament=tournament).order_by("pk").distinct()
    return tell_players(players, tournament, text)


@transaction.atomic
def tell_players(players: Iterable[Player], tournament: Tournament, text: str) -> int:
    """Tell these players something about a tournament, by mail too if they like that; how many those were."""
    told, text = list(players), text[:500]
    Notice.objects.bulk_create(
        Notice(player=player, tournament=tournament, text=text) for player in told
    )
    queue_mail(
        told,
        subject=f"Domino Arena: {tournament.name}",
        text=text,
        path=reverse("competitions:tournament", args=[tournament.slug]),
    )
    return len(told)


def put_away_notices(*, player: Player) -> int:
    """Show a player's notices no more; how many those were."""
    return Notice.objects.filter(player=player, seen_at=None).update(seen_at=Now())
