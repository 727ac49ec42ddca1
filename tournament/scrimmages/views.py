"""Pages of scrimmages: asking for one, those of a player, what came of one, its batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import groupby
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from engine.comparison import BOARDS_A_MATCH, Findings, spell_elo, spell_estimate
from engine.games import GAMES
from engine.record import encode_record
from engine.referee import SeatLog
from tournament.competitions.selectors.conditions import spell_rules
from tournament.competitions.selectors.tables import drawn_deals, fault_words
from tournament.players.models import Bot, BotVersion, Player
from tournament.players.services import allow_scrimmages
from tournament.players.views import player_of
from tournament.scrimmages import selectors
from tournament.scrimmages.errors import ScrimmageError
from tournament.scrimmages.forms import AllowForm, ScrimmageForm
from tournament.scrimmages.models import Answer, Batch, Difference, Scrimmage, ScrimmageState
from tournament.scrimmages.services import CANCELLED_BY_OWNER, cancel_scrimmage
from tournament.store.waiting import QueuePlace

SCRIMMAGES_A_PAGE = 30
BATCHES_A_PAGE = 10
DEALS_A_PAGE = 16
OFFERED = 200
"""So many bots' names are offered beside the field in which one is typed."""


@dataclass(frozen=True, slots=True)
class ScrimmageRow:
    """A scrimmage as lists show it."""

    pk: int
    first: str
    other: str
    asked_by: str
    game: str
    state: str
    state_label: str
    place: QueuePlace | None
    sets: int
    most_sets: int
    asked_at: Any


def scrimmage_rows(rows: Sequence[Scrimmage]) -> list[ScrimmageRow]:
    """Lines of a list of scrimmages."""
    places = selectors.places_in_queue(rows)
    return [
        ScrimmageRow(
            pk=row.pk,
            first=str(row.first),
            other=str(row.other),
            asked_by=row.asked_by.username,
            game=_game_title(row.game),
            state=row.answer or _shown_state(row),
            state_label=spell_state(row),
            place=places.get(row.pk),
            sets=row.sets,
            most_sets=row.most_sets,
            asked_at=row.asked_at,
        )
        for row in rows
    ]


_NO_WORSE = {
    Answer.BETTER: "no worse",
    Answer.NOT_BETTER: "worse",
    Answer.UNDECIDED: Answer.UNDECIDED.label,
    Answer.FAULT: Answer.FAULT.label,
}


def _is_no_worse(row: Scrimmage) -> bool:
    return row.difference == Difference.NO_WORSE


def spell_state(row: Scrimmage) -> str:
    """Where it stands, for people: one that has begun is running, though it waits between its batches."""
    if row.answer:
        return _NO_WORSE[Answer(row.answer)] if _is_no_worse(row) else row.get_answer_display()
    return "running" if _shown_state(row) == "running" else row.get_state_display()


def _shown_state(row: Scrimmage) -> str:
    between = row.state in {ScrimmageState.WAITING, ScrimmageState.QUEUED} and row.sets
    return ScrimmageState.RUNNING.value if between else row.state


def _game_title(game: str) -> str:
    return GAMES[game].title if game in GAMES else game


