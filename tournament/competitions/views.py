"""Pages of tournaments and matches, and the forms by which players enter and leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from itertools import groupby
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from engine.errors import UsageError
from engine.formats import FORMATS
from engine.formats.elimination import THIRD_PLACE_KEY
from engine.games import GAMES
from engine.record import BoardsContest
from engine.referee import SeatLog
from engine.standings import TITLES, StandingRow, TieBreak
from tournament.competitions import selectors
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.forms import (
    AnswerForm,
    EnterForm,
    EntrantForm,
    InviteForm,
    SeriesEntryForm,
    spell_next_starts,
    spell_rule,
)
from tournament.competitions.models import (
    EntrantBot,
    EntrantState,
    EntryTrial,
    Match,
    MatchState,
    PublishPolicy,
    Seeding,
    Series,
    Shortage,
    StageState,
    SupersededMatch,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors import tables
from tournament.competitions.selectors.brackets import brackets_of, is_one_bracket, round_title
from tournament.competitions.selectors.bundles import bundle_file, told_digest
from tournament.competitions.selectors.conditions import conditions_of, spell_rules
from tournament.competitions.selectors.engine_values import stage_contest
from tournament.competitions.selectors.stages import BATCHES_A_PAGE
from tournament.competitions.services import (
    accept_invitation,
    decline_invitation,
    enter_series,
    invite_partner,
    leave_series,
    put_away_notices,
    withdraw_entrant,
    withdraw_invitation,
)
from tournament.competitions.services import enter as enter_tournament
from tournament.competitions.services import leave as leave_tournament
from tournament.leaderboards.models import PoolKind
from tournament.players.models import Bot, Player
from tournament.players.views import player_of

TOURNAMENTS_A_PAGE = 30
DEALS_A_PAGE = 16
LINES_A_PAGE = 100
"""Of tables, entrants and the matches of a round."""
LINES_OF_OTHERS = 32
"""Of the tables of stages beside the one that is shown."""
CURRENT = (TournamentState.OPEN, TournamentState.CLOSED, TournamentState.RUNNING)
ENDED = (TournamentState.FINISHED, TournamentState.CANCELLED)
WAITING = (TournamentState.OPEN, TournamentState.CLOSED)
OUT_OF_ENTRIES = (TournamentState.CLOSED, TournamentState.RUNNING)


@dataclass(frozen=True, slots=True)
class TournamentRow:
    """A tournament as lists show it."""

    slug: str
    name: str
    game: str
    format: str
    state: str
    state_label: str
    is_paused: bool
    entrants: int
    starts_at: datetime


@dataclass(frozen=True, slots=True)
class MatchRow:
    """A pairing as lists show it."""

    slug: str
    key: str
    has_page: bool
    sides: tuple[selectors.PairingPart, ...]
    outcome: str
    winner: int | None
    """The id of the one entrant who won or goes on; None if none has, or several share the first place."""
    tournament: str = ""
    """Its name, in lists over several."""


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A bot beside a tournament that is open, for the bot's owner."""

    tournament: Tournament
    bot: Bot
    entrant: int | None
    """The entrant's id; None if it has not entered."""
    version: str
    """The one that would play, as things stand; empty if none."""
    on_trial: str = ""
    """A newer one that plays if it passes its trial; it is tried once the bot has entered."""


def game_title(game: str, kind: str = "") -> str:
    """A game (and who meets whom in it) for people."""
    title = GAMES[game].title if game in GAMES else game
    return f"{title}, pairs" if kind == PoolKind.PAIR else title


def current_tournaments() -> list[TournamentRow]:
    """What is open or running, the next to start first."""
    return tournament_rows(
        selectors.public_tournaments().filter(state__in=CURRENT).order_by("starts_at", "pk")
    )


def ended_tournaments() -> QuerySet[Tournament]:
    """What has ended, the last first; `tournament_rows` makes lines of it."""
    return selectors.public_tournaments().filter(state__in=ENDED)


def tournament_rows(rows: QuerySet[Tournament] | Sequence[Tournament]) -> list[TournamentRow]:
    """Lines of a list of tournaments."""
    return [
        TournamentRow(
            slug=row.slug,
            name=row.name,
            game=game_title(row.game, row.kind),
            format=", ".join(_format_title(stage.format) for stage in row.stages.all()),
            state=row.state,
            state_label=row.get_state_display(),
            is_paused=row.is_paused and row.state not in ENDED,
            entrants=getattr(row, "entrant_count", 0),
            starts_at=row.starts_at,
        )
        for row in rows
    ]


