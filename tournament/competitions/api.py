"""The API of tournaments and matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Field, Router, Schema
from ninja.responses import Status

from engine.standings import StandingRow
from tournament.competitions import selectors
from tournament.competitions.errors import (
    EntryError,
    InvalidTournamentError,
    TournamentStateError,
)
from tournament.competitions.models import (
    Entrant,
    Match,
    PairInvitation,
    Series,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors import tables
from tournament.competitions.selectors.bundles import bundle_file, told_digest
from tournament.competitions.selectors.conditions import longest_match_seconds
from tournament.competitions.services import (
    Course,
    Plan,
    StageWish,
    accept_invitation,
    create_series,
    create_tournament,
    decline_invitation,
    enter,
    enter_series,
    invite_partner,
    leave,
    leave_series,
    starts_to_come,
    withdraw_entrant,
    withdraw_invitation,
)
from tournament.players.api import (
    PAGE_SIZE,
    ApiError,
    ErrorAnswer,
    PageNumber,
    QueueOut,
    queue_out,
    submitting,
    token_of,
)
from tournament.players.models import Bot, Player
from tournament.store.clock import read_clock


class TournamentOut(Schema):
    """A tournament in a list."""

    slug: str
    name: str
    game: str
    kind: str
    format: str
    state: str
    is_paused: bool
    rated: bool
    entrants: int
    opens_at: datetime
    closes_at: datetime
    starts_at: datetime


class TournamentList(Schema):
    """Tournaments, the last to start first. `next`: the number of the next page; null at the end."""

    tournaments: list[TournamentOut]
    next: int | None


class EntrantBotOut(Schema):
    """A bot of an entrant; `version` is null until entries are closed."""

    bot: str
    version: str | None


class EntrantOut(Schema):
    """Who takes part."""

    id: int
    name: str
    bots: list[EntrantBotOut]
    seed: int | None
    state: str
    reason: str
    place: int | None
    addendum: str = ""
    """Of who entered late, the canonical JSON with the wheels and the first round; else empty."""


class SideOut(Schema):
    """An entrant's part in a match. `score` is what the table counts, e.g. ``1/2``."""

    entrant: str
    points: int | None
    place: int | None
    score: str | None
    advances: bool | None


class AttemptOut(Schema):
    """A try to play a match; one that ended by a failure of ours is followed by another."""

    started_at: datetime
    ended_at: datetime | None
    ending: str


class PairingOut(Schema):
    """A pairing. `match` is the id of its match; null for a bye and for what nobody had to play."""

    key: str
    stage: int
    round: int
    match: str | None
    state: str
    decided_by: str
    termination: str
    entrants: list[SideOut]


class StandingOut(Schema):
    """A line of the table; `tie_breaks` has the working of each. `group` is empty where there are none.

    `seed` is that of this stage; `goes_on`: plays the next stage.
    """

    place: int
    entrant: str
    matches: int
    wins: int
    ties: int
    losses: int
    score: str
    points: int
    tie_breaks: dict[str, str]
    note: str
    group: str = ""
    group_place: int | None = None
    seed: int | None
    goes_on: bool


class PairingList(Schema):
    """Pairings in the order of stages, rounds and slots. `next`: the number of the next page; null at the end."""

    pairings: list[PairingOut]
    next: int | None


class EntrantList(Schema):
    """Entrants by place, then seed, then name. `next`: the number of the next page; null at the end."""

    entries: list[EntrantOut]
    next: int | None


class StandingList(Schema):
    """The table of a stage, the best first. `next`: the number of the next page; null at the end."""

    stage: int
    state: str
    standings: list[StandingOut]
    next: int | None


class RoundOut(Schema):
    """A round of a stage and how many pairings it has. A sealed one shows who meets, if that follows from what is public."""

    index: int
    state: str
    is_sealed: bool
    pairings: int


class StageOut(Schema):
    """A stage. `qualifiers` go on to the next one. A match lasts `longest_match_seconds` at most, if all bots use all
    their time, on a worker that is not busy.
    """

    number: int
    format: str
    format_options: dict[str, Any]
    qualifiers: int | None
    ruleset: dict[str, Any]
    contest: dict[str, Any]
    time_control: dict[str, Any]
    stops_at: datetime | None
    matches_a_day: int | None
    state: str
    note: str
    started_at: datetime | None
    finished_at: datetime | None
    longest_match_seconds: float
    rounds: list[RoundOut]


