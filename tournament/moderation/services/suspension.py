"""Suspension: one act ends what a bot or a player does here, and can be lifted."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.db.models import Q

from tournament.competitions import services as competitions
from tournament.moderation.errors import ModerationError
from tournament.moderation.models import Suspension
from tournament.moderation.selectors import (
    PLAYED,
    Subject,
    entries_in,
    subject_of,
    suspension_preview,
)
from tournament.moderation.services.ending import (
    answer_invitations,
    cancel_scrimmages,
    end_access,
)
from tournament.players import services as players
from tournament.players.models import HOUSE, Bot, Player
from tournament.store.clock import read_clock


@transaction.atomic
def suspend(*, subject: Player | Bot, reason: str, by: Player | None = None) -> Suspension:
    """End at once all that a player, or one bot, does here.

    Bots are paused and disqualified where they play (their open matches are cancelled and walkovers, what was
    played stays), open scrimmages and invitations end; a player is also logged out, cannot log in, and loses
    their tokens. Entries in tournaments that are still open stay and play if the suspension is lifted before
    the close. `suspension_preview` says beforehand what that means. Raises ModerationError.
    """
    whom = subject_of(subject)
    check_suspension(whom, reason=reason, by=by)
    reason = reason.strip()[:200]
    effects = suspension_preview(subject)
    bots = whom.bots
    to_pause = [bot for bot in bots if not bot.paused_reason]
    suspension = _note(whom, reason, by, effects, to_pause)
    for bot in to_pause:
        players.pause_bot(bot=bot, reason=reason)
    for entrant in entries_in(PLAYED, bots):
        competitions.disqualify_entrant(entrant=entrant, reason=f"suspended: {reason}", by=by)
    answer_invitations(bots)
    cancel_scrimmages(player=whom.player, bots=bots, reason=f"suspended: {reason}")
    if whom.player is not None:
        end_access(whom.player)
        Player.objects.filter(pk=whom.player.pk).update(is_active=False)
        whom.player.is_active = False
    return suspension


def check_suspension(whom: Subject, *, reason: str, by: Player | None) -> None:
    """Raise ModerationError if this cannot be, or not by whom it is wanted."""
    if not reason.strip():
        raise ModerationError("give a reason: the players concerned will read it")
    if whom.player is None:
        return
    if whom.player.username == HOUSE:
        raise ModerationError(f"{HOUSE} is no person: suspend its bots one by one")
    if whom.player.erased_at is not None:
        raise ModerationError(f"{whom.player.username} has been erased")
    if by is not None and by.pk == whom.player.pk:
        raise ModerationError("you cannot suspend yourself: nobody could lift it")
    if whom.player.is_staff and not (by is None or by.is_superuser):
        raise ModerationError(f"{whom.player.username} is of the staff: a superuser has to do that")


def _note(
    whom: Subject, reason: str, by: Player | None, effects: list[str], paused: list[Bot]
) -> Suspension:
    try:
        with transaction.atomic():
            return Suspension.objects.create(
                player=whom.player,
                bot=whom.bot,
                reason=reason,
                by=by,
                effects=effects,
                paused_bots=[bot.pk for bot in paused],
            )
    except IntegrityError:
        raise ModerationError(f"{whom.player or whom.bot} is suspended already") from None


@transaction.atomic
def lift_suspension(*, suspension: Suspension, by: Player | None = None) -> Suspension:
    """Let them in again: the account opens, and the bots that it paused go on.

    Disqualifications, cancelled scrimmages, revoked tokens and ended sessions stay what they are. Raises
    ModerationError if it is lifted already, or the person has been erased.
    """
    suspension = Suspension.objects.select_for_update(of=("self",)).get(pk=suspension.pk)
    if suspension.lifted_at is not None:
        raise ModerationError(f"it was lifted at {suspension.lifted_at:%Y-%m-%d %H:%M} UTC")
    whom = Subject(suspension.player, suspension.bot)
    if whom.owner.erased_at is not None:
        raise ModerationError(f"{whom.owner.username} has been erased")
    suspension.lifted_at, suspension.lifted_by = read_clock(), by
    suspension.save(update_fields=["lifted_at", "lifted_by"])
    held = _bots_held(whom.owner)
    for bot in Bot.objects.filter(pk__in=suspension.paused_bots).exclude(pk__in=held):
        players.lift_bot(bot=bot)
    if whom.player is not None:
        Player.objects.filter(pk=whom.player.pk).update(is_active=True)
    return suspension


def lift_pause(*, bot: Bot) -> Bot:
    """End the pause of a bot, by whoever may pause bots. Raises ModerationError while a suspension holds it.

    Who suspends judges people; a pause is a smaller matter, and its right must not undo the greater.
    """
    if bot.pk in _bots_held(bot.owner):
        raise ModerationError(
            f"{bot.name} is suspended, or its owner is: a moderator lifts that, at the suspension"
        )
    if bot.owner.erased_at is not None:
        raise ModerationError(f"{bot.owner.username} has been erased")
    return players.lift_bot(bot=bot)


def _bots_held(owner: Player) -> set[int]:
    """The bots that other suspensions hold, of them or of their owner."""
    others = Suspension.objects.filter(
        Q(player=owner) | Q(bot__owner=owner), lifted_at=None
    ).values_list("bot", "player__bots")
    return {pk for line in others for pk in line if pk is not None}
