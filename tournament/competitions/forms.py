"""What people type in about tournaments; the services judge what it means."""

from __future__ import annotations

import dataclasses
import re
import zoneinfo
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from django import forms
from django.db import DataError
from django.db.models import F
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe

from engine.formats import FORMATS, Format, FormatOption
from engine.formats.stages import MAX_STAGES
from engine.games import GAMES
from engine.games.base import Option
from engine.sdk.timecontrol import TIME_CONTROLS
from tournament.competitions.models import (
    Entrant,
    Match,
    Pairing,
    PublishPolicy,
    Seeding,
    Series,
    SeriesEntry,
    Shortage,
    Tournament,
)
from tournament.competitions.selectors import bots_to_enter, series_entries_of
from tournament.competitions.selectors.engine_values import stage_format
from tournament.competitions.services import (
    Plan,
    StageWish,
    check_plan,
    plan_like,
    starts_to_come,
)
from tournament.competitions.services.planning import MOST_IN_FLIGHT
from tournament.competitions.services.series import (
    Course,
    check_course,
    check_rule,
    check_series,
    first_starts,
)
from tournament.leaderboards.models import PoolKind
from tournament.players.forms import ReasonForm, time_zone_choices
from tournament.players.models import Bot, Player
from tournament.store.clock import read_clock

BOTS_OF_A_PAIR = 2
TIED = "tied"


