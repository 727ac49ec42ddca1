"""Which matches and trials wait for a worker, why, and how long it takes until it is their turn."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Avg, Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Now

from tournament.competitions.models import (
    IN_FLIGHT,
    RULES_VERSION,
    TRIAL_DECIDED,
    TRIAL_UNDECIDED,
    UNFINISHED,
    EntryTrial,
    Match,
    MatchState,
    Tournament,
    TournamentState,
    TrialState,
)
from tournament.players.models import VersionState
from tournament.store.clock import read_clock
from tournament.store.pulses import MEMORY, spell_about, spell_delays
from tournament.store.waiting import QueuePlace, mean_seconds, place_behind, queue_state, slots_now

MEASURED_MATCHES = 20
UNKNOWN_MATCH_SECONDS = 1.0
"""What a match is taken to last in a tournament that has none finished."""
UNKNOWN_TRIAL_SECONDS = 3.0

PLAYABLE = Q(
    tournament__state=TournamentState.RUNNING,
    tournament__paused_reason="",
    tournament__rules_version=RULES_VERSION,
)
"""Matches that are handed out as things stand."""
TRIABLE = Q(version__state=VersionState.ACCEPTED, version__bot__paused_reason="")
"""Trials that are."""


def open_matches() -> QuerySet[Match]:
    """Those that are not over, each with its `QueueState` as ``standing``."""
    return Match.objects.filter(state__in=UNFINISHED).annotate(
        standing=queue_state(
            running=MatchState.RUNNING,
            queued=MatchState.QUEUED,
            stuck=MatchState.STUCK,
            held=~PLAYABLE,
        )
    )


def open_trials() -> QuerySet[EntryTrial]:
    """Those that are not decided, each with its `QueueState` as ``standing``."""
    return EntryTrial.objects.filter(state__in=TRIAL_UNDECIDED).annotate(
        standing=queue_state(
            running=TrialState.RUNNING,
            queued=TrialState.QUEUED,
            stuck=TrialState.STUCK,
            held=~TRIABLE,
        )
    )


def why_match_is_held(tournament: Tournament) -> str:
    """Why no match of it is handed out; empty if they are."""
    if tournament.paused_reason:
        return f"the tournament is paused: {tournament.paused_reason}"
    if tournament.state != TournamentState.RUNNING:
        return f"the tournament is {tournament.get_state_display()}"
    if tournament.rules_version != RULES_VERSION:
        return f"it is played by {tournament.rules_version}, which no worker of this version plays"
    return ""


def why_trial_is_held(trial: EntryTrial) -> str:
    """Why a trial is not handed out; empty if it is. Wants its version and bot loaded."""
    version = trial.version
    if version.bot.paused_reason:
        return f"{version.bot.name} is paused: {version.bot.paused_reason}"
    if version.state != VersionState.ACCEPTED:
        return f"{version} is {version.get_state_display()}"
    return ""


def match_seconds(tournament: Tournament) -> float:
    """How long a match of the tournament lasts, by the last ones finished; as long as none is, a guess."""
    measured = measured_match_seconds(tournament)
    return UNKNOWN_MATCH_SECONDS if measured is None else measured


def measured_match_seconds(tournament: Tournament) -> float | None:
    """How long a match of the tournament lasts, by the last ones finished; None if none is."""
    last = (
        tournament.matches.filter(state=MatchState.FINISHED, wall_ms__isnull=False)
        .order_by("-pk")
        .values("wall_ms")[:MEASURED_MATCHES]
    )
    mean = last.aggregate(mean=Avg("wall_ms"))["mean"]
    return None if mean is None else max(mean / 1000, 0.001)


def slots_of(tournament: Tournament) -> float:
    """How many matches of it are played at once: its share by weight among those that have some to play, and its cap."""
    has_work = Exists(
        Match.objects.filter(tournament=OuterRef("pk"), state__in=(MatchState.PENDING, *IN_FLIGHT))
    )
    others = Tournament.objects.filter(
        has_work, state=TournamentState.RUNNING, paused_reason="", rules_version=RULES_VERSION
    ).exclude(pk=tournament.pk)
    weights = tournament.weight + (others.aggregate(sum=Sum("weight"))["sum"] or 0)
    share = slots_now() * tournament.weight / weights
    return share if tournament.cap is None else min(share, tournament.cap)


def place_of_match(match: Match) -> QueuePlace | None:
    """Where a match stands among those of its tournament; None if it does not wait. Wants its tournament loaded."""
    if match.state not in {MatchState.PENDING, MatchState.QUEUED}:
        return None
    tournament = match.tournament
    others = Match.objects.filter(
        tournament=tournament, state__in=(MatchState.PENDING, MatchState.QUEUED)
    )
    rest = (match.run_after - read_clock()).total_seconds()
    return place_behind(
        others.filter(pk__lt=match.pk).count(),
        others.count(),
        each_seconds=match_seconds(tournament),
        slots=slots_of(tournament),
        not_before=rest,
        held_by=why_match_is_held(tournament),
    )


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a tournament has published and not played yet."""

    matches: int
    seconds: float | None
    """About how long until all of them are played; None if that cannot be told now."""
    held_up: str = ""
    """Why not."""

    @property
    def text(self) -> str:
        """For people: ``12 matches, played in about 2 minutes``."""
        noun = "match" if self.matches == 1 else "matches"
        if self.seconds is not None:
            return f"{self.matches} {noun}, played in {spell_about(self.seconds)}"
        return f"{self.matches} {noun}; {self.held_up}"


def backlog_of(tournament: Tournament, *, only_public: bool = False) -> Backlog | None:
    """What is still to be played of what a tournament has published; None if that is nothing.

    With `only_public` nothing of sealed rounds is counted.
    """
    rows = tournament.matches.filter(state__in=(MatchState.PENDING, *IN_FLIGHT))
    if only_public:
        rows = rows.filter(pairing__round__published_at__isnull=False)
    count = rows.count()
    if not count:
        return None
    held_up = why_match_is_held(tournament) or spell_delays(MEMORY.known_delays())
    seconds = None if held_up else count * match_seconds(tournament) / slots_of(tournament)
    return Backlog(count, seconds, held_up)


def place_of_trial(trial: EntryTrial) -> QueuePlace | None:
    """Where a trial stands among all of them; None if it does not wait. Wants its version and bot loaded."""
    if trial.state not in {TrialState.PENDING, TrialState.QUEUED}:
        return None
    others = EntryTrial.objects.filter(TRIABLE, state__in=(TrialState.PENDING, TrialState.QUEUED))
    before = Q(due_at__lt=trial.due_at) | Q(due_at=trial.due_at, pk__lt=trial.pk)
    decided = EntryTrial.objects.filter(state__in=TRIAL_DECIDED).order_by("-decided_at", "-pk")
    return place_behind(
        others.filter(before).count(),
        others.count(),
        each_seconds=mean_seconds(
            decided.values_list("claimed_at", "decided_at")[:MEASURED_MATCHES],
            UNKNOWN_TRIAL_SECONDS,
        ),
        slots=1 if matches_wait() else slots_now(),
        not_before=(trial.run_after - read_clock()).total_seconds(),
        held_by=why_trial_is_held(trial),
    )


def matches_wait() -> bool:
    """Whether a match waits for a worker: trials and scrimmages stand back then."""
    return Match.objects.filter(PLAYABLE, state=MatchState.PENDING, run_after__lte=Now()).exists()
