"""Trials at entry: which a tournament wants, and what came of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection

import msgspec
from django.db.models import Exists, OuterRef, Q, QuerySet

from engine.checking import Conditions
from engine.formats import FORMATS
from tournament.competitions.models import (
    TRIAL_DECIDED,
    EntrantBot,
    EntrantState,
    EntryTrial,
    Stage,
    StageState,
    Tournament,
    TournamentState,
    TrialState,
)
from tournament.competitions.selectors.engine_values import (
    seats_at_table,
    stage_format,
    stage_options,
    stage_time_control,
)
from tournament.players.models import Bot, BotVersion, VersionState
from tournament.store.services import read_blob

CONTINUOUS = tuple(fmt.name for fmt in FORMATS.values() if fmt.is_continuous)
"""The formats in whose stages bots may come and go."""


def conditions_to_try(
    tournament: Tournament, stages: Collection[Stage] | None = None
) -> dict[str, Conditions]:
    """By key the conditions of a tournament's stages that the check after an upload does not try anyhow.

    `stages` are the tournament's, if they have been read.
    """
    found = {}
    for stage in tournament.stages.all() if stages is None else stages:
        for size in stage_format(stage).sizes(stage_options(stage)):
            conditions = Conditions(
                game=tournament.game,
                seats=seats_at_table(tournament.game, size),
                ruleset=stage.ruleset,
                time_control=stage_time_control(stage),
            )
            if not conditions.are_checked_anyhow:
                found[conditions_key(conditions)] = conditions
    return found


def conditions_key(conditions: Conditions) -> str:
    """The SHA-256 of the conditions as canonical JSON, in hex: equal for equal ones."""
    values = msgspec.to_builtins(conditions)
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def trials_of(versions: Collection[int], keys: Collection[str]) -> dict[int, dict[str, EntryTrial]]:
    """By version and key the trials that are asked for so far."""
    found: dict[int, dict[str, EntryTrial]] = {}
    if keys:
        rows = EntryTrial.objects.filter(version__in=versions, key__in=keys)
        for trial in rows.select_related("version").order_by("pk"):
            found.setdefault(trial.version_id, {})[trial.key] = trial
    return found


def tournaments_with_trials() -> QuerySet[Tournament]:
    """The tournaments whose entrants may have to be tried: until the seal, and where who comes late may wait."""
    waiting = EntrantBot.objects.filter(
        tournament=OuterRef("pk"), entrant__state=EntrantState.ACTIVE, version=None
    )
    comes_and_goes = Stage.objects.filter(
        tournament=OuterRef("pk"), index=0, state=StageState.RUNNING, format__in=CONTINUOUS
    )
    return Tournament.objects.filter(
        Q(state=TournamentState.OPEN)
        | Q(state=TournamentState.CLOSED, pub="")
        | Q(state=TournamentState.RUNNING) & (Exists(waiting) | Exists(comes_and_goes))
    ).prefetch_related("stages")


def bots_to_try(tournament: Tournament, keys: Collection[str]) -> QuerySet[Bot]:
    """The bots in a tournament that have a version for which a trial might have to be asked.

    One that has been accepted, without all its trials, and without a newer one whose trials have been asked for and
    have not failed.
    """
    parts = EntrantBot.objects.filter(
        tournament=tournament, is_current=True, entrant__state=EntrantState.ACTIVE
    )
    trials = EntryTrial.objects.filter(version=OuterRef("pk"), key__in=keys)
    asked = Q()
    for key in keys:
        asked &= Q(
            Exists(
                EntryTrial.objects.filter(
                    Q(state__in=TRIAL_DECIDED) | Q(due_at__lte=tournament.closes_at),
                    version=OuterRef("pk"),
                    key=key,
                )
            )
        )
    accepted = BotVersion.objects.filter(state=VersionState.ACCEPTED, games__game=tournament.game)
    newer = accepted.filter(
        Exists(trials),
        ~Exists(trials.filter(state=TrialState.FAILED)),
        bot=OuterRef("bot"),
        pk__gt=OuterRef("pk"),
    )
    wanting = accepted.filter(~asked, ~Exists(newer), bot__in=parts.values("bot"))
    if tournament.state != TournamentState.RUNNING:
        wanting = wanting.filter(uploaded_at__lt=tournament.closes_at)
    return Bot.objects.filter(pk__in=wanting.values("bot"), paused_reason="")


def tournaments_that_want(trial: EntryTrial) -> list[Tournament]:
    """The tournaments with that bot in which the version may still come to play, under those conditions."""
    parts = EntrantBot.objects.filter(
        bot=trial.version.bot_id, is_current=True, entrant__state=EntrantState.ACTIVE
    )
    found = tournaments_with_trials().filter(pk__in=parts.values("tournament"))
    return [row for row in found.order_by("pk") if trial.key in conditions_to_try(row)]


def trial_conditions(trial: EntryTrial) -> Conditions:
    """What the version is tried under."""
    return msgspec.convert(trial.conditions, Conditions)


def time_controls_of_trials(trials: Collection[int]) -> dict[int, str]:
    """By trial the time control that it is played with."""
    rows = EntryTrial.objects.filter(pk__in=trials)
    return dict(rows.values_list("pk", "conditions__time_control__name"))


def trial_log(trial: EntryTrial) -> str:
    """What it printed meanwhile, empty if nothing. Only its owner and auditors may see it. Raises BlobError."""
    return read_blob(trial.log_sha256).decode() if trial.log_sha256 else ""


def trials_of_version(version: BotVersion) -> QuerySet[EntryTrial]:
    """All trials of a version, the newest first."""
    return EntryTrial.objects.filter(version=version).order_by("-pk")
