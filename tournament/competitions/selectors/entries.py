"""Who is in a tournament and with which versions."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Max, Q, QuerySet

from engine.ratings import RatingChange
from tournament.competitions.models import (
    PLAYED,
    Entrant,
    EntrantBot,
    EntrantState,
    EntryTrial,
    InvitationState,
    Notice,
    Pairing,
    PairInvitation,
    Stage,
    StageState,
    Tournament,
    TournamentState,
    TrialState,
    spell_rating_key,
)
from tournament.competitions.selectors.engine_values import (
    BOTS,
    seats_at_table,
    stage_format,
    stage_options,
)
from tournament.competitions.selectors.trials import conditions_to_try, trials_of
from tournament.leaderboards.selectors import counting_results, preview_void
from tournament.players.models import UNDECIDED, Bot, BotVersion, Player, VersionGame, VersionState
from tournament.players.selectors import fits
from tournament.store.clock import read_clock


def entrants_with_bots(tournament: Tournament) -> QuerySet[Entrant]:
    """The entrants by seed, then name, each with its bots and their versions loaded."""
    return (
        tournament.entrants.select_related("tournament")
        .prefetch_related(BOTS)
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


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a bot would play with, as things stand."""

    version: BotVersion | None
    """The newest that was accepted for this play, uploaded in time, and has passed its trials; None if there is none."""
    on_trial: BotVersion | None = None
    """A newer one whose trials are not decided: it plays if it passes."""
    trials: tuple[EntryTrial, ...] = ()
    """The trials of `on_trial` that have been asked for."""
    failed: tuple[EntryTrial, ...] = ()
    """Of newer ones that would not play, what they failed, the newest first."""


def prospects(
    tournament: Tournament, bots: Collection[int] | None = None, *, late: bool = False
) -> dict[int, Prospect]:
    """By bot what it would play with; left out is who has no version that was accepted for this, and who is paused.

    `bots` (ids) are by default those that have entered; who enters `late` plays with the newest of all.
    The number of queries does not depend on how many they are.
    """
    stages = tuple(tournament.stages.all())
    accepted = _accepted(tournament, stages, bots, late=late)
    keys = tuple(conditions_to_try(tournament, stages))
    tried = trials_of([version.pk for line in accepted.values() for version in line], keys)
    return {bot: _prospect(line, keys, tried) for bot, line in accepted.items()}


def _prospect(
    line: Sequence[BotVersion],
    keys: Collection[str],
    tried: Mapping[int, Mapping[str, EntryTrial]],
) -> Prospect:
    """Of one bot's versions, the newest first."""
    failed: list[EntryTrial] = []
    on_trial: BotVersion | None = None
    for version in line:
        trials = tried.get(version.pk, {})
        lost = [trial for trial in trials.values() if trial.state == TrialState.FAILED]
        if lost and on_trial is None:
            failed.append(lost[0])
        elif not lost and len(_passed(trials)) == len(keys):
            return Prospect(version, on_trial, _asked(tried, on_trial), tuple(failed))
        elif not lost:
            on_trial = on_trial or version
    return Prospect(None, on_trial, _asked(tried, on_trial), tuple(failed))


def _passed(trials: Mapping[str, EntryTrial]) -> list[EntryTrial]:
    return [trial for trial in trials.values() if trial.state == TrialState.PASSED]


def _asked(
    tried: Mapping[int, Mapping[str, EntryTrial]], version: BotVersion | None
) -> tuple[EntryTrial, ...]:
    return () if version is None else tuple(tried.get(version.pk, {}).values())


def _accepted(
    tournament: Tournament, stages: Sequence[Stage], bots: Collection[int] | None, *, late: bool
) -> dict[int, list[BotVersion]]:
    """By bot the versions that were accepted for the game, its rulesets and the sizes of its tables, the newest first."""
    entered = EntrantBot.objects.filter(tournament=tournament).values("bot")
    rows = VersionGame.objects.filter(
        game=tournament.game,
        version__state=VersionState.ACCEPTED,
        version__bot__in=entered if bots is None else bots,
        version__bot__paused_reason="",
    )
    if not late:
        rows = rows.filter(version__uploaded_at__lt=tournament.closes_at)
    found: dict[int, list[BotVersion]] = {}
    for row in rows.select_related("version__bot").order_by("-version"):
        if all(_fits_stage(row.options, tournament, stage) for stage in stages):
            found.setdefault(row.version.bot_id, []).append(row.version)
    return found


