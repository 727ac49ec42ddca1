"""The admin of tournaments: made by a form that the service judges, moved by operations.

States, results and secrets are never written here: a row's page shows, and its buttons call services.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe

from engine.formats import FORMATS
from engine.formats.stages import MAX_STAGES
from engine.games import GAMES
from engine.ratings import Rating, RatingChange
from tournament.competitions import selectors, services
from tournament.competitions.errors import EntryError, InvalidTournamentError
from tournament.competitions.forms import (
    ChangeSeriesForm,
    CorrectForm,
    DisqualifyForm,
    EnterAnyForm,
    ForfeitForm,
    OrderForm,
    SealForm,
    SeriesForm,
    StagesForm,
    TournamentForm,
    initial_of,
    option_field_name,
    spell_next_starts,
    spell_rule,
    spell_template,
    stage_field_name,
    stage_fields,
)
from tournament.competitions.models import (
    PLAYED,
    TOURNAMENT_TRANSITIONS,
    TRIAL_DECIDED,
    Attempt,
    DecidedBy,
    Entrant,
    EntrantBot,
    EntrantState,
    EntryTrial,
    Match,
    MatchState,
    Pairing,
    PairingEntrant,
    Round,
    Ruling,
    Seeding,
    Series,
    SeriesSlot,
    Shortage,
    Stage,
    StageState,
    SupersededMatch,
    Tournament,
    TournamentState,
    TrialState,
)
from tournament.competitions.selectors.conditions import conditions_of, spell_rules
from tournament.competitions.selectors.engine_values import stage_format, stage_options
from tournament.competitions.services.previewing import Changed
from tournament.competitions.services.queueing import REQUEUEABLE
from tournament.competitions.services.rulings import RULED_IN
from tournament.leaderboards.models import PoolKind
from tournament.players.admin import (
    LONGEST_ID,
    Foreseen,
    Operation,
    OperationsAdmin,
    ReadOnlyAdmin,
    ReadOnlyInline,
    spell_moment,
)
from tournament.players.forms import ReasonForm
from tournament.players.models import HOUSE, Bot, BotVersion, Player
from tournament.players.views import player_of
from tournament.store.clock import read_clock

if settings.USE_UNFOLD:
    from unfold.widgets import (
        UnfoldAdminIntegerFieldWidget,
        UnfoldAdminSelectWidget,
        UnfoldAdminTextInputWidget,
    )

    _WIDGETS: dict[type[forms.Field], type[forms.Widget]] = {
        forms.ChoiceField: UnfoldAdminSelectWidget,
        forms.ModelChoiceField: UnfoldAdminSelectWidget,
        forms.CharField: UnfoldAdminTextInputWidget,
        forms.SlugField: UnfoldAdminTextInputWidget,
        forms.IntegerField: UnfoldAdminIntegerFieldWidget,
    }
else:
    _WIDGETS = {}

ENDED = (TournamentState.FINISHED, TournamentState.CANCELLED)


def _dress(field: forms.Field) -> forms.Field:
    """The field with the admin's own widget."""
    widget = _WIDGETS.get(type(field))
    if widget is not None and not isinstance(field.widget, forms.Textarea):
        dressed = widget()
        dressed.is_required = field.required
        if isinstance(field, forms.ChoiceField):
            dressed.choices = field.choices  # type: ignore[attr-defined]
        dressed.attrs.update(field.widget_attrs(dressed))
        field.widget = dressed
    return field


class TournamentAdminForm(TournamentForm):
    """A new tournament, dressed for the admin."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            _dress(field)


def _staged(formats: Sequence[str]) -> type[TournamentAdminForm]:
    """The form for a tournament of stages of these formats."""
    return type("StagedTournamentForm", (TournamentAdminForm,), {"formats": tuple(formats)})


class SeriesAdminForm(SeriesForm):
    """A new series, dressed for the admin; like a tournament that its organiser may see."""

    user: ClassVar[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        like = self.fields["like"]
        assert isinstance(like, forms.ModelChoiceField)
        seen = selectors.tournaments_run_by(self.user) | selectors.public_tournaments()
        like.queryset = Tournament.objects.filter(pk__in=seen.values("pk")).order_by("-pk")
        for field in self.fields.values():
            _dress(field)


def _can_be_stopped(row: Tournament) -> bool:
    """Whether a stage of it has no end of its own."""
    return any(
        stage.state == StageState.RUNNING
        and stage.stopped_at is None
        and not stage_format(stage).ends(stage_options(stage))
        for stage in row.stages.all()
    )


def _may_become(target: TournamentState) -> Any:
    return lambda row: TOURNAMENT_TRANSITIONS.allows(TournamentState(row.state), target)


def _rulings(pairing_of: Callable[[Any], Pairing]) -> tuple[Operation, ...]:
    """The operations that give a decided pairing another result."""

    def make(name: str, label: str, act: Callable[..., object], **more: Any) -> Operation:
        def run(row: Any, request: HttpRequest, values: dict[str, Any]) -> object:
            places = {"places": values["places"]} if "places" in values else {}
            return act(
                pairing=pairing_of(row), reason=values["reason"], by=player_of(request), **places
            )

        return Operation(
            name=name,
            label=label,
            run=run,
            rehearse=lambda row, request, values: _rehearse(
                row.tournament, lambda: run(row, request, values)
            ),
            takes_many=False,
            **{"form": ReasonForm, **more},
        )

    def is_decided(row: Any) -> bool:
        pairing = pairing_of(row)
        return bool(pairing.decided_by) and not pairing.is_bye and row.tournament.state in RULED_IN

    def has_record(row: Any) -> bool:
        match: Match | None = getattr(pairing_of(row), "match", None)
        return (
            is_decided(row)
            and pairing_of(row).decided_by not in PLAYED
            and match is not None
            and bool(match.record_sha256)
        )

    return (
        make(
            "correct",
            "Correct the result",
            services.correct_result,
            form=CorrectForm,
            allows=is_decided,
            warning=(
                "It counts as decided by the organiser, and not in the ratings. In a bracket what was "
                "paired by the old result is taken back and paired anew; elsewhere published rounds stay."
            ),
        ),
        make(
            "void",
            "Annul",
            services.void_match,
            allows=lambda row: is_decided(row) and pairing_of(row).decided_by != DecidedBy.VOID,
            warning="It counts for nothing, in ratings too. Who advanced by it has advanced.",
        ),
        make(
            "restore",
            "Let it count as played",
            services.restore_match,
            allows=has_record,
            warning="The result of its record counts again, in the ratings in its old place.",
        ),
    )


def _forfeit(row: Match, request: HttpRequest, values: dict[str, Any]) -> object:
    return services.forfeit_match(
        match=row,
        offenders=[entrant.pk for entrant in values["offenders"]],
        reason=values["reason"],
        by=player_of(request),
    )


def _rehearse(tournament: Tournament, act: Callable[[], object]) -> Foreseen:
    """What an act would change. Ratings move by other tournaments' matches, too."""
    shown = services.preview(tournament, act)
    return Foreseen(
        lines=[
            *_spell_changed("Tournament", shown.state),
            *_spell_changed("Match", shown.pairings),
            *_spell_changed("Standings", shown.standings),
        ],
        drifting=_spell_changed("Rating", shown.ratings),
    )


