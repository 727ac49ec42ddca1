"""Ending what somebody does here: what a suspension and an erasure have in common."""

from __future__ import annotations

from collections.abc import Sequence

from tournament.competitions import services as competitions
from tournament.moderation.selectors import open_invitations, open_scrimmages
from tournament.players import services as players
from tournament.players.models import Bot, Player
from tournament.scrimmages import services as scrimmages


def end_access(player: Player) -> None:
    """Revoke all tokens and log the player out everywhere."""
    players.revoke_tokens(player=player)
    players.end_sessions(player=player)


def cancel_scrimmages(*, player: Player | None, bots: Sequence[Bot], reason: str) -> None:
    """End the open scrimmages of a player or of bots; what their sets say so far stays."""
    for scrimmage in open_scrimmages(player, bots):
        scrimmages.cancel_scrimmage(scrimmage=scrimmage, reason=reason)


def answer_invitations(bots: Sequence[Bot]) -> None:
    """Take back the open invitations of bots, and decline those to them."""
    chosen = {bot.pk for bot in bots}
    for invitation in open_invitations(bots):
        if invitation.bot_id in chosen:
            competitions.withdraw_invitation(invitation=invitation, by=invitation.bot.owner)
        else:
            competitions.decline_invitation(invitation=invitation, by=invitation.invited.owner)
