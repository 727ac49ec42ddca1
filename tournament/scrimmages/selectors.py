"""Questions about scrimmages; answers are QuerySets or frozen rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.conf import settings
from django.db.models import F, Max, Q, QuerySet
from django.db.models.functions import Now

from engine.comparison import (
    Findings,
    Sets,
    name_entrants,
    nth_match,
    scores_by_set,
    spell_answer,
    weigh,
)
from engine.games import GAMES
from engine.plugins import BotSource
from engine.record import EntrantRef, MatchRecord, MatchSpec, decode_record
from engine.referee import SeatLog
from engine.statistics import Decision
from tournament.competitions.models import (
    RULES_VERSION,
    EntryTrial,
    Match,
    MatchState,
    TournamentState,
    TrialState,
)
from tournament.players.models import TO_BE_CHECKED, Bot, BotVersion, Player, VersionState
from tournament.players.selectors import PUBLIC_STATES
from tournament.scrimmages.errors import InvalidScrimmageError
from tournament.scrimmages.models import (
    OPEN,
    Answer,
    Batch,
    Scrimmage,
    ScrimmageState,
)
from tournament.store.clock import read_clock
from tournament.store.services import read_packed
from tournament.store.waiting import QueuePlace, place_behind, queue_state

DAY = timedelta(days=1)


def scrimmages() -> QuerySet[Scrimmage]:
    """All of them, the newest first, with who asked and who meets."""
    return Scrimmage.objects.select_related(
        "asked_by", "first__bot__owner", "other__bot__owner"
    ).order_by("-pk")


def scrimmages_of(player: Player) -> QuerySet[Scrimmage]:
    """Those that `player` asked for, the newest first."""
    return scrimmages().filter(asked_by=player)


def scrimmages_against(player: Player) -> QuerySet[Scrimmage]:
    """Those that others asked for against a bot of `player`, the newest first."""
    return scrimmages().filter(other__bot__owner=player).exclude(asked_by=player)


def scrimmages_seen_by(player: Player) -> QuerySet[Scrimmage]:
    """Those whose result and records `player` may read: both owners may."""
    own = list(BotVersion.objects.filter(bot__owner=player).values_list("pk", flat=True))
    return scrimmages().filter(Q(asked_by=player) | Q(other__in=own))


TRICKLE_SECONDS = 10.0
"""While tournaments or checks keep the site busy, one batch is begun at most so often."""
UNKNOWN_BATCH_SECONDS = 5.0
"""What a batch is taken to last where none has been played."""
_MEASURED_BATCHES = 20


def open_scrimmages() -> QuerySet[Scrimmage]:
    """Those that are not over, each with its `QueueState` as ``standing``. None is ever held."""
    return (
        scrimmages()
        .filter(state__in=OPEN)
        .annotate(
            standing=queue_state(
                running=ScrimmageState.RUNNING,
                queued=ScrimmageState.QUEUED,
                stuck=ScrimmageState.STUCK,
                held=Q(pk__in=[]),
            )
        )
    )


def place_in_queue(scrimmage: Scrimmage) -> QueuePlace | None:
    """Whose turn comes when, and about how long it takes; None if it does not wait.

    All take turns, a batch each, and who has waited longest comes first.
    """
    return places_in_queue([scrimmage]).get(scrimmage.pk)


def places_in_queue(rows: Sequence[Scrimmage]) -> dict[int, QueuePlace]:
    """`place_in_queue` of several by id, those left out that do not wait."""
    waiting = {ScrimmageState.WAITING, ScrimmageState.QUEUED}
    if not any(row.state in waiting for row in rows):
        return {}
    turns = Scrimmage.objects.filter(state__in=waiting).order_by("run_after", "pk")
    ahead = {pk: number for number, pk in enumerate(turns.values_list("pk", flat=True))}
    last = Batch.objects.order_by("-pk").values_list("wall_ms", flat=True)[:_MEASURED_BATCHES]
    each = sum(last) / len(last) / 1000 if last else UNKNOWN_BATCH_SECONDS
    is_busy = site_is_busy()
    now = read_clock()
    return {
        row.pk: place_behind(
            ahead.get(row.pk, 0),
            len(ahead),
            each_seconds=max(each, TRICKLE_SECONDS) if is_busy else each,
            slots=1 if is_busy else settings.ARENA_SCRIMMAGE_SLOTS,
            not_before=(row.run_after - now).total_seconds(),
        )
        for row in rows
        if row.state in waiting
    }


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many scrimmages a player may still ask for."""

    open: int
    most_open: int
    today: int
    """Asked for within 24 hours; what was cancelled before it began is not counted."""
    most_a_day: int
    next_at: datetime | None
    """When the next is possible; None if the day's number does not stand against one now."""