class AwaitedOut(Schema):
    """A version that was uploaded in time and is not decided yet.

    `state` is that of its check, or, if it has been accepted, of its trial under this tournament's conditions; `queue` tells
    for the first few when it is their turn.
    """

    bot: str
    version: str
    state: str
    queue: str


class EntryConditions(Schema):
    """Who may enter; null: no limit. `late_round` is the first round that who enters now plays in."""

    max_entrants: int | None
    max_bots_per_player: int | None
    min_entrants: int | None
    if_too_few: str
    postpone_minutes: int
    postpone_most: int
    postponed_times: int
    seeding: str
    late_until_round: int | None
    late_round: int | None


class RulingOut(Schema):
    """What an organiser decided about results; `superseded` are the matches that it took back."""

    subject: str
    kind: str
    reason: str
    before: str
    after: str
    at: datetime
    superseded: list[str]


class BacklogOut(Schema):
    """What is published and not played yet. `expected_seconds`: until all of it is, by what was measured; null while
    that cannot be told. `text` says the same to people, and why something is delayed.
    """

    matches: int
    expected_seconds: float | None
    text: str


class TournamentDetail(TournamentOut):
    """A tournament. `secret` is null until it has ended; then every deal can be computed again.

    While `sealed_from` is a round, the results of that and later ones are sealed until `results_at`; it is one
    of the stage of the number `sealed_stage`.

    Who has entered, the pairings and the tables have addresses of their own, in pages: `entries`, `pairings` and
    `standings` behind this one. `conditions` is the short way to those of the first stage.

    `awaited` is what a closed tournament waits for before versions are frozen and `pub` is published.
    """

    description: str
    paused_reason: str
    cancelled_reason: str
    conditions: dict[str, Any]
    commitment: str
    pub: str
    secret: str | None
    bundle_digest: str | None
    awaited: list[AwaitedOut]
    rulings: list[RulingOut]
    results_at: datetime | None
    sealed_from: int | None
    sealed_stage: int | None
    entry: EntryConditions
    stages: list[StageOut]
    backlog: BacklogOut | None


SmallNumber = Annotated[int, Field(ge=1, le=10_000_000)]
BotName = Annotated[str, Field(max_length=60, pattern=r"^[^\x00]*$")]


class EntryIn(Schema):
    """Which bot enters; `partner` too in a tournament of pairs."""

    bot: BotName
    partner: BotName | None = None


class InvitationIn(Schema):
    """Which bot of yours asks which other to enter with it as a pair."""

    bot: BotName
    invited: BotName
    name: Annotated[str, Field(max_length=80, pattern=r"^[^\x00]*$")] = ""


class InvitationOut(Schema):
    """An open invitation; `is_mine`: you sent it, else you may answer it."""

    id: int
    bot: str
    invited: str
    name: str
    is_mine: bool
    at: datetime


class MatchOut(PairingOut):
    """A match. `id` is the tournament's slug, a slash, and the match's key. `queue` is null unless it waits; the record
    of a ladder's match expires, its digest stays.
    """

    id: str
    tournament: str
    game: str
    rated: bool
    digest: str
    faults: list[str]
    attempts: list[AttemptOut]
    record: str | None
    record_expired: bool
    queue: QueueOut | None
    finished_at: datetime | None


router = Router(tags=["tournaments"])


class SeasonResultOut(Schema):
    """A place in a tournament and what it is worth."""

    tournament: str
    place: int
    points: int


class SeasonRowOut(Schema):
    """A line of a season's table."""

    place: int
    entrant: str
    points: int
    results: list[SeasonResultOut]


class SeriesOut(Schema):
    """A series; `next` are its next starts, `table` adds up what places were worth."""

    slug: str
    name: str
    is_active: bool
    rule: dict[str, Any]
    time_zone: str
    next: list[datetime]
    points_table: list[int]
    tournaments: list[str]
    entries: list[str]
    table: list[SeasonRowOut]


