"""What people type in about tournaments; the services judge what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.db import DataError

from engine.formats import FORMATS, FormatOption
from engine.games import GAMES
from engine.games.base import Option
from engine.sdk.timecontrol import TIME_CONTROLS
from tournament.competitions.models import Entrant, Match, Pairing, PublishPolicy, Tournament
from tournament.competitions.selectors import bots_to_enter
from tournament.competitions.selectors.engine_values import stage_format
from tournament.competitions.services import Plan, check_plan
from tournament.leaderboards.models import PoolKind
from tournament.players.forms import ReasonForm
from tournament.players.models import Bot, Player
from tournament.store.clock import read_clock

LARGEST_CAP = 1_000_000
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

    def __init__(self, *args: Any, tournament: Tournament, player: Player, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = Bot.objects.filter(owner=player).order_by("name")
        for field in self.fields.values():
            field.error_messages["invalid_choice"] = "that is not a bot of yours"
        self.fields["bot"].queryset = own  # type: ignore[attr-defined]
        if tournament.kind == PoolKind.PAIR:
            self.fields["partner"].queryset = own  # type: ignore[attr-defined]
            self.fields["partner"].required = True
        else:
            del self.fields["partner"]

    @property
    def bots(self) -> list[Bot]:
        """The bots in the order of their seats. For a valid form."""
        return [self.cleaned_data[name] for name in ("bot", "partner") if name in self.cleaned_data]


class EntrantForm(forms.Form):
    """One of the player's own entrants."""

    entrant = forms.ModelChoiceField(Entrant.objects.none())

    def __init__(self, *args: Any, tournament: Tournament, player: Player, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = Entrant.objects.filter(tournament=tournament, bots__bot__owner=player).distinct()
        self.fields["entrant"].error_messages["invalid_choice"] = "that is not an entry of yours"
        self.fields["entrant"].queryset = own  # type: ignore[attr-defined]


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


def option_field_name(owner: str, option: str) -> str:
    """The name of the field for an option of a game or a format."""
    return f"{owner}-{option}"


def _spell(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    words = {True: "true", False: "false", None: "null"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


def _option_field(option: Option | FormatOption) -> forms.Field:
    """A field for an option, empty for its default; the service reads and judges the text."""
    label = option.name.replace("_", " ").capitalize()
    usual = f"as usual: {_spell(option.default)}"
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
    owners: list[tuple[str, Sequence[Option | FormatOption]]] = [
        *((game.name, game.options) for game in GAMES.values()),
        *((fmt.name, fmt.options) for fmt in FORMATS.values()),
    ]
    return {
        option_field_name(owner, option.name): _option_field(option)
        for owner, options in owners
        for option in options
    }


def _fixed(choices: Mapping[str, str]) -> list[tuple[str, str]]:
    return list(choices.items())


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
        help_text=" ".join(f"{fmt.title}: {fmt.summary}" for fmt in FORMATS.values()),
    )
    contest = forms.ChoiceField(
        label="A match is",
        choices=_fixed({"boards": "boards, each played from every seat", "games": "whole games"}),
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
        max_value=LARGEST_CAP,
        help_text="The most matches of it in flight at once. Empty: as many as there is room for.",
    )
    records_public = forms.ChoiceField(label="Records are public", choices=PublishPolicy.choices)

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
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.update(option_fields())

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
            format=data["format"],
            format_options=self._options(data["format"]),
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
        )

    def _options(self, owner: str) -> dict[str, object]:
        """The options of a game or format that were given."""
        start = option_field_name(owner, "")
        return {
            name.removeprefix(start): value
            for name, value in self.cleaned_data.items()
            if name.startswith(start) and value != ""
        }

    def _contest(self) -> dict[str, object]:
        size, extra = self.cleaned_data["contest_size"], self.cleaned_data["extra_boards"]
        more = {} if extra is None else {"extra_boards": extra}
        if self.cleaned_data["contest"] == "games":
            return {"kind": "games", "best_of": size, **more}
        return {"kind": "boards", "boards": size, **more}

    def clean(self) -> dict[str, Any]:
        """The cleaned values, if the service would make this tournament."""
        super().clean()
        if self.errors:
            return self.cleaned_data
        for field, message in check_plan(self.plan, read_clock()).items():
            self.add_error(self._place_of(field), message)
        return self.cleaned_data

    def _place_of(self, field: str) -> str | None:
        """The field that a message of the service is shown at; None: above all."""
        return field if field in self.fields else None

    def _post_clean(self) -> None:
        """Leave the model alone: the service makes the row and has judged already."""