def versions_that_would_play(
    tournament: Tournament, bots: Collection[int] | None = None, *, late: bool = False
) -> dict[int, BotVersion]:
    """By bot the version with which it is frozen at the close, as things stand now.

    It is the newest one uploaded before the close that was accepted for the game, its ruleset and the
    sizes of its tables, and has passed the trials under them. Left out is who has none, and who is paused.
    See `prospects`.
    """
    found = prospects(tournament, bots, late=late)
    return {
        bot: prospect.version for bot, prospect in found.items() if prospect.version is not None
    }


def why_none_plays(tournament: Tournament, bots: Collection[int]) -> dict[int, str]:
    """Of those bots (ids) that have no version to play with as things stand: why, in words.

    For the organiser and the owner: what came of a check is nobody else's. The number of queries does
    not depend on how many the bots are.
    """
    found = prospects(tournament, bots)
    lacking = [pk for pk in bots if pk not in found or found[pk].version is None]
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
    return reasons | {pk: _spell_trials(found[pk]) for pk in lacking if pk in found}


def _spell_trials(prospect: Prospect) -> str:
    """How the trials stand of a bot that has not passed with its newest version."""
    lines = [_spell_failure(trial, prospect) for trial in prospect.failed[:1]]
    if prospect.on_trial is not None:
        lines.append(
            f"{prospect.on_trial.version} is not tried under these rules yet ({_waits_for(prospect).label})"
        )
    return "; ".join(lines)


def _spell_failure(trial: EntryTrial, prospect: Prospect) -> str:
    plays = f"; {prospect.version.version} plays" if prospect.version is not None else ""
    return f"{trial.version.version} would not play: {trial.reason}{plays}"


def _waits_for(prospect: Prospect) -> TrialState:
    """The state of that of the open trials of which there is most to tell."""
    states = {trial.state for trial in prospect.trials}
    order = (TrialState.STUCK, TrialState.RUNNING, TrialState.QUEUED)
    return next((state for state in order if state in states), TrialState.PENDING)


def remarks_on_entries(tournament: Tournament, bots: Collection[int]) -> dict[int, str]:
    """As `why_none_plays`, and of bots that play with an older version than their newest: why.

    For the organiser and the owner.
    """
    found = prospects(tournament, bots)
    remarks = {
        pk: _spell_trials(prospect)
        for pk, prospect in found.items()
        if prospect.failed or prospect.on_trial is not None
    }
    return why_none_plays(tournament, bots) | remarks


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


def failed_trials(tournament: Tournament, bots: Collection[int]) -> dict[int, EntryTrial]:
    """Of these bots (ids) the trial that the newest version failed which would not play here."""
    found = prospects(tournament, bots)
    return {pk: prospect.failed[0] for pk, prospect in found.items() if prospect.failed}


def versions_awaited(tournament: Tournament) -> tuple[BotVersion, ...]:
    """The versions uploaded before the close that might play and are not decided by their check yet, by bot.

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
    waiting = list(undecided.select_related("bot").order_by("bot__name", "pk"))
    newest = versions_that_would_play(tournament)
    return tuple(
        version
        for version in waiting
        if version.bot_id not in newest or version.pk > newest[version.bot_id].pk
    )


def trials_awaited(
    tournament: Tournament, found: Mapping[int, Prospect] | None = None
) -> tuple[Prospect, ...]:
    """Of the bots in it those whose newest version is on trial, by bot; not those of an entrant that is dropped anyhow.

    `found` is what `prospects` has told, if it is known.
    """
    parts = EntrantBot.objects.filter(tournament=tournament, entrant__state=EntrantState.ACTIVE)
    paused = parts.exclude(bot__paused_reason="").values("entrant")
    bots = set(parts.exclude(entrant__in=paused).values_list("bot", flat=True))
    known = prospects(tournament) if found is None else found
    waiting = [
        (prospect.on_trial.bot.name, prospect)
        for bot, prospect in known.items()
        if prospect.on_trial is not None and bot in bots
    ]
    return tuple(prospect for _, prospect in sorted(waiting, key=lambda row: row[0]))


def spell_trial_state(prospect: Prospect) -> tuple[str, str]:
    """What the trials of the version on trial wait for: a state of a trial, and its label."""
    state = _waits_for(prospect)
    return state.value, f"tried under these rules: {state.label}"


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