class StageIn(Schema):
    """A stage to be made. Ruleset, contest and time control, if left out, are those of the tournament."""

    format: str
    format_options: dict[str, Any] = Field(default_factory=dict)
    qualifiers: int | None = None
    ruleset: dict[str, Any] | None = None
    contest: dict[str, Any] | None = None
    time_control: str | None = None
    stops_after_minutes: int | None = None
    matches_a_day: int | None = None


class TournamentIn(Schema):
    """A tournament to be made, as the form in the admin asks for it. Times with their time zone.

    It has `stages`, or a `format` if it is one stage.
    """

    name: str
    game: str
    format: str = ""
    opens_at: datetime
    closes_at: datetime
    starts_at: datetime
    kind: str = ""
    slug: str = ""
    description: str = ""
    format_options: dict[str, Any] = Field(default_factory=dict)
    ruleset: dict[str, Any] = Field(default_factory=dict)
    contest: dict[str, Any] | None = None
    time_control: str = "standard"
    weight: int = 1
    cap: int | None = None
    rated: bool = True
    records_public: str = "at_once"
    max_entrants: int | None = None
    max_bots_per_player: int | None = None
    min_entrants: int | None = None
    if_too_few: str = "cancel"
    postpone_minutes: int = 1440
    postpone_most: int = 1
    seeding: str = "rating"
    late_until_round: int | None = None
    results_at: datetime | None = None
    stages: list[StageIn] = Field(default_factory=list)


class SeriesIn(Schema):
    """A series to be made: `rule` has `weekdays` and `at`, or `cron`; `template` what a tournament has."""

    name: str
    rule: dict[str, Any]
    template: dict[str, Any]
    time_zone: str = "UTC"
    points_table: list[int] = Field(default_factory=list)


def _organiser(request: HttpRequest, right: str) -> Player:
    player = token_of(request).player
    if not (player.is_staff and player.has_perm(f"competitions.{right}")):
        raise ApiError(HTTPStatus.FORBIDDEN, "not_organiser", "only organisers can do this")
    return player


def _refuse(error: InvalidTournamentError) -> ApiError:
    details = [f"{field}: {message}" for field, message in error.fields.items()]
    return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", "; ".join(details), details)


@router.post(
    "/tournaments",
    response={201: TournamentOut, (401, 403, 422): ErrorAnswer},
    auth=submitting,
)
def make_tournament(request: HttpRequest, plan: TournamentIn) -> Status[TournamentOut]:
    """Make a draft of a tournament, as an organiser. It opens at its time."""
    organiser = _organiser(request, "add_tournament")
    try:
        row = create_tournament(organiser=organiser, plan=_plan_of(plan))
    except InvalidTournamentError as error:
        raise _refuse(error) from error
    return Status(HTTPStatus.CREATED, TournamentOut(**_tournament_fields(row)))


def _plan_of(asked: TournamentIn) -> Plan:
    fields = asked.dict()
    fields["stages"] = tuple(StageWish(**stage) for stage in fields["stages"])
    return Plan(**fields)


@router.post("/series", response={201: SeriesOut, (401, 403, 422): ErrorAnswer}, auth=submitting)
def make_series(request: HttpRequest, series: SeriesIn) -> Status[SeriesOut]:
    """Make a series, as an organiser."""
    organiser = _organiser(request, "add_series")
    try:
        row = create_series(
            organiser=organiser,
            name=series.name,
            course=Course(**series.dict(exclude={"name"})),
            now=read_clock(),
        )
    except InvalidTournamentError as error:
        raise _refuse(error) from error
    return Status(HTTPStatus.CREATED, _series_out(row))


@router.get("/tournaments", response={200: TournamentList, 422: ErrorAnswer}, auth=None)
def list_tournaments(
    request: HttpRequest,  # noqa: ARG001 ninja's signature
    game: str = "",
    state: str = "",
    page: PageNumber = 1,
) -> TournamentList:
    """The tournaments that have been announced, narrowed by game and state if given."""
    if state and state not in TournamentState.values:
        raise ApiError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "invalid",
            f"there is no state {state!r}; there are: {', '.join(TournamentState.values)}",
        )
    rows = selectors.public_tournaments()
    if game:
        rows = rows.filter(game=game)
    if state:
        rows = rows.filter(state=state)
    first = (page - 1) * PAGE_SIZE
    found = list(rows[first : first + PAGE_SIZE + 1])
    return TournamentList(
        tournaments=[TournamentOut(**_tournament_fields(row)) for row in found[:PAGE_SIZE]],
        next=_next(page, len(found)),
    )


