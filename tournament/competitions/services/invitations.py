"""Invitations: a player asks the owner of another bot to enter a tournament of pairs together.

Nobody is entered without having agreed. An invitation is answered until entries close; it holds a place
among its sender's own bots, but none of the tournament's.
"""

from __future__ import annotations

from collections.abc import Callable

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from tournament.competitions.errors import EntryError, TournamentStateError
from tournament.competitions.models import (
    INVITATION_TRANSITIONS,
    Entrant,
    InvitationState,
    Notice,
    PairInvitation,
    Tournament,
    TournamentState,
)
from tournament.competitions.services.entries import check_bot, check_label, enter_agreed
from tournament.competitions.services.notices import tell_players
from tournament.leaderboards.models import PoolKind
from tournament.players.models import Bot, Player
from tournament.store.clock import read_clock

MOST_OPEN = 10
"""So many invitations of a player may be open at once in a tournament."""
MOST_SENT = 30
"""So many a player may send in a tournament in all, the ones taken back among them: each tells others something."""


@transaction.atomic
def invite_partner(
    *, tournament: Tournament, bot: Bot, invited: Bot, by: Player, name: str = ""
) -> PairInvitation:
    """Ask the owner of `invited` to enter it with one's own `bot`, which takes the first seat.

    The owner gets a notice. Raises EntryError if that pair could not enter as things stand, and
    TournamentStateError when entries are not open.
    """
    tournament = _lock_open(tournament)
    if tournament.kind != PoolKind.PAIR:
        raise EntryError(f"{tournament.name} is not for pairs: enter your bot by itself")
    if bot.owner_id != by.pk:
        raise EntryError(f"{bot.name} is not yours")
    if invited.owner_id == by.pk:
        raise EntryError("both bots are yours: enter them as a pair, without an invitation")
    check_bot(tournament, bot)
    check_bot(tournament, invited)
    label = check_label(tournament, [bot, invited], name)
    _check_no_other(tournament, bot, invited, by)
    try:
        with transaction.atomic():
            invitation = PairInvitation.objects.create(
                tournament=tournament, bot=bot, invited=invited, name=name.strip()
            )
    except IntegrityError:
        raise EntryError(f"you have invited {invited.name} already: wait for the answer") from None
    tell_players(
        [invited.owner],
        tournament,
        f"{_spell_question(invitation)}, as {label}: accept or decline on the tournament's page",
    )
    return invitation


def _spell_question(row: PairInvitation) -> str:
    """What its owner is asked, as their notice begins."""
    return (
        f"{row.bot.owner.username} invites your bot {row.invited.name} to enter {row.tournament.name} "
        f"together with {row.bot.name}"
    )


def _put_away_question(row: PairInvitation) -> None:
    """Show the notice of an invitation that is no longer open no more."""
    Notice.objects.filter(
        player=row.invited.owner_id,
        tournament=row.tournament_id,
        seen_at=None,
        text__startswith=f"{_spell_question(row)}, as ",
    ).update(seen_at=Now())


def _check_no_other(tournament: Tournament, bot: Bot, invited: Bot, by: Player) -> None:
    pending = PairInvitation.objects.filter(tournament=tournament, state=InvitationState.OPEN)
    if pending.filter(bot=invited, invited=bot).exists():
        raise EntryError(f"{invited.name} has invited {bot.name} already: accept that")
    mine = pending.filter(bot__owner=by)
    if mine.count() >= MOST_OPEN:
        raise EntryError(f"{MOST_OPEN} invitations of yours are open: take one back first")
    if PairInvitation.objects.filter(tournament=tournament, bot__owner=by).count() >= MOST_SENT:
        raise EntryError(
            f"you have sent {MOST_SENT} invitations for {tournament.name}, the most that one may: find a "
            "partner outside, and let them invite you"
        )
    most = tournament.max_bots_per_player
    held = set(mine.values_list("bot", flat=True)) | set(
        by.bots.filter(entries__tournament=tournament, entries__is_current=True).values_list(
            "pk", flat=True
        )
    )
    if most is not None and len(held | {bot.pk}) > most:
        raise EntryError(
            f"{tournament.name} takes at most {most} bot{'s' if most > 1 else ''} of a player, and "
            "entries and invitations of yours hold these places: take one back first"
        )


