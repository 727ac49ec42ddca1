"""What the pages of tournaments and matches show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, F, IntegerField, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from engine.record import MatchRecord, decode_record, with_keys
from engine.referee import SeatLog
from tournament.competitions.models import (
    Entrant,
    EntrantState,
    Match,
    MatchState,
    PublishPolicy,
    Round,
    RulingKind,
    Stage,
    StageEntrant,
    StageState,
    SupersededMatch,
    Tournament,
    TournamentSecret,
    TournamentState,
)
from tournament.competitions.selectors.engine_values import (
    BOTS,
    seats_at_table,
    stage_format,
    stage_options,
    tournament_key,
)
from tournament.competitions.selectors.entries import (
    Prospect,
    spell_trial_state,
    trials_awaited,
    versions_awaited,
    versions_that_would_play,
)
from tournament.competitions.selectors.stages import (
    PairingRow,
    Seal,
    StagePage,
    first_seal,
    pairing_row,
    stage_heads,
    stage_pages,
)
from tournament.competitions.selectors.waiting import place_of_trial
from tournament.players.models import Bot, Player
from tournament.players.selectors import place_of_check
from tournament.store.services import read_packed
from tournament.store.waiting import QueuePlace

PLACES_TOLD = 5
"""Of so many versions that a tournament waits for the place in the queue is told."""


@dataclass(frozen=True, slots=True)
class EntrantRow:
    """An entrant as the tournament's page shows it."""

    pk: int
    name: str
    bots: tuple[tuple[str, str | None], ...]
    """(bot, version); the version is None until the close."""
    owners: tuple[tuple[str, str], ...]
    """(user name, slug)."""
    seed: int | None
    state: str
    state_label: str
    """What it does, in words: has entered, plays, did not go on to the stage that is played."""
    reason: str
    place: int | None
    addendum: str
    """Of who entered late, the canonical JSON that says when and with which wheels; else empty."""


@dataclass(frozen=True, slots=True)
class TournamentProgress:
    """How far a tournament has come."""

    matches: int
    """Published so far."""
    finished: int
    running: int
    stuck: int
    expected: int | None
    """In all, at most, if the format can tell; None once it has ended, since then they are `matches`."""


@dataclass(frozen=True, slots=True)
class AwaitedVersion:
    """A version uploaded in time that a closed tournament waits for."""

    bot: str
    version: str
    state: str
    state_label: str
    queue: str = ""
    """Where it stands in the queue; told of the first few."""


@dataclass(frozen=True, slots=True)
class SupersededRow:
    """A match that a ruling took back."""

    pk: int
    key: str
    has_record: bool


@dataclass(frozen=True, slots=True)
class RulingRow:
    """What an organiser decided about results."""

    subject: str
    """The match's key, or the entrant's name."""
    kind: str
    label: str
    reason: str
    before: str
    after: str
    at: datetime
    superseded: tuple[SupersededRow, ...]
    """The matches that it took back."""


@dataclass(frozen=True, slots=True)
class TournamentPage:
    """All that a tournament's page shows, but for what its row tells."""

    tournament: Tournament
    stages: tuple[StagePage, ...]
    entrants: tuple[EntrantRow, ...]
    progress: TournamentProgress
    secret: str | None
    """In hex, once the tournament is finished."""
    would_play: Mapping[str, str]
    """By bot the version that would play, as things stand; empty once the versions are frozen."""
    awaited: tuple[AwaitedVersion, ...]
    """What has to be decided before a closed tournament can be sealed."""
    rulings: tuple[RulingRow, ...]
    """In the order in which they were made."""
    seal: Seal | None
    """From where on results are sealed; None: all are public."""

    @property
    def format_title(self) -> str:
        """The formats of its stages for people."""
        return ", then ".join(stage.format_title for stage in self.stages)


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One try to play a match. Which worker played it is told in the admin alone: it names a host."""

    number: int
    started_at: datetime
    ended_at: datetime | None
    ending: str
    ending_label: str


@dataclass(frozen=True, slots=True)
class MatchPage:
    """All that a match's page shows."""

    match: Match
    tournament: Tournament
    pairing: PairingRow
    round_index: int
    attempts: tuple[AttemptRow, ...]
    record: MatchRecord | None
    """None until it is finished and public, and for an organiser's forfeit."""
    is_sealed: bool
    """Whether it is shown to organisers alone."""