def _tournament_fields(row: Tournament) -> dict[str, Any]:
    return {
        "slug": row.slug,
        "name": row.name,
        "game": row.game,
        "kind": row.kind,
        "format": ", ".join(stage.format for stage in row.stages.all()),
        "state": row.state,
        "is_paused": row.is_paused,
        "rated": row.rated,
        "entrants": getattr(row, "entrant_count", 0),
        "opens_at": row.opens_at,
        "closes_at": row.closes_at,
        "starts_at": row.starts_at,
    }


@router.get(
    "/tournaments/{slug:slug}", response={200: TournamentDetail, 404: ErrorAnswer}, auth=None
)
def get_tournament(request: HttpRequest, slug: str) -> TournamentDetail:  # noqa: ARG001 ninja's signature
    """A tournament: conditions, stages and rounds, rulings, commitment and secret."""
    row = _find_tournament(slug)
    page = selectors.tournament_summary(slug)
    first = page.stages[0].stage
    return TournamentDetail(
        **_tournament_fields(row),
        description=row.description,
        paused_reason=row.paused_reason,
        cancelled_reason=row.cancelled_reason,
        conditions={
            "format_options": first.options,
            "ruleset": first.ruleset,
            "contest": first.contest,
            "time_control": first.time_control,
        },
        commitment=row.commitment,
        pub=row.pub,
        secret=page.secret,
        bundle_digest=told_digest(row),
        awaited=[
            AwaitedOut(bot=each.bot, version=each.version, state=each.state, queue=each.queue)
            for each in page.awaited
        ],
        results_at=row.results_at,
        sealed_from=page.seal.round if page.seal else None,
        sealed_stage=page.seal.stage_number if page.seal else None,
        stages=[_stage_out(stage) for stage in page.stages],
        entry=EntryConditions(
            max_entrants=row.max_entrants,
            max_bots_per_player=row.max_bots_per_player,
            min_entrants=row.min_entrants,
            if_too_few=row.if_too_few,
            postpone_minutes=row.postpone_minutes,
            postpone_most=row.postpone_most,
            postponed_times=row.postponed_times,
            seeding=row.seeding,
            late_until_round=row.late_until_round,
            late_round=selectors.late_round(row),
        ),
        backlog=_backlog_out(selectors.backlog_of(row, only_public=True)),
        rulings=[
            RulingOut(
                subject=ruling.subject,
                kind=ruling.kind,
                reason=ruling.reason,
                before=ruling.before,
                after=ruling.after,
                at=ruling.at,
                superseded=[match.key for match in ruling.superseded],
            )
            for ruling in page.rulings
        ],
    )


def _backlog_out(backlog: selectors.Backlog | None) -> BacklogOut | None:
    if backlog is None:
        return None
    seconds = None if backlog.seconds is None else round(backlog.seconds, 1)
    return BacklogOut(matches=backlog.matches, expected_seconds=seconds, text=backlog.text)


def _stage_out(page: selectors.StagePage) -> StageOut:
    stage = page.stage
    is_public = page.state == stage.state
    return StageOut(
        number=page.number,
        format=stage.format,
        format_options=stage.options,
        qualifiers=stage.qualifiers,
        ruleset=stage.ruleset,
        contest=stage.contest,
        time_control=stage.time_control,
        stops_at=stage.stops_at,
        matches_a_day=stage.matches_a_day,
        state=page.state,
        note=page.note,
        started_at=stage.started_at if is_public else None,
        finished_at=stage.finished_at if is_public else None,
        longest_match_seconds=round(longest_match_seconds(stage), 1),
        rounds=[
            RoundOut(
                index=each.index,
                state=each.state,
                is_sealed=each.is_sealed,
                pairings=each.pairing_count,
            )
            for each in page.rounds
        ],
    )


