"""What somebody does here, and what a suspension would end of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC

from django.db.models import Q, QuerySet

from tournament.competitions.models import (
    Entrant,
    EntrantState,
    InvitationState,
    PairInvitation,
    TournamentState,
)
from tournament.moderation.models import Suspension
from tournament.players.models import ApiToken, Bot, Player
from tournament.players.selectors import sessions_of
from tournament.scrimmages.models import OPEN, Scrimmage

PLAYED = (TournamentState.CLOSED, TournamentState.RUNNING)
WAITING = (TournamentState.DRAFT, TournamentState.OPEN)


@dataclass(frozen=True, slots=True)
class Subject:
    """Who is suspended: a player with all their bots, or one bot."""

    player: Player | None
    bot: Bot | None

    @property
    def owner(self) -> Player:
        """Whose it is."""
        if self.bot is not None:
            return self.bot.owner
        assert self.player is not None  # one of the two is there
        return self.player

    @property
    def bots(self) -> list[Bot]:
        """The bots that play no further."""
        if self.bot is not None:
            return [self.bot]
        return list(self.owner.bots.select_related("owner").order_by("name"))


def subject_of(row: Player | Bot) -> Subject:
    """A player or a bot as what is suspended."""
    return Subject(None, row) if isinstance(row, Bot) else Subject(row, None)


def why_closed(player: Player) -> str:
    """Why an account that is closed is so, for its player: since when it is suspended, and the reason."""
    suspension = Suspension.objects.filter(player=player, lifted_at=None).first()
    if suspension is None:
        return "This account is closed: ask those who run this site."
    return (
        f"This account has been suspended since {suspension.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC: "
        f"{suspension.reason}"
    )


def living_tokens(player: Player) -> QuerySet[ApiToken]:
    """The tokens of a player that are not revoked."""
    return player.tokens.filter(revoked_at=None)


def entries_in(states: Sequence[TournamentState], bots: Sequence[Bot]) -> list[Entrant]:
    """The entrants with these bots that are not out, in tournaments in these states; by tournament."""
    rows = Entrant.objects.filter(
        bots__bot__in=bots, state=EntrantState.ACTIVE, tournament__state__in=states
    )
    return list(rows.select_related("tournament").distinct().order_by("tournament", "pk"))


def open_scrimmages(player: Player | None, bots: Sequence[Bot]) -> QuerySet[Scrimmage]:
    """The open scrimmages that a player has asked for, or in which one of the bots plays."""
    theirs = Q(first__bot__in=bots) | Q(other__bot__in=bots)
    if player is not None:
        theirs |= Q(asked_by=player)
    return Scrimmage.objects.filter(theirs, state__in=OPEN).order_by("pk")


def open_invitations(bots: Sequence[Bot]) -> QuerySet[PairInvitation]:
    """The invitations of and to bots that nobody has answered."""
    return PairInvitation.objects.filter(
        Q(bot__in=bots) | Q(invited__in=bots), state=InvitationState.OPEN
    ).select_related("tournament", "bot__owner", "invited__owner")


def suspension_preview(row: Player | Bot) -> list[str]:
    """What a suspension would do now, a line each."""
    whom = subject_of(row)
    bots = whom.bots
    lines = [f"{bot.name} is paused" for bot in bots if not bot.paused_reason]
    lines += map(_spell_entry, entries_in(PLAYED, bots))
    lines += [
        f"{entrant.tournament.name}, open: {entrant.name} stays entered, and plays if this is lifted before "
        "the close"
        for entrant in entries_in(WAITING, bots)
    ]
    lines += [f"{invitation} ends" for invitation in map(str, open_invitations(bots))]
    lines += [f"{scrimmage} is cancelled" for scrimmage in open_scrimmages(whom.player, bots)]
    if whom.player is not None:
        lines += [
            f"the token {token.name or token.prefix} is revoked"
            for token in living_tokens(whom.player)
        ]
        sessions = len(sessions_of(whom.player))
        lines.append(
            f"{whom.player.username} is logged out ({sessions} sessions) and cannot log in"
        )
    return lines


def _spell_entry(entrant: Entrant) -> str:
    waiting = entrant.pairings.filter(pairing__decided_by="").count()
    matches = f"; {waiting} of its matches are cancelled" if waiting else ""
    state = entrant.tournament.get_state_display()
    return f"{entrant.tournament.name}, {state}: {entrant.name} is disqualified{matches}"
