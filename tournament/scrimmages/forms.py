"""What people type in about scrimmages; the services judge what it means."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from engine.games import GAMES
from tournament.competitions.forms import game_fields, option_field_name
from tournament.players.models import BotVersion, Player
from tournament.scrimmages.errors import InvalidScrimmageError, ScrimmageQuotaError
from tournament.scrimmages.models import TIME_CONTROLS, Difference, Scrimmage
from tournament.scrimmages.selectors import find_opponent, own_versions
from tournament.scrimmages.services import Wish, ask

USUAL_SETS = 500
LONGEST_NAME = 100
"""Of a bot and its version, as they are typed in."""


class ScrimmageForm(forms.Form):
    """Is this version of mine better than that one?"""

    first = forms.ModelChoiceField(queryset=BotVersion.objects.none(), label="Is", empty_label=None)
    other = forms.CharField(
        label="better than",
        max_length=LONGEST_NAME,
        help_text="A bot’s name: its newest version plays, of your own bot the newest other one. Or its name and a "
        "version: “greedy 1.0”.",
        widget=forms.TextInput(attrs={"list": "opponents", "autocapitalize": "none"}),
    )
    game = forms.ChoiceField(choices=[(game.name, game.title) for game in GAMES.values()])
    difference = forms.ChoiceField(
        label="How big a difference matters to you?",
        choices=Difference.choices,
        initial=Difference.CLEAR,
        help_text="The smaller it is, the more sets it takes to know.",
    )
    most_sets = forms.IntegerField(
        label="At most so many sets",
        help_text="A set is one board, played from both sides. It ends sooner once the answer is known.",
    )
    time_control = forms.ChoiceField(
        choices=[(name, name) for name in TIME_CONTROLS], initial="standard"
    )

    def __init__(self, *args: Any, player: Player, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._player = player
        self.fields["first"].queryset = own_versions(player)  # type: ignore[attr-defined]
        self.fields["most_sets"].initial = min(USUAL_SETS, settings.ARENA_SCRIMMAGE_SETS)
        self._questions = tuple(self.fields)
        self.fields.update(game_fields())

    def main_fields(self) -> list[forms.BoundField]:
        """The fields that everybody fills in, in their order."""
        return [self[name] for name in self._questions]

    def rules(self) -> list[tuple[str, list[forms.BoundField], bool]]:
        """By game its rules: its title, their fields, and whether one of them was filled in."""
        parts = [
            (
                game.title,
                [self[option_field_name(game.name, option.name)] for option in game.options],
            )
            for game in GAMES.values()
        ]
        return [(title, fields, any(field.data for field in fields)) for title, fields in parts]

    def _ruleset(self) -> dict[str, str]:
        """The rules of the chosen game that are not left as usual."""
        game = self.cleaned_data["game"]
        named = {
            option.name: self.cleaned_data[option_field_name(game, option.name)]
            for option in GAMES[game].options
        }
        return {name: value for name, value in named.items() if value != ""}

    def save(self) -> Scrimmage | None:
        """The scrimmage; None if it cannot be asked for, with the reasons at their fields."""
        data = self.cleaned_data
        bot, _, version = data["other"].strip().partition(" ")
        try:
            other = find_opponent(self._player, bot, version.strip(), data["game"], data["first"])
            wish = Wish(
                first=data["first"],
                other=other,
                game=data["game"],
                difference=Difference(data["difference"]),
                most_sets=data["most_sets"],
                time_control=data["time_control"],
                ruleset=self._ruleset(),
            )
            return ask(wish=wish, by=self._player)
        except InvalidScrimmageError as error:
            for field, message in error.fields.items():
                self.add_error(field if field in self.fields else None, sentence(message))
        except ScrimmageQuotaError as error:
            self.add_error(None, sentence(str(error)))
        return None


def sentence(message: str) -> str:
    """A message of a service as a page shows it."""
    return f"{message}."


class AllowForm(forms.Form):
    """Whether others may ask for scrimmages with a bot."""

    allowed = forms.BooleanField(required=False)
