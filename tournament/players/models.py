"""Players, tokens, bots and their versions: fields, constraints, questions about one row."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower, Now, Upper
from django.utils.text import slugify

from tournament.store.fields import ReportField
from tournament.store.leases import LeaseFields
from tournament.store.states import Transitions

HOUSE = "house"
"""The account that owns the reference bots."""
FORMER = "former player"
"""What somebody is called whose person was removed, with a number."""


class Player(AbstractUser):
    """A person with an account. Records, bundles and logs never name players, only bots."""

    slug = models.SlugField(max_length=60, unique=True)
    """Their place in addresses."""
    time_zone = models.CharField(max_length=64, default="UTC")
    """An IANA name; times are shown in it."""
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    """Drawn at random, so that a list of erasures can name an account without saying whose it was."""
    erased_at = models.DateTimeField(null=True, blank=True, editable=False)
    """When the person was removed from the site; what is left are bots and a number."""
    wants_mail = models.BooleanField("Notices by mail", default=True, db_default=True)
    """Whether they like their notices by mail, if the site sends mail."""
    confirmed_email = models.EmailField(blank=True, default="", db_default="", editable=False)
    """The address that is known to be theirs; mail goes to no other."""
    confirmation_at = models.DateTimeField(null=True, blank=True, editable=False)
    """When they were last asked to confirm an address."""

    class Meta(AbstractUser.Meta):  # type: ignore[name-defined,misc] # the stubs do not have it
        verbose_name = "player"
        verbose_name_plural = "players"

    def __str__(self) -> str:
        return self.username

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save; an account made by a command or in the admin gets its address from its name."""
        if not self.slug:
            self.slug = free_slug(self.username)
        super().save(*args, **kwargs)

    @property
    def has_confirmed_mail(self) -> bool:
        """Whether the address that they gave is known to be theirs."""
        return bool(self.email) and self.email == self.confirmed_email

    @property
    def takes_mail(self) -> bool:
        """Whether notices are mailed to them, if the site sends mail."""
        return self.is_active and self.wants_mail and self.has_confirmed_mail


class MailKind(models.TextChoices):
    """What a mail is for."""

    NOTICE = "notice", "a notice"
    CONFIRMATION = "confirmation", "the link that confirms an address"
    PASSWORD = "password", "the link that sets a password"


class OutgoingMail(models.Model):
    """A mail that waits to be sent; deleted when it has been."""

    player = models.ForeignKey(Player, on_delete=models.CASCADE, related_name="mails")
    kind = models.CharField(max_length=12, choices=MailKind.choices, default=MailKind.NOTICE)
    subject = models.CharField(max_length=200)
    text = models.CharField(max_length=500, blank=True)
    """Empty for what holds nothing but a link, which is made when it is sent."""
    path = models.CharField(max_length=200, blank=True)
    """The page that it is about."""
    created_at = models.DateTimeField(db_default=Now())
    run_after = models.DateTimeField(db_default=Now())
    """When it is sent, or tried again."""

    class Meta:
        verbose_name = "mail"
        constraints = [
            models.CheckConstraint(
                name="outgoingmail_kind_known", condition=Q(kind__in=MailKind.values)
            ),
        ]
        indexes = [models.Index(fields=["run_after"], name="outgoingmail_due")]

    def __str__(self) -> str:
        return f"to {self.player_id}: {self.subject}"


class ResetRequest(models.Model):
    """That somebody wants another password for the account of this address; kept for ten minutes, to limit the mail."""

    email = models.EmailField(unique=True)
    """In small letters, as somebody typed it: perhaps nobody's here."""
    at = models.DateTimeField()
    is_answered = models.BooleanField(default=False)
    """Whether the mail is queued, if there is an account."""

    def __str__(self) -> str:
        return f"for {self.email} at {self.at:%H:%M}"


class SignUp(models.Model):
    """That an account was made from an address; kept for an hour, to limit how many one makes."""

    address = models.GenericIPAddressField()
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["address", "at"], name="sign_up_by_address")]

    def __str__(self) -> str:
        return f"{self.address} at {self.at:%H:%M}"


def free_slug(username: str) -> str:
    """An address that no account has yet, made from a user name."""
    base = slugify(username)[:50] or "player"
    taken = set(Player.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    numbered = (f"{base}-{number}" for number in itertools.count(2))
    return base if base not in taken else next(slug for slug in numbered if slug not in taken)


class TokenScope(models.TextChoices):
    """What a token allows."""

    READ = "read", "read what its player may see"
    SUBMIT = "submit", "also submit bots and enter tournaments"


class ApiToken(models.Model):
    """A key for programs, sent as ``Bearer PREFIX.SECRET``; only the secret's hash is kept."""

    player = models.ForeignKey(Player, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=60, blank=True)
    prefix = models.CharField(max_length=12, unique=True)
    sha256 = models.CharField(max_length=64)
    scope = models.CharField(max_length=10, choices=TokenScope.choices, default=TokenScope.READ)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    """To the minute."""

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="apitoken_scope_known", condition=Q(scope__in=TokenScope.values)
            ),
        ]

    def __str__(self) -> str:
        return self.prefix