def _spell_changed(title: str, lines: Iterable[Changed]) -> list[str]:
    return [f"{title} {line.what}: {line.before} → {line.after}" for line in lines]


class StageInline(ReadOnlyInline):
    """The stages: format and conditions, frozen when entries opened."""

    model = Stage
    fields = ("number", "played", "standing", "qualifiers", "conditions", "rules")
    readonly_fields = fields

    @admin.display(description="Format")
    def played(self, row: Stage) -> str:
        """Its format."""
        return FORMATS[row.format].title if row.format in FORMATS else row.format

    @admin.display(description="State")
    def standing(self, row: Stage) -> str:
        """Its state, and why it is in it."""
        return ": ".join(filter(None, (row.get_state_display(), row.note)))

    @admin.display(description="Conditions")
    def conditions(self, row: Stage) -> str:
        """What its matches are, its format's options, and how it ends if it has no end of its own."""
        lines = [f"{name}: {value}" for name, value in conditions_of(row)]
        if row.stops_at is not None:
            lines.append(f"Stops at: {spell_moment(row.stops_at)} UTC")
        if row.matches_a_day is not None:
            lines.append(f"Matches a day: {row.matches_a_day}")
        return _lines(lines)

    @admin.display(description="Rules")
    def rules(self, row: Stage) -> str:
        """The values of the game's options."""
        return _lines(f"{name}={value}" for name, value in spell_rules(row.ruleset))


class EntrantStateMixin:
    """What entrants do, as their tournament's state has it."""

    @admin.display(description="State", ordering="state")
    def standing(self, row: Entrant) -> str:
        """Whether it has entered, plays or has played, or why not."""
        return selectors.spell_entrant(row, row.tournament)


class EntrantInline(EntrantStateMixin, ReadOnlyInline):
    """Who takes part."""

    model = Entrant
    fields = ("name", "seed", "standing", "reason", "place", "entered_at")
    readonly_fields = fields
    ordering = ("seed", "name")
    show_change_link = True


class SlotInline(ReadOnlyInline):
    """The starts of a series that have their tournament."""

    model = SeriesSlot
    fields = ("slot_utc", "tournament")
    readonly_fields = fields
    ordering = ("-slot_utc",)


SHOWN: tuple[tuple[str | None, tuple[str, ...]], ...] = (
    (
        None,
        (
            "buttons",
            "name",
            "slug",
            "state",
            "paused_reason",
            "cancelled_reason",
            "description",
            "organiser",
            "game",
            "kind",
            "progress",
            "match_list",
            "clone",
        ),
    ),
    ("Times (UTC)", ("opens", "closes", "starts", "sealed_until", "finished")),
    ("How long it can last", ("worst_case",)),
    (
        "Entries",
        (
            "max_entrants",
            "max_bots_per_player",
            "min_entrants",
            "if_too_few",
            "postpone_minutes",
            "postpone_most",
            "postponed_times",
            "seeding",
            "late_until_round",
        ),
    ),
    ("Running it", ("rated", "records_public", "weight", "cap")),
    ("Deals", ("rules_version", "commitment", "pub")),
)
"""What the page of a tournament shows, part by part; of one that has no value the line is left out."""
_ONLY_WITH = {"sealed_until": "results_at", "finished": "finished_at"}
"""Lines by the field that they are left out without."""
_ONLY_POSTPONED = frozenset({"postpone_minutes", "postpone_most", "postponed_times"})


_OF_A_TOURNAMENT = ("tournament", admin.RelatedOnlyFieldListFilter)
"""A filter that names only tournaments whose rows the viewer may see."""


class OwnTournamentsMixin:
    """Of tournaments and what is in them only what the viewer runs: an organiser their own."""

    organiser_path = "tournament__organiser"
    """From the rows to who runs them."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows that are the viewer's to see and operate."""
        rows: QuerySet[Any] = super().get_queryset(request)  # type: ignore[misc] # ModelAdmin's
        if request.user.has_perm(selectors.OVERSEE):
            return rows
        return rows.filter(**{self.organiser_path: request.user.pk})


