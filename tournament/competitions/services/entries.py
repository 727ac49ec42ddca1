"""Entering a tournament, leaving it, and being taken out of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef

from engine.errors import FormatError
from engine.formats import FORMATS, void_result
from tournament.competitions.errors import EntryError, TournamentStateError
from tournament.competitions.models import (
    ENTRANT_TRANSITIONS,
    Entrant,
    EntrantBot,
    EntrantState,
    InvitationState,
    Match,
    Pairing,
    PairingEntrant,
    PairInvitation,
    RulingKind,
    Stage,
    StageState,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors.engine_values import (
    BOTS,
    engine_pairing,
    engine_pairing_result,
    pairing_view,
    running_stage,
    stage_format,
    stage_view,
)
from tournament.competitions.selectors.entries import (
    Prospect,
    late_round,
    played_pairings,
    prospects,
    rated_match_keys,
    versions_that_would_play,
    why_none_plays,
)
from tournament.competitions.services.notices import (
    tell_of_walkovers,
    tell_players,
    walkovers_against,
)
from tournament.competitions.services.rounds import (
    advance_round,
    cancel_matches,
    replace_result,
    rounds_paired,
    store_result,
)
from tournament.competitions.services.rulings import note_ruling
from tournament.competitions.services.stages import join_stage
from tournament.leaderboards.models import PoolKind
from tournament.leaderboards.services import void_results
from tournament.players.models import UNDECIDED, Bot, BotVersion, Player, VersionState
from tournament.store.clock import read_clock
from tournament.store.services import guard_each


@transaction.atomic
def enter(*, tournament: Tournament, bots: Sequence[Bot], by: Player, name: str = "") -> Entrant:
    """Enter a bot, or two as a pair in the order of their seats.

    The entrant's name is the bot's, or by default ``first + second``. While late entries are taken it
    gets the last seed and its newest version at once (if that has to be tried first, once it has passed), and
    plays from the next round on. Raises
    EntryError, or TournamentStateError when entries are not open.
    """
    tournament = Tournament.objects.select_for_update().get(pk=tournament.pk)
    is_open = tournament.state == TournamentState.OPEN and read_clock() < tournament.closes_at
    first_round = late_round(tournament)
    if not is_open and first_round is None:
        raise TournamentStateError(f"{tournament.name} is not open for entries")
    wanted = 2 if tournament.kind == PoolKind.PAIR else 1
    if len(bots) != wanted:
        raise EntryError(
            "a pair is two bots: name both" if wanted == 2 else "enter one bot at a time"
        )
    if len({bot.pk for bot in bots}) < wanted:
        raise EntryError("the two bots of a pair must be different ones")
    for bot in bots:
        if bot.owner_id != by.pk and not by.is_staff:
            raise EntryError(f"{bot.name} is not yours")
        check_bot(tournament, bot, is_late=first_round is not None)
    entrant = enter_agreed(tournament=tournament, bots=bots, name=name if wanted == 2 else "")
    if first_round is not None:
        _join(tournament, entrant, bots, first_round)
    return entrant


def enter_agreed(*, tournament: Tournament, bots: Sequence[Bot], name: str) -> Entrant:
    """Enter bots whose owners want it, if there is room. Wants the tournament locked and the bots checked.

    Raises EntryError.
    """
    _check_room(tournament, bots)
    return _add(tournament, bots, check_label(tournament, bots, name))


def check_label(tournament: Tournament, bots: Sequence[Bot], name: str) -> str:
    """What an entrant of these bots is called, by default after them. Raises EntryError if it cannot be."""
    label = name.strip() or " + ".join(bot.name for bot in bots)
    if len(label) > 80 or not label.isprintable():
        raise EntryError("a pair's name has 1 to 80 printable characters")
    taken = tournament.entrants.filter(name__iexact=label)
    if taken.filter(bots__is_current=False).exists():
        return _next_name(tournament, label)  # it was here before, and comes back
    if taken.exists():
        raise EntryError(f"there is an entrant {label!r} already: choose another name")
    return label


def _next_name(tournament: Tournament, label: str) -> str:
    number = 2
    while tournament.entrants.filter(name__iexact=f"{label} ({number})").exists():
        number += 1
    return f"{label} ({number})"


def _join(tournament: Tournament, entrant: Entrant, bots: Sequence[Bot], first_round: int) -> None:
    """Freeze a late entrant and give it the last seed, unless a trial comes first. `pub` and the deals stay as they are."""
    found = prospects(tournament, [bot.pk for bot in bots], late=True)
    lacking = _lacking(bots, found)
    if lacking:
        raise EntryError(
            f"{', '.join(lacking)} has no version that was accepted for {tournament.game} as it is played "
            "here: who enters late must have one"
        )
    if not _is_on_trial(bots, found):
        versions = {pk: prospect.version for pk, prospect in found.items() if prospect.version}
        _freeze_late(tournament, entrant, bots, versions, first_round)


def _lacking(bots: Sequence[Bot], found: Mapping[int, Prospect]) -> list[str]:
    """Those that have no version for this, and none on trial, each with why."""
    names = []
    for bot in bots:
        prospect = found.get(bot.pk, Prospect(None))
        if prospect.version is None and prospect.on_trial is None:
            names.append(bot.name + "".join(f" ({t.reason})" for t in prospect.failed[:1]))
    return names


def _is_on_trial(bots: Sequence[Bot], found: Mapping[int, Prospect]) -> bool:
    return any(bot.pk in found and found[bot.pk].on_trial is not None for bot in bots)


def _freeze_late(
    tournament: Tournament,
    entrant: Entrant,
    bots: Sequence[Bot],
    versions: Mapping[int, BotVersion],
    first_round: int,
) -> None:
    for part in entrant.bots.all():
        EntrantBot.objects.filter(pk=part.pk).update(version=versions[part.bot_id])
    stage = tournament.stages.select_related("tournament").get(index=0)
    try:
        place = stage_format(stage).late_entrant(stage_view(stage), entrant.pk)
    except FormatError as error:
        raise TournamentStateError(str(error)) from error
    join_stage(stage, place, first_round)
    entrant.seed = place.seed
    entrant.addendum = make_addendum(
        entered_at=read_clock(),
        first_round=first_round,
        wheels=[(bot.name, versions[bot.pk].wheel_sha256) for bot in bots],
    )
    entrant.save(update_fields=["seed", "addendum"])
    if stage_format(stage).is_continuous:
        advance_round(tournament=tournament)


def join_waiting_entrants() -> int:
    """Let those who entered late join once they have passed their trials; in how many tournaments somebody did.

    Who has failed, or comes too late for the last round that takes anybody, is withdrawn with the reason.
    """
    waiting = Entrant.objects.filter(
        tournament=OuterRef("pk"), state=EntrantState.ACTIVE, seed__isnull=True
    )
    due = Tournament.objects.filter(
        Exists(waiting), state=TournamentState.RUNNING, paused_reason=""
    )
    return guard_each(list(due.order_by("pk")), _join_waiting)


@transaction.atomic
def _join_waiting(tournament: Tournament) -> bool:
    tournament = Tournament.objects.select_for_update().get(pk=tournament.pk)
    if tournament.state != TournamentState.RUNNING:
        return False
    rows = tournament.entrants.filter(state=EntrantState.ACTIVE, seed__isnull=True)
    entrants = list(rows.order_by("pk").prefetch_related(BOTS))
    bots = [part.bot_id for entrant in entrants for part in entrant.bots.all()]
    found = prospects(tournament, bots, late=True)
    settled = [_settle(tournament, entrant, found) for entrant in entrants]
    return any(settled)


def _settle(tournament: Tournament, entrant: Entrant, found: Mapping[int, Prospect]) -> bool:
    bots = [part.bot for part in entrant.bots.all()]
    lacking, first_round = _lacking(bots, found), late_round(tournament)
    if lacking:
        _turn_away(entrant, f"{', '.join(lacking)}: no version of it would play here")
        return True
    if first_round is None:
        _turn_away(entrant, TOO_LATE)
        return True
    if _is_on_trial(bots, found):
        return False
    versions = {pk: prospect.version for pk, prospect in found.items() if prospect.version}
    _freeze_late(tournament, entrant, bots, versions, first_round)
    return True


TOO_LATE = "its trial had not been passed when the last round that takes somebody in had begun"


def _turn_away(entrant: Entrant, reason: str) -> None:
    """Withdraw who has entered late and cannot play, and tell its players; its bots may enter again."""
    if ENTRANT_TRANSITIONS.move_row(entrant, EntrantState.WITHDRAWN, reason=reason[:300]):
        _retire(entrant)
        owners = Player.objects.filter(bots__entries__entrant=entrant).order_by("pk").distinct()
        tell_players(owners, entrant.tournament, f"{entrant.name} does not play: {reason}")


def renew_ladder_entrants() -> int:
    """Let newly accepted versions take the places of older ones on the ladders that are played; how many.

    Who is at a table plays that match to its end first. The old version keeps its results and leaves; the
    new one comes in as who enters late does.
    """
    played = Stage.objects.filter(index=0, state=StageState.RUNNING, format__in=_CONTINUOUS)
    ladders = list(played.values_list("tournament", flat=True))
    if not ladders:
        return 0
    newer = BotVersion.objects.filter(
        bot=OuterRef("bot"),
        bot__paused_reason="",
        state=VersionState.ACCEPTED,
        pk__gt=OuterRef("version"),
        games__game=OuterRef("tournament__game"),
    )
    outdated = EntrantBot.objects.filter(
        Exists(newer),
        is_current=True,
        entrant__state=EntrantState.ACTIVE,
        tournament__state=TournamentState.RUNNING,
        tournament__paused_reason="",
        tournament__in=ladders,
    )
    due = Tournament.objects.filter(pk__in=outdated.values("tournament"))
    return guard_each(due.order_by("pk"), _renew)


_CONTINUOUS = [fmt.name for fmt in FORMATS.values() if fmt.is_continuous]


@transaction.atomic
def _renew(tournament: Tournament) -> bool:
    tournament = Tournament.objects.select_for_update().get(pk=tournament.pk)
    if late_round(tournament) is None:
        return False
    busy = PairingEntrant.objects.filter(pairing__tournament=tournament, pairing__decided_by="")
    idle = tournament.entrants.filter(
        state=EntrantState.ACTIVE, seed__isnull=False, bots__is_current=True
    ).exclude(pk__in=busy.values("entrant"))
    entrants = list(idle.distinct().order_by("seed").prefetch_related(BOTS))
    bots = [part.bot_id for entrant in entrants for part in entrant.bots.all()]
    newest = versions_that_would_play(tournament, bots, late=True)
    outdated = [entrant for entrant in entrants if _is_outdated(entrant, newest)]
    for entrant in outdated:
        _replace(tournament, entrant, newest)
    return bool(outdated)


def _is_outdated(entrant: Entrant, newest: Mapping[int, BotVersion]) -> bool:
    """Whether all its bots have a version that would play, and one of them a newer one than it has."""
    parts = list(entrant.bots.all())
    return all(part.bot_id in newest for part in parts) and any(
        part.version_id is not None and newest[part.bot_id].pk > part.version_id for part in parts
    )


def _replace(tournament: Tournament, old: Entrant, newest: Mapping[int, BotVersion]) -> None:
    bots = [part.bot for part in old.bots.all()]
    versions = " + ".join(newest[bot.pk].version for bot in bots)
    _retire(old)
    ENTRANT_TRANSITIONS.move_row(
        old, EntrantState.WITHDRAWN, reason=f"its version {versions} plays instead"[:300]
    )
    label = _next_name(tournament, " + ".join(bot.name for bot in bots)[:70])
    entrant = _add(tournament, bots, label)
    first_round = late_round(tournament)
    assert first_round is not None  # asked under the same lock
    _join(tournament, entrant, bots, first_round)


def _retire(entrant: Entrant) -> None:
    """Let its bots enter again."""
    EntrantBot.objects.filter(entrant=entrant).update(is_current=False)


def make_addendum(
    *, entered_at: datetime, first_round: int, wheels: Sequence[tuple[str, str]]
) -> str:
    """The canonical JSON that is published when an entrant comes late; the deals do not depend on it."""
    return json.dumps(
        {
            "entered": entered_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "entrants": [list(pair) for pair in sorted(wheels)],
            "round": first_round,
        },
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )


def check_bot(tournament: Tournament, bot: Bot, *, is_late: bool = False) -> None:
    """Raise EntryError if a bot cannot enter, whoever wants it to."""
    if bot.paused_reason:
        raise EntryError(f"{bot.name} is paused by staff: {bot.paused_reason}")
    if EntrantBot.objects.filter(tournament=tournament, bot=bot, is_current=True).exists():
        raise EntryError(f"{bot.name} has entered already")
    if is_late or bot.versions.filter(state__in=UNDECIDED).exists():
        return  # it may still play, or what plays is judged when it joins
    if _is_on_trial([bot], prospects(tournament, [bot.pk])):
        return
    if bot.pk in (why := why_none_plays(tournament, [bot.pk])):
        raise EntryError(
            f"{bot.name} has no version that could play here or is being checked: {why[bot.pk]}; "
            "submit one first"
        )


def _check_room(tournament: Tournament, bots: Sequence[Bot]) -> None:
    """Raise EntryError if it is full, or a player has no place left. Wants the tournament locked."""
    most = tournament.max_entrants
    here = tournament.entrants.filter(bots__is_current=True).distinct().count()
    if most is not None and here >= most:
        raise EntryError(
            f"{tournament.name} is full: all {most} places are taken. One is free again if somebody leaves"
        )
    mine = tournament.max_bots_per_player
    if mine is None:
        return
    for owner in {bot.owner_id for bot in bots}:
        entered = EntrantBot.objects.filter(tournament=tournament, is_current=True)
        pending = PairInvitation.objects.filter(tournament=tournament, state=InvitationState.OPEN)
        held = set(entered.filter(bot__owner=owner).values_list("bot", flat=True))
        held.update(pending.filter(bot__owner=owner).values_list("bot", flat=True))
        held.update(bot.pk for bot in bots if bot.owner_id == owner)
        if len(held) > mine:
            raise EntryError(
                f"{tournament.name} takes at most {mine} bot{'s' if mine > 1 else ''} of a player: "
                "take another one out first"
            )


def _add(tournament: Tournament, bots: Sequence[Bot], label: str) -> Entrant:
    try:
        with transaction.atomic():
            entrant = Entrant.objects.create(tournament=tournament, name=label)
            EntrantBot.objects.bulk_create(
                EntrantBot(tournament=tournament, entrant=entrant, position=position, bot=bot)
                for position, bot in enumerate(bots)
            )
    except IntegrityError:
        raise EntryError(f"{label} has entered already") from None
    return entrant


@transaction.atomic
def leave(*, entrant: Entrant, by: Player) -> None:
    """Take an entry back while entries are open.

    Raises EntryError if it is not the player's, TournamentStateError from the close on (then it can
    only withdraw), also when its time has come and nobody has closed it yet.
    """
    tournament = Tournament.objects.select_for_update().get(pk=entrant.tournament_id)
    _check_right(entrant, by)
    if tournament.state != TournamentState.OPEN or read_clock() >= tournament.closes_at:
        raise TournamentStateError(
            f"{tournament.name} is not open for entries any more: withdraw instead"
        )
    _tell_partner(entrant, by)
    entrant.delete()


def _tell_partner(entrant: Entrant, by: Player) -> None:
    """Tell the other owner of a pair that it does not play."""
    others = Player.objects.filter(bots__entries__entrant=entrant).exclude(pk=by.pk).distinct()
    tell_players(
        others,
        entrant.tournament,
        f"{by.username} has taken {entrant.name} out of {entrant.tournament.name}",
    )


@transaction.atomic
def withdraw_entrant(*, entrant: Entrant, by: Player, reason: str = "") -> Entrant:
    """Play no further: open and later pairings are walkovers, what was played stays.

    Raises EntryError if it is not the player's or does not play, TournamentStateError while entries
    are open (then `leave`) or when the tournament has ended.
    """
    _check_right(entrant, by)
    taken = _take_out(entrant, EntrantState.WITHDRAWN, reason or "withdrawn by its player")
    _tell_partner(taken, by)
    return taken


@transaction.atomic
def disqualify_entrant(
    *, entrant: Entrant, reason: str, void_played: bool = False, by: Player | None = None
) -> Entrant:
    """Take an entrant out: open and later pairings are walkovers.

    What was played stays, or with `void_played` counts for nothing in standings and ratings (who
    advanced has advanced). `previewing.preview` tells beforehand what that changes.
    Raises EntryError without a reason or if it does not play, TournamentStateError as for withdrawing.
    """
    if not reason.strip():
        raise EntryError("give a reason: its player will read it")
    if void_played:
        _void_played(entrant)
    entrant = _take_out(entrant, EntrantState.DISQUALIFIED, reason)
    note_ruling(
        tournament=entrant.tournament,
        kind=RulingKind.DISQUALIFIED,
        subject=entrant.name,
        reason=reason,
        by=by,
        after="what it has played counts for nothing"
        if void_played
        else "what it has played stays",
    )
    return entrant


def _void_played(entrant: Entrant) -> None:
    tournament = Tournament.objects.select_for_update().get(pk=entrant.tournament_id)
    played = played_pairings(entrant)
    logged = rated_match_keys(played)
    paired = {stage.pk: rounds_paired(stage) for stage in tournament.stages.all()}
    for pairing in played.select_related("round"):
        replace_result(
            pairing,
            void_result(engine_pairing_result(pairing)),
            until_round=paired[pairing.round.stage_id],
        )
    if logged:
        void_results(game=tournament.game, kind=tournament.kind, match_keys=logged)


def _take_out(entrant: Entrant, target: EntrantState, reason: str) -> Entrant:
    tournament = Tournament.objects.select_for_update().get(pk=entrant.tournament_id)
    if tournament.state not in {TournamentState.CLOSED, TournamentState.RUNNING}:
        raise TournamentStateError(
            f"{tournament.name} is {tournament.get_state_display()}: nobody can be taken out of it now"
        )
    entrant.refresh_from_db()
    if not ENTRANT_TRANSITIONS.move_row(entrant, target, reason=reason.strip()[:300]):
        raise EntryError(f"{entrant.name} does not play any more")
    if tournament.state == TournamentState.RUNNING:
        if target == EntrantState.WITHDRAWN and _is_played_on(tournament):
            _retire(entrant)
        before = set(walkovers_against(entrant))
        _walk_over(tournament, entrant)
        advance_round(tournament=tournament)
        tell_of_walkovers(entrant, set(walkovers_against(entrant)) - before)
    return entrant


def _is_played_on(tournament: Tournament) -> bool:
    """Whether bots may come and go: in a stage that is played without rounds."""
    stage = running_stage(tournament)
    return stage is not None and stage_format(stage).is_continuous


def _walk_over(tournament: Tournament, entrant: Entrant) -> None:
    """Decide the open pairings of `entrant` that need no match any more."""
    for pairing in Pairing.objects.filter(
        tournament=tournament, decided_by="", entrants__entrant=entrant
    ).select_related("round__stage__tournament"):
        stage = pairing.round.stage
        result = stage_format(stage).walkover(pairing_view(stage, pairing), engine_pairing(pairing))
        if result is not None:
            cancel_matches(Match.objects.filter(pairing=pairing))
            store_result(pairing, result)


def _check_right(entrant: Entrant, by: Player) -> None:
    owners = set(entrant.bots.values_list("bot__owner", flat=True))
    if by.pk not in owners and not by.is_staff:
        raise EntryError(f"{entrant.name} is not yours")
