"""Scrimmages and the batches of sets that they are played in: fields, constraints, questions about one row."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from engine.comparison import Question
from engine.statistics import SequentialTest
from tournament.competitions.models import RULES_VERSION
from tournament.players.models import BotVersion
from tournament.store.fields import ReportField
from tournament.store.leases import LeaseFields
from tournament.store.states import Transitions


class Difference(models.TextChoices):
    """How big a difference matters to who asks."""

    SMALL = "small", "even a small one: 10 Elo, winning 51 % of the plays"
    CLEAR = "clear", "a clear one: 30 Elo, 54 %"
    LARGE = "large", "only a large one: 80 Elo, 61 %"
    NO_WORSE = "no_worse", "none, it must only be no worse (by 30 Elo)"


HYPOTHESES = {
    Difference.SMALL: (0.0, 10.0),
    Difference.CLEAR: (0.0, 30.0),
    Difference.LARGE: (0.0, 80.0),
    Difference.NO_WORSE: (-30.0, 0.0),
}
"""By difference the two Elo differences that the test tells apart."""


TIME_CONTROLS = ("fast", "standard")
"""Those that scrimmages are played with: a batch must not keep a worker from tournaments for an hour."""


class ScrimmageState(models.TextChoices):
    """Where a scrimmage stands. Between two batches it waits again."""

    WAITING = "waiting", "waiting for its turn"
    QUEUED = "queued", "handed to a worker"
    RUNNING = "running", "being played"
    FINISHED = "finished", "finished"
    CANCELLED = "cancelled", "cancelled"
    STUCK = "stuck", "could not be played: waits for an operator"


SCRIMMAGE_TRANSITIONS = Transitions(
    {
        ScrimmageState.WAITING: (
            ScrimmageState.QUEUED,
            ScrimmageState.RUNNING,
            ScrimmageState.CANCELLED,
        ),
        ScrimmageState.QUEUED: (
            ScrimmageState.RUNNING,
            ScrimmageState.WAITING,
            ScrimmageState.CANCELLED,
        ),
        ScrimmageState.RUNNING: (
            ScrimmageState.WAITING,
            ScrimmageState.FINISHED,
            ScrimmageState.STUCK,
            ScrimmageState.CANCELLED,
        ),
        ScrimmageState.STUCK: (ScrimmageState.WAITING, ScrimmageState.CANCELLED),
        ScrimmageState.FINISHED: (),
        ScrimmageState.CANCELLED: (),
    }
)
IN_FLIGHT = (ScrimmageState.QUEUED, ScrimmageState.RUNNING)
ON_ITS_WAY = (ScrimmageState.WAITING, *IN_FLIGHT)
OPEN = (*ON_ITS_WAY, ScrimmageState.STUCK)
"""States in which nobody knows yet what comes of it."""


class Answer(models.TextChoices):
    """What came of it, as `engine.comparison.Verdict`."""

    BETTER = "better", "better"
    NOT_BETTER = "not_better", "not better"
    UNDECIDED = "undecided", "not decided"
    FAULT = "fault", "ended by a fault"


class Scrimmage(LeaseFields):
    """A question about two bot versions. The row is the request; each claim on it plays one batch."""

    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="scrimmages"
    )
    first = models.ForeignKey(BotVersion, on_delete=models.PROTECT, related_name="+")
    """The one that is asked about; a version of the asker's own."""
    other = models.ForeignKey(BotVersion, on_delete=models.PROTECT, related_name="+")
    game = models.CharField(max_length=20)
    ruleset = models.JSONField(default=dict)
    """Options of the game that are not as usual."""
    time_control = models.CharField(max_length=20)
    difference = models.CharField(max_length=10, choices=Difference.choices)
    elo0 = models.FloatField()
    elo1 = models.FloatField()
    most_sets = models.PositiveIntegerField()
    seed = models.CharField(max_length=64)
    """Its deals follow from it, as those of ``arena compare --seed``."""
    rules_version = models.CharField(max_length=30, default=RULES_VERSION, editable=False)
    state = models.CharField(
        max_length=10,
        choices=ScrimmageState.choices,
        default=ScrimmageState.WAITING,
        editable=False,
    )
    counts = models.JSONField(default=list, editable=False)
    """How many sets the first ended with 0, ¼, ½, ¾ and 1, up to the one that decided."""
    likelihood_ratio = models.FloatField(null=True, editable=False)
    answer = models.CharField(max_length=10, choices=Answer.choices, blank=True, editable=False)
    reason = ReportField(blank=True, editable=False)
    """Which fault ended it, why it was cancelled, or why it is stuck."""
    failure = ReportField(blank=True, editable=False)
    """Our own last failure, for operators."""
    asked_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    ended_at = models.DateTimeField(null=True, editable=False)
    is_kept = models.BooleanField(default=False, db_default=False, editable=False)
    """Whether its records stay though those of their age expire, because staff said so."""

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="scrimmage_state_known", condition=Q(state__in=ScrimmageState.values)
            ),
            models.CheckConstraint(
                name="scrimmage_difference_known", condition=Q(difference__in=Difference.values)
            ),
            models.CheckConstraint(name="scrimmage_of_two", condition=~Q(first=F("other"))),
            models.CheckConstraint(name="scrimmage_elos_ordered", condition=Q(elo0__lt=F("elo1"))),
            models.CheckConstraint(
                name="scrimmage_finished_is_answered",
                condition=Q(state=ScrimmageState.FINISHED, answer__in=Answer.values)
                | ~Q(state=ScrimmageState.FINISHED) & Q(answer=""),
            ),
            models.CheckConstraint(
                name="scrimmage_running_is_leased",
                condition=~Q(state=ScrimmageState.RUNNING)
                | Q(lease_until__isnull=False) & ~Q(lease_owner=""),
            ),
        ]
        indexes = [
            models.Index("state", "run_after", name="scrimmage_due"),
            models.Index("asked_by", "asked_at", name="scrimmage_asked"),
        ]

    def __str__(self) -> str:
        return f"scrimmage {self.pk}: {self.first} against {self.other}"

    @property
    def is_open(self) -> bool:
        """Whether it is not known yet what comes of it."""
        return self.state in OPEN

    @property
    def sets(self) -> int:
        """How many sets count so far."""
        return sum(self.counts)

    @property
    def question(self) -> Question:
        """What is asked of the sets."""
        return Question(
            test=SequentialTest(elo0=self.elo0, elo1=self.elo1), most_sets=self.most_sets
        )


class Batch(models.Model):
    """A match of some sets of a scrimmage, played at one go."""

    scrimmage = models.ForeignKey(Scrimmage, on_delete=models.CASCADE, related_name="batches")
    number = models.PositiveIntegerField()
    """From 1; the match's key is ``M`` and the number."""
    scores = models.JSONField()
    """``[set][rotation][entrant]``: what each scored in each play; empty if a fault ended the match."""
    termination = models.CharField(max_length=20)
    digest = models.CharField(max_length=71)
    """Of the record; it stays when the record is gone."""
    record_sha256 = models.CharField(max_length=64, blank=True)
    """Empty once the record has expired."""
    logs_sha256 = models.CharField(max_length=64, blank=True)
    is_sandboxed = models.BooleanField()
    wall_ms = models.PositiveIntegerField()
    fence = models.PositiveIntegerField()
    """Of the claim under which it was played."""
    worker = models.CharField(max_length=100)
    played_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "batches"
        constraints = [
            models.UniqueConstraint("scrimmage", "number", name="batch_once"),
        ]
        indexes = [models.Index("played_at", name="batch_by_age")]

    def __str__(self) -> str:
        return f"M{self.number}"