@admin.register(Tournament)
class TournamentAdmin(OwnTournamentsMixin, OperationsAdmin):
    """Tournaments: make one, open it, start it, pause it, cancel it."""

    organiser_path = "organiser"
    list_display = (
        "name",
        "played",
        "format",
        "standing",
        "entrants_here",
        "progress",
        "closes",
        "starts",
    )
    list_filter = ("state", "game", "kind", "rated", "starts_at")
    search_fields = ("name", "slug", "organiser__username")
    date_hierarchy = "starts_at"
    list_per_page = 25
    ordering = ("-starts_at", "-pk")
    readonly_fields = (
        *(field for _, fields in SHOWN for field in fields),
        *list_display,
    )
    operations = (
        Operation(
            name="open",
            label="Open entries",
            run=lambda row, _, __: services.open_tournament(tournament=row),
            allows=_may_become(TournamentState.OPEN),
            warning="Its secret is drawn and the commitment published; conditions are frozen from then on.",
            preview=selectors.spell_forecasts,
            preview_title="How long it can last, if every bot uses all its time",
        ),
        Operation(
            name="enter",
            label="Enter bots",
            run=lambda row, request, values: _enter(row, values["bots"], player_of(request)),
            allows=lambda row: row.state == TournamentState.OPEN,
            form=EnterAnyForm,
            warning="They play in their owners' names, who can take them out again. All of them enter, or none.",
            takes_many=False,
        ),
        Operation(
            name="enter-house",
            label="Enter the house's bots",
            run=lambda row, request, _: _enter(
                row, selectors.bots_to_enter(row).filter(owner__username=HOUSE), player_of(request)
            ),
            allows=lambda row: row.state == TournamentState.OPEN and row.kind != PoolKind.PAIR,
            warning="Every reference bot that plays this game enters, so that nobody waits for opponents.",
            takes_many=False,
        ),
        Operation(
            name="order",
            label="Order the entrants",
            run=lambda row, _, values: services.order_entrants(
                tournament=row, names=values["names"]
            ),
            allows=lambda row: (
                row.seeding == Seeding.HAND
                and row.state in {TournamentState.OPEN, TournamentState.CLOSED}
            ),
            form=OrderForm,
            warning="Their seeds follow this order when it starts.",
            takes_many=False,
        ),
        Operation(
            name="close",
            label="Close entries",
            run=lambda row, _, __: services.close_tournament(tournament=row),
            allows=lambda row: row.state == TournamentState.OPEN and row.closes_at <= read_clock(),
            warning="Each entrant is frozen to its newest accepted version. It happens by itself at the time set.",
        ),
        Operation(
            name="start",
            label="Start",
            run=lambda row, _, __: services.start_tournament(tournament=row),
            allows=_may_become(TournamentState.RUNNING),
            warning="The first round is published, now. It happens by itself at the time set.",
        ),
        Operation(
            name="pause",
            label="Pause",
            run=lambda row, _, values: services.pause_tournament(
                tournament=row, reason=values["reason"]
            ),
            allows=lambda row: row.state not in ENDED and not row.paused_reason,
            form=ReasonForm,
            warning="No more of its matches begin; what is being played is finished and counts.",
        ),
        Operation(
            name="resume",
            label="Resume",
            run=lambda row, _, __: services.resume_tournament(tournament=row),
            allows=lambda row: row.state not in ENDED and bool(row.paused_reason),
            warning="Matches that were stuck are tried again.",
        ),
        Operation(
            name="stop-stage",
            label="Stop the ladder",
            run=lambda row, _, values: services.stop_stage(tournament=row, reason=values["reason"]),
            allows=lambda row: row.state == TournamentState.RUNNING and _can_be_stopped(row),
            form=ReasonForm,
            warning="It opens no more matches. Those that are open still count, and then it ends.",
        ),
        Operation(
            name="seal",
            label="Seal results",
            run=lambda row, _, values: services.seal_results(tournament=row, until=values["until"]),
            allows=lambda row: row.state not in ENDED or row.results_at is not None,
            form=SealForm,
            warning=(
                "The results of all rounds that are published from now on are shown to organisers alone, "
                "until then. What is public stays so."
            ),
        ),
        Operation(
            name="publish",
            label="Publish results",
            run=lambda row, _, __: services.publish_results(tournament=row),
            allows=lambda row: row.results_at is not None,
            warning="Sealed results are public and rated from now on.",
        ),
        Operation(
            name="cancel",
            label="Cancel",
            run=lambda row, _, values: services.cancel_tournament(
                tournament=row, reason=values["reason"]
            ),
            allows=_may_become(TournamentState.CANCELLED),
            form=ReasonForm,
            warning=(
                "It ends without a result, for good: what is being played is discarded, and what was "
                "played counts for nothing, in ratings too."
            ),
            preview=lambda row: _spell_changes(selectors.preview_cancellation(row)),
            preview_title="Ratings, when what it has played counts for nothing",
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tournament]:
        """The tournaments with their stages, the number of their entrants, and how far they have come."""
        rows: QuerySet[Tournament] = super().get_queryset(request)
        return selectors.with_progress(
            rows.select_related("organiser").annotate(
                entrant_count=Count("entrants", distinct=True)
            )
        )

    def form_arguments(self, operation: Operation, rows: Any) -> dict[str, Any]:
        """Who can be entered, or put in order."""
        return {"tournament": rows[0]} if operation.form in {EnterAnyForm, OrderForm} else {}

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:  # noqa: ARG002 Django's signature
        """Who may make tournaments."""
        return request.user.has_perm("competitions.add_tournament")

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """For a new one the form that the service judges."""
        if obj is None:
            form = _staged(formats) if (formats := self._formats(request)) else TournamentAdminForm
            kwargs.update(form=form, fields=TournamentForm.Meta.fields)
        return super().get_form(request, obj, change=change, **kwargs)

    def _formats(self, request: HttpRequest) -> tuple[str, ...]:
        """The formats of the stages that were chosen before; empty for the form of one stage."""
        asked = tuple(request.GET.getlist("stages"))
        if asked and len(asked) <= MAX_STAGES and set(asked) <= set(FORMATS):
            return asked
        cloned = self._cloned(request)
        if cloned is None:
            return ()
        stages = services.plan_like(cloned, opens_at=cloned.opens_at).stages
        return tuple(stage.format for stage in stages)

    def _cloned(self, request: HttpRequest) -> Tournament | None:
        """The tournament that a new one is to be like."""
        cloned = request.GET.get("clone", "")
        is_id = cloned.isascii() and cloned.isdecimal() and len(cloned) <= LONGEST_ID
        if not is_id:
            return None
        rows = (
            self.get_queryset(request).filter(pk=cloned),
            selectors.public_tournaments().filter(pk=cloned),  # their settings are public
        )
        return next((row for each in rows for row in each), None)

    def get_urls(self) -> list[URLPattern]:
        """Also the page where stages are chosen."""
        stages = path(
            "stages/",
            self.admin_site.admin_view(self.stages_view),
            name="competitions_tournament_stages",
        )
        return [stages, *super().get_urls()]

    def stages_view(self, request: HttpRequest) -> HttpResponse:
        """Choose the formats of the stages; the form that follows has the options of each."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        is_sent = bool(request.GET)
        form = StagesForm(request.GET if is_sent else None)
        for field in form.fields.values():
            _dress(field)
        add = reverse("admin:competitions_tournament_add")
        if is_sent and form.is_valid():
            query = urlencode([("stages", name) for name in form.cleaned_data["formats"]])
            return HttpResponseRedirect(f"{add}?{query}")
        context = {
            **self.admin_site.each_context(request),
            "title": "Choose the stages",
            "opts": self.opts,
            "form": form,
            "back": add,
        }
        return render(request, "admin/choose_stages.html", context)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Everything, of one that is there."""
        return () if obj is None else super().get_readonly_fields(request, obj)

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:  # noqa: ARG002 Django's signature
        """Stages and entrants of one that is there."""
        return () if obj is None else (StageInline, EntrantInline)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """For a new one what to fill in, the options of each game and format apart."""
        if obj is not None:
            return self._shown(request, obj)
        formats = self._formats(request)
        main = ("name", "slug", "description", "game", "kind", *(() if formats else ("format",)))
        link = format_html(
            'For several stages, or for one that an organiser or its time stops, <a class="arena-button" href="{}">choose the '
            "formats first</a>.",
            reverse("admin:competitions_tournament_stages"),
        )
        return (
            (None, {"fields": main, "description": link}),
            ("Times (UTC)", {"fields": ("opens_at", "closes_at", "starts_at")}),
            (
                "Matches",
                {"fields": ("contest", "contest_size", "extra_boards", "time_control", "rated")},
            ),
            *_stage_fieldsets(formats),
            (
                "Entries",
                {
                    "fields": (
                        "max_entrants",
                        "max_bots_per_player",
                        "min_entrants",
                        "if_too_few",
                        "postpone_minutes",
                        "postpone_most",
                        "seeding",
                        "late_until_round",
                    )
                },
            ),
            ("Running it", {"fields": ("records_public", "results_at", "weight", "cap")}),
            *(
                (
                    f"Rules of {game.title} (only if it is the game)",
                    {
                        "classes": ("collapse",),
                        "fields": tuple(
                            option_field_name(game.name, option.name) for option in game.options
                        ),
                    },
                )
                for game in GAMES.values()
            ),
            *(
                (
                    f"Options of {fmt.title} (only if it is the format)",
                    {
                        "classes": ("collapse",),
                        "fields": tuple(
                            option_field_name(fmt.name, option.name) for option in fmt.options
                        ),
                    },
                )
                for fmt in FORMATS.values()
                if fmt.options and not formats
            ),
        )

    def _shown(self, request: HttpRequest, row: Tournament) -> list[tuple[str | None, Any]]:
        """The lines that have something to say, part by part; the buttons only for who may operate."""

        def says_something(name: str) -> bool:
            if name == "buttons":
                return self.may_operate(request)
            if name in _ONLY_POSTPONED:
                return row.if_too_few == Shortage.POSTPONE
            value = getattr(row, _ONLY_WITH.get(name, name), name)
            return value is not None and value != ""

        parts = [
            (title, [name for name in names if says_something(name)]) for title, names in SHOWN
        ]
        return [(title, {"fields": names}) for title, names in parts if names]

    def response_add(
        self, request: HttpRequest, obj: Tournament, post_url_continue: str | None = None
    ) -> HttpResponse:
        """To the draft's own page, where it is looked at again before it opens."""
        if {"_addanother", "_continue"} & set(request.POST):
            return super().response_add(request, obj, post_url_continue)
        messages.success(
            request,
            f"{obj.name} is a draft, which opens by itself at {spell_moment(obj.opens_at)} UTC.",
        )
        return HttpResponseRedirect(reverse("admin:competitions_tournament_change", args=[obj.pk]))

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The form for a new one."""
        try:
            return super().add_view(request, form_url, extra_context)
        except InvalidTournamentError as error:  # its address was taken since the form was judged
            messages.error(request, str(error))
            return HttpResponseRedirect(request.path)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Of a clone all settings of its model; entries open from now on, for as long as there or for a day."""
        row = self._cloned(request)
        now = read_clock().replace(second=0, microsecond=0)
        if row is not None:
            return initial_of(services.plan_like(row, opens_at=now))
        closes_at = now + timedelta(days=1)
        return {
            "opens_at": now,
            "closes_at": closes_at,
            "starts_at": closes_at + timedelta(minutes=5),
        }

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Tournament:  # noqa: ARG002 Django's signature
        """The tournament, made by the service."""
        assert isinstance(request.user, Player)
        return services.create_tournament(organiser=request.user, plan=form.plan)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Nothing is left to do: the service has stored it."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Nothing is left to do: the service has stored its stage."""

    @admin.display(description="Format")
    def format(self, row: Tournament) -> str:
        """The format of each stage."""
        return ", ".join(
            FORMATS[stage.format].title if stage.format in FORMATS else stage.format
            for stage in row.stages.all()
        )

    @admin.display(description="Game", ordering="game")
    def played(self, row: Tournament) -> str:
        """Game and kind."""
        return f"{row.game}, {row.kind}"

    @admin.display(description="State", ordering="state")
    def standing(self, row: Tournament) -> str:
        """Its state, and whether it is held."""
        is_held = row.is_paused and row.state not in ENDED
        return f"{row.get_state_display()}{', paused' if is_held else ''}"

    @admin.display(description="At most")
    def worst_case(self, row: Tournament) -> str:
        """How long a match and all of it can last, if every bot uses all its time."""
        return _lines(selectors.spell_forecasts(row))

    @admin.display(description="Opens (UTC)")
    def opens(self, row: Tournament) -> str:
        """When entries open."""
        return spell_moment(row.opens_at)

    @admin.display(description="Results are sealed until (UTC)")
    def sealed_until(self, row: Tournament) -> str:
        """Until when results are for organisers alone."""
        return spell_moment(row.results_at)

    @admin.display(description="Ended (UTC)")
    def finished(self, row: Tournament) -> str:
        """When it ended."""
        return spell_moment(row.finished_at)

    @admin.display(description="Closes (UTC)", ordering="closes_at")
    def closes(self, row: Tournament) -> str:
        """When entries close."""
        return spell_moment(row.closes_at)

    @admin.display(description="Starts (UTC)", ordering="starts_at")
    def starts(self, row: Tournament) -> str:
        """When it starts."""
        return spell_moment(row.starts_at)

    @admin.display(description="Entrants", ordering="entrant_count")
    def entrants_here(self, row: Any) -> int:
        """How many entrants it has."""
        count: int = row.entrant_count
        return count

    @admin.display(description="Matches")
    def progress(self, row: Tournament) -> str:
        """How far it has come."""
        if row.state not in {TournamentState.RUNNING, *ENDED}:
            return "–"
        found = selectors.progress_of(row)
        stuck = f", {found.stuck} stuck" if found.stuck else ""
        return f"{found.finished} of {found.expected or found.matches} finished{stuck}"

    @admin.display(description="Clone")
    def clone(self, row: Tournament) -> str:
        """A new one with all its settings."""
        url = reverse("admin:competitions_tournament_add")
        return format_html('<a href="{}?clone={}">a new one like this</a>', url, row.pk)

    @admin.display(description="Matches, entrants")
    def match_list(self, row: Tournament) -> str:
        """Where its matches and entrants are."""
        return format_html_join(
            ", ",
            '<a href="{}?tournament__id__exact={}">{}</a>',
            (
                (reverse("admin:competitions_match_changelist"), row.pk, "its matches"),
                (reverse("admin:competitions_entrant_changelist"), row.pk, "its entrants"),
                (reverse("admin:competitions_pairing_changelist"), row.pk, "its pairings"),
            ),
        )

    def view_on_site(self, obj: Tournament) -> str:
        """Its public page."""
        return reverse("competitions:tournament", args=[obj.slug])


def _lines(lines: Iterable[str]) -> str:
    """Each in a line of its own."""
    return format_html_join(mark_safe("<br>"), "{}", ((line,) for line in lines))


def _stage_fieldsets(formats: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """What to fill in for each stage, the rules in which it differs apart."""
    fieldsets: list[tuple[str, dict[str, Any]]] = []
    for number, name in enumerate(formats, 1):
        fmt = FORMATS[name]
        fields = list(stage_fields(number, fmt, is_last=number == len(formats)))
        rules = [
            stage_field_name(number, option_field_name(game.name, option.name))
            for game in GAMES.values()
            for option in game.options
        ]
        own = tuple(field for field in fields if field not in rules)
        fieldsets += [
            (f"Stage {number}: {fmt.title}", {"fields": own, "description": fmt.summary}),
            (
                f"Rules in which stage {number} differs",
                {"classes": ("collapse",), "fields": tuple(rules)},
            ),
        ]
    return fieldsets


class EntrantBotInline(ReadOnlyInline):
    """The bots of an entrant and their frozen versions."""

    model = EntrantBot
    fields = ("position", "bot", "version")
    readonly_fields = fields


@admin.register(Entrant)
class EntrantAdmin(EntrantStateMixin, OwnTournamentsMixin, OperationsAdmin):
    """Entrants, and taking them out."""

    list_display = ("name", "tournament", "seed", "standing", "reason", "place", "entered_at")
    list_filter = ("state", _OF_A_TOURNAMENT)
    search_fields = ("name", "tournament__name", "bots__bot__owner__username")
    list_select_related = ("tournament",)
    ordering = ("-tournament", "seed", "name")
    fields = ("buttons", *list_display)
    readonly_fields = fields
    inlines = (EntrantBotInline,)
    operations = (
        Operation(
            name="withdraw",
            label="Withdraw",
            run=lambda row, request, values: services.withdraw_entrant(
                entrant=row, by=player_of(request), reason=values["reason"]
            ),
            allows=lambda row: (
                row.state == EntrantState.ACTIVE
                and row.tournament.state not in {TournamentState.OPEN, *ENDED}
            ),
            form=ReasonForm,
            warning="It plays no further; what was played stays.",
        ),
        Operation(
            name="disqualify",
            label="Disqualify",
            run=lambda row, request, values: services.disqualify_entrant(
                entrant=row,
                reason=values["reason"],
                void_played=values["void_played"],
                by=player_of(request),
            ),
            rehearse=lambda row, request, values: _rehearse(
                row.tournament,
                lambda: services.disqualify_entrant(
                    entrant=row,
                    reason=values["reason"],
                    void_played=values["void_played"],
                    by=player_of(request),
                ),
            ),
            allows=lambda row: (
                row.state == EntrantState.ACTIVE
                and row.tournament.state not in {TournamentState.OPEN, *ENDED}
            ),
            form=DisqualifyForm,
            warning="It plays no further: open and later pairings are walkovers.",
            takes_many=False,
        ),
    )

    def describe(self, row: Entrant) -> str:
        """Its name, and where it takes part."""
        return f"{row.name}, in {row.tournament}"


class AttemptInline(ReadOnlyInline):
    """The tries to play a match."""

    model = Attempt
    fields = ("fence", "worker", "started_at", "ended_at", "ending", "detail")
    readonly_fields = fields


@admin.register(Match)
class MatchAdmin(OwnTournamentsMixin, OperationsAdmin):
    """Matches: how they ended, how often they were tried, their records."""

    list_display = (
        "key",
        "tournament",
        "entrants",
        "state",
        "termination",
        "decided_by",
        "attempts",
        "rated",
        "finished_at",
        "record",
    )
    list_filter = ("state", "termination", "rated", _OF_A_TOURNAMENT)
    search_fields = ("pairing__key", "tournament__name", "pairing__entrants__entrant__name")
    ordering = ("-pk",)
    fields = (
        "buttons",
        *list_display,
        "digest",
        "record_sha256",
        "wall_ms",
        "lease_owner",
        "lease_until",
        "run_after",
    )
    readonly_fields = fields
    inlines = (AttemptInline,)
    operations = (
        Operation(
            name="forfeit",
            label="Decide by forfeit",
            run=_forfeit,
            rehearse=lambda row, request, values: _rehearse(
                row.tournament, lambda: _forfeit(row, request, values)
            ),
            allows=lambda row: row.state not in {MatchState.FINISHED, MatchState.CANCELLED},
            form=ForfeitForm,
            warning="It is decided without being played, and is not rated.",
            takes_many=False,
        ),
        Operation(
            name="requeue",
            label="Put back into the queue",
            run=lambda row, _, __: services.requeue_match(match=row),
            allows=lambda row: (
                row.state in REQUEUEABLE and row.tournament.state == TournamentState.RUNNING
            ),
            warning=(
                "Whoever plays it now has lost it; it is played again with the same deals, and its failures are "
                "counted anew. A pause of the tournament has to be lifted by itself."
            ),
        ),
        Operation(
            name="keep",
            label="Keep the record",
            run=lambda row, _, __: services.keep_record(match=row, kept=True),
            allows=lambda row: bool(row.record_sha256) and not row.is_kept,
            warning="Its record and logs stay, however old they become.",
        ),
        Operation(
            name="let-expire",
            label="Let the record expire",
            run=lambda row, _, __: services.keep_record(match=row, kept=False),
            allows=lambda row: row.is_kept,
            warning="Its record goes with those of its age; its result and digest stay.",
        ),
        *_rulings(lambda row: row.pairing),
        Operation(
            name="rerun",
            label="Play again",
            run=lambda row, request, values: services.rerun_match(
                match=row, reason=values["reason"], by=player_of(request)
            ),
            rehearse=lambda row, request, values: _rehearse(
                row.tournament,
                lambda: services.rerun_match(
                    match=row, reason=values["reason"], by=player_of(request)
                ),
            ),
            allows=lambda row: (
                row.state == MatchState.FINISHED and row.tournament.state == TournamentState.RUNNING
            ),
            form=ReasonForm,
            warning=(
                "It is played with the same deals, so deterministic bots play it the same way: for "
                "doubts about the machines. In a bracket what was paired by its result is taken back."
            ),
            takes_many=False,
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Match]:
        """The matches with their pairings and entrants."""
        rows: QuerySet[Match] = super().get_queryset(request)
        return rows.select_related("tournament", "pairing__round__stage").prefetch_related(
            "pairing__entrants__entrant"
        )

    def form_arguments(self, operation: Operation, rows: Any) -> dict[str, Any]:
        """Whom a forfeit can be against, and who could have won."""
        if operation.form is ForfeitForm:
            return {"matches": rows}
        return {"pairing": rows[0].pairing} if operation.form is CorrectForm else {}

    @admin.display(description="Match", ordering="pairing__key")
    def key(self, row: Match) -> str:
        """Its key in the tournament."""
        return row.pairing.key

    @admin.display(description="Entrants")
    def entrants(self, row: Match) -> str:
        """Who meets whom."""
        return " – ".join(part.entrant.name for part in row.pairing.entrants.all())

    @admin.display(description="Decided by")
    def decided_by(self, row: Match) -> str:
        """What decided the pairing."""
        return row.pairing.get_decided_by_display() if row.pairing.decided_by else "–"

    @admin.display(description="Record")
    def record(self, row: Match) -> str:
        """Its record as a file."""
        if not row.record_sha256:
            return "–"
        url = reverse("competitions:record", args=[row.tournament.slug, row.pairing.key])
        return format_html('<a href="{}">download</a>', url)

    def describe(self, row: Match) -> str:
        """Its key, who meets in it, and where."""
        return f"{row.pairing.key}, {self.entrants(row)}, in {row.tournament}"

    def view_on_site(self, obj: Match) -> str:
        """Its public page."""
        return reverse("competitions:match", args=[obj.tournament.slug, obj.pairing.key])


class PairingInline(ReadOnlyInline):
    """The pairings of a round."""

    model = Pairing
    fields = ("key", "slot", "is_bye", "decided_by")
    readonly_fields = fields
    show_change_link = True


@admin.register(Round)
class RoundAdmin(OwnTournamentsMixin, ReadOnlyAdmin):
    """Rounds; a published one is never computed again."""

    organiser_path = "stage__tournament__organiser"

    list_display = ("tournament", "stage_number", "index", "state", "opened_at", "completed_at")
    list_filter = ("state", ("stage__tournament", admin.RelatedOnlyFieldListFilter))
    search_fields = ("stage__tournament__name",)
    list_select_related = ("stage__tournament",)
    ordering = ("-stage", "-index")
    fields = list_display
    readonly_fields = fields
    inlines = (PairingInline,)

    @admin.display(description="Stage", ordering="stage__index")
    def stage_number(self, row: Round) -> int:
        """The stage's number."""
        return row.stage.number

    @admin.display(description="Tournament", ordering="stage__tournament")
    def tournament(self, row: Round) -> str:
        """Whose round it is."""
        return row.stage.tournament.name


class PairingEntrantInline(ReadOnlyInline):
    """Who meets in a pairing and what came of it."""

    model = PairingEntrant
    fields = ("index", "entrant", "score", "points", "place", "advances")
    readonly_fields = fields


@admin.register(Pairing)
class PairingAdmin(OwnTournamentsMixin, OperationsAdmin):
    """Pairings, byes and walkovers included, and rulings on them."""

    list_display = ("key", "tournament", "entrants", "is_bye", "decided_by", "edition")
    list_filter = ("decided_by", "is_bye", _OF_A_TOURNAMENT)
    search_fields = ("key", "tournament__name", "entrants__entrant__name")
    ordering = ("-pk",)
    fields = ("buttons", *list_display)
    readonly_fields = fields
    inlines = (PairingEntrantInline,)
    operations = _rulings(lambda row: row)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Pairing]:
        """The pairings with their entrants."""
        rows: QuerySet[Pairing] = super().get_queryset(request)
        return rows.select_related("tournament", "round__stage", "match").prefetch_related(
            "entrants__entrant"
        )

    def form_arguments(self, operation: Operation, rows: Any) -> dict[str, Any]:
        """Who could have won."""
        return {"pairing": rows[0]} if operation.form is CorrectForm else {}

    def describe(self, row: Pairing) -> str:
        """Its key, who meets in it, and where."""
        return f"{row.key}, {self.entrants(row)}, in {row.tournament}"

    @admin.display(description="Entrants")
    def entrants(self, row: Pairing) -> str:
        """Who meets whom."""
        return " – ".join(part.entrant.name for part in row.entrants.all())


class SupersededInline(ReadOnlyInline):
    """What a ruling took back."""

    model = SupersededMatch
    fields = ("key", "edition", "entrants", "decided_by", "record_sha256", "digest", "finished_at")
    readonly_fields = fields


@admin.register(Ruling)
class RulingAdmin(OwnTournamentsMixin, ReadOnlyAdmin):
    """What organisers decided about results: who, when, why."""

    list_display = ("subject", "tournament", "kind", "by", "reason", "before", "after", "at")
    list_filter = ("kind", _OF_A_TOURNAMENT)
    search_fields = ("subject", "reason", "tournament__name", "by__username")
    list_select_related = ("tournament", "by")
    ordering = ("-pk",)
    fields = list_display
    readonly_fields = fields
    inlines = (SupersededInline,)


@admin.register(EntryTrial)
class EntryTrialAdmin(OperationsAdmin):
    """Trials of versions under the conditions of tournaments that they have entered."""

    list_display = ("version", "tried_under", "state", "short_reason", "due_at", "decided_at")
    list_filter = ("state",)
    search_fields = ("version__bot__name", "version__version")
    list_select_related = ("version__bot",)
    ordering = ("-pk",)
    fields = (
        "buttons",
        "version",
        "tried_under",
        "state",
        "reason",
        "attempts",
        "lease_owner",
        "due_at",
        "created_at",
        "decided_at",
    )
    readonly_fields = fields
    operations = (
        Operation(
            name="retry",
            label="Play again",
            run=lambda row, _, __: services.retry_trial(trial=row),
            allows=lambda row: row.state not in {TrialState.PENDING, TrialState.PASSED},
            warning="Whoever plays it now has lost it. What tournaments have sealed stays as it is.",
        ),
        Operation(
            name="cancel",
            label="Cancel",
            run=lambda row, _, values: services.cancel_trial(trial=row, reason=values["reason"]),
            allows=lambda row: row.state not in TRIAL_DECIDED,
            form=ReasonForm,
            warning="It counts as failed, so no tournament waits for it: an older version that has passed plays.",
        ),
    )

    @admin.display(description="Tried under")
    def tried_under(self, row: EntryTrial) -> str:
        """Rules, table and time control."""
        return str(selectors.trial_conditions(row))

    @admin.display(description="Reason")
    def short_reason(self, row: EntryTrial) -> str:
        """The beginning of the reason."""
        return row.reason[:80]


@admin.register(Series)
class SeriesAdmin(OwnTournamentsMixin, OperationsAdmin):
    """Tournaments that come again and again."""

    organiser_path = "organiser"

    list_display = ("name", "organiser", "starts", "is_active", "stopped_reason")
    list_filter = ("is_active",)
    search_fields = ("name", "slug")
    fields = (
        "buttons",
        *list_display,
        "entries_open",
        "next_starts",
        "points",
        "slug",
        "tournaments_are",
    )
    readonly_fields = fields
    operations = (
        Operation(
            name="change",
            label="Change",
            run=lambda row, _, values: services.change_series(
                series=row, course=values["course"], now=read_clock()
            ),
            rehearse=lambda _, __, values: Foreseen(
                [f"Next start: {each}" for each in values["starts"]]
            ),
            form=ChangeSeriesForm,
            warning="Tournaments that it has made stay as they are. Its name and who has entered it stay, too.",
            takes_many=False,
        ),
        Operation(
            name="stop",
            label="Switch off",
            run=lambda row, _, values: services.stop_series(series=row, reason=values["reason"]),
            allows=lambda row: row.is_active,
            form=ReasonForm,
            warning="It makes no more tournaments. Those that it has made go on.",
        ),
        Operation(
            name="restart",
            label="Switch on again",
            run=lambda row, _, __: services.restart_series(series=row, now=read_clock()),
            allows=lambda row: not row.is_active,
            warning="Its rule and template are checked; the latest missed tournament is made up for.",
        ),
    )

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:  # noqa: ARG002 Django's signature
        """Who may make series."""
        return request.user.has_perm("competitions.add_series")

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """For a new one the form that the service judges."""
        if obj is None:
            form = type("OwnSeriesForm", (SeriesAdminForm,), {"user": request.user})
            kwargs.update(form=form, fields=SeriesForm.Meta.fields)
        return super().get_form(request, obj, change=change, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Everything, of one that is there."""
        return () if obj is None else super().get_readonly_fields(request, obj)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """For a new one what to fill in."""
        if obj is None:
            return ("name", *SeriesForm.declared_fields)
        return super().get_fields(request, obj)

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:  # noqa: ARG002 Django's signature
        """The starts of one that is there."""
        return () if obj is None else (SlotInline,)

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Series:  # noqa: ARG002 Django's signature
        """The series, made by the service."""
        return services.create_series(
            organiser=player_of(request),
            name=form.cleaned_data["name"],
            course=form.course,
            now=read_clock(),
        )

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Nothing is left to do: the service has stored it."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Nothing is left to do: the service has stored all of it."""

    def form_arguments(self, operation: Operation, rows: Sequence[Any]) -> dict[str, Any]:
        """What it is changed from."""
        return {"series": rows[0]} if operation.form is ChangeSeriesForm else {}

    @admin.display(description="Starts")
    def starts(self, row: Series) -> str:
        """Its rule in words."""
        return spell_rule(row)

    @admin.display(description="Entries are open")
    def entries_open(self, row: Series) -> str:
        """For how long, and until when before the start."""
        is_open, pause = row.rule.get("open_minutes"), row.rule.get("pause_minutes", 0)
        return f"{is_open} minutes, until {pause} minutes before the start"

    @admin.display(description="Points for the season")
    def points(self, row: Series) -> str:
        """What places are worth."""
        return ", ".join(map(str, row.points_table)) or "no season"

    @admin.display(description="Tournaments are")
    def tournaments_are(self, row: Series) -> str:
        """What is not as usual in its template."""
        return _lines(spell_template(row))

    @admin.display(description="Next starts")
    def next_starts(self, row: Series) -> str:
        """The next five, by its own clocks and in UTC."""
        return _lines(spell_next_starts(row))

    def view_on_site(self, obj: Series) -> str:
        """Its public page."""
        return reverse("competitions:series", args=[obj.slug])


def _enter(row: Tournament, bots: Iterable[Bot], by: Player) -> None:
    """Enter all of the bots, as a pair or each by itself. Raises EntryError or TournamentStateError."""
    chosen = list(bots)
    if not chosen:
        raise EntryError(
            "no bot is left that could enter: its version must be accepted for the game"
        )
    entries = [chosen] if row.kind == PoolKind.PAIR else [[bot] for bot in chosen]
    with transaction.atomic():
        for entry in entries:
            services.enter(tournament=row, bots=entry, by=by)


def _spell_changes(changes: Sequence[RatingChange]) -> list[str]:
    """What would happen to ratings, a line each."""
    versions = BotVersion.objects.select_related("bot").in_bulk(
        [change.version for change in changes]
    )
    return [
        f"{versions[change.version]}: {_spell_rating(change.before)} → {_spell_rating(change.after)}"
        for change in changes
    ]


def _spell_rating(rating: Rating | None) -> str:
    return "no rating" if rating is None else f"{rating.shown:.2f}"