@login_required
@require_GET
def scrimmage_list(request: HttpRequest) -> HttpResponse:
    """The player's scrimmages, their place in the queue, and who asked for some with a bot of theirs."""
    player = player_of(request)
    page = Paginator(selectors.scrimmages_of(player), SCRIMMAGES_A_PAGE).get_page(
        request.GET.get("page")
    )
    own = list(page.object_list)
    context = {
        "section": "account",
        "page": page,
        "rows": scrimmage_rows(own),
        "against": scrimmage_rows(list(selectors.scrimmages_against(player)[:SCRIMMAGES_A_PAGE])),
        "allowance": selectors.allowance(player),
        "is_live": any(row.is_open for row in own),
    }
    return render(request, "scrimmages/list.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Ask for a scrimmage, or say everything that is wrong with what was asked for."""
    player = player_of(request)
    sent = request.POST if request.method == "POST" else None
    own = list(selectors.own_versions(player))
    asked = {name: request.GET[name] for name in ("first", "other", "game") if name in request.GET}
    form = ScrimmageForm(sent, player=player, initial={"first": _own_of(own, asked), **asked})
    if form.is_valid() and (row := form.save()) is not None:
        messages.success(request, "It is in the queue; this page shows how it goes.")
        return redirect("scrimmages:scrimmage", row.pk)
    context = {
        "section": "account",
        "form": form,
        "own": own,
        "opponents": selectors.opponents().exclude(owner=player)[:OFFERED],
        "allowance": selectors.allowance(player),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form.errors else HTTPStatus.OK
    return render(request, "scrimmages/new.html", context, status=status)


def _own_of(own: Sequence[BotVersion], asked: Mapping[str, str]) -> int | None:
    """The newest version of the player's own bot that is to be compared with itself, if it is one."""
    of_bot = (version.pk for version in own if version.bot.name == asked.get("other"))
    return next(of_bot, None)


def _find(request: HttpRequest, pk: int) -> Scrimmage:
    """A scrimmage that the viewer may see: both owners and staff; for anyone else it is not there."""
    player = player_of(request)
    for_staff = player.has_perm("scrimmages.view_scrimmage")
    rows = selectors.scrimmages() if for_staff else selectors.scrimmages_seen_by(player)
    return get_object_or_404(rows, pk=pk)


@login_required
@require_GET
def scrimmage(request: HttpRequest, pk: int) -> HttpResponse:
    """What came of a scrimmage so far: the answer in words, the numbers, the batches, how to play it again."""
    row = _find(request, pk)
    findings = selectors.scrimmage_findings(row)
    batches = row.batches.order_by("-number").defer("scores")
    page = Paginator(batches, BATCHES_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "section": "account",
        "scrimmage": row,
        "title": f"{row.first} – {row.other}",
        "game": _game_title(row.game),
        "ruleset": sorted(spell_rules(row.ruleset)),
        "state": row.answer or _shown_state(row),
        "state_label": spell_state(row),
        "place": selectors.place_in_queue(row),
        "verdict": _spell_verdict(row, findings),
        "numbers": _numbers(row, findings),
        "bar": _bar(row, findings),
        "page": page,
        "batches": page.object_list,
        "is_trusted": row.batches.filter(is_sandboxed=False).exists(),
        "command": selectors.compare_command(row),
        "batch_sets": BOARDS_A_MATCH,
        "record_days": settings.ARENA_SCRIMMAGE_DAYS,
        "is_own": row.asked_by_id == request.user.pk,
        "has_both_wheels": row.asked_by_id == request.user.pk == row.other.bot.owner_id,
    }
    return render(request, "scrimmages/scrimmage.html", context)


def _spell_verdict(row: Scrimmage, findings: Findings) -> str:
    if row.answer or (not row.is_open and row.sets):
        return selectors.spell_scrimmage(row, findings)
    if row.state == ScrimmageState.CANCELLED:
        return "It was cancelled before a set was played."
    if not row.sets:
        return "Nothing is known yet."
    return f"Not known yet, after {row.sets} of at most {row.most_sets} sets."


def _numbers(row: Scrimmage, findings: Findings) -> list[tuple[str, str]]:
    compared = findings.compared
    if compared is None or compared.elo is None or compared.superiority is None:
        return []
    first = compared.entrants[0]
    return [
        (f"Sets of {row.first}", _spell_counts(findings.counts)),
        ("Score", spell_estimate(first.score, ".3f")),
        ("Points a board", _true_minus(spell_estimate(first.points, "+.2f"))),
        (f"Elo over {row.other}", _true_minus(spell_elo(compared.elo))),
        ("Likelihood that it is better", f"{compared.superiority:.3f} (LOS)"),
    ]


def _true_minus(number: str) -> str:
    return number.replace("-", "−")


def _spell_counts(counts: Sequence[int]) -> str:
    parts = zip("0¼½¾1", counts, strict=True)
    return " · ".join(f"{score}: {count}" for score, count in parts)


@dataclass(frozen=True, slots=True)
class Bar:
    """Where the test stands between its two bounds."""

    ratio: float
    bound: float
    elo0: float
    elo1: float
    percent: float
    """0 at the lower bound, 50 in the middle, 100 at the upper one."""
    start: float
    """The left end of what is drawn from the middle, and `length` how far it goes."""
    length: float


def _bar(row: Scrimmage, findings: Findings) -> Bar | None:
    test = row.question.test
    if test is None or findings.ratio is None:
        return None
    reached = max(-1.0, min(1.0, findings.ratio / test.bound))
    percent = round(50 + 50 * reached, 2)
    return Bar(
        ratio=round(findings.ratio, 2),
        bound=round(test.bound, 2),
        elo0=test.elo0,
        elo1=test.elo1,
        percent=percent,
        start=min(50.0, percent),
        length=round(abs(percent - 50), 2),
    )


@login_required
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """End a scrimmage of one's own."""
    row = get_object_or_404(selectors.scrimmages_of(player_of(request)), pk=pk)
    try:
        cancel_scrimmage(scrimmage=row, reason=CANCELLED_BY_OWNER)
    except ScrimmageError as error:
        messages.error(request, f"It cannot be cancelled: {error}.")
    else:
        messages.success(request, "It is cancelled.")
    return redirect("scrimmages:scrimmage", pk)


@login_required
@require_POST
def allow(request: HttpRequest, name: str) -> HttpResponse:
    """Say whether others may ask for scrimmages against a bot of one's own."""
    row = get_object_or_404(Bot, owner=player_of(request), name=name)
    form = AllowForm(request.POST)
    if form.is_valid():
        allow_scrimmages(bot=row, allowed=form.cleaned_data["allowed"])
        may = "may" if row.allows_scrimmages else "may not"
        messages.success(request, f"Others {may} ask for scrimmages with {row.name}.")
    return redirect("my-bots")


def _find_batch(request: HttpRequest, pk: int, number: int) -> Batch:
    row = _find(request, pk)
    found = get_object_or_404(row.batches, number=number)
    found.scrimmage = row
    return found


@login_required
@require_GET
def batch(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """One batch: its deals as text, its record, and what the viewer's own bots printed."""
    row = _find_batch(request, pk, number)
    record = selectors.batch_record(row)
    deals = tuple(drawn_deals(record)) if record else ()
    page = Paginator(deals, DEALS_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "section": "account",
        "scrimmage": row.scrimmage,
        "title": f"{row.scrimmage.first} – {row.scrimmage.other}",
        "batch": row,
        "game": _game_title(row.scrimmage.game),
        "record": record,
        "faults": fault_words(record) if record else [],
        "page": page,
        "boards": [
            (heading, list(each))
            for heading, each in groupby(page.object_list, lambda deal: deal.heading)
        ],
        "logs": _logs(row, player_of(request)),
    }
    return render(request, "scrimmages/batch.html", context)


def _logs(row: Batch, player: Player) -> list[tuple[str, SeatLog, str]]:
    """The viewer's own logs that say anything: where each comes from, itself, the command that plays a fault again."""
    return [
        (
            f"Rotation {log.rotation + 1}, seat {log.seat}",
            log,
            log.debug_command(_record_name(row)),
        )
        for log in selectors.batch_logs(row, player)
        if log.log.text or log.log.traceback or log.fault
    ]


def _record_name(row: Batch) -> str:
    return f"scrimmage-{row.scrimmage_id}-M{row.number}.json"


@login_required
@require_GET
def record(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """The record of a batch as a file, until it expires."""
    row = _find_batch(request, pk, number)
    found = selectors.batch_record(row)
    if found is None:
        raise Http404
    return HttpResponse(
        encode_record(found),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{_record_name(row)}"'},
    )
