"""Who is in a tournament and with which versions."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q, QuerySet

from engine.ratings import RatingChange
from tournament.competitions.models import (
    PLAYED,
    Entrant,
    EntrantBot,
    EntrantState,
    Pairing,
    Stage,
    Tournament,
)
from tournament.competitions.selectors.engine_values import seats_at_table, stage_format
from tournament.leaderboards.selectors import counting_results, preview_void
from tournament.players.models import UNDECIDED, BotVersion, Player, VersionState
from tournament.players.selectors import fits


def entrants_with_bots(tournament: Tournament) -> QuerySet[Entrant]:
    """The entrants by seed, then name, each with its bots and their versions loaded."""
    return (
        tournament.entrants.select_related("tournament")
        .prefetch_related("bots__bot", "bots__version", "bots__tournament")
        .order_by("seed", "name")
    )


def entries_of(tournament: Tournament, player: Player) -> QuerySet[Entrant]:
    """The entrants with a bot of `player`."""
    return entrants_with_bots(tournament).filter(bots__bot__owner=player).distinct()


def version_that_would_play(part: EntrantBot) -> BotVersion | None:
    """The version with which a bot is frozen at the close, as things stand now.

    It is the newest one uploaded before the close that was accepted for the game, its ruleset and the
    sizes of its tables.
    """
    tournament = part.tournament
    stages = tuple(tournament.stages.all())
    versions = (
        part.bot.versions.filter(
            state=VersionState.ACCEPTED,
            games__game=tournament.game,
            uploaded_at__lt=tournament.closes_at,
        )
        .prefetch_related("games")
        .order_by("-pk")
    )
    for version in versions:
        options = next(game.options for game in version.games.all() if game.game == tournament.game)
        if all(_fits_stage(options, tournament, stage) for stage in stages):
            return version
    return None


def versions_awaited(tournament: Tournament) -> Sequence[BotVersion]:
    """The versions uploaded before the close that are being checked and might play, by bot.

    A version older than one that is accepted already is not awaited.
    """
    awaited: list[BotVersion] = []
    parts = EntrantBot.objects.filter(
        tournament=tournament, entrant__state=EntrantState.ACTIVE
    ).select_related("bot", "tournament")
    undecided = Q(state__in=UNDECIDED, uploaded_at__lt=tournament.closes_at)
    for part in parts.filter(bot__versions__in=BotVersion.objects.filter(undecided)).distinct():
        newest = version_that_would_play(part)
        waiting = part.bot.versions.filter(undecided).select_related("bot").order_by("pk")
        awaited.extend(waiting.filter(pk__gt=newest.pk) if newest else waiting)
    return tuple(awaited)


def played_pairings(entrant: Entrant) -> QuerySet[Pairing]:
    """The pairings of an entrant whose match was played and counts."""
    return Pairing.objects.filter(entrants__entrant=entrant, decided_by__in=PLAYED).order_by("pk")


def rated_match_keys(entrant: Entrant) -> list[str]:
    """The keys in the rating log of the entrant's matches that count there, in order."""
    slug = entrant.tournament.slug
    keys = [
        f"{slug}/{key}"
        for key in Pairing.objects.filter(entrants__entrant=entrant, match__rated=True).values_list(
            "key", flat=True
        )
    ]
    return counting_results(keys)


def preview_disqualification(entrant: Entrant) -> tuple[RatingChange, ...]:
    """What voiding all that an entrant has played would change in the ratings, the biggest first."""
    tournament = entrant.tournament
    return preview_void(
        game=tournament.game, kind=tournament.kind, match_keys=rated_match_keys(entrant)
    )


def _fits_stage(options: dict[str, list[object]], tournament: Tournament, stage: Stage) -> bool:
    return all(
        fits(options, seats_at_table(tournament.game, size), stage.ruleset)
        for size in stage_format(stage).pairing_sizes
    )