@router.get(
    "/tournaments/{slug:slug}/entries", response={200: EntrantList, 404: ErrorAnswer}, auth=None
)
def list_entries(request: HttpRequest, slug: str, page: PageNumber = 1) -> EntrantList:  # noqa: ARG001 ninja's signature
    """Who has entered a tournament."""
    first = (page - 1) * PAGE_SIZE
    rows = selectors.entrants_page(_find_tournament(slug), first=first, count=PAGE_SIZE + 1)
    return EntrantList(
        entries=[_entrant_out(row) for row in rows[:PAGE_SIZE]], next=_next(page, len(rows))
    )


@router.get(
    "/tournaments/{slug:slug}/pairings",
    response={200: PairingList, (404, 422): ErrorAnswer},
    auth=None,
)
def list_pairings(
    request: HttpRequest,  # noqa: ARG001 ninja's signature
    slug: str,
    stage: SmallNumber | None = None,
    round: SmallNumber | None = None,  # noqa: A002 what it is called in the address
    page: PageNumber = 1,
) -> PairingList:
    """The published pairings with their results, narrowed by stage and round if given."""
    tournament = _find_tournament(slug)
    rows = selectors.published_pairings(
        tournament,
        selectors.first_seal(tournament),
        stage=stage,
        round_index=round,
        first=(page - 1) * PAGE_SIZE,
        count=PAGE_SIZE + 1,
    )
    return PairingList(
        pairings=[
            PairingOut(**_pairing_fields(slug, each.stage, each.round, each.row))
            for each in rows[:PAGE_SIZE]
        ],
        next=_next(page, len(rows)),
    )


@router.get(
    "/tournaments/{slug:slug}/standings",
    response={200: StandingList, (404, 422): ErrorAnswer},
    auth=None,
)
def list_standings(
    request: HttpRequest,  # noqa: ARG001 ninja's signature
    slug: str,
    stage: SmallNumber | None = None,
    page: PageNumber = 1,
) -> StandingList:
    """The table of a stage; without `stage` of the last that has begun."""
    tournament = _find_tournament(slug)
    found = selectors.stage_table(tournament, selectors.first_seal(tournament), stage or 0)
    if found is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "not_found", f"{slug} has no stage {stage}")
    first = (page - 1) * PAGE_SIZE
    rows = found.standings[first : first + PAGE_SIZE + 1]
    names = dict(
        tournament.entrants.filter(pk__in=[row.entrant for row in rows]).values_list("pk", "name")
    )
    return StandingList(
        stage=found.number,
        state=found.state,
        standings=[_standing_out(row, found, names) for row in rows[:PAGE_SIZE]],
        next=_next(page, len(rows)),
    )


def _next(page: int, found: int) -> int | None:
    """The number of the next page, if more rows were found than this one takes."""
    return page + 1 if found > PAGE_SIZE else None


def _standing_out(
    row: StandingRow, page: selectors.StagePage, names: Mapping[int, str]
) -> StandingOut:
    return StandingOut(
        place=row.place,
        entrant=names[row.entrant],
        matches=row.matches,
        wins=row.wins,
        ties=row.ties,
        losses=row.losses,
        score=str(row.score),
        points=row.points_difference,
        tie_breaks={str(value.name): value.working for value in row.tie_breaks},
        note=row.note,
        group=row.group,
        group_place=row.group_place,
        seed=page.seeds.get(row.entrant),
        goes_on=row.entrant in page.going_on,
    )


def _entrant_out(row: selectors.EntrantRow) -> EntrantOut:
    return EntrantOut(
        id=row.pk,
        name=row.name,
        bots=[EntrantBotOut(bot=bot, version=version) for bot, version in row.bots],
        seed=row.seed,
        state=row.state,
        reason=row.reason,
        place=row.place,
        addendum=row.addendum,
    )


def _pairing_fields(slug: str, stage: int, index: int, row: selectors.PairingRow) -> dict[str, Any]:
    return {
        "key": row.key,
        "stage": stage,
        "round": index,
        "match": f"{slug}/{row.key}" if row.match_state else None,
        "state": row.match_state,
        "decided_by": row.decided_by,
        "termination": row.termination,
        "entrants": [
            SideOut(
                entrant=part.name,
                points=part.points,
                place=part.place,
                score=None if part.score is None else str(part.score),
                advances=part.advances,
            )
            for part in row.parts
        ],
    }


