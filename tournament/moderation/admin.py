"""Accounts and bots in the admin, with their suspension, and the suspensions that there were."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe

from tournament.moderation import services
from tournament.moderation.models import Suspension
from tournament.moderation.selectors import suspension_preview
from tournament.players.admin import (
    BotAdmin,
    Operation,
    OperationsAdmin,
    OperationsMixin,
    PlayerAdmin,
)
from tournament.players.forms import ReasonForm
from tournament.players.models import Bot, Player
from tournament.players.views import player_of

_RIGHT = "moderation.add_suspension"


def _is_free(row: Player | Bot) -> bool:
    return not row.suspensions.filter(lifted_at=None).exists()


def _suspend(row: Player | Bot, request: HttpRequest, values: dict[str, Any]) -> object:
    return services.suspend(subject=row, reason=values["reason"], by=player_of(request))


def _suspension(warning: str) -> Operation:
    return Operation(
        name="suspend",
        label="Suspend",
        run=_suspend,
        allows=_is_free,
        form=ReasonForm,
        right=_RIGHT,
        warning=warning,
        preview=suspension_preview,
        preview_title="What it does",
        takes_many=False,
    )


@admin.register(Player)
class ModeratedPlayerAdmin(OperationsMixin, PlayerAdmin):
    """Accounts, which moderators can suspend."""

    operations = (
        _suspension(
            "Nothing of theirs is played from now on, and they cannot log in. Lifting it opens the account and "
            "their bots again; disqualifications, tokens and scrimmages stay gone."
        ),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Also the buttons."""
        return (*super().get_readonly_fields(request, obj), "buttons")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Also the buttons, for who may use them."""
        sets = super().get_fieldsets(request, obj)
        if obj is None or not self.may_operate(request):
            return sets
        return ((None, {"fields": ("buttons",)}), *sets)


@admin.register(Bot)
class ModeratedBotAdmin(BotAdmin):
    """Bots, which moderators can suspend."""

    operations = (
        *BotAdmin.operations,
        Operation(
            name="lift",
            label="Lift the pause",
            run=lambda row, _, __: services.lift_pause(bot=row),
            allows=lambda row: bool(row.paused_reason),
            warning="One that is suspended stays paused: a moderator lifts that, at the suspension.",
        ),
        _suspension(
            "Unlike a pause it also takes the bot out of what is being played. Lifting it lets it enter and "
            "upload again; disqualifications and scrimmages stay gone."
        ),
    )


@admin.register(Suspension)
class SuspensionAdmin(OperationsAdmin):
    """Who was suspended: by whom, why, what it did, and when it was lifted."""

    list_display = ("at", "player", "bot", "reason", "by", "lifted_at", "lifted_by")
    list_filter = (("lifted_at", admin.EmptyFieldListFilter),)
    search_fields = ("player__username", "bot__name", "reason")
    list_select_related = ("player", "bot", "by", "lifted_by")
    ordering = ("-pk",)
    fields = ("buttons", *list_display, "what_it_did")
    readonly_fields = fields
    operations = (
        Operation(
            name="lift",
            label="Lift",
            run=lambda row, request, _: services.lift_suspension(
                suspension=row, by=player_of(request)
            ),
            allows=lambda row: row.lifted_at is None,
            warning=(
                "The account opens, and the bots that it paused enter and upload again. What was ended stays so."
            ),
        ),
    )

    @admin.display(description="What it did")
    def what_it_did(self, row: Suspension) -> str:
        """Its effects, a line each."""
        return format_html_join(mark_safe("<br>"), "{}", ((line,) for line in row.effects))
