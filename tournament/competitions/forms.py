"""What people type in about tournaments; the services judge what it means."""

from __future__ import annotations

from typing import Any

from django import forms

from tournament.competitions.models import Entrant, Tournament
from tournament.leaderboards.models import PoolKind
from tournament.players.models import Bot, Player


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
        self.fields["entrant"].queryset = own  # type: ignore[attr-defined]
