"""Who is in a tournament and with which versions."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from django.db.models import Max, Q, QuerySet

from engine.ratings import RatingChange
from tournament.competitions.models import (
    PLAYED,
    Entrant,
    EntrantBot,
    EntrantState,
    InvitationState,
    Notice,
    Pairing,
    PairInvitation,
    Stage,
    StageState,
    Tournament,
    TournamentState,
    spell_rating_key,
)
from tournament.competitions.selectors.engine_values import (
    seats_at_table,
    stage_format,
    stage_options,
)
from tournament.leaderboards.selectors import counting_results, preview_void
from tournament.players.models import UNDECIDED, Bot, BotVersion, Player, VersionGame, VersionState
from tournament.players.selectors import fits
from tournament.store.clock import read_clock


def entrants_with_bots(tournament: Tournament) -> QuerySet[Entrant]:
    """The entrants by seed, then name, each with its bots and their versions loaded."""
    return (
        tournament.entrants.select_related("tournament")
        .prefetch_related("bots__bot", "bots__version", "bots__tournament")
        .order_by("seed", "name")
    )


def entries_of(tournament: Tournament, player: Player) -> QuerySet[Entrant]:
    """The entrants with a bot of `player`, but for those whose place a newer one has taken."""
    own = EntrantBot.objects.filter(tournament=tournament, bot__owner=player, is_current=True)
    return entrants_with_bots(tournament).filter(pk__in=own.values("entrant"))


def bots_to_enter(tournament: Tournament) -> QuerySet[Bot]:
    """The bots of all players that have a version accepted for the game and are not in it, by name."""
    accepted = VersionGame.objects.filter(
        game=tournament.game, version__state=VersionState.ACCEPTED
    )
    return (
        Bot.objects.filter(pk__in=accepted.values("version__bot"), paused_reason="")
        .exclude(
            pk__in=EntrantBot.objects.filter(tournament=tournament, is_current=True).values("bot")
        )
        .select_related("owner")
        .order_by("name")
    )


def versions_that_would_play(
    tournament: Tournament, bots: Collection[int] | None = None, *, late: bool = False
) -> dict[int, BotVersion]:
    """By bot the version with which it is frozen at the close, as things stand now.

    It is the newest one uploaded before the close that was accepted for the game, its ruleset and the
    sizes of its tables. Left out is who has none, and who is paused. `bots` (ids) are by default those
    that have entered; who enters `late` plays with the newest of all. The number of queries does not depend on how many they are.
    """
    entered = EntrantBot.objects.filter(tournament=tournament).values("bot")
    accepted = VersionGame.objects.filter(
        game=tournament.game,
        version__state=VersionState.ACCEPTED,
        version__bot__in=entered if bots is None else bots,
        version__bot__paused_reason="",
    )
    if not late:
        accepted = accepted.filter(version__uploaded_at__lt=tournament.closes_at)
    stages = tuple(tournament.stages.all())
    chosen: dict[int, BotVersion] = {}
    for row in accepted.select_related("version__bot").order_by("-version"):
        if row.version.bot_id not in chosen and all(
            _fits_stage(row.options, tournament, stage) for stage in stages
        ):
            chosen[row.version.bot_id] = row.version
    return chosen


def why_none_plays(tournament: Tournament, bots: Collection[int]) -> dict[int, str]:
    """Of those bots (ids) that have no version to play with as things stand: why, in words.

    For the organiser and the owner: what came of a check is nobody else's. The number of queries does
    not depend on how many the bots are.
    """
    plays = versions_that_would_play(tournament, bots)
    lacking = [pk for pk in bots if pk not in plays]
    if not lacking:
        return {}
    stages = tuple(tournament.stages.all())
    reasons = {
        bot.pk: f"paused by staff: {bot.paused_reason}"
        if bot.paused_reason
        else "it has no version"
        for bot in Bot.objects.filter(pk__in=lacking)
    }
    newest: dict[int, BotVersion] = {}
    versions = BotVersion.objects.filter(bot__in=lacking, bot__paused_reason="")
    for version in versions.prefetch_related("games").order_by("-pk"):
        newest.setdefault(version.bot_id, version)
    for pk, version in newest.items():
        reasons[pk] = f"{version.version} {_why_not(version, tournament, stages)}"
    return reasons


def _why_not(version: BotVersion, tournament: Tournament, stages: Sequence[Stage]) -> str:
    if version.state in UNDECIDED:
        return f"is not checked yet ({version.get_state_display()})"
    if version.state != VersionState.ACCEPTED:
        return f"is {version.get_state_display()}"
    if version.uploaded_at >= tournament.closes_at:
        return "was uploaded after the close"
    accepted = next((row for row in version.games.all() if row.game == tournament.game), None)
    if accepted is None:
        return f"does not play {tournament.game}"
    sizes = sorted(
        {seats_at_table(tournament.game, size) for stage in stages for size in _sizes(stage)}
    )
    wrong = [
        str(seats) for seats in sizes if seats not in accepted.options.get("players", (seats,))
    ]
    if wrong:
        return f"was not accepted for tables of {' or '.join(wrong)}"
    values = {
        f"{name}={json.dumps(value)}"
        for stage in stages
        for name, value in stage.ruleset.items()
        if name in accepted.options and value not in accepted.options[name]
    }
    return f"was not accepted for {', '.join(sorted(values))}"


def _sizes(stage: Stage) -> tuple[int, ...]:
    return stage_format(stage).sizes(stage_options(stage))


def versions_awaited(tournament: Tournament) -> tuple[BotVersion, ...]:
    """The versions uploaded before the close that might play and are not decided yet, by bot.

    A version older than one that is accepted already is not awaited, nor is one of an entrant that is
    dropped anyhow since a bot of it is paused: while it is, nothing of it is checked.
    """
    parts = EntrantBot.objects.filter(tournament=tournament, entrant__state=EntrantState.ACTIVE)
    paused = parts.exclude(bot__paused_reason="").values("entrant")
    undecided = BotVersion.objects.filter(
        state__in=UNDECIDED,
        uploaded_at__lt=tournament.closes_at,
        bot__in=parts.exclude(entrant__in=paused).values("bot"),
    )
    newest = versions_that_would_play(tournament)
    return tuple(
        version
        for version in undecided.select_related("bot").order_by("bot__name", "pk")
        if version.bot_id not in newest or version.pk > newest[version.bot_id].pk
    )


def late_round(tournament: Tournament) -> int | None:
    """The first round that who enters now could play in; None if nobody enters a running tournament.

    Only the first stage takes anybody; a continuous one as long as it opens matches, if no last round is set.
    """
    if tournament.state != TournamentState.RUNNING:
        return None
    stage = tournament.stages.filter(index=0, state=StageState.RUNNING).first()
    if stage is None or not stage_format(stage).takes_late_entries:
        return None
    until = tournament.late_until_round
    if until is None and not stage_format(stage).is_continuous:
        return None
    if stage.stopped_at is not None or (stage.stops_at and stage.stops_at <= read_clock()):
        return None
    last = stage.rounds.aggregate(last=Max("index"))["last"] or 0
    return last + 1 if until is None or last < until else None


def invitations_of(tournament: Tournament, player: Player) -> QuerySet[PairInvitation]:
    """The open invitations to form a pair that a player has sent or may answer."""
    return PairInvitation.objects.filter(
        Q(bot__owner=player) | Q(invited__owner=player),
        tournament=tournament,
        state=InvitationState.OPEN,
    ).select_related("tournament", "bot__owner", "invited__owner")


def invitation_of(tournament: Tournament, player: Player, pk: int) -> PairInvitation | None:
    """The open invitation `pk` that a player has sent or may answer; None if there is none."""
    if len(str(pk)) > LONGEST_ID:
        return None
    return invitations_of(tournament, player).filter(pk=pk).first()


LONGEST_ID = 18
"""Digits of a row's id that every database takes."""