def allowance(player: Player) -> Allowance:
    """How many scrimmages `player` may still ask for."""
    own = Scrimmage.objects.filter(asked_by=player)
    counted = own.filter(asked_at__gt=Now() - DAY).exclude(
        state=ScrimmageState.CANCELLED, started_at=None
    )
    times = list(counted.order_by("-asked_at").values_list("asked_at", flat=True))
    most = settings.ARENA_SCRIMMAGES_A_DAY
    return Allowance(
        open=own.filter(state__in=OPEN).count(),
        most_open=settings.ARENA_SCRIMMAGES_OPEN,
        today=len(times),
        most_a_day=most,
        next_at=times[most - 1] + DAY if 0 < most <= len(times) else None,
    )


def opponents(game: str = "") -> QuerySet[Bot]:
    """The bots that anyone may ask a scrimmage against: active ones whose owners allow it."""
    accepted = BotVersion.objects.filter(state=VersionState.ACCEPTED)
    if game:
        accepted = accepted.filter(games__game=game)
    return (
        Bot.objects.filter(
            pk__in=accepted.values("bot"),
            allows_scrimmages=True,
            paused_reason="",
            owner__is_active=True,
        )
        .select_related("owner")
        .order_by("name")
    )


def own_versions(player: Player, game: str = "") -> QuerySet[BotVersion]:
    """The accepted versions of the player's bots, bot by bot, the newest first."""
    rows = BotVersion.objects.filter(
        bot__owner=player, state=VersionState.ACCEPTED, bot__paused_reason=""
    )
    if game:
        rows = rows.filter(games__game=game)
    return rows.select_related("bot").order_by("bot__name", "-pk")


def find_own(player: Player, bot: str, version: str = "", game: str = "") -> BotVersion:
    """A version of the player's bot; the newest that plays `game` if none is named.

    Raises InvalidScrimmageError, at the field ``first``.
    """
    row = Bot.objects.select_related("owner").filter(owner=player, name__iexact=bot).first()
    if row is None:
        raise InvalidScrimmageError({"first": f"you have no bot called {bot!r}"})
    return _pick(row, version, game, "first")


def find_opponent(
    player: Player, bot: str, version: str = "", game: str = "", besides: BotVersion | None = None
) -> BotVersion:
    """A version to meet; the newest that plays `game` if none is named, but for the one that it is to meet.

    Raises InvalidScrimmageError, at the field ``other``.
    """
    row = Bot.objects.select_related("owner").filter(name__iexact=bot).first()
    if row is None or (
        row.owner_id != player.pk and not row.versions.filter(state__in=PUBLIC_STATES).exists()
    ):
        raise InvalidScrimmageError({"other": f"there is no bot called {bot!r}"})
    return _pick(row, version, game, "other", besides)


def _pick(
    bot: Bot, version: str, game: str, field: str, besides: BotVersion | None = None
) -> BotVersion:
    rows = BotVersion.objects.select_related("bot__owner").filter(bot=bot).order_by("-pk")
    if version:
        found = rows.filter(version=version).first()
        problem = f"{bot.name} has no version {version!r}"
    else:
        if besides is not None:
            rows = rows.exclude(pk=besides.pk)
        found = rows.filter(state=VersionState.ACCEPTED, games__game=game).first()
        other = "other " if besides is not None and besides.bot_id == bot.pk else ""
        title = GAMES[game].title if game in GAMES else game
        problem = f"{bot.name} has no {other}version that was accepted for {title}"
    if found is None:
        raise InvalidScrimmageError({field: problem})
    return found


