"""Rating pools, their logs and the ratings that follow: fields, constraints, questions about one row."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tournament.players.models import Bot, BotVersion


class PoolKind(models.TextChoices):
    """Who meets whom in a pool."""

    MONO = "mono", "one bot on both seats of a side"
    PAIR = "pair", "pairs of two bots"
    FFA = "ffa", "each for itself"


class RatingPool(models.Model):
    """All that is rated together: one pool per game and kind."""

    game = models.CharField(max_length=20)
    kind = models.CharField(max_length=4, choices=PoolKind.choices)
    last_seq = models.PositiveBigIntegerField(default=0, editable=False)
    """The number of the log's last event; the row is locked while events are appended."""

    class Meta:
        constraints = [
            models.UniqueConstraint("game", "kind", name="ratingpool_unique"),
            models.CheckConstraint(
                name="ratingpool_kind_known", condition=Q(kind__in=PoolKind.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.game} {self.kind}"


class AppendOnlyError(Exception):
    """The log of a rating pool only grows: void an event by a later one instead of changing it."""


class AppendOnlyQuerySet(models.QuerySet["RatingEvent"]):
    """Rows that can be added and read."""

    def update(self, **_: Any) -> NoReturn:
        """Refused. Raises AppendOnlyError."""
        raise AppendOnlyError(AppendOnlyError.__doc__)

    def delete(self) -> NoReturn:
        """Refused. Raises AppendOnlyError."""
        raise AppendOnlyError(AppendOnlyError.__doc__)

    def bulk_update(self, *_: Any, **__: Any) -> NoReturn:
        """Refused. Raises AppendOnlyError."""
        raise AppendOnlyError(AppendOnlyError.__doc__)


class EventKind(models.TextChoices):
    """What an event says."""

    RESULT = "result", "a match was played"
    VOID = "void", "a result no longer counts"
    UNVOID = "unvoid", "a voided result counts again"


class RatingEvent(models.Model):
    """One line of a pool's log. Never updated, never deleted."""

    pool = models.ForeignKey(RatingPool, on_delete=models.PROTECT, related_name="events")
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=6, choices=EventKind.choices)
    match_key = models.CharField(max_length=120)
    """The tournament's slug, a slash, and the match's key in it."""
    teams = models.JSONField()
    """``[{"members": [["bot", "version"], …], "place": 1}, …]``; empty for void and unvoid."""
    at = models.DateTimeField(db_default=Now())

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint("pool", "seq", name="ratingevent_seq_unique"),
            models.UniqueConstraint(
                "match_key", condition=Q(kind=EventKind.RESULT), name="ratingevent_one_result"
            ),
            models.CheckConstraint(
                name="ratingevent_kind_known", condition=Q(kind__in=EventKind.values)
            ),
            models.CheckConstraint(name="ratingevent_seq_from_one", condition=Q(seq__gte=1)),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id} #{self.seq} {self.kind} {self.match_key}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Add the event. Raises AppendOnlyError for one that is in the log already."""
        if not self._state.adding:
            raise AppendOnlyError(AppendOnlyError.__doc__)
        super().save(*args, **kwargs)

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        """Refused. Raises AppendOnlyError."""
        raise AppendOnlyError(AppendOnlyError.__doc__)


class RatingStep(models.Model):
    """A version's rating after an event: its history."""

    event = models.ForeignKey(RatingEvent, on_delete=models.PROTECT, related_name="steps")
    version = models.ForeignKey(BotVersion, on_delete=models.PROTECT, related_name="rating_steps")
    mu = models.FloatField()
    sigma = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint("event", "version", name="ratingstep_unique"),
        ]
        indexes = [models.Index("version", "event", name="ratingstep_history")]

    def __str__(self) -> str:
        return f"{self.version_id} after {self.event_id}"


class Rating(models.Model):
    """A version's rating in a pool, as the fold of the log left it, and its place on the leaderboard."""

    pool = models.ForeignKey(RatingPool, on_delete=models.PROTECT, related_name="ratings")
    version = models.ForeignKey(BotVersion, on_delete=models.PROTECT, related_name="ratings")
    bot = models.ForeignKey(Bot, on_delete=models.PROTECT, related_name="ratings")
    mu = models.FloatField()
    sigma = models.FloatField()
    shown = models.FloatField()
    """μ - 3σ: what the leaderboard is ordered by."""
    is_listed = models.BooleanField(default=False)
    """Whether it stands for its bot on the leaderboard: the newest settled version, or else the newest."""
    rank = models.PositiveIntegerField(null=True)
    """1 is the best, equal numbers share it; none for versions that are not listed."""
    matches = models.PositiveIntegerField(default=0)
    wins = models.PositiveIntegerField(default=0)
    ties = models.PositiveIntegerField(default=0)
    last_seq = models.PositiveBigIntegerField(default=0)
    """The last event that touched it."""
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "leaderboards"
        constraints = [
            models.UniqueConstraint("pool", "version", name="rating_unique"),
            models.UniqueConstraint(
                "pool", "bot", condition=Q(is_listed=True), name="rating_one_listed"
            ),
            models.CheckConstraint(name="rating_sigma_positive", condition=Q(sigma__gt=0)),
        ]
        indexes = [
            models.Index("pool", "rank", "id", name="rating_leaderboard"),
            models.Index("pool", "bot", name="rating_of_bot"),
        ]

    def __str__(self) -> str:
        return f"{self.version_id} in {self.pool_id}"
