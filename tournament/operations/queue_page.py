"""The admin's page of the queue: all work that is not over, how it stands, why, and what can be done about it.

It only shows and links: what is done is an operation of the rows' own admin, so it asks for confirmation, calls a
guarded service and is noted in the admin's log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Count, Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from tournament.competitions.models import Attempt, Match, Tournament
from tournament.competitions.selectors import trial_conditions
from tournament.competitions.selectors.waiting import why_match_is_held, why_trial_is_held
from tournament.operations.housekeeping import budget_warning
from tournament.operations.selectors import KINDS, MODELS, may_view, open_work, queue_of
from tournament.players.admin import Operation, OperationsAdmin, spell_moment
from tournament.players.models import Bot
from tournament.store.clock import read_clock
from tournament.store.leases import MAX_ATTEMPTS
from tournament.store.pulses import delays, spell_delays, spell_seconds
from tournament.store.waiting import QueueState

ROWS_A_PAGE = 50
_TITLES = {
    "match": "Matches",
    "check": "Checks",
    "trial": "Trials",
    "scrimmage": "Scrimmages",
}
_OFFERED: Mapping[str, tuple[str, ...]] = {
    "match": ("requeue", "forfeit"),
    "check": ("retry", "withdraw"),
    "trial": ("retry", "cancel"),
    "scrimmage": ("retry", "cancel"),
}
"""By kind the operations of its admin that belong to the queue."""
_RELATED: Mapping[str, tuple[str, ...]] = {
    "match": ("tournament", "pairing"),
    "check": ("bot__owner",),
    "trial": ("version__bot",),
    "scrimmage": ("first__bot", "other__bot", "asked_by"),
}


@dataclass(frozen=True, slots=True)
class Button:
    """Leads to the page of an operation."""

    label: str
    url: str


@dataclass(frozen=True, slots=True)
class WorkRow:
    """A row of work as the page shows it."""

    pk: int
    name: str
    detail: str
    url: str
    """Of its page; empty, as there are no buttons then, if the row is for others to operate."""
    state: str
    state_label: str
    lasts: str
    """For how long it stands so, in words."""
    why: str
    buttons: Sequence[Button]


@dataclass(frozen=True, slots=True)
class CountRow:
    """How the work of a kind stands."""

    kind: str
    title: str
    counts: Sequence[tuple[str, str, int]]
    """(state, label, how many)."""
    total: int
    oldest: str
    """For how long the oldest that is due waits, in words; empty if none does."""


class ByStanding:
    """Open work in the order of `QueueState`, what is stuck first, and in each state the oldest first.

    For a paginator. It is counted by state once and each state is read in the order of an index, so that no page
    sorts all that waits.
    """

    def __init__(self, rows: QuerySet[Any]) -> None:
        self._rows = rows.order_by("run_after", "pk")
        found = rows.order_by().values_list("standing").annotate(Count("pk"))
        self._counts: Mapping[str, int] = dict(found)

    def __len__(self) -> int:
        """How many rows there are."""
        return sum(self._counts.values())

    def __getitem__(self, wanted: slice) -> list[Any]:
        """The rows from ``wanted.start`` to ``wanted.stop``."""
        return list(self._between(wanted.start, wanted.stop))

    def _between(self, start: int, stop: int) -> Iterator[Any]:
        for state in QueueState:
            count = self._counts.get(state, 0)
            if start < count and stop > 0:
                yield from self._rows.filter(standing=state)[max(0, start) : stop]
            start, stop = start - count, stop - count


def queue_page(request: HttpRequest) -> HttpResponse:
    """What is stuck, held, running or queued, in this order; narrowed by kind, state and tournament."""
    kinds = [kind for kind in KINDS if may_view(request.user, kind)]
    if not kinds:
        raise PermissionDenied
    counts = [_count_row(kind) for kind in kinds]
    chosen = request.GET.get("kind", "")
    kind = chosen if chosen in kinds else next((row.kind for row in counts if row.total), kinds[0])
    state = request.GET.get("state", "")
    state = state if state in QueueState.values else ""
    rows = open_work(kind).select_related(*_RELATED[kind])
    if state:
        rows = rows.filter(standing=state)
    tournaments = _tournaments(rows) if kind == "match" else []
    tournament = request.GET.get("tournament", "")
    if kind == "match" and tournament:
        rows = rows.filter(tournament__slug=tournament)
    pages: Paginator[Any] = Paginator(ByStanding(rows), ROWS_A_PAGE)  # type: ignore[arg-type] # it takes slices alone
    page = pages.get_page(request.GET.get("page"))
    site = _model_admin(kind)
    may_operate = site.may_operate(request)
    shown = work_rows(request, kind, list(page.object_list), may_operate=may_operate)
    context = {
        **admin.site.each_context(request),
        "title": "Queue",
        "kind": kind,
        "kind_title": _TITLES[kind],
        "state": state,
        "states": QueueState.choices,
        "tournament": tournament,
        "tournaments": tournaments,
        "counts": counts,
        "now": spell_moment(read_clock()),
        "delay": spell_delays(delays()),
        "disk": budget_warning(),
        "page": page,
        "rows": shown,
        "bulk": [
            Button(each.label, _operate_url(kind, each.name))
            for each in _operations(kind)
            if each.takes_many
        ]
        if may_operate and any(row.url for row in shown)
        else [],
        "back": request.get_full_path(),
        "query": _query(kind, state, tournament),
    }
    return render(request, "operations/queue.html", context)


def _query(kind: str, state: str, tournament: str) -> str:
    given = {"kind": kind, "state": state, "tournament": tournament}
    return urlencode({name: value for name, value in given.items() if value})


def _count_row(kind: str) -> CountRow:
    queue = queue_of(kind)
    return CountRow(
        kind,
        _TITLES[kind],
        [(state, label, queue.counts[state]) for state, label in QueueState.choices],
        queue.total,
        spell_seconds(queue.oldest_seconds) if queue.oldest_seconds else "",
    )


def _tournaments(rows: QuerySet[Any]) -> list[tuple[str, str]]:
    """The tournaments that the filter offers."""
    found = Tournament.objects.filter(pk__in=rows.order_by().values("tournament"))
    return list(found.order_by("name", "pk").values_list("slug", "name"))


def work_rows(
    request: HttpRequest, kind: str, rows: Sequence[Any], *, may_operate: bool
) -> list[WorkRow]:
    """The rows of a page with why each stands as it does."""
    now = read_clock()
    failures = _last_failures(rows) if kind == "match" else {}
    late = spell_delays(delays())
    own = set(
        _model_admin(kind)
        .get_queryset(request)
        .filter(pk__in=[row.pk for row in rows])
        .order_by()
        .values_list("pk", flat=True)
    )
    return [
        WorkRow(
            pk=row.pk,
            name=str(row.pairing.key) if kind == "match" else str(row),
            detail=_detail(kind, row),
            url=_admin_url("change", row) if row.pk in own else "",
            state=row.standing,
            state_label=QueueState(row.standing).label,
            lasts=spell_seconds((now - _since(row)).total_seconds()),
            why=_why(kind, row, now, failures.get(row.pk, ""), late),
            buttons=_buttons(request, kind, row, may_operate=may_operate) if row.pk in own else [],
        )
        for row in rows
    ]


def _detail(kind: str, row: Any) -> str:
    if kind == "match":
        return str(row.tournament.name)
    if kind == "check":
        return f"of {row.bot.owner.username}"
    if kind == "trial":
        return f"{row.version}: {trial_conditions(row)}"
    return f"asked by {row.asked_by.username}, {row.sets} of {row.most_sets} sets"


def _since(row: Any) -> datetime:
    """Since when it stands so."""
    times: Mapping[str, datetime | None] = {
        QueueState.RUNNING: row.claimed_at,
        QueueState.QUEUED: row.queued_at,
    }
    return times.get(row.standing) or row.run_after


def _why(kind: str, row: Any, now: datetime, failure: str, late: str) -> str:
    """In words."""
    if row.standing == QueueState.STUCK:
        return (
            f"{row.attempts} attempts failed by our fault. {failure or _failure(kind, row)}".strip()
        )
    if row.standing == QueueState.HELD:
        return _why_held(kind, row)
    if row.standing == QueueState.RUNNING:
        if row.lease_until < now:
            return (
                f"by {row.lease_owner}, which has given no sign of life since {_seconds(row.lease_until)} UTC: "
                "it is given back as soon as work is handed out again"
            )
        return f"by {row.lease_owner}"
    if row.standing == QueueState.DELAYED:
        last = failure or _failure(kind, row)
        return (
            f"attempt {row.attempts} of {MAX_ATTEMPTS} failed by our fault; tried again at "
            f"{_seconds(row.run_after)} UTC. {last}".strip()
        )
    if late:
        return late
    return (
        "handed out, waits for a free worker"
        if row.standing == QueueState.QUEUED
        else "waits for its turn"
    )


def _seconds(when: datetime) -> str:
    return f"{when:%H:%M:%S}"


def _failure(kind: str, row: Any) -> str:
    return str(row.failure if kind == "scrimmage" else getattr(row, "reason", ""))


def _why_held(kind: str, row: Any) -> str:
    if kind == "match":
        return why_match_is_held(row.tournament)
    if kind == "trial":
        return why_trial_is_held(row)
    return f"{row.bot.name} is paused: {row.bot.paused_reason}"


def _last_failures(rows: Sequence[Match]) -> dict[int, str]:
    """By match how its last attempt ended that is over, in words."""
    tries = Attempt.objects.filter(match__in=[row.pk for row in rows if row.attempts])
    return {
        attempt.match_id: f"The last: {attempt.detail or attempt.get_ending_display()}"
        for attempt in tries.filter(ended_at__isnull=False).order_by("match", "fence")
    }


def _buttons(request: HttpRequest, kind: str, row: Any, *, may_operate: bool) -> list[Button]:
    """What can be done about it: with itself, and with what holds it."""
    buttons = []
    if may_operate:
        buttons += [
            Button(each.label, _operate_url(kind, each.name, row.pk, request.get_full_path()))
            for each in _operations(kind)
            if each.allows(row)
        ]
    if row.standing in {QueueState.HELD, QueueState.STUCK}:
        buttons += _lifts(request, kind, row)
    return buttons


def _lifts(request: HttpRequest, kind: str, row: Any) -> list[Button]:
    """The operations that end a pause which holds the row, for who may do them."""
    lifts: Sequence[tuple[type[Model], str, Any]] = ()
    if kind == "match" and row.tournament.paused_reason:
        lifts = ((Tournament, "resume", row.tournament),)
    bots = {"check": lambda: row.bot, "trial": lambda: row.version.bot}
    if kind in bots and (bot := bots[kind]()).paused_reason:
        lifts = ((Bot, "lift", bot),)
    return [
        Button(operation.label, _url_of(model, name, [held.pk], request.get_full_path()))
        for model, name, held in lifts
        for operation in _admin_of(model).operations
        if operation.name == name and _admin_of(model).may_operate(request)
    ]


def _operations(kind: str) -> list[Operation]:
    by_name: dict[str, Operation] = {each.name: each for each in _model_admin(kind).operations}
    return [by_name[name] for name in _OFFERED[kind]]


def _model_admin(kind: str) -> OperationsAdmin:
    return _admin_of(MODELS[kind])


def _admin_of(model: type[Model]) -> OperationsAdmin:
    found = admin.site.get_model_admin(model)
    assert isinstance(found, OperationsAdmin)
    return found


def _operate_url(kind: str, name: str, pk: int | None = None, back: str = "") -> str:
    return _url_of(MODELS[kind], name, [] if pk is None else [pk], back)


def _url_of(model: type[Model], name: str, ids: Sequence[int], back: str) -> str:
    meta = model._meta  # noqa: SLF001 Django's name of it
    url = reverse(f"admin:{meta.app_label}_{meta.model_name}_operate", args=[name])
    query = {"ids": ",".join(map(str, ids)), "back": back} if ids else {}
    return f"{url}?{urlencode(query)}" if query else url


def _admin_url(view: str, row: Any) -> str:
    meta = row._meta  # noqa: SLF001 Django's name of it
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_{view}", args=[row.pk])
