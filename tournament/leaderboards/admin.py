"""The leaderboards in the admin, and the logs that they follow from. Nothing here can be written."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Case, F, FloatField, QuerySet, When
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from tournament.leaderboards.models import Rating, RatingEvent, RatingPool
from tournament.leaderboards.selectors import is_inactive, rating_line, with_last_match
from tournament.players.admin import ReadOnlyAdmin, spell_moment
from tournament.store.clock import read_clock


class PoolGameFilter(admin.SimpleListFilter):
    """By game."""

    title = "game"
    parameter_name = "game"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002 Django's signature
        """The games that have a pool."""
        games = RatingPool.objects.order_by("game").values_list("game", flat=True).distinct()
        return [(game, game) for game in games]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        """The rows of the chosen game."""
        return queryset.filter(pool__game=self.value()) if self.value() else queryset


class StandsForBotFilter(admin.SimpleListFilter):
    """One row a bot, as on the leaderboard, or every version that has a rating."""

    title = "rows"
    parameter_name = "rows"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002
        """Besides the leaderboard itself."""
        return [("all", "every version")]

    def choices(self, changelist: Any) -> Any:
        """The leaderboard is the default."""
        yield {
            "selected": self.value() is None,
            "query_string": changelist.get_query_string(remove=[self.parameter_name]),
            "display": "one a bot",
        }
        yield {
            "selected": self.value() == "all",
            "query_string": changelist.get_query_string({self.parameter_name: "all"}),
            "display": "every version",
        }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        """The leaderboard's rows, or all."""
        return queryset if self.value() == "all" else queryset.filter(is_listed=True)


@admin.register(Rating)
class RatingAdmin(ReadOnlyAdmin):
    """The leaderboards: filter by game and kind, search by bot or owner."""

    list_display = (
        "rank",
        "bot_name",
        "owner",
        "leaderboard",
        "rating",
        "matches",
        "win_rate",
        "last_match",
    )
    list_display_links = ("bot_name",)
    list_filter = (PoolGameFilter, "pool__kind", StandsForBotFilter)
    search_fields = ("bot__name", "bot__owner__username")
    list_select_related = ("pool", "bot__owner", "version")
    list_per_page = 50
    ordering: ClassVar[Any] = ("pool", F("rank").asc(nulls_last=True), "pk")
    fields = (*list_display, "version", "standing", "mu", "sigma", "wins", "ties", "last_seq")
    readonly_fields = fields

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        """The list, which counts what it shows: bots, or every version."""
        usual: Any = super().get_changelist(request, **kwargs)
        counted = "version" if request.GET.get(StandsForBotFilter.parameter_name) else "bot"

        class Ranks(usual):  # type: ignore[misc] # Django's or Unfold's
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                opts: Any = copy(self.model._meta)  # noqa: SLF001 Django's way to a model's names
                opts.verbose_name, opts.verbose_name_plural = counted, f"{counted}s"
                self.opts = opts

        return Ranks

    def get_queryset(self, request: HttpRequest) -> QuerySet[Rating]:
        """The ratings with their win rate, to order by."""
        rows: QuerySet[Rating] = with_last_match(super().get_queryset(request))
        share = Cast("wins", FloatField()) / Cast("matches", FloatField())
        return rows.annotate(
            win_share=Case(When(matches__gt=0, then=share), output_field=FloatField())
        )

    @admin.display(description="Bot", ordering="bot__name")
    def bot_name(self, row: Rating) -> str:
        """The bot and the version that is rated."""
        return f"{row.bot.name} {row.version.version}"

    @admin.display(description="Owner", ordering="bot__owner__username")
    def owner(self, row: Rating) -> str:
        """Whose bot it is."""
        return row.bot.owner.username

    @admin.display(description="Leaderboard", ordering="pool")
    def leaderboard(self, row: Rating) -> str:
        """Game and kind."""
        return f"{row.pool.game}, {row.pool.kind}"

    @admin.display(description="Rating (strength, 95 %)", ordering="shown")
    def rating(self, row: Rating) -> str:
        """What it is ranked by, μ − 3σ, and where its strength lies; ``?`` while it is provisional."""
        line = rating_line(row)
        doubt = "" if line.is_settled else "?"
        return f"{_signed(line.shown)}{doubt} ({_signed(line.low)} – {_signed(line.high)})"

    @admin.display(description="Standing", ordering="sigma")
    def standing(self, row: Rating) -> str:
        """Whether there were matches enough to tell."""
        return "settled" if rating_line(row).is_settled else "provisional"

    @admin.display(description="Win rate", ordering="win_share")
    def win_rate(self, row: Any) -> str:
        """The share of its matches that it won."""
        return "–" if row.win_share is None else f"{100 * row.win_share:.0f} %"

    @admin.display(description="Last match (UTC)", ordering="last_match_at")
    def last_match(self, row: Rating) -> str:
        """When a match of it was last rated, and whether that is so long ago that it counts as inactive."""
        when = rating_line(row).last_match_at
        mark = ", inactive" if is_inactive(when, read_clock()) else ""
        return f"{spell_moment(when)}{mark}"

    def view_on_site(self, obj: Rating) -> str:
        """The public leaderboard."""
        return reverse("leaderboards:board", args=[obj.pool.game, obj.pool.kind])


@admin.register(RatingPool)
class RatingPoolAdmin(ReadOnlyAdmin):
    """The pools: what is rated together."""

    list_display = ("game", "kind", "last_seq")
    ordering = ("game", "kind")
    fields = ("game", "kind", "last_seq", "log")
    readonly_fields = fields

    @admin.display(description="Log")
    def log(self, row: RatingPool) -> str:
        """The pool's events."""
        url = reverse("admin:leaderboards_ratingevent_changelist")
        return format_html('<a href="{}?pool__id__exact={}">its events</a>', url, row.pk)


@admin.register(RatingEvent)
class RatingEventAdmin(ReadOnlyAdmin):
    """The logs, event by event; they only grow."""

    list_display = ("pool", "seq", "kind", "match_key", "at")
    list_filter = ("pool", "kind")
    search_fields = ("match_key",)
    list_select_related = ("pool",)
    ordering = ("pool", "-seq")
    fields = ("pool", "seq", "kind", "match_key", "teams", "at")
    readonly_fields = fields


def _signed(number: float) -> str:
    """Two digits, with a true minus."""
    return f"{number:.2f}".replace("-", "−")
