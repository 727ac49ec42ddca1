"""Notices: what the site tells the players of a tournament, on their pages and by mail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from django.db import transaction
from django.db.models.functions import Now
from django.urls import reverse

from tournament.competitions.models import (
    DecidedBy,
    Entrant,
    EntrantState,
    Notice,
    Pairing,
    PairingEntrant,
    Ruling,
    RulingKind,
    SupersededMatch,
    Tournament,
)
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


def tell_of_ruling(ruling: Ruling) -> int:
    """Tell those whose matches an organiser's decision concerns; how many those were.

    Of sealed results nobody is told: the ruling is shown with them.
    """
    if ruling.round is not None and ruling.round.published_at is None:
        return 0
    players = Player.objects.filter(
        bots__entries__tournament=ruling.tournament_id,
        bots__entries__entrant__name__in=_concerned(ruling),
    )
    return tell_players(players.order_by("pk").distinct(), ruling.tournament, _spell_ruling(ruling))


def _concerned(ruling: Ruling) -> set[str]:
    """The names of the entrants whose matches a ruling changes or takes back."""
    if ruling.kind == RulingKind.DISQUALIFIED:
        return {ruling.subject}
    parts = PairingEntrant.objects.filter(
        pairing__tournament=ruling.tournament_id, pairing__key=ruling.subject
    )
    taken_back = SupersededMatch.objects.filter(ruling=ruling).values_list("entrants", flat=True)
    return set(parts.values_list("entrant__name", flat=True)) | {
        entrant["name"] for entrants in taken_back for entrant in entrants
    }


def _spell_ruling(ruling: Ruling) -> str:
    if ruling.kind == RulingKind.DISQUALIFIED:
        return f"{ruling.subject} plays no further: {ruling.reason}; {ruling.after}"
    was = f" (before: {ruling.before}; now: {ruling.after})" if ruling.after else ""
    return f"{ruling.subject}: {ruling.get_kind_display()}{was}: {ruling.reason}"


def walkovers_against(entrant: Entrant) -> Iterable[Pairing]:
    """The published pairings that were decided because an entrant does not play any more."""
    return Pairing.objects.filter(
        entrants__entrant=entrant,
        decided_by=DecidedBy.WALKOVER,
        round__published_at__isnull=False,
    )


def tell_of_walkovers(entrant: Entrant, pairings: Collection[Pairing]) -> int:
    """Tell those who still play that they need not meet an entrant, who plays no further; how many those were."""
    parts = (
        PairingEntrant.objects.filter(
            pairing__in=pairings, entrant__state=EntrantState.ACTIVE, place=1
        )
        .select_related("entrant__tournament", "pairing")
        .order_by("entrant_id", "pairing__round__stage__index", "pairing__round__index")
    )
    keys: defaultdict[Entrant, list[str]] = defaultdict(list)
    for part in parts:
        keys[part.entrant].append(part.pairing.key)
    why = f"{entrant.name} {_TAKEN_OUT[EntrantState(entrant.state)]}"
    return sum(
        tell_players(
            Player.objects.filter(bots__entries__entrant=opponent).order_by("pk").distinct(),
            opponent.tournament,
            f"{', '.join(each)}: a walkover for {opponent.name}, as {why}",
        )
        for opponent, each in keys.items()
    )


_TAKEN_OUT = {
    EntrantState.WITHDRAWN: "has withdrawn",
    EntrantState.DISQUALIFIED: "is disqualified",
}


def put_away_notices(*, player: Player) -> int:
    """Show a player's notices no more; how many those were."""
    return Notice.objects.filter(player=player, seen_at=None).update(seen_at=Now())