class Bot(models.Model):
    """A name under which versions are submitted."""

    owner = models.ForeignKey(Player, on_delete=models.PROTECT, related_name="bots")
    name = models.CharField(max_length=32, validators=[RegexValidator(r"^[a-z][a-z0-9_-]{1,31}$")])
    paused_reason = models.CharField(max_length=200, blank=True)
    """Not empty: it enters nothing and its waiting entries are not played until it is lifted."""
    allows_scrimmages = models.BooleanField(default=True, db_default=True)
    """Whether others may ask for scrimmages against it; its owner says so, and may always."""
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(Lower("name"), name="bot_name_unique"),
        ]
        indexes = [
            models.Index(Upper("name"), name="bot_in_any_case"),  # how PostgreSQL is asked
            models.Index("name", name="bot_by_name"),
        ]

    def __str__(self) -> str:
        return self.name


class VersionState(models.TextChoices):
    """Where a version stands, from upload to retirement."""

    SUBMITTED = "submitted", "waiting to be checked"
    QUEUED = "queued", "in the queue to be checked"
    RUNNING = "running", "being checked"
    ACCEPTED = "accepted", "accepted"
    REJECTED = "rejected", "rejected"
    STUCK = "stuck", "could not be checked: waits for an operator"
    QUARANTINED = "quarantined", "set aside"
    WITHDRAWN = "withdrawn", "withdrawn by its owner"


VERSION_TRANSITIONS = Transitions(
    {
        VersionState.SUBMITTED: (VersionState.QUEUED, VersionState.RUNNING, VersionState.WITHDRAWN),
        VersionState.QUEUED: (
            VersionState.RUNNING,
            VersionState.SUBMITTED,
            VersionState.WITHDRAWN,
        ),
        VersionState.RUNNING: (
            VersionState.ACCEPTED,
            VersionState.REJECTED,
            VersionState.SUBMITTED,
            VersionState.STUCK,
            VersionState.WITHDRAWN,
        ),
        VersionState.STUCK: (VersionState.SUBMITTED, VersionState.WITHDRAWN),
        VersionState.ACCEPTED: (VersionState.QUARANTINED, VersionState.WITHDRAWN),
        VersionState.QUARANTINED: (VersionState.ACCEPTED, VersionState.WITHDRAWN),
        VersionState.REJECTED: (VersionState.WITHDRAWN,),
        VersionState.WITHDRAWN: (),
    }
)
TO_BE_CHECKED = (VersionState.SUBMITTED, VersionState.QUEUED, VersionState.RUNNING)
"""States in which the site still has to check the version, or is doing so."""
UNDECIDED = (*TO_BE_CHECKED, VersionState.STUCK)
"""States in which nobody knows yet whether the version will be accepted."""


class BotVersion(LeaseFields):
    """One submitted wheel of a bot. The row is the request to check it."""

    bot = models.ForeignKey(Bot, on_delete=models.PROTECT, related_name="versions")
    version = models.CharField(max_length=64)
    wheel_sha256 = models.CharField(max_length=64, editable=False)
    state = models.CharField(
        max_length=12,
        choices=VersionState.choices,
        default=VersionState.SUBMITTED,
        editable=False,
    )
    summary = models.CharField(max_length=300, blank=True)
    """The wheel's own one-line description."""
    reason = ReportField(blank=True)
    """Why it was rejected, set aside or is stuck."""
    log_sha256 = models.CharField(max_length=64, blank=True, editable=False)
    """The blob of what it printed while it was checked, and how it crashed; for its owner only."""
    matches_played = models.PositiveIntegerField(default=0, editable=False)
    """Recorded matches since it was accepted, or accepted again."""
    crashes = models.PositiveIntegerField(default=0, editable=False)
    """How many of these its crash ended."""
    crashes_in_a_row = models.PositiveIntegerField(default=0, editable=False)
    """How many of the last ones, without one between."""
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="children"
    )
    """The version that it follows; its rating starts from there."""
    uploaded_at = models.DateTimeField(db_default=Now(), editable=False)
    decided_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        permissions = [
            (
                "audit_botversion",
                "Can read other players' wheels and what they printed; each reading is noted",
            )
        ]
        constraints = [
            models.UniqueConstraint("bot", "version", name="botversion_version_unique"),
            models.UniqueConstraint("bot", "wheel_sha256", name="botversion_wheel_unique"),
            models.CheckConstraint(
                name="botversion_state_known", condition=Q(state__in=VersionState.values)
            ),
            models.CheckConstraint(
                name="botversion_running_is_leased",
                condition=~Q(state=VersionState.RUNNING)
                | Q(lease_until__isnull=False) & ~Q(lease_owner=""),
            ),
        ]
        indexes = [
            models.Index("state", "run_after", name="botversion_due"),
            models.Index("lease_until", name="botversion_lease"),
            models.Index(
                "bot", name="botversion_accepted", condition=Q(state=VersionState.ACCEPTED)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.bot.name} {self.version}"

    @property
    def is_undecided(self) -> bool:
        """Whether it is not known yet if the version will be accepted."""
        return self.state in UNDECIDED


class VersionGame(models.Model):
    """A game that a version was accepted for, and what of it: numbers of players, values of options."""

    version = models.ForeignKey(BotVersion, on_delete=models.CASCADE, related_name="games")
    game = models.CharField(max_length=20)
    options = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint("version", "game", name="versiongame_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.version_id}: {self.game}"