def tournaments(*, game: str = "", state: str = "") -> QuerySet[Tournament]:
    """Tournaments, those to come and running first by start, narrowed by game and state if given."""
    rows = Tournament.objects.select_related("organiser").annotate(
        entrant_count=_count(Entrant.objects.filter(tournament=OuterRef("pk")))
    )
    if game:
        rows = rows.filter(game=game)
    if state:
        rows = rows.filter(state=state)
    return rows.order_by("-starts_at", "-pk")


OVERSEE = "competitions.oversee_tournament"
"""The right to run what others organise."""


def tournaments_run_by(user: Player | AnonymousUser) -> QuerySet[Tournament]:
    """The tournaments that somebody may operate, and see sealed results of: an organiser their own."""
    if not (user.is_staff and user.has_perm("competitions.view_tournament")):
        return Tournament.objects.none()
    if user.has_perm(OVERSEE):
        return Tournament.objects.all()
    return Tournament.objects.filter(organiser=user.pk)


def public_tournaments() -> QuerySet[Tournament]:
    """Every tournament that has been announced, its stages loaded, the last to start first.

    No drafts, and nothing that was cancelled before it was open.
    """
    return (
        tournaments()
        .exclude(state=TournamentState.DRAFT)
        .exclude(state=TournamentState.CANCELLED, commitment="")
        .prefetch_related("stages")
    )


def tournament_page(
    slug: str, *, for_staff: bool = False, stage: int | None = None, round_index: int | None = None
) -> TournamentPage:
    """The page of the tournament `slug`. Raises Tournament.DoesNotExist.

    With `stage` (its number) only that stage, or with 0 the one that is of most interest, has its table
    and pairings; of a large one those of the round `round_index` alone, else of the one that is played.

    Of sealed results it holds nothing unless it is `for_staff`: rounds end with the first sealed one,
    whose pairings have no results, the stages after it are as if they had not begun, and tables, counts
    and rulings know only what is before.
    """
    tournament = _progressed(slug, only_public=not for_staff)
    seal = first_seal(tournament)
    hidden = None if for_staff else seal
    return TournamentPage(
        tournament=tournament,
        stages=stage_pages(tournament, hidden, stage=stage, round_index=round_index),
        entrants=tuple(_entrant_rows(tournament, hidden)),
        progress=progress_of(tournament),
        secret=revealed_secret(tournament),
        seal=seal,
        would_play=_would_play(tournament),
        awaited=_awaited(tournament),
        rulings=_rulings(tournament, hidden),
    )


def _progressed(slug: str, *, only_public: bool) -> Tournament:
    rows = Tournament.objects.select_related("organiser")
    return with_progress(rows, only_public=only_public).get(slug=slug)


def tournament_summary(slug: str) -> TournamentPage:
    """What everybody may know of the tournament `slug`, without its entrants, tables and pairings.

    For those see `entrants_page`, `stage_table` and `published_pairings`. Raises Tournament.DoesNotExist.
    """
    tournament = _progressed(slug, only_public=True)
    seal = first_seal(tournament)
    return TournamentPage(
        tournament=tournament,
        stages=stage_heads(tournament, seal),
        entrants=(),
        progress=progress_of(tournament),
        secret=revealed_secret(tournament),
        seal=seal,
        would_play={},
        awaited=_awaited(tournament),
        rulings=_rulings(tournament, seal),
    )


def entrants_page(tournament: Tournament, *, first: int, count: int) -> list[EntrantRow]:
    """`count` of the entrants from number `first` on, by place, seed and name, as everybody may see them."""
    return _entrant_rows(tournament, first_seal(tournament), slice(first, first + count))