def why_barred(version: BotVersion, asker: Player) -> str:
    """Why a version cannot meet another in a scrimmage of `asker`; empty if it can."""
    bot = version.bot
    if not bot.owner.is_active:
        return f"the account of {bot.name}'s owner is closed"
    if bot.paused_reason:
        return f"{bot.name} is paused by staff"
    if version.state != VersionState.ACCEPTED:
        return f"{version} is {version.get_state_display()}"
    if bot.owner_id != asker.pk and not bot.allows_scrimmages:
        return f"the owner of {bot.name} does not allow scrimmages with it"
    return ""


def barred_scrimmages() -> QuerySet[Scrimmage]:
    """Open ones that cannot go on as things stand: `why_ended` tells why."""
    stands_against = (
        ~Q(first__state=VersionState.ACCEPTED)
        | ~Q(other__state=VersionState.ACCEPTED)
        | ~Q(first__bot__paused_reason="")
        | ~Q(other__bot__paused_reason="")
        | Q(asked_by__is_active=False)
        | Q(other__bot__owner__is_active=False)
        | Q(other__bot__allows_scrimmages=False) & ~Q(other__bot__owner=F("asked_by"))
        | ~Q(rules_version=RULES_VERSION)
    )
    return scrimmages().filter(stands_against, state__in=OPEN)


def why_ended(scrimmage: Scrimmage) -> str:
    """Why one of `barred_scrimmages` cannot go on."""
    reasons = (
        why_barred(scrimmage.first, scrimmage.asked_by),
        why_barred(scrimmage.other, scrimmage.asked_by),
        ""
        if scrimmage.rules_version == RULES_VERSION
        else "the rules that this site plays by have changed: ask again",
    )
    return "; ".join(filter(None, reasons))


def site_is_busy() -> bool:
    """Whether a match, a check or a trial for a tournament waits for a worker: scrimmages come after all of them."""
    matches = Match.objects.filter(
        Q(state=MatchState.PENDING, run_after__lte=Now()) | Q(state=MatchState.QUEUED),
        tournament__state=TournamentState.RUNNING,
        tournament__paused_reason="",
    )
    versions = BotVersion.objects.filter(
        state__in=set(TO_BE_CHECKED) - {VersionState.RUNNING},
        run_after__lte=Now(),
        bot__paused_reason="",
    )
    trials = EntryTrial.objects.filter(
        state__in=(TrialState.PENDING, TrialState.QUEUED),
        run_after__lte=Now(),
        version__state=VersionState.ACCEPTED,
        version__bot__paused_reason="",
    )
    return matches.exists() or versions.exists() or trials.exists()


# What is played


def entrants_of(scrimmage: Scrimmage) -> tuple[EntrantRef, EntrantRef]:
    """The two as their records name them, and as ``arena compare`` names them."""
    sources = [
        (
            BotSource(
                bot=version.bot.name,
                version=version.version,
                wheel=f"sha256:{version.wheel_sha256}",
                folder="",
                entry_point="",
            ),
        )
        for version in (scrimmage.first, scrimmage.other)
    ]
    first, other = name_entrants(sources)
    return first, other


def batch_spec(scrimmage: Scrimmage, number: int) -> MatchSpec:
    """The match that is batch `number` of a scrimmage."""
    return nth_match(
        number,
        game=scrimmage.game,
        entrants=entrants_of(scrimmage),
        rules=scrimmage.ruleset,
        time_control=scrimmage.time_control,
        seed=scrimmage.seed,
        most_sets=scrimmage.most_sets,
    )