def _find_tournament(slug: str) -> Tournament:
    row = selectors.public_tournaments().filter(slug=slug).first()
    if row is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "not_found", f"there is no tournament {slug!r}")
    return row


@router.get(
    "/tournaments/{slug:slug}/bundle",
    response={(404, 409): ErrorAnswer},
    auth=None,
    openapi_extra={
        "responses": {
            200: {
                "description": "The bundle, format arena-bundle/1, packed by gzip",
                "content": {"application/gzip": {"schema": {"type": "string", "format": "binary"}}},
            }
        }
    },
)
def get_bundle(request: HttpRequest, slug: str) -> HttpResponseBase:  # noqa: ARG001 ninja's signature
    """A finished tournament as one document that anyone can verify."""
    row = _find_tournament(slug)
    try:
        name, digest, chunks = bundle_file(row)
    except TournamentStateError as error:
        raise ApiError(HTTPStatus.CONFLICT, "no_bundle", str(error)) from error
    return StreamingHttpResponse(
        chunks,
        content_type="application/gzip",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "ETag": f'"{digest}"',
        },
    )


@router.post(
    "/tournaments/{slug:slug}/entries",
    response={201: EntrantOut, (401, 403, 404, 409, 422): ErrorAnswer},
    auth=submitting,
)
def enter_tournament(request: HttpRequest, slug: str, entry: EntryIn) -> Status[EntrantOut]:
    """Enter a bot of yours (or two as a pair) in a tournament that is open, or takes late entries."""
    tournament = _find_tournament(slug)
    names = [entry.bot] if entry.partner is None else [entry.bot, entry.partner]
    player = token_of(request).player
    bots = [_own_bot(request, name) for name in names]
    with _entry_errors():
        entrant = enter(tournament=tournament, bots=bots, by=player)
    return Status(HTTPStatus.CREATED, _entered_out(entrant))


def _entered_out(entrant: Entrant) -> EntrantOut:
    """An entrant that has just entered."""
    return EntrantOut(
        id=entrant.pk,
        name=entrant.name,
        bots=[
            EntrantBotOut(bot=part.bot.name, version=part.version.version if part.version else None)
            for part in entrant.bots.select_related("bot", "version")
        ],
        seed=entrant.seed,
        state=entrant.state,
        reason="",
        place=None,
        addendum=entrant.addendum,
    )


def _own_bot(request: HttpRequest, name: str) -> Bot:
    bot = Bot.objects.filter(owner=token_of(request).player, name__iexact=name).first()
    if bot is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "not_found", f"you have no bot {name!r}")
    return bot


@router.delete(
    "/tournaments/{slug:slug}/entries/{slug:bot}",
    response={204: None, (401, 403, 404, 409, 422): ErrorAnswer},
    auth=submitting,
)
def leave_tournament(request: HttpRequest, slug: str, bot: str) -> Status[None]:
    """Take your bot out: while entries are open as if it had never entered, later by withdrawing."""
    tournament = _find_tournament(slug)
    player = token_of(request).player
    entrant = selectors.entries_of(tournament, player).filter(bots__bot__name__iexact=bot).first()
    if entrant is None:
        raise ApiError(
            HTTPStatus.NOT_FOUND, "not_found", f"you have no entry with {bot!r} in {slug}"
        )
    try:
        if tournament.state == TournamentState.OPEN:
            leave(entrant=entrant, by=player)
        else:
            withdraw_entrant(entrant=entrant, by=player)
    except TournamentStateError as error:
        raise ApiError(HTTPStatus.CONFLICT, "not_open", str(error)) from error
    return Status(HTTPStatus.NO_CONTENT, None)


@router.get(
    "/tournaments/{slug:slug}/invitations",
    response={200: list[InvitationOut], (401, 404): ErrorAnswer},
    auth=submitting,
)
def list_invitations(request: HttpRequest, slug: str) -> list[InvitationOut]:
    """The open invitations to form a pair that you have sent or may answer."""
    player = token_of(request).player
    rows = selectors.invitations_of(_find_tournament(slug), player)
    return [_invitation_out(row, player) for row in rows]