def _entrant_rows(
    tournament: Tournament, hidden: Seal | None, part: slice = slice(None)
) -> list[EntrantRow]:
    knows_place = hidden is None
    rows = _entrants(tournament, knows_place=knows_place)[part]
    left = _left_after(tournament, hidden)
    labels = {entrant.pk: spell_entrant(entrant, tournament, left) for entrant in rows}
    if not knows_place:
        kept = (each for each in rows if each.place and each.state == EntrantState.ACTIVE)
        labels.update((each.pk, "place is sealed") for each in kept)
    return [_entrant_row(each, labels[each.pk], knows_place=knows_place) for each in rows]


def _left_after(tournament: Tournament, hidden: Seal | None) -> dict[int, int]:
    """By entrant the number of the stage after which they did not go on, as far as the reader may see it."""
    if tournament.state != TournamentState.RUNNING:
        return {}
    rows = StageEntrant.objects.filter(stage__tournament=tournament)
    if hidden is not None:
        rows = rows.filter(stage__index__lte=hidden.stage)
    last = dict(rows.values_list("entrant").annotate(Max("stage__index")))
    now = max(last.values(), default=0)
    return {entrant: index + 1 for entrant, index in last.items() if index < now}


def spell_entrant(
    entrant: Entrant, tournament: Tournament, left: Mapping[int, int] | None = None
) -> str:
    """What an entrant does in the tournament, in words; `left` says after which stage who did not go on."""
    left = left or {}
    if entrant.state != EntrantState.ACTIVE:
        return str(EntrantState(entrant.state).label)
    if entrant.pk in left:
        return f"out after stage {left[entrant.pk]}"
    if tournament.state == TournamentState.FINISHED:
        return "has played"
    return "plays" if tournament.state == TournamentState.RUNNING else "has entered"


def _rulings(tournament: Tournament, hidden: Seal | None) -> tuple[RulingRow, ...]:
    rows = tournament.rulings.prefetch_related("superseded").order_by("pk")
    if hidden is not None:
        rows = rows.filter(
            Q(round__stage__index__lt=hidden.stage)
            | Q(round__stage__index=hidden.stage, round__index__lt=hidden.round)
            | Q(round=None, kind=RulingKind.DISQUALIFIED)
        )
    return tuple(
        RulingRow(
            subject=row.subject,
            kind=row.kind,
            label=row.get_kind_display(),
            reason=row.reason,
            before=row.before,
            after=row.after,
            at=row.at,
            superseded=tuple(
                SupersededRow(match.pk, match.key, bool(match.record_sha256))
                for match in row.superseded.all()
                if hidden is None or hidden.shows(match.key, match.round_index)
            ),
        )
        for row in rows
    )


def _would_play(tournament: Tournament) -> dict[str, str]:
    if tournament.pub:
        return {}
    chosen = versions_that_would_play(tournament).values()
    return {version.bot.name: version.version for version in chosen}


def _awaited(tournament: Tournament) -> tuple[AwaitedVersion, ...]:
    if tournament.state != TournamentState.CLOSED or tournament.pub:
        return ()
    return tuple(
        AwaitedVersion(
            bot=version.bot.name,
            version=version.version,
            state=version.state,
            state_label=version.get_state_display(),
            queue=_spell_queue(place_of_check(version)) if number < PLACES_TOLD else "",
        )
        for number, version in enumerate(versions_awaited(tournament))
    ) + tuple(
        AwaitedVersion(
            prospect.on_trial.bot.name,
            prospect.on_trial.version,
            *spell_trial_state(prospect),
            queue=_spell_queue(_place_of_trials(prospect)) if number < PLACES_TOLD else "",
        )
        for number, prospect in enumerate(trials_awaited(tournament))
        if prospect.on_trial is not None
    )


def _place_of_trials(prospect: Prospect) -> QueuePlace | None:
    """The place of the first trial that a prospect waits for."""
    return next((place for trial in prospect.trials if (place := place_of_trial(trial))), None)


def _spell_queue(place: QueuePlace | None) -> str:
    return place.text if place else ""