def _format_title(name: str) -> str:
    return FORMATS[name].title if name in FORMATS else name


@require_GET
def tournament_list(request: HttpRequest) -> HttpResponse:
    """Current tournaments, and the past ones page by page."""
    page = Paginator(ended_tournaments(), TOURNAMENTS_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "section": "tournaments",
        "current": current_tournaments() if page.number == 1 else [],
        "page": page,
        "past": tournament_rows(list(page.object_list)),
    }
    return render(request, "competitions/list.html", context)


def find_tournament(slug: str, *, for_staff: bool = False) -> Tournament:
    """The tournament `slug`. Raises Http404 if there is none, or a draft that is not for the reader."""
    rows = selectors.tournaments() if for_staff else selectors.public_tournaments()
    return get_object_or_404(rows, slug=slug)


def _runs(request: HttpRequest, slug: str) -> bool:
    """Whether the viewer runs this tournament: its organiser, or who oversees all."""
    user = request.user
    assert isinstance(user, Player | AnonymousUser)
    return selectors.tournaments_run_by(user).filter(slug=slug).exists()


@require_GET
def tournament(request: HttpRequest, slug: str) -> HttpResponse:
    """A tournament: schedule, entrants, bracket or table, matches, commitment and secret."""
    for_staff = _runs(request, slug)
    row = find_tournament(slug, for_staff=for_staff)
    page = selectors.tournament_page(
        row.slug,
        for_staff=for_staff,
        stage=_number(request, "stage") or 0,
        round_index=_number(request, "round"),
    )
    player = request.user if isinstance(request.user, Player) else None
    entrants = Paginator(page.entrants, LINES_A_PAGE).get_page(request.GET.get("entrants"))
    context = {
        "section": "tournaments",
        "page": page,
        "tournament": page.tournament,
        "game": game_title(page.tournament.game, page.tournament.kind),
        "is_sealed": bool(row.pub),
        "is_open": row.state == TournamentState.OPEN,
        "late_round": selectors.late_round(page.tournament),
        "is_organiser": for_staff,
        "may_clone": request.user.has_perm("competitions.add_tournament"),
        "series": Series.objects.filter(slots__tournament=row.pk).first(),
        "entry_conditions": entry_conditions(page.tournament, len(page.entrants)),
        "notices": _notices(page.tournament, player),
        "address": request.build_absolute_uri(request.path),
        "digest": told_digest(page.tournament),
        "is_ended": row.state in ENDED,
        "is_live": _is_live(page),
        "backlog": selectors.backlog_of(page.tournament, only_public=not for_staff),
        "records_at_end": row.records_public == PublishPolicy.AT_END,
        "shown_entrants": _entrants(
            page,
            list(entrants.object_list),
            _who_cannot_play(page, player, for_staff=for_staff),
            _own_failures(page.tournament, player),
        ),
        "entrant_page": entrants,
        "has_seeds": any(entrant.seed for entrant in page.entrants),
        "own": _own_entrants(page.tournament, player),
        "entries": entry_rows(player, tournament=page.tournament) if player else (),
        "pair_form": _pair_form(page.tournament, player),
        "invite_form": _invite_form(page.tournament, player),
        "invitations": _invitations(page.tournament, player),
        "stage": _stage(page, request, is_staff=for_staff),
        "stage_tabs": _stage_tabs(page),
    }
    return render(request, "competitions/tournament.html", context)


def _is_live(page: selectors.TournamentPage) -> bool:
    """Whether the page renews what is played: not if a stage of it is too large to be sent again and again."""
    is_running = page.tournament.state == TournamentState.RUNNING
    return is_running and not any(stage.is_large for stage in page.stages)


def _who_cannot_play(
    page: selectors.TournamentPage, player: Player | None, *, for_staff: bool
) -> dict[str, str]:
    """By name why a bot has no version to play with, or not its newest: all for organisers, the own ones for their owner."""
    if player is None or page.tournament.pub or page.tournament.state not in WAITING:
        return {}
    bots = Bot.objects.filter(entries__tournament=page.tournament)
    names = dict((bots if for_staff else bots.filter(owner=player)).values_list("pk", "name"))
    reasons = selectors.remarks_on_entries(page.tournament, list(names))
    return {names[pk]: why for pk, why in reasons.items()}