@router.post(
    "/tournaments/{slug:slug}/invitations",
    response={201: InvitationOut, (401, 403, 404, 409, 422): ErrorAnswer},
    auth=submitting,
)
def invite(request: HttpRequest, slug: str, invitation: InvitationIn) -> Status[InvitationOut]:
    """Ask the owner of another bot to enter it with yours; the pair enters when they accept."""
    tournament, player = _find_tournament(slug), token_of(request).player
    bot = _own_bot(request, invitation.bot)
    invited = Bot.objects.filter(name__iexact=invitation.invited).select_related("owner").first()
    if invited is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "not_found", f"there is no bot {invitation.invited!r}")
    with _entry_errors():
        row = invite_partner(
            tournament=tournament, bot=bot, invited=invited, by=player, name=invitation.name
        )
    return Status(HTTPStatus.CREATED, _invitation_out(row, player))


@router.post(
    "/tournaments/{slug:slug}/invitations/{int:invitation}/accept",
    response={201: EntrantOut, (401, 403, 404, 409, 422): ErrorAnswer},
    auth=submitting,
)
def accept(request: HttpRequest, slug: str, invitation: int) -> Status[EntrantOut]:
    """Enter the pair that you were invited to."""
    row, player = _find_invitation(request, slug, invitation), token_of(request).player
    with _entry_errors():
        entrant = accept_invitation(invitation=row, by=player)
    return Status(HTTPStatus.CREATED, _entered_out(entrant))


@router.post(
    "/tournaments/{slug:slug}/invitations/{int:invitation}/decline",
    response={204: None, (401, 403, 404, 409, 422): ErrorAnswer},
    auth=submitting,
)
def decline(request: HttpRequest, slug: str, invitation: int) -> Status[None]:
    """Decline an invitation to form a pair."""
    row, player = _find_invitation(request, slug, invitation), token_of(request).player
    with _entry_errors():
        decline_invitation(invitation=row, by=player)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.delete(
    "/tournaments/{slug:slug}/invitations/{int:invitation}",
    response={204: None, (401, 403, 404, 409, 422): ErrorAnswer},
    auth=submitting,
)
def take_back(request: HttpRequest, slug: str, invitation: int) -> Status[None]:
    """Take your invitation back."""
    row, player = _find_invitation(request, slug, invitation), token_of(request).player
    with _entry_errors():
        withdraw_invitation(invitation=row, by=player)
    return Status(HTTPStatus.NO_CONTENT, None)


def _find_invitation(request: HttpRequest, slug: str, pk: int) -> PairInvitation:
    player = token_of(request).player
    row = selectors.invitation_of(_find_tournament(slug), player, pk)
    if row is None:
        raise ApiError(
            HTTPStatus.NOT_FOUND, "not_found", f"you have no open invitation {pk} in {slug}"
        )
    return row


def _invitation_out(row: PairInvitation, player: Player) -> InvitationOut:
    return InvitationOut(
        id=row.pk,
        bot=row.bot.name,
        invited=row.invited.name,
        name=row.name,
        is_mine=row.bot.owner_id == player.pk,
        at=row.at,
    )


@contextmanager
def _entry_errors() -> Iterator[None]:
    """Answer 409 where entries are not open, 422 where a bot cannot enter so."""
    try:
        yield
    except TournamentStateError as error:
        raise ApiError(HTTPStatus.CONFLICT, "not_open", str(error)) from error
    except EntryError as error:
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "refused", str(error)) from error