@transaction.atomic
def accept_invitation(*, invitation: PairInvitation, by: Player) -> Entrant:
    """Enter the pair. Raises EntryError unless the invited bot is the player's own and the pair can enter."""
    tournament = _lock_open(invitation.tournament)
    invitation = _lock_pending(invitation)
    _check_invited(invitation, by)
    bots = [invitation.bot, invitation.invited]
    INVITATION_TRANSITIONS.move_row(invitation, InvitationState.ACCEPTED, answered_at=Now())
    _put_away_question(invitation)
    for bot in bots:
        check_bot(tournament, bot)
    entrant = enter_agreed(tournament=tournament, bots=bots, name=invitation.name)
    tell_players(
        [invitation.bot.owner],
        tournament,
        f"{by.username} has accepted: {entrant.name} has entered {tournament.name}",
    )
    _close_others(tournament, bots)
    return entrant


@transaction.atomic
def decline_invitation(*, invitation: PairInvitation, by: Player) -> None:
    """Do not enter the pair. Raises EntryError unless the invited bot is the player's own."""
    invitation = _lock_pending(invitation)
    _check_invited(invitation, by)
    INVITATION_TRANSITIONS.move_row(invitation, InvitationState.DECLINED, answered_at=Now())
    _put_away_question(invitation)
    tell_players(
        [invitation.bot.owner],
        invitation.tournament,
        f"{by.username} has declined to enter {invitation.invited.name} with {invitation.bot.name}",
    )


@transaction.atomic
def withdraw_invitation(*, invitation: PairInvitation, by: Player) -> None:
    """Take an invitation back. Raises EntryError unless it is the player's and still open."""
    invitation = _lock_pending(invitation)
    if invitation.bot.owner_id != by.pk:
        raise EntryError("that is not an invitation of yours")
    INVITATION_TRANSITIONS.move_row(invitation, InvitationState.WITHDRAWN, answered_at=Now())
    _put_away_question(invitation)
    tell_players(
        [invitation.invited.owner],
        invitation.tournament,
        f"{by.username} has taken back the invitation of {invitation.invited.name}",
    )


def expire_invitations(tournament: Tournament) -> int:
    """Let what nobody has answered expire, with notice to who sent it; how many those were."""
    rows = PairInvitation.objects.filter(tournament=tournament, state=InvitationState.OPEN)
    return _close(
        rows,
        InvitationState.EXPIRED,
        lambda row: (
            f"entries are closed, and nobody has answered for {row.invited.name}: {row.bot.name} has "
            "not entered with it"
        ),
    )


def _close_others(tournament: Tournament, bots: list[Bot]) -> None:
    """Let the other invitations of and to bots that have entered end."""
    pending = PairInvitation.objects.filter(tournament=tournament, state=InvitationState.OPEN)
    _close(
        pending.filter(Q(bot__in=bots) | Q(invited__in=bots)),
        InvitationState.DECLINED,
        lambda row: (
            f"the invitation of {row.invited.name} by {row.bot.name} has ended: one of them has entered "
            "with another"
        ),
    )


def _close(
    rows: QuerySet[PairInvitation], target: InvitationState, text: Callable[[PairInvitation], str]
) -> int:
    closed = list(rows.select_related("tournament", "bot__owner", "invited"))
    INVITATION_TRANSITIONS.move(
        PairInvitation.objects.filter(pk__in=[row.pk for row in closed]), target, answered_at=Now()
    )
    for row in closed:
        tell_players([row.bot.owner], row.tournament, text(row))
        _put_away_question(row)
    return len(closed)


def _lock_open(tournament: Tournament) -> Tournament:
    tournament = Tournament.objects.select_for_update().get(pk=tournament.pk)
    if tournament.state != TournamentState.OPEN or read_clock() >= tournament.closes_at:
        raise TournamentStateError(f"{tournament.name} is not open for entries")
    return tournament


def _lock_pending(invitation: PairInvitation) -> PairInvitation:
    Tournament.objects.select_for_update().get(pk=invitation.tournament_id)
    fresh = PairInvitation.objects.select_related("tournament", "bot__owner", "invited__owner").get(
        pk=invitation.pk
    )
    if fresh.state != InvitationState.OPEN:
        raise EntryError(f"that invitation is {fresh.get_state_display()}")
    return fresh


def _check_invited(invitation: PairInvitation, by: Player) -> None:
    if invitation.invited.owner_id != by.pk:
        raise EntryError(f"{invitation.invited.name} is not yours: only its owner can answer")