class EnterForm(forms.Form):
    """A bot, or the two of a pair, that a player enters."""

    bot = forms.ModelChoiceField(Bot.objects.none(), to_field_name="name", empty_label=None)
    partner = forms.ModelChoiceField(
        Bot.objects.none(),
        to_field_name="name",
        required=False,
        empty_label=None,
        help_text="Sits opposite on the second seat of the side.",
    )

    def __init__(self, *args: Any, kind: str, player: Player, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = Bot.objects.filter(owner=player).order_by("name")
        for field in self.fields.values():
            field.error_messages["invalid_choice"] = "that is not a bot of yours"
        self.fields["bot"].queryset = own  # type: ignore[attr-defined]
        if kind == PoolKind.PAIR:
            self.fields["partner"].queryset = own  # type: ignore[attr-defined]
            self.fields["partner"].required = True
        else:
            del self.fields["partner"]

    @property
    def bots(self) -> list[Bot]:
        """The bots in the order of their seats. For a valid form."""
        return [self.cleaned_data[name] for name in ("bot", "partner") if name in self.cleaned_data]


class InviteForm(forms.Form):
    """A bot of one's own and another player's, that are to enter as a pair."""

    bot = forms.ModelChoiceField(
        Bot.objects.none(), label="Your bot", to_field_name="name", empty_label=None
    )
    invited = forms.CharField(
        label="Invite the bot", max_length=60, help_text="Another player's, by its name."
    )
    name = forms.CharField(label="Name of the pair", max_length=80, required=False)

    def __init__(self, *args: Any, player: Player, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["bot"].error_messages["invalid_choice"] = "that is not a bot of yours"
        self.fields["bot"].queryset = Bot.objects.filter(owner=player).order_by("name")  # type: ignore[attr-defined]

    def clean_invited(self) -> Bot:
        """The bot of that name."""
        name = self.cleaned_data["invited"].strip()
        found = Bot.objects.filter(name__iexact=name).select_related("owner").first()
        if found is None:
            raise forms.ValidationError(f"there is no bot {name!r}")
        return found


class AnswerForm(forms.Form):
    """What becomes of an invitation."""

    answer = forms.ChoiceField(choices=[(each, each) for each in ("accept", "decline", "withdraw")])


class EntrantForm(forms.Form):
    """One of the player's own entrants."""

    entrant = forms.ModelChoiceField(Entrant.objects.none())

    def __init__(self, *args: Any, tournament: Tournament, player: Player, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = Entrant.objects.filter(tournament=tournament, bots__bot__owner=player).distinct()
        self.fields["entrant"].error_messages["invalid_choice"] = "that is not an entry of yours"
        self.fields["entrant"].queryset = own  # type: ignore[attr-defined]


class SeriesEntryForm(forms.Form):
    """One of the player's own entries for a series."""

    entry = forms.ModelChoiceField(SeriesEntry.objects.none())

    def __init__(self, *args: Any, series: Series, player: Player, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["entry"].error_messages["invalid_choice"] = "that is not an entry of yours"
        self.fields["entry"].queryset = series_entries_of(series, player)  # type: ignore[attr-defined]


class DisqualifyForm(ReasonForm):
    """Why an entrant is taken out, and whether what it played still counts."""

    void_played = forms.BooleanField(
        label="Let what it has played count for nothing, in standings and ratings",
        required=False,
    )


class KnownRowsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg] # generic for mypy only
    """Rows to choose from; an id too large for the database is no valid choice."""

    def clean(self, value: Any) -> Any:
        """The chosen rows. Raises ValidationError."""
        try:
            return super().clean(value)
        except (OverflowError, DataError):
            raise forms.ValidationError(
                "One of the rows is none of those to choose from."
            ) from None


class BotField(KnownRowsField):
    """Bots with their owners to choose from."""

    def label_from_instance(self, obj: Any) -> str:
        """Its name, and whose it is."""
        return f"{obj.name} ({obj.owner.username})"


class EnterAnyForm(forms.Form):
    """The bots of any players that an organiser enters: several at once, or the two of a pair."""

    bots = BotField(Bot.objects.none(), widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, tournament: Tournament, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_pairs = tournament.kind == PoolKind.PAIR
        field = self.fields["bots"]
        field.queryset = bots_to_enter(tournament)  # type: ignore[attr-defined]
        field.help_text = (
            "Two, in the order of their names the first and the second seat of the side."
            if self._is_pairs
            else "Each enters by itself. Those in it already, and paused ones, are left out."
        )

    def clean_bots(self) -> list[Bot]:
        """The bots by name."""
        bots = list(self.cleaned_data["bots"])
        if self._is_pairs and len(bots) != BOTS_OF_A_PAIR:
            raise forms.ValidationError("A pair is two bots: choose two.")
        return bots


class ForfeitForm(ReasonForm):
    """Against whom a match is decided, and why."""

    offenders = KnownRowsField(
        Entrant.objects.none(),
        label="Decide it against",
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, matches: Sequence[Match], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["offenders"].queryset = Entrant.objects.filter(  # type: ignore[attr-defined]
            pairings__pairing__match__in=matches
        ).order_by("pairings__index")


class OrderForm(forms.Form):
    """The entrants in the organiser's order."""

    names = forms.CharField(
        label="Entrants, the strongest first",
        widget=forms.Textarea(attrs={"rows": 12}),
        help_text="One name a line. Who is left out follows behind, by rating.",
    )

    def __init__(self, *args: Any, tournament: Tournament, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["names"].initial = "\n".join(
            tournament.entrants.order_by(F("wanted_seed").asc(nulls_last=True), "name").values_list(
                "name", flat=True
            )
        )

    def clean_names(self) -> list[str]:
        """The names in their order."""
        lines = self.cleaned_data["names"].splitlines()
        return [line.strip() for line in lines if line.strip()]


class SealForm(forms.Form):
    """Until when results are sealed."""

    until = forms.SplitDateTimeField(
        label="Sealed until (UTC)",
        widget=forms.SplitDateTimeWidget(
            date_attrs={"type": "date"}, time_attrs={"type": "time", "step": "1"}
        ),
    )


class CorrectForm(ReasonForm):
    """Another result for a decided pairing, and why."""

    def __init__(self, *args: Any, pairing: Pairing, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._names = [part.entrant.name for part in pairing.entrants.all()]
        if len(self._names) == BOTS_OF_A_PAIR:
            ties = [] if stage_format(pairing.round.stage).knocks_out else [(TIED, "nobody: a tie")]
            self.fields["winner"] = forms.ChoiceField(
                label="Who wins",
                choices=[*((str(i), name) for i, name in enumerate(self._names)), *ties],
                widget=forms.RadioSelect,
            )
        else:
            for index, name in enumerate(self._names):
                self.fields[f"place_{index}"] = forms.IntegerField(
                    label=f"Place of {name}", min_value=1, max_value=len(self._names)
                )

    @property
    def places(self) -> list[int]:
        """The places in the order of the pairing's entrants. For a valid form."""
        count = range(len(self._names))
        winner = self.cleaned_data.get("winner")
        if winner is None:
            return [self.cleaned_data[f"place_{index}"] for index in count]
        return [1 if winner in {TIED, str(index)} else 2 for index in count]

    def clean(self) -> dict[str, Any]:
        """The cleaned values, the places among them."""
        super().clean()
        if not self.errors:
            self.cleaned_data["places"] = self.places
        return self.cleaned_data


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class CourseForm(forms.Form):
    """When a series starts its tournaments, what they are like, and what a place in them is worth."""

    like = forms.ModelChoiceField(
        Tournament.objects.all(),
        label="Tournaments like",
        help_text="Game, format, rules, limits and all else are taken from it; times are not.",
    )
    weekdays = forms.MultipleChoiceField(
        required=False,
        choices=[(str(number), name) for number, name in enumerate(WEEKDAYS)],
        widget=forms.CheckboxSelectMultiple,
    )
    at = forms.CharField(
        required=False, max_length=5, help_text="When they start on these days, as 18:30."
    )
    cron = forms.CharField(
        label="Or a rule like cron's",
        required=False,
        max_length=100,
        help_text=(
            "Minute, hour, day of the month, month, weekday: “30 18 1 * *” is 18:30 on the first of "
            "each month. Instead of weekdays and time."
        ),
    )
    time_zone = forms.ChoiceField(
        choices=time_zone_choices,
        initial="UTC",
        help_text="In which these times are meant; what its clocks skip or show twice is seen to.",
        error_messages={
            "invalid_choice": "there is no time zone “%(value)s”: use a name such as Europe/Paris"
        },
    )
    open_minutes = forms.IntegerField(
        label="Entries are open for",
        initial=1440,
        min_value=1,
        help_text="Minutes: 1440 are a day, 10080 a week.",
    )
    pause_minutes = forms.IntegerField(
        label="They close before the start by",
        initial=5,
        min_value=0,
        help_text="Minutes, in which the last versions are tried.",
    )
    points = forms.CharField(
        label="Points for the season",
        required=False,
        max_length=400,
        help_text="What the first place is worth, the second and so on: 25, 18, 15. Empty: no season.",
    )

    @property
    def course(self) -> Course:
        """What the service takes, but for a name. For a form whose single fields are valid."""
        data = self.cleaned_data
        rule: dict[str, object] = {
            "open_minutes": data["open_minutes"],
            "pause_minutes": data["pause_minutes"],
        }
        if data["weekdays"]:
            rule["weekdays"] = [int(number) for number in data["weekdays"]]
        rule.update({name: data[name].strip() for name in ("at", "cron") if data[name].strip()})
        return Course(
            rule=rule,
            template=self.template,
            time_zone=data["time_zone"],
            points_table=data["points"],
        )

    @property
    def template(self) -> dict[str, Any]:
        """The chosen tournament as a template."""
        like: Tournament = self.cleaned_data["like"]
        plan = plan_like(like, opens_at=like.opens_at)
        template = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)}
        for own in ("name", "opens_at", "closes_at", "starts_at", "slug", "results_at"):
            del template[own]
        return template

    def spell_starts(self) -> list[str]:
        """The first starts by what is filled in."""
        rule, zone = check_rule(self.course.rule), self.cleaned_data["time_zone"]
        return [spell_slot(slot, zone) for slot in first_starts(rule, zone, read_clock())]

    def clean_points(self) -> list[int]:
        """The points as numbers."""
        parts = [part.strip() for part in self.cleaned_data["points"].split(",") if part.strip()]
        if not all(part.isascii() and part.isdecimal() and len(part) < 6 for part in parts):
            raise forms.ValidationError("Give whole numbers between commas, as 25, 18, 15.")
        return [int(part) for part in parts]

    def judge(self, errors: Mapping[str, str]) -> None:
        """Put what a service has against it beside the fields that it is about."""
        is_cron = bool(self.cleaned_data.get("cron"))
        about = {"rule": "cron" if is_cron else "at", "points_table": "points", "template": "like"}
        for field, message in errors.items():
            place = about.get(field, field if field in self.fields else "like")
            self.add_error(place, message)


class SeriesForm(CourseForm, forms.ModelForm):  # type: ignore[type-arg] # generic for mypy only
    """A new series. The service judges it, and before it is made its next starts are shown."""

    confirmed = forms.BooleanField(
        label="The next starts are right",
        required=False,
        help_text="They are shown when you save without this.",
    )

    class Meta:
        """Which fields come from the model."""

        model = Series
        fields = ("name",)

    def clean(self) -> dict[str, Any]:
        """The cleaned values, if the service would make this series and its starts have been seen."""
        super().clean()
        if not self.errors:
            name: str = self.cleaned_data["name"]
            self.judge(check_series(name=name, course=self.course, now=read_clock()))
        if not self.errors and not self.cleaned_data["confirmed"]:
            self.add_error(
                "confirmed",
                [
                    "The next starts would be these; tick this if they are right:",
                    *self.spell_starts(),
                ],
            )
        return self.cleaned_data

    def _post_clean(self) -> None:
        """Leave the model alone: the service makes the row and has judged already."""


class ChangeSeriesForm(CourseForm):
    """Another course for a series that is there, filled in as it is."""

    def __init__(self, *args: Any, series: Series, **kwargs: Any) -> None:
        rule = series.rule
        super().__init__(
            *args,
            **{
                "initial": {
                    **{name: rule.get(name, "") for name in ("at", "cron")},
                    "weekdays": [str(day) for day in rule.get("weekdays", ())],
                    "open_minutes": rule.get("open_minutes"),
                    "pause_minutes": rule.get("pause_minutes"),
                    "time_zone": series.time_zone,
                    "points": ", ".join(map(str, series.points_table)),
                },
                **kwargs,
            },
        )
        self._series = series
        like = self.fields["like"]
        assert isinstance(like, forms.ModelChoiceField)
        like.required = False
        like.empty_label = "as they are now"
        like.queryset = Tournament.objects.filter(organiser=series.organiser).order_by("-pk")

    @property
    def template(self) -> dict[str, Any]:
        """The chosen tournament as a template, else the one that it has."""
        has: dict[str, Any] = self._series.template
        return super().template if self.cleaned_data["like"] else has

    def clean(self) -> dict[str, Any]:
        """The cleaned values with the `course` and the `starts` by it, if the service would take it."""
        super().clean()
        if not self.errors:
            self.judge(check_course(self.course, now=read_clock()))
        if not self.errors:
            self.cleaned_data.update(course=self.course, starts=self.spell_starts())
        return self.cleaned_data


def spell_rule(series: Series) -> str:
    """When a series starts its tournaments, in words."""
    cron, at = series.rule.get("cron"), series.rule.get("at", "")
    if cron:
        return f"by the rule {cron} (minute, hour, day, month, weekday), {series.time_zone}"
    days = [WEEKDAYS[day] for day in series.rule.get("weekdays", ()) if day in range(7)]
    every = "every day" if len(days) == len(WEEKDAYS) else f"every {' and '.join(days)}"
    return f"{every} at {at}, {series.time_zone}"


def spell_template(series: Series) -> list[str]:
    """What the tournaments of a series are like, a line each; what is as usual is left out."""
    usual = {field.name: field.default for field in dataclasses.fields(Plan)}
    return [
        f"{name.replace('_', ' ').capitalize()}: {spelled}"
        for name, value in series.template.items()
        if value != usual.get(name) and (spelled := _spell_value(value))
    ]


def _spell_value(value: object) -> str:
    if isinstance(value, Mapping):
        parts = ((name, _spell_value(each)) for name, each in value.items() if each is not None)
        return ", ".join(f"{name}={each}" for name, each in parts if each)
    if isinstance(value, (list, tuple)):
        return "; then ".join(filter(None, map(_spell_value, value)))
    return _spell(value)


def spell_next_starts(series: Series) -> list[str]:
    """The next five starts of a series; none if it is switched off or its rule is none any more."""
    return [spell_slot(slot, series.time_zone) for slot in starts_to_come(series)]


def spell_slot(slot: datetime, time_zone: str) -> str:
    """A start as its series' clocks show it, and in UTC."""
    local = slot.astimezone(zoneinfo.ZoneInfo(time_zone))
    return (
        f"{local:%a %d %b %Y, %H:%M} {local.tzname()} ({slot.astimezone(UTC):%Y-%m-%d %H:%M} UTC)"
    )


def option_field_name(owner: str, option: str) -> str:
    """The name of the field for an option of a game or a format."""
    return f"{owner}-{option}"


def _spell(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    words = {True: "true", False: "false", None: "null"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


def _option_field(option: Option | FormatOption, otherwise: str = "") -> forms.Field:
    """A field for an option, empty for its default or `otherwise`; the service reads and judges the text."""
    label = option.name.replace("_", " ").capitalize()
    usual = otherwise or f"as usual: {_spell(option.default).replace(',', ', ')}"
    is_list = isinstance(option, FormatOption) and option.is_list
    if option.choices and not is_list:
        choices = [("", usual), *((_spell(each), _spell(each)) for each in option.choices)]
        return forms.ChoiceField(
            label=label, required=False, choices=choices, help_text=option.doc.capitalize()
        )
    listing = f" Several of: {', '.join(map(_spell, option.choices))}." if is_list else ""
    return forms.CharField(
        label=label,
        required=False,
        max_length=400,
        help_text=f"{option.doc.capitalize()}{listing} Empty: {usual}",
    )


def option_fields() -> dict[str, forms.Field]:
    """The fields for every option of every game and format."""
    formats = {
        option_field_name(fmt.name, option.name): _option_field(option)
        for fmt in FORMATS.values()
        for option in fmt.options
    }
    return {**game_fields(), **formats}


def game_fields(*, is_first: bool = True) -> dict[str, forms.Field]:
    """The fields for every option of every game; in a later place empty ones change nothing."""
    return {
        option_field_name(game.name, option.name): _option_field(
            option, "" if is_first else AS_USUAL
        )
        for game in GAMES.values()
        for option in game.options
    }


def initial_of(plan: Plan) -> dict[str, Any]:
    """What the form of a new tournament is filled in with, to make one of this plan."""
    given = {
        name: getattr(plan, name)
        for name in (field.name for field in dataclasses.fields(plan))
        if name not in {"format_options", "ruleset", "contest", "stages"}
    }
    return {
        **given,
        **_spell_options(plan.game, GAMES[plan.game].options, plan.ruleset or {}),
        **_spell_contest(plan.contest),
        **(_initial_stages(plan) if plan.stages else _initial_format(plan)),
    }


def _initial_format(plan: Plan) -> dict[str, Any]:
    return _spell_options(plan.format, FORMATS[plan.format].options, plan.format_options or {})


def _initial_stages(plan: Plan) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for number, wish in enumerate(plan.stages, 1):
        own = {
            "qualifiers": wish.qualifiers,
            "time_control": wish.time_control,
            "stops_after_minutes": wish.stops_after_minutes,
            "matches_a_day": wish.matches_a_day,
            **_spell_contest(wish.contest),
            **_spell_options(wish.format, FORMATS[wish.format].options, wish.format_options or {}),
            **_spell_rules(plan, wish),
        }
        values.update({stage_field_name(number, name): value for name, value in own.items()})
    return values


def _spell_rules(plan: Plan, wish: StageWish) -> dict[str, str]:
    """The rules in which a stage differs from the whole tournament."""
    common = plan.ruleset or {}
    return {
        option_field_name(plan.game, name): _spell(value)
        for name, value in (wish.ruleset or {}).items()
        if name not in common or common[name] != value
    }


def _spell_contest(given: Mapping[str, object] | None) -> dict[str, Any]:
    contest = dict(given or {})
    return {
        "contest": contest.get("kind"),
        "contest_size": contest.get("boards", contest.get("best_of")),
        "extra_boards": contest.get("extra_boards"),
    }


def _spell_options(
    owner: str, options: Sequence[Option | FormatOption], given: Mapping[str, object]
) -> dict[str, str]:
    """The options that are not as usual, as their fields show them."""
    return {
        option_field_name(owner, option.name): _spell(given[option.name])
        for option in options
        if option.name in given and _spell(given[option.name]) != _spell(option.default)
    }


def _fixed(choices: Mapping[str, str]) -> list[tuple[str, str]]:
    return list(choices.items())


_STAGE_FIELD = re.compile(r"stages\[(\d+)\]\.(\w+)")


def stage_field_name(number: int, field: str) -> str:
    """The name of the field for something of a stage, counted from 1."""
    return f"stage{number}-{field}"


def stage_fields(number: int, fmt: Format, *, is_last: bool) -> dict[str, forms.Field]:
    """The fields of a stage of this format; empty ones leave things as in the whole tournament."""
    fields: dict[str, forms.Field] = {}
    if not is_last:
        fields["qualifiers"] = forms.IntegerField(
            min_value=2, help_text=f"How many go on to stage {number + 1}."
        )
    for option in fmt.options:
        fields[option_field_name(fmt.name, option.name)] = _option_field(option)
    if fmt.is_continuous and is_last:
        fields["stops_after_minutes"] = forms.IntegerField(
            label="Stops after (minutes)",
            required=False,
            min_value=1,
            help_text=(
                "So long after the tournament's start it opens no more matches. Empty: when its matches "
                "are played, or an organiser stops it."
            ),
        )
    if fmt.is_continuous:
        fields["matches_a_day"] = forms.IntegerField(
            required=False,
            min_value=1,
            help_text="How many matches it opens in 24 hours. Empty: as many as there is room for.",
        )
    fields["contest"] = forms.ChoiceField(
        label="A match is",
        required=False,
        choices=_fixed({"": AS_USUAL, **CONTESTS}),
    )
    fields["contest_size"] = forms.IntegerField(label="How many", required=False, min_value=1)
    fields["extra_boards"] = forms.IntegerField(required=False, min_value=0)
    fields["time_control"] = forms.ChoiceField(
        required=False, choices=[("", AS_USUAL), *((name, name) for name in TIME_CONTROLS)]
    )
    fields.update(game_fields(is_first=False))
    for name, field in fields.items():
        if field.label is None:  # else it would be made from the stage's name for it
            field.label = name.replace("_", " ").capitalize()
    return {stage_field_name(number, name): field for name, field in fields.items()}


AS_USUAL = "as in the whole tournament"
CONTESTS = {"boards": "boards, each played from every seat", "games": "whole games"}


def _read_contest(kind: str, size: int | None, extra: int | None) -> dict[str, object] | None:
    """What a match is made of, as a record says it; None if that was left empty."""
    if not kind:
        return None
    more = {} if extra is None else {"extra_boards": extra}
    return {"kind": kind, "best_of" if kind == "games" else "boards": size, **more}


class StagesForm(forms.Form):
    """The formats of a tournament's stages, chosen before anything else is filled in."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        formats = [(fmt.name, f"{fmt.title}: {fmt.summary}") for fmt in FORMATS.values()]
        for number in range(1, MAX_STAGES + 1):
            choices = formats if number == 1 else [("", "no such stage"), *formats]
            self.fields[stage_field_name(number, "format")] = forms.ChoiceField(
                label=f"Stage {number}", choices=choices, required=number == 1
            )

    def clean(self) -> dict[str, Any]:
        """The cleaned values, the `formats` among them. Refuses a gap between stages."""
        super().clean()
        chosen = [
            self.cleaned_data.get(stage_field_name(number, "format"), "")
            for number in range(1, MAX_STAGES + 1)
        ]
        formats = [name for name in chosen if name]
        if formats != chosen[: len(formats)]:
            raise forms.ValidationError("Leave no gap between the stages.")
        self.cleaned_data["formats"] = formats
        return self.cleaned_data


class TournamentForm(forms.ModelForm):  # type: ignore[type-arg] # generic for mypy only
    """A new tournament. The service judges it: the form is valid exactly if it could be made so."""

    slug = forms.SlugField(
        label="Address",
        required=False,
        max_length=60,
        help_text="Its public id, for ever; deals are derived from it. Empty: made from the name.",
    )
    game = forms.ChoiceField(choices=lambda: [(game.name, game.title) for game in GAMES.values()])
    kind = forms.ChoiceField(
        label="Who meets whom",
        required=False,
        choices=lambda: [("", "as usual in the game"), *PoolKind.choices],
    )
    format = forms.ChoiceField(
        choices=lambda: [(fmt.name, fmt.title) for fmt in FORMATS.values()],
        help_text=format_html_join(
            mark_safe("<br>"),
            "{}: {}",
            ((fmt.title, fmt.summary) for fmt in FORMATS.values()),
        ),
    )
    contest = forms.ChoiceField(
        label="A match is",
        choices=_fixed(CONTESTS),
    )
    contest_size = forms.IntegerField(
        label="How many",
        min_value=1,
        initial=8,
        help_text="Boards, or games of which the most wins decide. Rated matches have 8 boards or more.",
    )
    extra_boards = forms.IntegerField(
        required=False,
        min_value=0,
        help_text="How many more boards a tie may add. Empty: 10 in a knock-out, else none.",
    )
    time_control = forms.ChoiceField(
        choices=lambda: [
            (each.name, f"{each.name}: {each.game_cpu_ms / 1000:g} s a game")
            for each in TIME_CONTROLS.values()
        ],
        initial="standard",
    )
    cap = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_IN_FLIGHT,
        help_text="The most matches of it in flight at once. Empty: as many as there is room for.",
    )
    records_public = forms.ChoiceField(label="Records are public", choices=PublishPolicy.choices)

    max_entrants = forms.IntegerField(
        label="Most entrants",
        required=False,
        min_value=1,
        help_text="How many may enter. Empty: as many as like to.",
    )
    max_bots_per_player = forms.IntegerField(
        label="Most bots of a player",
        required=False,
        min_value=1,
        help_text="How many bots of one player may enter. Empty: as many as there is room for.",
    )
    min_entrants = forms.IntegerField(
        label="Fewest entrants",
        required=False,
        min_value=1,
        help_text="How many must have entered when entries close. Empty: what the format needs.",
    )
    if_too_few = forms.ChoiceField(
        label="If too few have entered",
        required=False,
        choices=Shortage.choices,
        initial=Shortage.CANCEL,
    )
    postpone_minutes = forms.IntegerField(
        label="Postponed by (minutes)",
        required=False,
        min_value=1,
        help_text="By how much close and start move then. Empty: 1440, a day.",
    )
    postpone_most = forms.IntegerField(
        label="Postponed at most (times)",
        required=False,
        min_value=1,
        help_text="How often they move before it is cancelled. Empty: once.",
    )
    seeding = forms.ChoiceField(
        label="Seeds follow from", required=False, choices=Seeding.choices, initial=Seeding.RATING
    )
    late_until_round = forms.IntegerField(
        label="Late entries until round",
        required=False,
        min_value=1,
        help_text="The last round that a late entrant may begin with. Empty: none enter late.",
    )

    class Meta:
        """Which fields come from the model."""

        model = Tournament
        fields = (
            "name",
            "description",
            "opens_at",
            "closes_at",
            "starts_at",
            "weight",
            "cap",
            "rated",
            "results_at",
        )
        labels: ClassVar = {"results_at": "Results are sealed until (UTC)"}
        help_texts: ClassVar = {
            "results_at": (
                "What is played before is shown to organisers alone. Empty: nothing is sealed."
            )
        }

    formats: ClassVar[tuple[str, ...]] = ()
    """Of the stages, if they have been chosen already: then each has fields of its own. See `staged`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.formats:
            self.fields.update(option_fields())
            return
        del self.fields["format"]
        self.fields.update(game_fields())
        for number, name in enumerate(self.formats, 1):
            is_last = number == len(self.formats)
            self.fields.update(stage_fields(number, FORMATS[name], is_last=is_last))

    @property
    def plan(self) -> Plan:
        """What was asked for. For a form whose single fields are valid."""
        data = self.cleaned_data
        return Plan(
            name=data["name"],
            slug=data["slug"],
            description=data["description"],
            game=data["game"],
            kind=data["kind"],
            **self._stages(),
            ruleset=self._options(data["game"]),
            contest=self._contest(),
            time_control=data["time_control"],
            opens_at=data["opens_at"],
            closes_at=data["closes_at"],
            starts_at=data["starts_at"],
            weight=data["weight"],
            cap=data["cap"],
            rated=data["rated"],
            records_public=data["records_public"],
            max_entrants=data["max_entrants"],
            max_bots_per_player=data["max_bots_per_player"],
            min_entrants=data["min_entrants"],
            if_too_few=data["if_too_few"] or Shortage.CANCEL,
            postpone_minutes=data["postpone_minutes"] or 1440,
            postpone_most=data["postpone_most"] or 1,
            seeding=data["seeding"] or Seeding.RATING,
            late_until_round=data["late_until_round"],
            results_at=data["results_at"],
        )

    def _stages(self) -> dict[str, Any]:
        """The one stage or the several ones, as fields of a plan."""
        if not self.formats:
            name = self.cleaned_data["format"]
            return {"format": name, "format_options": self._options(name)}
        return {
            "stages": tuple(
                self._stage(number, name) for number, name in enumerate(self.formats, 1)
            )
        }

    def _stage(self, number: int, name: str) -> StageWish:
        def given(field: str) -> Any:
            return self.cleaned_data.get(stage_field_name(number, field))

        rules = self._options(stage_field_name(number, self.cleaned_data["game"]))
        return StageWish(
            format=name,
            format_options=self._options(stage_field_name(number, name)),
            qualifiers=given("qualifiers"),
            ruleset={**self._options(self.cleaned_data["game"]), **rules} if rules else None,
            contest=_read_contest(given("contest"), given("contest_size"), given("extra_boards")),
            time_control=given("time_control") or None,
            stops_after_minutes=given("stops_after_minutes"),
            matches_a_day=given("matches_a_day"),
        )

    def _options(self, owner: str) -> dict[str, object]:
        """The options of a game or format that were given."""
        start = option_field_name(owner, "")
        return {
            name.removeprefix(start): value
            for name, value in self.cleaned_data.items()
            if name.startswith(start) and value != ""
        }

    def _contest(self) -> dict[str, object] | None:
        data = self.cleaned_data
        return _read_contest(data["contest"], data["contest_size"], data["extra_boards"])

    def clean(self) -> dict[str, Any]:
        """The cleaned values, if the service would make this tournament."""
        super().clean()
        if self.errors:
            return self.cleaned_data
        for field, message in check_plan(self.plan, read_clock()).items():
            place, text = self._place_of(field, message)
            self.add_error(place, text)
        return self.cleaned_data

    def _place_of(self, field: str, message: str) -> tuple[str | None, str]:
        """The field that a message of the service is shown at, and what it says; None: above all."""
        of_stage = _STAGE_FIELD.fullmatch(field)
        if of_stage is None:
            return (field if field in self.fields else None), message
        number, name = int(of_stage[1]) + 1, of_stage[2]
        place = stage_field_name(number, name)
        if place in self.fields:
            return place, message
        return None, f"Stage {number}, {name.replace('_', ' ')}: {message}"

    def _post_clean(self) -> None:
        """Leave the model alone: the service makes the row and has judged already."""