def sets_of(scrimmage: Scrimmage) -> list[list[list[int]]]:
    """The sets of all batches in their order, also those behind the one that decided."""
    batches = scrimmage.batches.order_by("number").values_list("scores", flat=True)
    return [mirrored for scores in batches for mirrored in scores]


@dataclass(frozen=True, slots=True)
class Judged:
    """What the sets of a scrimmage say so far."""

    findings: Findings
    is_decided: bool
    """Whether no further set can change it: the test has stopped, or all sets are played."""


def judge(scrimmage: Scrimmage, sets: Sets, *, is_faulty: bool = False) -> Judged:
    """Let the test run over the sets one by one; those behind the one that decides do not count."""
    question = scrimmage.question
    assert question.test is not None
    run = question.test.run(scores_by_set(sets), question.most_sets)
    findings = weigh(sets[: run.sets], question, is_faulty=is_faulty)
    stopped = run.decision is not Decision.CONTINUE or run.sets >= question.most_sets
    return Judged(findings, stopped or is_faulty)


def scrimmage_findings(scrimmage: Scrimmage) -> Findings:
    """What the sets of a scrimmage say. Where the test has stopped, it need not be run again: `sets` tells it."""
    counted = sets_of(scrimmage)[: scrimmage.sets]
    return weigh(counted, scrimmage.question, is_faulty=scrimmage.answer == Answer.FAULT)


def spell_scrimmage(scrimmage: Scrimmage, findings: Findings) -> str:
    """The answer in a sentence."""
    return spell_answer(str(scrimmage.first), str(scrimmage.other), scrimmage.question, findings)


def compare_command(scrimmage: Scrimmage) -> str:
    """The command that plays the same sets again, with the two wheels in the working folder."""
    wheels = " ".join(
        f"{version.bot.name.replace('-', '_')}-{version.version}-py3-none-any.whl"
        for version in (scrimmage.first, scrimmage.other)
    )
    rules = "".join(
        f" --rule {name}={_spell(value)}" for name, value in sorted(scrimmage.ruleset.items())
    )
    return (
        f"arena compare ./{wheels.replace(' ', ' ./')} --game {scrimmage.game}{rules} "
        f"--time-control {scrimmage.time_control} --seed {scrimmage.seed} "
        f"--elo0 {scrimmage.elo0:g} --elo1 {scrimmage.elo1:g} --max-sets {scrimmage.most_sets}"
    )


def _spell(value: object) -> str:
    return msgspec.json.encode(value).decode().strip('"')


def time_controls_of(scrimmages: Collection[int]) -> dict[int, str]:
    """By scrimmage the time control that its sets are played with."""
    return dict(Scrimmage.objects.filter(pk__in=scrimmages).values_list("pk", "time_control"))


def batch_record(batch: Batch) -> MatchRecord | None:
    """The record of a batch; None once it has expired. Raises BlobError if it cannot be read."""
    return decode_record(read_packed(batch.record_sha256)) if batch.record_sha256 else None


def batch_logs(batch: Batch, viewer: Player) -> tuple[SeatLog, ...]:
    """What the viewer's own bots printed in a batch. Raises BlobError if the logs cannot be read."""
    if not batch.logs_sha256:
        return ()
    versions = (batch.scrimmage.first, batch.scrimmage.other)
    logs = msgspec.json.decode(read_packed(batch.logs_sha256), type=tuple[SeatLog, ...])
    return tuple(log for log in logs if versions[log.entrant].bot.owner_id == viewer.pk)


def blobs_in_use(start: str = "") -> set[str]:
    """The hashes, beginning with `start`, of all blobs that batches name."""
    found: set[str] = set()
    for field in ("record_sha256", "logs_sha256"):
        rows = Batch.objects.filter(**{f"{field}__startswith": start})
        found.update(rows.values_list(field, flat=True).iterator())
    return found - {""}


def last_batch(scrimmage: Scrimmage) -> int:
    """The number of the last batch that was recorded; 0 before the first."""
    found: dict[str, Any] = scrimmage.batches.aggregate(last=Max("number"))
    return found["last"] or 0