@router.get(
    "/matches/{slug:slug}/{path:key}/record",
    response={404: ErrorAnswer},
    auth=None,
    openapi_extra={
        "responses": {
            200: {
                "description": "The record, format arena-match/1",
                "content": {"application/json": {"schema": {"type": "object"}}},
            }
        }
    },
)
def get_record(request: HttpRequest, slug: str, key: str) -> HttpResponse:  # noqa: ARG001 ninja's signature
    """The record of a finished match as a file."""
    page = _find_match(slug, key)
    if page.record is None:
        raise ApiError(
            HTTPStatus.NOT_FOUND,
            "no_record",
            "this match has no record, or none that is open to all yet",
        )
    name, data = tables.record_file(page.tournament, page.record)
    return HttpResponse(
        data,
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@router.get(
    "/matches/{slug:slug}/{path:key}", response={200: MatchOut, 404: ErrorAnswer}, auth=None
)
def get_match(request: HttpRequest, slug: str, key: str) -> MatchOut:
    """A match by its id, `SLUG/KEY`."""
    page = _find_match(slug, key)
    match = page.match
    path = f"{request.path}/record"
    return MatchOut(
        **_pairing_fields(slug, match.pairing.round.stage.number, page.round_index, page.pairing),
        id=f"{slug}/{page.pairing.key}",
        tournament=slug,
        game=page.tournament.game,
        rated=match.rated,
        digest=match.digest,
        faults=list(tables.fault_words(page.record)) if page.record else [],
        attempts=[
            AttemptOut(
                started_at=each.started_at,
                ended_at=each.ended_at,
                ending=each.ending,
            )
            for each in page.attempts
        ],
        record=request.build_absolute_uri(path) if page.record else None,
        record_expired=match.record_has_expired,
        queue=queue_out(selectors.place_of_match(match)),
        finished_at=match.finished_at,
    )


@router.get("/series/{slug:slug}", response={200: SeriesOut, 404: ErrorAnswer}, auth=None)
def get_series(request: HttpRequest, slug: str) -> SeriesOut:  # noqa: ARG001 ninja's signature
    """A series: its rule, its next starts, its tournaments (the last first) and its season's table."""
    return _series_out(_find_series(slug))


def _series_out(row: Series) -> SeriesOut:
    page = selectors.season_page(row)
    counting = [event.slug for event in reversed(page.events) if event.counts]
    return SeriesOut(
        slug=row.slug,
        name=row.name,
        is_active=row.is_active,
        rule=row.rule,
        time_zone=row.time_zone,
        next=list(starts_to_come(row)),
        points_table=row.points_table,
        tournaments=[event.slug for event in page.events],
        entries=list(page.entries),
        table=[
            SeasonRowOut(
                place=line.place,
                entrant=line.name,
                points=line.points,
                results=[
                    SeasonResultOut(tournament=event, place=result[0], points=result[1])
                    for event, result in zip(counting, line.results, strict=True)
                    if result is not None
                ],
            )
            for line in page.table
        ],
    )


@router.post(
    "/series/{slug:slug}/entries",
    response={204: None, (401, 403, 404, 422): ErrorAnswer},
    auth=submitting,
)
def enter_for_series(request: HttpRequest, slug: str, entry: EntryIn) -> Status[None]:
    """Enter a bot of yours (or two as a pair) for all tournaments of a series that open from now on."""
    names = [entry.bot] if entry.partner is None else [entry.bot, entry.partner]
    bots = [_own_bot(request, name) for name in names]
    enter_series(series=_find_series(slug), bots=bots, by=token_of(request).player)
    return Status(HTTPStatus.NO_CONTENT, None)


@router.delete(
    "/series/{slug:slug}/entries/{slug:bot}",
    response={204: None, (401, 403, 404): ErrorAnswer},
    auth=submitting,
)
def leave_for_series(request: HttpRequest, slug: str, bot: str) -> Status[None]:
    """Take your bot out of a series; tournaments that have opened keep it."""
    player = token_of(request).player
    entries = selectors.series_entries_of(_find_series(slug), player)
    entry = entries.filter(bots__bot__name__iexact=bot).first()
    if entry is None:
        raise ApiError(
            HTTPStatus.NOT_FOUND,
            "not_found",
            f"you have no entry with {bot!r} in the series {slug}",
        )
    leave_series(entry=entry, by=player)
    return Status(HTTPStatus.NO_CONTENT, None)


def _find_series(slug: str) -> Series:
    row = Series.objects.filter(slug=slug).first()
    if row is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "not_found", f"there is no series {slug!r}")
    return row


def _find_match(slug: str, key: str) -> selectors.MatchPage:
    _find_tournament(slug)
    try:
        return selectors.match_page(slug, key)
    except Match.DoesNotExist:
        raise ApiError(
            HTTPStatus.NOT_FOUND, "not_found", f"there is no match {slug}/{key}"
        ) from None
