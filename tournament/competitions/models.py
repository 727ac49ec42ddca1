"""Tournaments and all that is in them: fields, constraints, questions about one row."""

from __future__ import annotations

from fractions import Fraction

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from engine.formats.base import SCORE_DENOMINATOR
from tournament.leaderboards.models import PoolKind
from tournament.players.models import Bot, BotVersion
from tournament.store.fields import ReportField
from tournament.store.leases import LeaseFields
from tournament.store.states import Transitions

RULES_VERSION = "arena-rules/1"
"""The rules of games, records and deals that this code plays; a worker plays only what it serves."""


class TournamentState(models.TextChoices):
    """Where a tournament stands."""

    DRAFT = "draft", "being prepared"
    OPEN = "open", "open for entries"
    CLOSED = "closed", "entries closed"
    RUNNING = "running", "being played"
    FINISHED = "finished", "finished"
    CANCELLED = "cancelled", "cancelled"


TOURNAMENT_TRANSITIONS = Transitions(
    {
        TournamentState.DRAFT: (TournamentState.OPEN, TournamentState.CANCELLED),
        TournamentState.OPEN: (TournamentState.CLOSED, TournamentState.CANCELLED),
        TournamentState.CLOSED: (TournamentState.RUNNING, TournamentState.CANCELLED),
        TournamentState.RUNNING: (TournamentState.FINISHED, TournamentState.CANCELLED),
        TournamentState.FINISHED: (),
        TournamentState.CANCELLED: (),
    }
)


class Shortage(models.TextChoices):
    """What happens if at the close too few have entered."""

    CANCEL = "cancel", "it is cancelled"
    POSTPONE = "postpone", "close and start move, entries stay open"


class Seeding(models.TextChoices):
    """What the seeds follow from."""

    RATING = "rating", "the ratings of the frozen versions"
    HAND = "hand", "the order in which the organiser puts the entrants"
    LOT = "lot", "a lot that anyone can check"


class PublishPolicy(models.TextChoices):
    """When the records of finished matches are for everybody."""

    AT_ONCE = "at_once", "as soon as a match is finished"
    AT_END = "at_end", "when the tournament has ended"


class PauseCause(models.TextChoices):
    """Why a tournament is paused: what has to happen before it goes on."""

    ORGANISER = "organiser", "an organiser: goes on when one resumes it"
    FAILURE = "failure", "a failure of ours: goes on when an organiser resumes it"
    STUCK_VERSION = (
        "stuck_version",
        "a version that could not be checked: goes on once it is decided",
    )