def notices_of(player: Player) -> QuerySet[Notice]:
    """What the site has told a player and the player has not put away, the newest first."""
    return (
        Notice.objects.filter(player=player, seen_at=None)
        .select_related("tournament")
        .order_by("-pk")
    )


def played_pairings(entrant: Entrant) -> QuerySet[Pairing]:
    """The pairings of an entrant whose match was played and counts."""
    return Pairing.objects.filter(entrants__entrant=entrant, decided_by__in=PLAYED).order_by("pk")


def rated_match_keys(pairings: QuerySet[Pairing]) -> list[str]:
    """The keys in the rating log of those pairings whose results count there, in its order."""
    rated = pairings.filter(match__rated=True).values_list("tournament__slug", "key", "edition")
    return counting_results([spell_rating_key(*row) for row in rated])


def preview_cancellation(tournament: Tournament) -> tuple[RatingChange, ...]:
    """What cancelling a tournament would change in the ratings, the biggest change first."""
    return preview_void(
        game=tournament.game,
        kind=tournament.kind,
        match_keys=rated_match_keys(tournament.pairings.all()),
    )


def _fits_stage(options: dict[str, list[object]], tournament: Tournament, stage: Stage) -> bool:
    return all(
        fits(options, seats_at_table(tournament.game, size), stage.ruleset)
        for size in stage_format(stage).sizes(stage_options(stage))
    )