def with_progress(rows: QuerySet[Tournament], *, only_public: bool = False) -> QuerySet[Tournament]:
    """The tournaments with what `progress_of` asks, in two queries for any number of them.

    With `only_public` the matches of sealed rounds are not counted.
    """
    here = Match.objects.filter(tournament=OuterRef("pk"))
    if only_public:
        here = here.filter(pairing__round__published_at__isnull=False)
    return rows.prefetch_related("stages").annotate(
        match_count=_count(here),
        finished_count=_count(here.filter(state=MatchState.FINISHED)),
        running_count=_count(here.filter(state=MatchState.RUNNING)),
        stuck_count=_count(here.filter(state=MatchState.STUCK)),
        seeded_count=_count(Entrant.objects.filter(tournament=OuterRef("pk"), seed__isnull=False)),
    )


def _count(rows: QuerySet[Any]) -> Coalesce:
    """How many rows of a correlated query there are, as a column."""
    counted = rows.order_by().values("tournament").annotate(found=Count("pk")).values("found")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def progress_of(tournament: Any) -> TournamentProgress:
    """How many matches are published, finished, running and stuck. Wants a row of `with_progress`."""
    return TournamentProgress(
        matches=tournament.match_count,
        finished=tournament.finished_count,
        running=tournament.running_count,
        stuck=tournament.stuck_count,
        expected=None
        if tournament.state in {TournamentState.FINISHED, TournamentState.CANCELLED}
        else _expected_matches(tournament.stages.all(), tournament.seeded_count),
    )


def _expected_matches(stages: Iterable[Stage], players: int) -> int | None:
    """How many matches all stages have, if as many go on as were to; None if a format cannot tell."""
    expected = 0
    for stage in stages:
        if stage.state == StageState.SKIPPED:
            continue
        count = stage_format(stage).match_count(players, stage_options(stage)) if players else None
        if count is None:
            return None
        expected += count
        players = min(players, stage.qualifiers or players)
    return expected


def revealed_secret(tournament: Tournament) -> str | None:
    """The secret in hex once the tournament is finished; None before, and if it was cancelled.

    While results are sealed it is not told either: with it, and bots that are known, they could be
    played again.
    """
    if tournament.state != TournamentState.FINISHED or has_sealed_results(tournament):
        return None
    return bytes(TournamentSecret.objects.get(tournament=tournament).secret).hex()


def has_sealed_results(tournament: Tournament) -> bool:
    """Whether results of it are for organisers alone until its `results_at`."""
    return Round.objects.filter(stage__tournament=tournament, published_at__isnull=True).exists()


def tournaments_with_seals() -> QuerySet[Tournament]:
    """The tournaments of which results are sealed."""
    sealed = Round.objects.filter(published_at__isnull=True)
    return Tournament.objects.filter(pk__in=sealed.values("stage__tournament"))


def records_are_public(tournament: Tournament) -> bool:
    """Whether the records of its finished matches are for everybody now."""
    return (
        tournament.records_public == PublishPolicy.AT_ONCE
        or tournament.state == TournamentState.FINISHED
    )


def match_page(slug: str, key: str, *, for_staff: bool = False) -> MatchPage:
    """The page of a match. Raises Match.DoesNotExist, too for a sealed one unless it is `for_staff`."""
    match = (
        Match.objects.select_related("tournament", "pairing__round__stage")
        .prefetch_related("pairing__entrants__entrant", "tries")
        .get(tournament__slug=slug, pairing__key=key)
    )
    is_sealed = _is_sealed(match)
    if is_sealed and not for_staff:
        raise Match.DoesNotExist
    is_public = for_staff or records_are_public(match.tournament)
    return MatchPage(
        match=match,
        tournament=match.tournament,
        pairing=pairing_row(match),
        round_index=match.pairing.round.index,
        attempts=tuple(
            AttemptRow(
                number=number,
                started_at=attempt.started_at,
                ended_at=attempt.ended_at,
                ending=attempt.ending,
                ending_label=attempt.get_ending_display(),
            )
            for number, attempt in enumerate(match.tries.all(), 1)
        ),
        record=match_record(match) if is_public else None,
        is_sealed=is_sealed,
    )