def _own_failures(row: Tournament, player: Player | None) -> dict[str, int]:
    """By name of the viewer's bots the trial that its newest version failed."""
    if player is None:
        return {}
    bots = Bot.objects.filter(entries__tournament=row, owner=player)
    names = dict(bots.values_list("pk", "name"))
    return {names[pk]: trial.pk for pk, trial in selectors.failed_trials(row, list(names)).items()}


@login_required
@never_cache
@require_GET
def trial(request: HttpRequest, pk: int) -> HttpResponse:
    """How a version did under the conditions of a tournament, and what it printed, for its owner."""
    rows = EntryTrial.objects.select_related("version__bot")
    row = get_object_or_404(rows, pk=pk, version__bot__owner=player_of(request))
    context = {
        "section": "account",
        "trial": row,
        "conditions": selectors.trial_conditions(row),
        "log": selectors.trial_log(row),
    }
    return render(request, "competitions/trial.html", context)


def _entrants(
    page: selectors.TournamentPage,
    rows: Sequence[selectors.EntrantRow],
    cannot_play: Mapping[str, str],
    failures: Mapping[str, int],
) -> list[dict[str, Any]]:
    """The entrants, each bot with its frozen version or the one that would play."""
    reached = _reached(page)
    return [
        {
            "row": row,
            "state": reached.get(row.pk, row.state_label),
            "bots": [(bot, version or page.would_play.get(bot)) for bot, version in row.bots],
            "is_bot": len(row.bots) == 1,
            "link": row.bots[0][0],
            "why": "; ".join(
                f"{bot}: {cannot_play[bot]}" for bot, _ in row.bots if bot in cannot_play
            ),
            "failures": [failures[bot] for bot, _ in row.bots if bot in failures],
        }
        for row in rows
    ]


def _reached(page: selectors.TournamentPage) -> dict[int, str]:
    """By entrant how far they have come in the bracket that is played."""
    if page.tournament.state != TournamentState.RUNNING:
        return {}
    running = (each for each in page.stages if each.state == StageState.RUNNING and each.knocks_out)
    return {row.entrant: row.note for stage in running for row in stage.standings if row.note}


def _notices(row: Tournament, player: Player | None) -> list[Any]:
    """What the viewer has been told about this tournament and has not put away."""
    return [] if player is None else list(selectors.notices_of(player).filter(tournament=row))


def entry_conditions(row: Tournament, entrants: int) -> list[tuple[str, str]]:
    """Who may enter, and what becomes of too few, in words."""
    lines = []
    if row.max_entrants is not None:
        lines.append(("Places", f"{entrants} of {row.max_entrants} taken"))
    if row.max_bots_per_player is not None:
        lines.append(("Bots of a player", f"at most {row.max_bots_per_player}"))
    if row.min_entrants is not None and row.state in {TournamentState.DRAFT, TournamentState.OPEN}:
        lines.append(("Entrants needed", f"{row.min_entrants}, else {_spell_shortage(row)}"))
    if row.seeding != Seeding.RATING:
        lines.append(("Seeds follow from", row.get_seeding_display()))
    if row.late_until_round is not None:
        lines.append(("Late entries", f"until round {row.late_until_round} is published"))
    return lines


def _spell_shortage(row: Tournament) -> str:
    if row.if_too_few == Shortage.CANCEL:
        return "it is cancelled"
    step = timedelta(minutes=row.postpone_minutes)
    left = row.postpone_most - row.postponed_times
    if left < 1:
        return f"it is cancelled: it has been postponed {_spell_times(row.postponed_times)}"
    more = "once more" if left == 1 else f"{left} more times"
    return f"it is postponed by {_spell_duration(step)}, at most {more}, then cancelled"