class Tournament(models.Model):
    """A tournament from its announcement to its final standings."""

    slug = models.SlugField(max_length=60, unique=True)
    """Its public id, also the one that deals are derived from; never changed."""
    name = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    organiser = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="tournaments"
    )
    game = models.CharField(max_length=20)
    kind = models.CharField(max_length=4, choices=PoolKind.choices)
    opens_at = models.DateTimeField()
    closes_at = models.DateTimeField()
    starts_at = models.DateTimeField()
    state = models.CharField(
        max_length=10,
        choices=TournamentState.choices,
        default=TournamentState.DRAFT,
        editable=False,
    )
    paused_reason = models.CharField(max_length=500, blank=True, editable=False)
    """Not empty: no match of it begins until it is resumed."""
    pause_cause = models.CharField(
        max_length=13, choices=PauseCause.choices, blank=True, default="", editable=False
    )
    cancelled_reason = models.CharField(max_length=500, blank=True, editable=False)
    weight = models.PositiveSmallIntegerField(default=1)
    """Its share of the workers beside that of other tournaments."""
    cap = models.PositiveIntegerField(null=True, blank=True)
    """The most matches of it that may be in flight at once."""
    rated = models.BooleanField(default=True)
    rules_version = models.CharField(max_length=30, default=RULES_VERSION, editable=False)
    commitment = models.CharField(max_length=64, blank=True, editable=False)
    """Published before registration opens: it binds the organiser to the secret."""
    pub = models.TextField(blank=True, editable=False)
    """Canonical JSON, published at the close: the scheduled close and the sorted [bot, wheel hash] list."""
    records_public = models.CharField(
        max_length=8, choices=PublishPolicy.choices, default=PublishPolicy.AT_ONCE
    )
    """When its records are for everybody."""
    max_entrants = models.PositiveIntegerField(null=True, blank=True)
    """How many may enter; None: as many as like to."""
    max_bots_per_player = models.PositiveSmallIntegerField(null=True, blank=True)
    """How many bots of one player may enter; None: as many as there is room for."""
    min_entrants = models.PositiveIntegerField(null=True, blank=True)
    """How many must have entered by the close; None: what the format needs to start."""
    if_too_few = models.CharField(max_length=8, choices=Shortage.choices, default=Shortage.CANCEL)
    """What happens if they have not."""
    postpone_minutes = models.PositiveIntegerField(default=1440)
    """By how much close and start move then."""
    postpone_most = models.PositiveSmallIntegerField(default=1)
    """How often they move before it is cancelled."""
    postponed_times = models.PositiveSmallIntegerField(default=0, editable=False)
    seeding = models.CharField(max_length=6, choices=Seeding.choices, default=Seeding.RATING)
    late_until_round = models.PositiveSmallIntegerField(null=True, blank=True)
    """The last round that a late entrant may begin with; None: nobody enters after the close."""
    results_at = models.DateTimeField(null=True, blank=True)
    """Until then the results of each round that is published are sealed; None: none is."""
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)
    bundle_digest = models.CharField(max_length=71, blank=True, default="", editable=False)
    """Of its bundle, soon after it has ended and all is public; a later ruling empties it until it is told anew."""

    class Meta:
        permissions = [
            (
                "oversee_tournament",
                "Can run the tournaments of other organisers, and see what they have sealed",
            )
        ]
        constraints = [
            models.CheckConstraint(
                name="tournament_state_known", condition=Q(state__in=TournamentState.values)
            ),
            models.CheckConstraint(
                name="tournament_kind_known", condition=Q(kind__in=PoolKind.values)
            ),
            models.CheckConstraint(
                name="tournament_policy_known", condition=Q(records_public__in=PublishPolicy.values)
            ),
            models.CheckConstraint(
                name="tournament_pause_cause_known",
                condition=Q(pause_cause__in=["", *PauseCause.values]),
            ),
            models.CheckConstraint(
                name="tournament_paused_for_a_cause",
                condition=Q(paused_reason="", pause_cause="")
                | ~Q(paused_reason="") & ~Q(pause_cause=""),
            ),
            models.CheckConstraint(
                name="tournament_times_in_order",
                condition=Q(opens_at__lt=F("closes_at")) & Q(closes_at__lte=F("starts_at")),
            ),
            models.CheckConstraint(name="tournament_weight_positive", condition=Q(weight__gte=1)),
            models.CheckConstraint(
                name="tournament_shortage_known", condition=Q(if_too_few__in=Shortage.values)
            ),
            models.CheckConstraint(
                name="tournament_seeding_known", condition=Q(seeding__in=Seeding.values)
            ),
            models.CheckConstraint(
                name="tournament_committed_when_open",
                condition=Q(state__in=[TournamentState.DRAFT, TournamentState.CANCELLED])
                | ~Q(commitment=""),
            ),
            models.CheckConstraint(
                name="tournament_sealed_when_running",
                condition=~Q(state__in=[TournamentState.RUNNING, TournamentState.FINISHED])
                | ~Q(pub=""),
            ),
        ]
        indexes = [
            models.Index("state", "starts_at", name="tournament_due"),
            models.Index(
                "id",
                name="tournament_without_digest",
                condition=Q(state=TournamentState.FINISHED, bundle_digest=""),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_paused(self) -> bool:
        """Whether no match of it may begin."""
        return bool(self.paused_reason)


class TournamentSecret(models.Model):
    """The 32 random bytes all deals follow from. In no admin, export or log."""

    tournament = models.OneToOneField(
        Tournament, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    secret = models.BinaryField()

    def __str__(self) -> str:
        return f"the secret of {self.tournament_id}"


class StageState(models.TextChoices):
    """Where a stage stands."""

    PENDING = "pending", "to come"
    RUNNING = "running", "being played"
    FINISHED = "finished", "finished"
    SKIPPED = "skipped", "not played"


STAGE_TRANSITIONS = Transitions(
    {
        StageState.PENDING: (StageState.RUNNING, StageState.SKIPPED),
        StageState.RUNNING: (StageState.FINISHED, StageState.PENDING),
        StageState.FINISHED: (StageState.RUNNING, StageState.PENDING),
        StageState.SKIPPED: (StageState.PENDING,),
    }
)


class Stage(models.Model):
    """One format run over a set of entrants; its values are validated engine structs, frozen at the open."""

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="stages")
    index = models.PositiveSmallIntegerField()
    """From 0."""
    format = models.CharField(max_length=30)
    options = models.JSONField(default=dict)
    qualifiers = models.PositiveIntegerField(null=True, blank=True)
    """How many go on to the next stage; None in the last one."""
    ruleset = models.JSONField()
    contest = models.JSONField()
    time_control = models.JSONField()
    stops_at = models.DateTimeField(null=True, blank=True)
    """When a stage without an end of its own opens no more matches; None: when the organiser stops it."""
    matches_a_day = models.PositiveIntegerField(null=True, blank=True)
    """So many matches of a continuous format are opened in 24 hours; None: without a limit."""
    state = models.CharField(
        max_length=8, choices=StageState.choices, default=StageState.PENDING, editable=False
    )
    note = models.CharField(max_length=500, blank=True, default="", editable=False)
    """Why it was not played, or who ended it."""
    started_at = models.DateTimeField(null=True, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)
    stopped_at = models.DateTimeField(null=True, editable=False)
    """Since when it opens no more matches by the organiser's wish."""
    absent = models.JSONField(default=list, editable=False)
    """The ids of its entrants who had withdrawn or been disqualified at its end."""

    class Meta:
        ordering = ("tournament", "index")
        constraints = [
            models.UniqueConstraint("tournament", "index", name="stage_index_unique"),
            models.CheckConstraint(
                name="stage_state_known", condition=Q(state__in=StageState.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tournament_id}, stage {self.index}: {self.format}"

    @property
    def number(self) -> int:
        """As people count, from 1."""
        return self.index + 1


class EntrantState(models.TextChoices):
    """Whether an entrant still plays."""

    ACTIVE = "active", "plays"
    WITHDRAWN = "withdrawn", "withdrawn"
    DISQUALIFIED = "disqualified", "disqualified"


ENTRANT_TRANSITIONS = Transitions(
    {
        EntrantState.ACTIVE: (EntrantState.WITHDRAWN, EntrantState.DISQUALIFIED),
        EntrantState.WITHDRAWN: (EntrantState.ACTIVE,),
        EntrantState.DISQUALIFIED: (EntrantState.ACTIVE,),
    }
)


class Entrant(models.Model):
    """A bot (or a pair of them) in a tournament."""

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="entrants")
    name = models.CharField(max_length=80)
    seed = models.PositiveIntegerField(null=True, blank=True, editable=False)
    """1 is the strongest; given at the start, none for who does not take part."""
    wanted_seed = models.PositiveIntegerField(null=True, blank=True, editable=False)
    """Its place in the organiser's order, where seeds are set by hand."""
    addendum = models.TextField(blank=True, default="", editable=False)
    """Of who entered late, canonical JSON: when, with which wheels, and the first round it can play."""
    state = models.CharField(
        max_length=12, choices=EntrantState.choices, default=EntrantState.ACTIVE, editable=False
    )
    reason = models.CharField(max_length=300, blank=True)
    """Why it does not play."""
    place = models.PositiveIntegerField(null=True, blank=True, editable=False)
    """Its final place; ties share the better one."""
    entered_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint("tournament", "name", name="entrant_name_unique"),
            models.UniqueConstraint("tournament", "seed", name="entrant_seed_unique"),
            models.CheckConstraint(
                name="entrant_state_known", condition=Q(state__in=EntrantState.values)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class EntrantBot(models.Model):
    """A bot of an entrant; its version is frozen when the tournament closes."""

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="+")
    entrant = models.ForeignKey(Entrant, on_delete=models.CASCADE, related_name="bots")
    position = models.PositiveSmallIntegerField(default=0)
    """Among the entrant's seats: 0, or 0 and 1 in a pair."""
    bot = models.ForeignKey(Bot, on_delete=models.PROTECT, related_name="entries")
    version = models.ForeignKey(
        BotVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="entries"
    )
    is_current = models.BooleanField(default=True, editable=False)
    """False once a newer version of the bot has taken this one's place on a ladder."""

    class Meta:
        ordering = ("entrant", "position")
        constraints = [
            models.UniqueConstraint("entrant", "position", name="entrantbot_position_unique"),
            models.UniqueConstraint(
                fields=("tournament", "bot"),
                condition=Q(is_current=True),
                name="entrantbot_bot_unique",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.entrant_id}/{self.position}"


class StageEntrant(models.Model):
    """An entrant of a stage: who plays it, with which seed, from which round on."""

    stage = models.ForeignKey(Stage, on_delete=models.CASCADE, related_name="entrants")
    entrant = models.ForeignKey(Entrant, on_delete=models.CASCADE, related_name="stage_entries")
    seed = models.PositiveIntegerField()
    """1 is the strongest; in the first stage the entrant's own."""
    first_round = models.PositiveIntegerField(default=1)
    """The first round that it can play; later than 1 for who entered late."""
    mu = models.FloatField(null=True)
    sigma = models.FloatField(null=True)
    """The rating with which it came into the stage, where the format asks for it."""

    class Meta:
        ordering = ("stage_id", "seed")
        constraints = [
            models.UniqueConstraint("stage", "entrant", name="stageentrant_entrant_unique"),
            models.UniqueConstraint("stage", "seed", name="stageentrant_seed_unique"),
            models.CheckConstraint(
                name="stageentrant_rating_whole",
                condition=Q(mu__isnull=True, sigma__isnull=True)
                | Q(mu__isnull=False, sigma__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.stage_id}, seed {self.seed}: {self.entrant_id}"


class TrialState(models.TextChoices):
    """Where a trial stands."""

    PENDING = "pending", "waiting to be tried"
    QUEUED = "queued", "in the queue to be tried"
    RUNNING = "running", "being tried"
    PASSED = "passed", "passed"
    FAILED = "failed", "failed"
    STUCK = "stuck", "could not be tried: waits for an operator"


TRIAL_TRANSITIONS = Transitions(
    {
        TrialState.PENDING: (TrialState.QUEUED, TrialState.RUNNING, TrialState.FAILED),
        TrialState.QUEUED: (TrialState.RUNNING, TrialState.PENDING, TrialState.FAILED),
        TrialState.RUNNING: (
            TrialState.PASSED,
            TrialState.FAILED,
            TrialState.PENDING,
            TrialState.STUCK,
        ),
        TrialState.PASSED: (),
        TrialState.FAILED: (TrialState.PENDING,),
        TrialState.STUCK: (TrialState.PENDING, TrialState.FAILED),
    }
)
TRIAL_DECIDED = (TrialState.PASSED, TrialState.FAILED)
"""States in which it is known whether the version plays under these conditions."""
TRIAL_TO_PLAY = (TrialState.PENDING, TrialState.QUEUED, TrialState.RUNNING)
"""States in which the site still has to try it, or is doing so."""
TRIAL_UNDECIDED = (*TRIAL_TO_PLAY, TrialState.STUCK)


class EntryTrial(LeaseFields):
    """Whether a version plays under the conditions of the tournaments that it might play in.

    Conditions that the check after an upload has not tried: rules, a table's size, a time control. Tournaments of
    equal ones share the trial.
    """

    version = models.ForeignKey(BotVersion, on_delete=models.CASCADE, related_name="trials")
    key = models.CharField(max_length=64, editable=False)
    """The hash of the conditions."""
    conditions = models.JSONField(editable=False)
    """An engine's `Conditions`."""
    due_at = models.DateTimeField(editable=False)
    """The earliest close of a tournament that wants to know."""
    state = models.CharField(
        max_length=7, choices=TrialState.choices, default=TrialState.PENDING, editable=False
    )
    reason = ReportField(blank=True, default="", editable=False)
    """Why it failed or is stuck."""
    log_sha256 = models.CharField(max_length=64, blank=True, default="", editable=False)
    """The blob of what it printed and how it crashed; for its owner only."""
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    decided_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint("version", "key", name="entrytrial_conditions_unique"),
            models.CheckConstraint(
                name="entrytrial_state_known", condition=Q(state__in=TrialState.values)
            ),
            models.CheckConstraint(
                name="entrytrial_running_is_leased",
                condition=~Q(state=TrialState.RUNNING)
                | Q(lease_until__isnull=False) & ~Q(lease_owner=""),
            ),
            models.CheckConstraint(
                name="entrytrial_failed_for_a_reason",
                condition=~Q(state=TrialState.FAILED) | ~Q(reason=""),
            ),
        ]
        indexes = [
            models.Index("state", "due_at", name="entrytrial_due"),
            models.Index("lease_until", name="entrytrial_lease"),
            models.Index(
                "decided_at", "id", name="entrytrial_decided", condition=Q(state__in=TRIAL_DECIDED)
            ),
        ]

    def __str__(self) -> str:
        return f"trial {self.pk} of version {self.version_id}"


class InvitationState(models.TextChoices):
    """Where an invitation to form a pair stands."""

    OPEN = "open", "waits for an answer"
    ACCEPTED = "accepted", "accepted"
    DECLINED = "declined", "declined"
    WITHDRAWN = "withdrawn", "taken back"
    EXPIRED = "expired", "expired at the close"


INVITATION_TRANSITIONS = Transitions(
    {
        InvitationState.OPEN: (
            InvitationState.ACCEPTED,
            InvitationState.DECLINED,
            InvitationState.WITHDRAWN,
            InvitationState.EXPIRED,
        ),
        InvitationState.ACCEPTED: (),
        InvitationState.DECLINED: (),
        InvitationState.WITHDRAWN: (),
        InvitationState.EXPIRED: (),
    }
)


class PairInvitation(models.Model):
    """That a player asks the owner of another bot to enter a tournament with it as a pair."""

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="invitations")
    bot = models.ForeignKey(Bot, on_delete=models.CASCADE, related_name="invitations_sent")
    """The inviting player's; it takes the pair's first seat."""
    invited = models.ForeignKey(Bot, on_delete=models.CASCADE, related_name="invitations")
    name = models.CharField(max_length=80, blank=True)
    """The pair's; empty: ``first + second``."""
    state = models.CharField(
        max_length=9,
        choices=InvitationState.choices,
        default=InvitationState.OPEN,
        editable=False,
    )
    at = models.DateTimeField(db_default=Now(), editable=False)
    answered_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ("tournament", "pk")
        constraints = [
            models.UniqueConstraint(
                fields=("tournament", "bot", "invited"),
                condition=Q(state="open"),
                name="pairinvitation_open_unique",
            ),
            models.CheckConstraint(
                name="pairinvitation_state_known", condition=Q(state__in=InvitationState.values)
            ),
            models.CheckConstraint(name="pairinvitation_two_bots", condition=~Q(bot=F("invited"))),
        ]

    def __str__(self) -> str:
        return f"{self.bot_id} invites {self.invited_id}"


class RoundState(models.TextChoices):
    """Where a round stands."""

    PENDING = "pending", "not begun"
    OPEN = "open", "being played"
    COMPLETE = "complete", "complete"


ROUND_TRANSITIONS = Transitions(
    {
        RoundState.PENDING: (RoundState.OPEN,),
        RoundState.OPEN: (RoundState.COMPLETE,),
        RoundState.COMPLETE: (RoundState.OPEN,),
    }
)


class Round(models.Model):
    """Pairings that are played at the same time. A published round is never computed again."""

    stage = models.ForeignKey(Stage, on_delete=models.CASCADE, related_name="rounds")
    index = models.PositiveIntegerField()
    """From 1."""
    state = models.CharField(
        max_length=8, choices=RoundState.choices, default=RoundState.PENDING, editable=False
    )
    opened_at = models.DateTimeField(null=True, editable=False)
    completed_at = models.DateTimeField(null=True, editable=False)
    published_at = models.DateTimeField(null=True, editable=False)
    """Since when its results are for everybody; None: they are sealed."""
    is_partial = models.BooleanField(default=False, editable=False)
    """A ruling took pairings back: they are paired anew when the rounds before are complete."""
    absent = models.JSONField(default=list, editable=False)
    """The ids of the stage's entrants who had withdrawn or been disqualified when it was first paired."""
    awaited = models.JSONField(default=list, editable=False)
    """Of a batch: the keys of the stage's matches that were open when it was picked."""

    class Meta:
        ordering = ("stage_id", "index")
        constraints = [
            models.UniqueConstraint("stage", "index", name="round_index_unique"),
            models.CheckConstraint(
                name="round_state_known", condition=Q(state__in=RoundState.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.stage_id}, round {self.index}"


class DecidedBy(models.TextChoices):
    """What decided a pairing, as `engine.formats.DecidedBy`."""

    PLAY = "play", "its match"
    LOT = "lot", "the lot, after a tied match"
    FAULT = "fault", "a bot's fault"
    FORFEIT = "forfeit", "the organiser"
    DOUBLE_FORFEIT = "double_forfeit", "a double forfeit"
    WALKOVER = "walkover", "the absence of an entrant"
    BYE = "bye", "a bye"
    VOID = "void", "annulled by the organiser"


PLAYED = (DecidedBy.PLAY, DecidedBy.LOT, DecidedBy.FAULT)
"""What decides a pairing whose match was played."""


class Pairing(models.Model):
    """Entrants that meet in a round, or the one that has a bye."""

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="pairings")
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="pairings")
    key = models.CharField(max_length=40)
    """The match key, as in ``SE/R1/M3``."""
    slot = models.PositiveIntegerField()
    """Its place in the round, from 1."""
    is_bye = models.BooleanField(default=False)
    edition = models.PositiveSmallIntegerField(default=1, editable=False)
    """How often this key has been played: more than 1 after a ruling."""
    decided_by = models.CharField(
        max_length=14, choices=DecidedBy.choices, blank=True, default="", editable=False
    )
    """Empty until it is decided."""
    is_ruled = models.BooleanField(default=False, editable=False)
    """An organiser decided it, against what a match says or without one."""
    earlier = models.JSONField(default=list, editable=False)
    """The results that rulings replaced, in their order, as `services.rounds.EarlierResult` describes them."""

    class Meta:
        ordering = ("round", "slot")
        constraints = [
            models.UniqueConstraint("tournament", "key", name="pairing_key_unique"),
            models.UniqueConstraint("round", "slot", name="pairing_slot_unique"),
            models.CheckConstraint(
                name="pairing_decision_known", condition=Q(decided_by__in=["", *DecidedBy.values])
            ),
            models.CheckConstraint(
                name="pairing_bye_decided_by_bye",
                condition=Q(is_bye=True, decided_by=DecidedBy.BYE)
                | Q(is_bye=False) & ~Q(decided_by=DecidedBy.BYE),
            ),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def rating_key(self) -> str:
        """Its key in the log of the ratings; wants its tournament loaded."""
        return spell_rating_key(self.tournament.slug, self.key, self.edition)


def spell_rating_key(slug: str, key: str, edition: int) -> str:
    """A pairing's key in the log of the ratings, which holds one result of each.

    ``cup/SE/R1/M1``; what is played anew after a ruling is ``cup/SE/R1/M1~2``.
    """
    return f"{slug}/{key}~{edition}" if edition > 1 else f"{slug}/{key}"


class PairingEntrant(models.Model):
    """An entrant's part in a pairing and what came of it."""

    pairing = models.ForeignKey(Pairing, on_delete=models.CASCADE, related_name="entrants")
    index = models.PositiveSmallIntegerField()
    """As in the record's `entrants`."""
    entrant = models.ForeignKey(Entrant, on_delete=models.PROTECT, related_name="pairings")
    score_twelfths = models.PositiveSmallIntegerField(null=True, editable=False)
    """What the stage's table counts, in twelfths: 12, 6 or 0 between two."""
    points = models.IntegerField(null=True, editable=False)
    """The record's points."""
    place = models.PositiveSmallIntegerField(null=True, editable=False)
    advances = models.BooleanField(null=True, editable=False)
    """Whether it goes on, in a format that knocks out; unknown until decided."""

    class Meta:
        ordering = ("pairing_id", "index")
        constraints = [
            models.UniqueConstraint("pairing", "index", name="pairingentrant_index_unique"),
            models.UniqueConstraint("pairing", "entrant", name="pairingentrant_entrant_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.pairing_id}/{self.index}"

    @property
    def score(self) -> Fraction | None:
        """What the stage's table counts: 1, ½ or 0 between two; None until decided."""
        if self.score_twelfths is None:
            return None
        return Fraction(self.score_twelfths, SCORE_DENOMINATOR)


class MatchState(models.TextChoices):
    """Where a match stands."""

    PENDING = "pending", "waiting"
    QUEUED = "queued", "in the queue"
    RUNNING = "running", "being played"
    FINISHED = "finished", "finished"
    CANCELLED = "cancelled", "cancelled"
    STUCK = "stuck", "could not be played: waits for an operator"


MATCH_TRANSITIONS = Transitions(
    {
        MatchState.PENDING: (
            MatchState.QUEUED,
            MatchState.RUNNING,
            MatchState.FINISHED,
            MatchState.CANCELLED,
        ),
        MatchState.QUEUED: (
            MatchState.PENDING,
            MatchState.RUNNING,
            MatchState.FINISHED,
            MatchState.CANCELLED,
        ),
        MatchState.RUNNING: (
            MatchState.FINISHED,
            MatchState.PENDING,
            MatchState.STUCK,
            MatchState.CANCELLED,
        ),
        MatchState.STUCK: (MatchState.PENDING, MatchState.FINISHED, MatchState.CANCELLED),
        MatchState.FINISHED: (MatchState.PENDING,),
        MatchState.CANCELLED: (),
    }
)
IN_FLIGHT = (MatchState.QUEUED, MatchState.RUNNING)
UNFINISHED = (MatchState.PENDING, *IN_FLIGHT, MatchState.STUCK)


class Termination(models.TextChoices):
    """What ended a match, as `engine.outcome.Termination`."""

    COMPLETED = "completed", "played to its end"
    ILLEGAL_ACTION = "illegal_action", "an illegal action"
    TIME = "time", "out of time"
    CRASH = "crash", "a crash"
    PROTOCOL = "protocol", "a protocol violation"
    MEMORY = "memory", "out of memory"
    FORFEIT = "forfeit", "forfeited by the organiser's decision"


class Match(LeaseFields):
    """What a pairing plays. A match that we failed to play is this same row with one more attempt."""

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="matches")
    """The pairing's; here too, so that dispatch finds a tournament's waiting matches by an index."""
    pairing = models.OneToOneField(Pairing, on_delete=models.CASCADE, related_name="match")
    state = models.CharField(
        max_length=10, choices=MatchState.choices, default=MatchState.PENDING, editable=False
    )
    rated = models.BooleanField(default=True, editable=False)
    is_sandboxed = models.BooleanField(default=True, editable=False)
    """False if the site played its bots as trusted ones, without walls: never rated, and the page says so."""
    termination = models.CharField(
        max_length=14, choices=Termination.choices, blank=True, default="", editable=False
    )
    record_sha256 = models.CharField(max_length=64, blank=True, default="", editable=False)
    """The blob of its record; empty once that has expired, while its digest stays."""
    logs_sha256 = models.CharField(max_length=64, blank=True, default="", editable=False)
    """The blob of what its bots printed; each owner sees only the own bots' part."""
    digest = models.CharField(max_length=71, blank=True, default="", editable=False)
    wall_ms = models.PositiveIntegerField(null=True, editable=False)
    """How long it took; what blocks of matches are sized by."""
    finished_at = models.DateTimeField(null=True, editable=False)
    is_kept = models.BooleanField(default=False, db_default=False, editable=False)
    """Whether its record stays though those of its age expire, because staff said so."""

    class Meta:
        verbose_name_plural = "matches"
        constraints = [
            models.CheckConstraint(
                name="match_state_known", condition=Q(state__in=MatchState.values)
            ),
            models.CheckConstraint(
                name="match_termination_known",
                condition=Q(termination__in=["", *Termination.values]),
            ),
            models.CheckConstraint(
                name="match_finished_has_termination",
                condition=Q(state=MatchState.FINISHED, finished_at__isnull=False)
                & ~Q(termination="")
                | ~Q(state=MatchState.FINISHED) & Q(termination="", finished_at__isnull=True),
            ),
            models.CheckConstraint(
                name="match_finished_has_digest",
                condition=~Q(state=MatchState.FINISHED)
                | Q(termination=Termination.FORFEIT)
                | ~Q(digest=""),
            ),
            models.CheckConstraint(
                name="match_running_is_leased",
                condition=~Q(state=MatchState.RUNNING)
                | Q(lease_until__isnull=False) & ~Q(lease_owner=""),
            ),
        ]
        indexes = [
            models.Index("state", "run_after", name="match_due"),
            models.Index("lease_until", name="match_lease"),
            models.Index("tournament", "state", "id", name="match_of_tournament"),
            models.Index(
                "run_after", "id", name="match_unfinished", condition=Q(state__in=UNFINISHED)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tournament.slug}/{self.pairing.key}"

    @property
    def record_has_expired(self) -> bool:
        """Whether it had a record that was let go for its age."""
        return bool(self.digest) and not self.record_sha256


class AttemptEnding(models.TextChoices):
    """How an attempt ended."""

    RUNNING = "running", "not yet"
    RECORDED = "recorded", "with a result"
    FAILED = "failed", "by a failure of our own"
    LOST = "lost", "its worker showed no sign of life"
    RELEASED = "released", "given back by a worker that was told to stop"
    CANCELLED = "cancelled", "by a cancellation"


class Attempt(models.Model):
    """One try to play a match: who, when, and how it ended."""

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="tries")
    fence = models.PositiveIntegerField()
    worker = models.CharField(max_length=100)
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    ending = models.CharField(
        max_length=10, choices=AttemptEnding.choices, default=AttemptEnding.RUNNING
    )
    detail = ReportField(blank=True)
    is_tallied = models.BooleanField(default=False, db_default=False, editable=False)
    """Whether the site's metrics count it already."""

    class Meta:
        ordering = ("match", "fence")
        constraints = [
            models.UniqueConstraint("match", "fence", name="attempt_fence_unique"),
            models.CheckConstraint(
                name="attempt_ending_known", condition=Q(ending__in=AttemptEnding.values)
            ),
        ]
        indexes = [
            models.Index(
                "id",
                name="attempt_to_tally",
                condition=Q(is_tallied=False, ended_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.match_id}, attempt {self.fence}"


class QueueClock(models.Model):
    """Whose turn it is: start-time fair queueing over the tournaments that have matches waiting.

    One row. Its time runs in seconds of work by weight: each block that a tournament gets moves its turn on by the
    block's seconds over the tournament's weight, and the earliest turn is served next. Whoever had nothing
    waiting begins at `now`, so that idleness earns no credit (Goyal, Vin & Cheng 1996, "Start-time Fair
    Queueing", eqs. 4 and 5).
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    now = models.FloatField(default=0.0, editable=False)
    """The turn that was served last."""
    ahead = models.JSONField(default=dict, editable=False)
    """Tournament id → its next turn, of those whose next turn is later than `now`."""
    match_seconds = models.JSONField(default=dict, editable=False)
    """Tournament id → how long a match of it lasts, as measured a few seconds ago."""

    def __str__(self) -> str:
        return f"the queue's clock at {self.now:.3f}"

    def turn_of(self, tournament_id: int) -> float:
        """When it is this tournament's turn."""
        turn: float = self.ahead.get(str(tournament_id), self.now)
        return turn

    def serve(self, tournament_id: int, cost: float) -> None:
        """Give it its turn, with a block of so many seconds by its weight; to be saved by the caller."""
        turn = self.turn_of(tournament_id)
        self.now = max(self.now, turn)
        self.ahead = {
            other: later
            for other, later in {**self.ahead, str(tournament_id): turn + cost}.items()
            if later > self.now
        }


class RulingKind(models.TextChoices):
    """What an organiser decided about results."""

    CORRECTED = "corrected", "another result"
    VOIDED = "voided", "annulled"
    RESTORED = "restored", "counts as it was played"
    RERUN = "rerun", "is played again"
    FORFEITED = "forfeited", "decided without being played"
    DISQUALIFIED = "disqualified", "disqualified"


class Ruling(models.Model):
    """That an organiser changed results: who, when, why, and what it meant. Never changed."""

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="rulings")
    kind = models.CharField(max_length=12, choices=RulingKind.choices)
    subject = models.CharField(max_length=80)
    """The match's key, or the entrant's name."""
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    """Who decided; None: the site's own services."""
    reason = models.CharField(max_length=300)
    round = models.ForeignKey(Round, on_delete=models.SET_NULL, null=True, related_name="rulings")
    """The round of the match; while it is sealed, so is this."""
    before = models.CharField(max_length=200, blank=True)
    after = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("tournament", "pk")
        constraints = [
            models.CheckConstraint(
                name="ruling_kind_known", condition=Q(kind__in=RulingKind.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject}: {self.get_kind_display()}"


class SupersededMatch(models.Model):
    """A pairing that a ruling took back, as it was; what was played stays readable."""

    ruling = models.ForeignKey(Ruling, on_delete=models.CASCADE, related_name="superseded")
    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="superseded")
    key = models.CharField(max_length=40)
    edition = models.PositiveSmallIntegerField()
    round_index = models.PositiveIntegerField()
    entrants = models.JSONField()
    """``[{"name": …, "place": …, "points": …}, …]`` in the order of the pairing."""
    decided_by = models.CharField(max_length=14, blank=True)
    """Empty if it was open."""
    record_sha256 = models.CharField(max_length=64, blank=True)
    digest = models.CharField(max_length=71, blank=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "superseded matches"
        ordering = ("ruling_id", "pk")
        constraints = [
            models.UniqueConstraint(
                "tournament", "key", "edition", name="supersededmatch_edition_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key}, edition {self.edition}"


class Notice(models.Model):
    """What the site tells a player about a tournament; on their pages until they put it away."""

    player = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices"
    )
    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="notices")
    text = models.CharField(max_length=500)
    at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index("player", "seen_at", name="notice_of_player")]

    def __str__(self) -> str:
        return f"to {self.player_id}: {self.text}"


class Series(models.Model):
    """Tournaments that come again and again, all made from one template."""

    name = models.CharField(max_length=60)
    slug = models.SlugField(max_length=40, unique=True)
    organiser = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="series"
    )
    rule = models.JSONField()
    """As `services.series.Rule`: weekdays, the local time of the start, how long entries are open."""
    time_zone = models.CharField(max_length=64, default="UTC")
    template = models.JSONField()
    """The fields of a `services.Plan` without name, address and times."""
    points_table = models.JSONField(default=list)
    """What a place in one of its tournaments is worth for the season, from the first on."""
    is_active = models.BooleanField(default=True)
    stopped_reason = models.CharField(max_length=500, blank=True, editable=False)
    """Why the site switched it off by itself, if it did."""
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    changed_at = models.DateTimeField(null=True, editable=False)
    """Since when its rule is as it is, if it is not the first: earlier starts were never announced."""

    class Meta:
        verbose_name_plural = "series"

    def __str__(self) -> str:
        return self.name


class SeriesSlot(models.Model):
    """A start time of a series that has got its tournament."""

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="slots")
    slot_utc = models.DateTimeField()
    tournament = models.OneToOneField(
        Tournament, on_delete=models.SET_NULL, null=True, related_name="slot"
    )

    class Meta:
        ordering = ("series", "slot_utc")
        constraints = [
            models.UniqueConstraint("series", "slot_utc", name="seriesslot_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.series_id} at {self.slot_utc}"


class SeriesEntry(models.Model):
    """Who is entered for a whole series: in each tournament, with the version active at its close."""

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="entries")
    name = models.CharField(max_length=80)
    entered_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name_plural = "series entries"
        constraints = [
            models.UniqueConstraint("series", "name", name="seriesentry_name_unique"),
        ]

    def __str__(self) -> str:
        return self.name


class SeriesEntryBot(models.Model):
    """A bot of a series' entry."""

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="+")
    entry = models.ForeignKey(SeriesEntry, on_delete=models.CASCADE, related_name="bots")
    position = models.PositiveSmallIntegerField(default=0)
    bot = models.ForeignKey(Bot, on_delete=models.PROTECT, related_name="series_entries")

    class Meta:
        ordering = ("entry", "position")
        constraints = [
            models.UniqueConstraint("entry", "position", name="seriesentrybot_position_unique"),
            models.UniqueConstraint("series", "bot", name="seriesentrybot_bot_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.entry_id}/{self.position}"