def _is_sealed(match: Match) -> bool:
    """Whether its round, or one before it, is sealed: then even who plays it would tell something."""
    published = match.pairing.round
    return (
        _until(published.stage.index, published.index)
        .filter(stage__tournament=match.tournament_id, published_at__isnull=True)
        .exists()
    )


def _until(stage: Any, index: Any) -> QuerySet[Round]:
    """The rounds up to one of them, those of earlier stages included."""
    return Round.objects.filter(Q(stage__index__lt=stage) | Q(stage__index=stage, index__lte=index))


def match_record(match: Match) -> MatchRecord | None:
    """The record of a finished match, its deal keys filled in once the secret is out.

    None if it has none. Raises BlobError or RecordError if what is stored is not what was recorded.
    """
    if not match.record_sha256:
        return None
    record = decode_record(read_packed(match.record_sha256))
    if revealed_secret(match.tournament):
        return with_keys(record, tournament_key(match.tournament), match.tournament.slug)
    return record


def superseded_record(slug: str, pk: int, *, for_staff: bool = False) -> MatchRecord:
    """The record of a match that a ruling took back, under the conditions of any other record.

    Raises SupersededMatch.DoesNotExist where there is none for the reader.
    """
    row = SupersededMatch.objects.select_related("tournament").get(tournament__slug=slug, pk=pk)
    seal = first_seal(row.tournament)
    is_seen = seal is None or seal.shows(row.key, row.round_index)
    is_public = records_are_public(row.tournament) and is_seen
    if not row.record_sha256 or not (is_public or for_staff):
        raise SupersededMatch.DoesNotExist
    record = decode_record(read_packed(row.record_sha256))
    if revealed_secret(row.tournament):
        return with_keys(record, tournament_key(row.tournament), row.tournament.slug)
    return record


def match_logs(match: Match, viewer: Player) -> tuple[SeatLog, ...]:
    """What the viewer's own bots printed in a match. Raises BlobError if the logs cannot be read."""
    if not match.logs_sha256:
        return ()
    own = set(
        match.pairing.entrants.filter(entrant__bots__bot__owner=viewer).values_list(
            "index", "entrant__bots__position"
        )
    )
    logs = msgspec.json.decode(read_packed(match.logs_sha256), type=tuple[SeatLog, ...])
    return tuple(log for log in logs if (log.entrant, log.bot) in own)


def matches_of_bot(bot: Bot) -> QuerySet[Match]:
    """The matches of a bot, the newest first, with tournament, pairing and entrants loaded.

    Those of sealed rounds, and of rounds after them, are left out.
    """
    sealed_before = _until(
        OuterRef("pairing__round__stage__index"), OuterRef("pairing__round__index")
    ).filter(stage__tournament=OuterRef("tournament"), published_at__isnull=True)
    return (
        Match.objects.filter(~Exists(sealed_before), pairing__entrants__entrant__bots__bot=bot)
        .select_related("tournament", "pairing__round")
        .prefetch_related("pairing__entrants__entrant")
        .order_by("-pk")
    )


def table_sizes(stage: Stage) -> tuple[int, ...]:
    """How many seats the tables of a stage have."""
    return tuple(
        seats_at_table(stage.tournament.game, size)
        for size in stage_format(stage).sizes(stage_options(stage))
    )


def _entrants(tournament: Tournament, *, knows_place: bool) -> QuerySet[Entrant]:
    columns = ("place", "seed") if knows_place else ("seed",)
    order = (F(column).asc(nulls_last=True) for column in columns)
    return tournament.entrants.prefetch_related(BOTS).order_by(*order, "name")


def _entrant_row(entrant: Entrant, label: str, *, knows_place: bool) -> EntrantRow:
    bots = tuple(entrant.bots.all())
    return EntrantRow(
        pk=entrant.pk,
        name=entrant.name,
        bots=tuple(
            (part.bot.name, part.version.version if part.version else None) for part in bots
        ),
        owners=tuple(
            dict.fromkeys((part.bot.owner.username, part.bot.owner.slug) for part in bots)
        ),
        seed=entrant.seed,
        state=entrant.state,
        state_label=label,
        reason=entrant.reason,
        place=entrant.place if knows_place else None,
        addendum=entrant.addendum,
    )