def _spell_times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _spell_duration(duration: timedelta) -> str:
    """A duration of whole minutes in words."""
    hours, minutes = divmod(int(duration.total_seconds()) // 60, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "day"), (hours, "hour"), (minutes, "minute"))
    return " ".join(f"{count} {unit}{'s' if count > 1 else ''}" for count, unit in parts if count)


@login_required
@require_POST
def put_away(request: HttpRequest) -> HttpResponse:
    """Show the player's notices no more."""
    put_away_notices(player=player_of(request))
    return redirect("my-bots" if request.POST.get("back") == "my-bots" else "home")


def _own_entrants(row: Tournament, player: Player | None) -> list[Any]:
    """The viewer's entrants that could still be withdrawn."""
    if player is None or row.state not in OUT_OF_ENTRIES:
        return []
    return list(selectors.entries_of(row, player).filter(state=EntrantState.ACTIVE))


def entry_rows(player: Player, *, tournament: Tournament) -> list[EntryRow]:
    """The player's bots beside a tournament that is open, the entered ones first; empty for any other.

    Of a tournament of pairs only the entered ones; of one that takes late entries only the others.
    """
    is_late = selectors.late_round(tournament) is not None
    if tournament.state != TournamentState.OPEN and not is_late:
        return []
    entered = dict(
        EntrantBot.objects.filter(
            tournament=tournament, bot__owner=player, is_current=True
        ).values_list("bot", "entrant")
    )
    bots = list(Bot.objects.filter(owner=player).order_by("name"))
    if tournament.kind == PoolKind.PAIR:
        bots = [bot for bot in bots if bot.pk in entered]
    if is_late:
        bots = [bot for bot in bots if bot.pk not in entered]
    found = selectors.prospects(tournament, [bot.pk for bot in bots], late=is_late)
    rows = [
        EntryRow(
            tournament=tournament,
            bot=bot,
            entrant=entered.get(bot.pk),
            version=prospect.version.version if prospect.version else "",
            on_trial=prospect.on_trial.version if prospect.on_trial else "",
        )
        for bot in bots
        for prospect in [found.get(bot.pk, selectors.Prospect(None))]
    ]
    return sorted(rows, key=lambda row: row.entrant is None)


def _pair_form(row: Tournament, player: Player | None) -> EnterForm | None:
    is_open = row.state == TournamentState.OPEN or selectors.late_round(row) is not None
    if player is None or row.kind != PoolKind.PAIR or not is_open:
        return None
    names = list(player.bots.order_by("name").values_list("name", flat=True)[:2])
    if len(names) < len(("bot", "partner")):
        return None
    first, second = names
    initial = {"bot": first, "partner": second}
    return EnterForm(kind=row.kind, player=player, auto_id="pair_%s", initial=initial)


def _invite_form(row: Tournament, player: Player | None) -> InviteForm | None:
    if player is None or row.kind != PoolKind.PAIR or row.state != TournamentState.OPEN:
        return None
    return InviteForm(player=player, auto_id="invite_%s") if player.bots.exists() else None


def _invitations(row: Tournament, player: Player | None) -> list[dict[str, Any]]:
    """The open invitations of the viewer, those to be answered first."""
    if player is None or row.kind != PoolKind.PAIR:
        return []
    rows = [
        {"row": each, "is_mine": each.bot.owner_id == player.pk}
        for each in selectors.invitations_of(row, player)
    ]
    return sorted(rows, key=lambda each: bool(each["is_mine"]))


_SHOWN_ANYHOW = frozenset({TieBreak.SCORE, TieBreak.WINS, TieBreak.POINTS_DIFFERENCE, TieBreak.LOT})
"""Tie-breaks without a column of their own: the table has them, or they mean nothing as a number."""


def _number(request: HttpRequest, name: str) -> int | None:
    """A small number of the address; None if it is none."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < LONGEST_NUMBER else None


LONGEST_NUMBER = 8


def _stage_tabs(page: selectors.TournamentPage) -> list[dict[str, Any]]:
    """The stages, if there are several."""
    if len(page.stages) == 1:
        return []
    return [
        {
            "number": each.number,
            "title": each.format_title,
            "state": each.state_label,
            "is_shown": each.is_shown,
        }
        for each in page.stages
    ]


def _stage(
    page: selectors.TournamentPage, request: HttpRequest, *, is_staff: bool
) -> dict[str, Any]:
    """The stage that is shown: its brackets, tables, matches and conditions."""
    shown = next(each for each in page.stages if each.is_shown)
    names = {entrant.pk: entrant.name for entrant in page.entrants}
    lines = Paginator(shown.standings, LINES_A_PAGE).get_page(request.GET.get("table"))
    return {
        "page": shown,
        "is_only": len(page.stages) == 1,
        "goes_on": _spell_qualifiers(shown),
        "brackets": brackets_of(shown),
        "others": _other_stages(page, names),
        "tables": _tables(shown, list(lines.object_list), names),
        "lines": lines,
        "rounds": _rounds(page.tournament.slug, shown, request, is_staff=is_staff),
        "conditions": conditions_of(shown.stage),
        "ruleset": spell_rules(shown.stage.ruleset),
    }


def _other_stages(page: selectors.TournamentPage, names: Mapping[int, str]) -> list[dict[str, Any]]:
    """The tables of the stages that are not shown, as far as they have begun; of a long one its first lines."""
    return [
        {
            "page": each,
            "tables": _tables(each, each.standings[:LINES_OF_OTHERS], names),
            "left_out": max(0, len(each.standings) - LINES_OF_OTHERS),
        }
        for each in page.stages
        if each.standings and not each.is_shown
    ]


def _spell_qualifiers(page: selectors.StagePage) -> str:
    """How many go on from a stage, in words; empty if it is the last."""
    count = page.stage.qualifiers
    if count is None:
        return ""
    return f"The best {count} go on to stage {page.number + 1}, seeded by this table."


def _tables(
    page: selectors.StagePage, rows: Sequence[StandingRow], names: Mapping[int, str]
) -> list[dict[str, Any]]:
    """The table, or one for each group, with its cross table; only of those `rows`."""
    groups = list(dict.fromkeys(row.group for row in rows))
    return [
        {
            "title": _group_title(page, group),
            "anchor": f"table-{number}",
            "standings": _standings(page, [row for row in rows if row.group == group], names),
            "cross": tables.cross_table_of(page, names, group),
        }
        for number, group in enumerate(groups, 1)
    ]


def _group_title(page: selectors.StagePage, group: str) -> str:
    if not group:
        return "Final standings" if page.state == StageState.FINISHED else "Standings so far"
    return f"Group {group}" if len(group) == 1 else group.capitalize()


def _standings(
    page: selectors.StagePage, rows: Sequence[StandingRow], names: Mapping[int, str]
) -> dict[str, Any]:
    """A table with the columns that its rows have."""
    columns = [value.name for value in rows[0].tie_breaks if value.name not in _SHOWN_ANYHOW]
    return {
        "rows": [
            {
                "place": row.group_place or row.place,
                "name": names[row.entrant],
                "row": row,
                "values": _tie_break_values(row, columns),
                "goes_on": row.entrant in page.going_on,
            }
            for row in rows
        ],
        "columns": [TITLES[column] for column in columns],
        "has_score": not (page.knocks_out or page.is_continuous),
        "has_notes": any(row.note for row in rows),
        "workings": [
            (
                f"{row.group_place or row.place}. {names[row.entrant]}",
                [value.working for value in row.tie_breaks if value.working],
            )
            for row in rows
            if row.tie_breaks
        ],
    }


def _tie_break_values(row: StandingRow, columns: Sequence[str]) -> list[Any]:
    values = {value.name: value.value for value in row.tie_breaks}
    return [values.get(column) for column in columns]  # type: ignore[call-overload]


def _rounds(
    slug: str, page: selectors.StagePage, request: HttpRequest, *, is_staff: bool
) -> dict[str, Any] | None:
    """The published rounds by name, and the pairings of the one asked for, else of the first that is not complete."""
    if not page.rounds:
        return None
    if page.is_continuous:
        return _batches(slug, page, request)
    asked = _number(request, "round")
    current = next((each for each in page.rounds if not each.is_complete), page.rounds[-1])
    shown = next((each for each in page.rounds if each.index == asked), current)
    rows = Paginator(shown.pairings, LINES_A_PAGE).get_page(request.GET.get("page"))
    return {
        "names": [(each.index, _round_title(page, each), each is shown) for each in page.rounds],
        "shown": shown.index,
        "title": _round_title(page, shown),
        "state": f"{shown.state_label}{', sealed' if shown.is_sealed and is_staff else ''}",
        "rows": [match_row(slug, row) for row in rows.object_list],
        "page": rows,
    }


def _batches(slug: str, page: selectors.StagePage, request: HttpRequest) -> dict[str, Any]:
    """The matches of a continuous stage, the last batch first."""
    last = page.rounds[-1].index
    upto = min(_number(request, "round") or last, last)
    first = max(upto - BATCHES_A_PAGE, 0)
    shown = [each for each in page.rounds if first < each.index <= upto]
    return {
        "names": [],
        "title": f"Batches {first + 1} to {upto} of {last}",
        "state": "",
        "rows": [match_row(slug, row) for each in reversed(shown) for row in each.pairings],
        "earlier": first or None,
        "later": min(upto + BATCHES_A_PAGE, last) if upto < last else None,
    }


def _round_title(page: selectors.StagePage, each: selectors.RoundRow) -> str:
    if not is_one_bracket(page):
        return f"Round {each.index}"
    third = sum(row.stage_key == THIRD_PLACE_KEY for row in each.pairings)
    return round_title(each.pairing_count - third, each.index)


def match_row(slug: str, row: selectors.PairingRow, tournament: str = "") -> MatchRow:
    """A pairing as a line of a list."""
    return MatchRow(
        slug=slug,
        key=row.key,
        has_page=bool(row.match_state),
        sides=row.parts,
        outcome=tables.pairing_outcome(row),
        winner=_winner(row),
        tournament=tournament,
    )


def _winner(row: selectors.PairingRow) -> int | None:
    going_on = [part.entrant for part in row.parts if part.advances]
    found = going_on or [part.entrant for part in row.parts if part.place == 1]
    return found[0] if len(found) == 1 and len(row.parts) > 1 else None


@login_required
@require_POST
def enter(request: HttpRequest, slug: str) -> HttpResponse:
    """Enter a bot of one's own, or two as a pair."""
    player, row = player_of(request), find_tournament(slug)
    form = EnterForm(request.POST, kind=row.kind, player=player)
    if not form.is_valid():
        messages.error(request, _first_error(form))
        return _back(request, slug)
    try:
        entrant = enter_tournament(tournament=row, bots=form.bots, by=player)
    except UsageError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{entrant.name} has entered {row.name}.")
    return _back(request, slug)


@login_required
@require_POST
def leave(request: HttpRequest, slug: str) -> HttpResponse:
    """Take an entry back, or withdraw once entries are closed."""
    player, row = player_of(request), find_tournament(slug)
    form = EntrantForm(request.POST, tournament=row, player=player)
    if not form.is_valid():
        messages.error(request, _first_error(form))
        return _back(request, slug)
    entrant = form.cleaned_data["entrant"]
    try:
        if row.state == TournamentState.OPEN:
            leave_tournament(entrant=entrant, by=player)
        else:
            withdraw_entrant(entrant=entrant, by=player)
    except UsageError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{entrant.name} has left {row.name}.")
    return _back(request, slug)


@login_required
@require_POST
def invite(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask the owner of another bot to enter it with one of one's own, as a pair."""
    player, row = player_of(request), find_tournament(slug)
    form = InviteForm(request.POST, player=player)
    if not form.is_valid():
        messages.error(request, _first_error(form))
        return _back(request, slug)
    data = form.cleaned_data
    try:
        invite_partner(
            tournament=row, bot=data["bot"], invited=data["invited"], by=player, name=data["name"]
        )
    except UsageError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"The owner of {data['invited'].name} is asked.")
    return _back(request, slug)


_ANSWERS: Mapping[str, Callable[..., object]] = {
    "accept": accept_invitation,
    "decline": decline_invitation,
    "withdraw": withdraw_invitation,
}


@login_required
@require_POST
def answer_invitation(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Accept or decline an invitation, or take one's own back."""
    player, row = player_of(request), find_tournament(slug)
    form = AnswerForm(request.POST)
    if not form.is_valid():
        messages.error(request, _first_error(form))
        return _back(request, slug)
    invitation = selectors.invitation_of(row, player, pk)
    if invitation is None:
        raise Http404
    answer = form.cleaned_data["answer"]
    try:
        _ANSWERS[answer](invitation=invitation, by=player)
    except UsageError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _ANSWERED[answer])
    return _back(request, slug)


_ANSWERED = {
    "accept": "The pair has entered.",
    "decline": "You have declined.",
    "withdraw": "The invitation is taken back.",
}


@require_GET
def series_list(request: HttpRequest) -> HttpResponse:
    """All series."""
    context = {
        "section": "tournaments",
        "series": [
            {"row": row, "rule": spell_rule(row), "events": getattr(row, "event_count", 0)}
            for row in selectors.all_series()
        ],
    }
    return render(request, "competitions/series_list.html", context)


@require_GET
def series(request: HttpRequest, slug: str) -> HttpResponse:
    """A series: its rule, next starts, season table, tournaments; who enters for all of it."""
    row = get_object_or_404(Series.objects.select_related("organiser"), slug=slug)
    player = request.user if isinstance(request.user, Player) else None
    page = selectors.season_page(row)
    kind = str(row.template.get("kind", ""))
    counting = [event for event in reversed(page.events) if event.counts]
    context = {
        "section": "tournaments",
        "series": row,
        "page": page,
        "game": game_title(str(row.template.get("game", "")), kind),
        "format": ", then ".join(map(_format_title, _formats_of(row.template))),
        "rule": spell_rule(row),
        "next_starts": spell_next_starts(row),
        "counting": counting,
        "points_table": ", ".join(map(str, row.points_table)),
        "own": list(selectors.series_entries_of(row, player)) if player else [],
        "form": EnterForm(kind=kind, player=player) if player and row.is_active else None,
        "has_bots": player is not None and player.bots.exists(),
    }
    return render(request, "competitions/series.html", context)


def _formats_of(template: Mapping[str, Any]) -> list[str]:
    """The formats of the stages that a series' tournaments have."""
    stages = template.get("stages") or [{"format": template.get("format", "")}]
    return [str(stage.get("format", "")) for stage in stages]


@login_required
@require_POST
def enter_for_series(request: HttpRequest, slug: str) -> HttpResponse:
    """Enter a bot of one's own, or two as a pair, for all tournaments of a series to come."""
    player, row = player_of(request), get_object_or_404(Series, slug=slug)
    form = EnterForm(request.POST, kind=str(row.template.get("kind", "")), player=player)
    if not form.is_valid():
        messages.error(request, _first_error(form))
        return redirect("competitions:series", slug)
    try:
        entry = enter_series(series=row, bots=form.bots, by=player)
    except UsageError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{entry.name} is entered for {row.name}.")
    return redirect("competitions:series", slug)


@login_required
@require_POST
def leave_for_series(request: HttpRequest, slug: str) -> HttpResponse:
    """Take an entry for a series back; tournaments that have opened keep it."""
    player, row = player_of(request), get_object_or_404(Series, slug=slug)
    form = SeriesEntryForm(request.POST, series=row, player=player)
    if not form.is_valid():
        messages.error(request, _first_error(form))
        return redirect("competitions:series", slug)
    entry = form.cleaned_data["entry"]
    leave_series(entry=entry, by=player)
    messages.success(request, f"{entry.name} is entered for {row.name} no more.")
    return redirect("competitions:series", slug)


def _first_error(form: forms.Form) -> str:
    field, errors = next(iter(form.errors.items()))
    return f"{field}: {errors[0]}"


def _back(request: HttpRequest, slug: str) -> HttpResponse:
    if request.POST.get("back") == "my-bots":
        return redirect("my-bots")
    return redirect("competitions:tournament", slug)


def find_match(slug: str, key: str, *, for_staff: bool = False) -> selectors.MatchPage:
    """The match `key` of the tournament `slug`. Raises Http404."""
    find_tournament(slug, for_staff=for_staff)
    try:
        return selectors.match_page(slug, key, for_staff=for_staff)
    except Match.DoesNotExist:
        raise Http404 from None


@require_GET
def match(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    """A match: entrants, outcome, faults in words, record, replay as text."""
    page = find_match(slug, key, for_staff=_runs(request, slug))
    deals = tuple(tables.drawn_deals(page.record)) if page.record else ()
    shown = Paginator(deals, DEALS_A_PAGE).get_page(request.GET.get("page"))
    player = request.user if isinstance(request.user, Player) else None
    context = {
        "section": "tournaments",
        "match_page": page,
        "match": page.match,
        "tournament": page.tournament,
        "game": game_title(page.tournament.game, page.tournament.kind),
        "title": " – ".join(part.name for part in page.pairing.parts),
        "stage": page.match.pairing.round.stage,
        "stage_title": _spell_place(page),
        "is_finished": page.match.state == MatchState.FINISHED,
        "sides": _match_sides(page),
        "outcome": tables.pairing_outcome(page.pairing),
        "queue": selectors.place_of_match(page.match),
        "faults": tuple(tables.fault_words(page.record)) if page.record else (),
        "has_keys": selectors.revealed_secret(page.tournament) is not None,
        "why_no_record": _why_no_record(page),
        "page": shown,
        "boards": [
            (heading, list(each))
            for heading, each in groupby(shown.object_list, lambda deal: deal.heading)
        ],
        "logs": _own_logs(page, player) if player else [],
    }
    return render(request, "competitions/match.html", context)


def _spell_place(page: selectors.MatchPage) -> str:
    """Where in the tournament a match stands."""
    stage = page.match.pairing.round.stage
    is_batch = stage.format in FORMATS and FORMATS[stage.format].is_continuous
    return (
        f"Stage {stage.number}, {_format_title(stage.format)}, "
        f"{'batch' if is_batch else 'round'} {page.round_index}"
    )


def _own_logs(page: selectors.MatchPage, player: Player) -> list[tuple[str, SeatLog, str]]:
    """The player's own logs: where each comes from, itself, after a fault the command that plays it again."""
    record = tables.record_name(page.tournament, page.pairing.key)
    stage = page.match.pairing.round.stage
    has_boards = isinstance(stage_contest(stage), BoardsContest)
    rotations = len(page.pairing.parts)
    return [
        (
            spell_sitting(log, rotations if has_boards else None),
            log,
            log.debug_command(record),
        )
        for log in selectors.match_logs(page.match, player)
    ]


def spell_sitting(log: SeatLog, rotations: int | None) -> str:
    """Which part of a match a log is of; `rotations`: how often each board is played, None without boards.

    Agents sit through all boards of a rotation, but anew for each rotation of an extra board.
    """
    seat = f"seat {log.seat}"
    if rotations is None:
        return f"Game {log.sitting + 1}, {seat}"
    extra = log.sitting // rotations
    board = f"Extra board {extra}, rotation" if extra else "Rotation"
    return f"{board} {log.rotation + 1}, {seat}"


def _match_sides(page: selectors.MatchPage) -> list[dict[str, Any]]:
    entrants = page.match.pairing.entrants.select_related("entrant").prefetch_related(
        "entrant__bots__bot", "entrant__bots__version"
    )
    bots = {
        row.entrant_id: [
            (part.bot.name, part.version.version if part.version else "")
            for part in row.entrant.bots.all()
        ]
        for row in entrants
    }
    return [{"part": part, "bots": bots[part.entrant]} for part in page.pairing.parts]


def _why_no_record(page: selectors.MatchPage) -> str:
    if page.match.state != MatchState.FINISHED:
        return "The record is here when the match is finished."
    if page.match.record_has_expired:
        return (
            f"It has expired: records of a ladder are kept for {settings.ARENA_RECORD_DAYS} days. Its result and its "
            "digest stay, and whoever has the record can still prove by the digest that it is the one."
        )
    if not page.match.record_sha256:
        return "There is none: an organiser decided this match."
    return "Records of this tournament are open to all when it has ended."


@require_GET
def bundle(request: HttpRequest, slug: str) -> HttpResponseBase:
    """A finished tournament as one document that anyone can verify, packed by gzip; else why there is none."""
    row = find_tournament(slug, for_staff=_runs(request, slug))
    try:
        name, digest, chunks = bundle_file(row)
    except TournamentStateError as error:
        return HttpResponse(
            f"{error}\n", content_type="text/plain; charset=utf-8", status=HTTPStatus.CONFLICT
        )
    return StreamingHttpResponse(
        chunks,
        content_type="application/gzip",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "ETag": f'"{digest}"',
        },
    )


@require_GET
def record(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    """The record of a match as a file."""
    page = find_match(slug, key, for_staff=_runs(request, slug))
    if page.record is None:
        raise Http404
    name, data = tables.record_file(page.tournament, page.record)
    return HttpResponse(
        data,
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@require_GET
def superseded_record(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The record of a match that a ruling took back, as a file."""
    for_staff = _runs(request, slug)
    row = find_tournament(slug, for_staff=for_staff)
    try:
        record = selectors.superseded_record(slug, pk, for_staff=for_staff)
    except (SupersededMatch.DoesNotExist, OverflowError):
        raise Http404 from None
    name, data = tables.record_file(row, record)
    return HttpResponse(
        data,
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="superseded-{pk}-{name}"'},
    )
