"""The admin of players, tokens, bots and versions, and what all of the admin shares.

The admin shows rows and starts use cases: no form of it writes a bot, a version, a match or a state.
What staff do are *operations*: each asks for confirmation, calls one service for every chosen row,
says how it went, and is noted in the admin's log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import DataError
from django.db.models import Count, Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import url_has_allowed_host_and_scheme, urlencode

from engine.errors import UsageError
from tournament.players import services
from tournament.players.forms import ConfirmForm, ReasonForm
from tournament.players.models import (
    VERSION_TRANSITIONS,
    ApiToken,
    Bot,
    BotVersion,
    Player,
    VersionGame,
    VersionState,
)
from tournament.players.selectors import version_log, wheel_name, wheel_of

if TYPE_CHECKING or not settings.USE_UNFOLD:
    from django.contrib.admin import ModelAdmin, TabularInline
    from django.contrib.auth.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
else:
    from unfold.admin import ModelAdmin, TabularInline
    from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

MOST_ROWS = 1000
"""How many rows an operation is done with at once."""
LONGEST_ID = 18
"""Digits of an id; every number of so many fits the database."""
_STAMP = "%Y-%m-%d %H:%M"
_FILTERS_ASK = (
    "",
    *(f"__{ask}" for ask in ("exact", "id__exact", "isnull", "isempty", "gte", "lt")),
    *(f"__{part}" for part in ("year", "month", "day")),
)
"""What the filters beside a list ask of their field, as it follows its name in an address."""

admin.site.site_header = "Domino Arena"
admin.site.site_title = "Domino Arena"
admin.site.index_title = "Administration"


def spell_moment(when: datetime | None) -> str:
    """A moment as lists of the admin show it: in UTC, to the minute."""
    return "–" if when is None else f"{when.astimezone(UTC):{_STAMP}}"


class ReadOnlyMixin:
    """Rows to look at: nothing is added, changed or deleted here."""

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:  # noqa: ARG002 Django's signature
        """Never."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        """Never."""
        return False


class BoundedListMixin:
    """A list that is narrowed by its own filters alone, and takes a number too large for the database as nonsense.

    Django narrows a list by any field of the model that an address names (``?email__startswith=a``), which would tell
    of fields that the viewer is not shown, and by patterns that take for ever.
    """

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Whether an address may narrow the list so: as one of the list's filters does."""
        assert request is not None  # Django gives it since 5.0
        own: Any = self  # a ModelAdmin
        names = [own.date_hierarchy, *map(_field_of, own.get_list_filter(request))]
        asked = {f"{name}{ask}" for name in names if name for ask in _FILTERS_ASK}
        allowed: bool = super().lookup_allowed(lookup, value, request)  # type: ignore[misc] # ModelAdmin's
        return allowed and lookup in asked

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """The list. Raises IncorrectLookupParameters, which Django answers with the whole list."""
        try:
            return super().get_changelist_instance(request)  # type: ignore[misc] # ModelAdmin's
        except (OverflowError, DataError) as error:
            raise IncorrectLookupParameters(str(error)) from error


def _field_of(filter_of_list: Any) -> str | None:
    """What a filter of a list is named by in addresses."""
    if isinstance(filter_of_list, tuple):
        name: str = filter_of_list[0]
        return name
    if isinstance(filter_of_list, str):
        return filter_of_list
    parameter: str | None = filter_of_list.parameter_name
    return parameter


class ReadOnlyAdmin(BoundedListMixin, ReadOnlyMixin, ModelAdmin):  # type: ignore[type-arg] # generic for mypy only
    """A list and a page of rows to look at."""


class ReadOnlyInline(ReadOnlyMixin, TabularInline):  # type: ignore[type-arg] # generic for mypy only
    """Rows to look at beside those they belong to."""

    extra = 0
    hide_title = True
    show_change_link = False


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that staff can do with rows."""

    name: str
    """In addresses: ``pause``."""
    label: str
    """On the button: ``Pause``."""
    run: Callable[[Any, HttpRequest, dict[str, Any]], object]
    """Calls the service for one row, with the form's cleaned values. May raise UsageError."""
    allows: Callable[[Any], bool] = lambda _: True
    """Whether the button is shown for a row; the service judges in the end."""
    form: type[forms.Form] = ConfirmForm
    warning: str = ""
    """What to know before it is done."""
    preview: Callable[[Any], Sequence[str]] = lambda _: ()
    """What it would change, a line each."""
    preview_title: str = ""
    takes_many: bool = True
    """Whether it can be done with several rows at once."""
    right: str = ""
    """The permission that it takes; by default the one to change the model."""
    rehearse: Callable[[Any, HttpRequest, dict[str, Any]], Foreseen] | None = None
    """Given: what it would change with the form's values, shown before it is done.

    It is done only if, asked again, it says the same. May raise UsageError.
    """


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What an operation on a row would change, a line each."""

    lines: Sequence[str]
    """What is confirmed."""
    drifting: Sequence[str] = ()
    """What other things change all the time, too, as ratings: shown, but nobody could confirm it in time on a busy site."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What an operation would change, as its page shows it."""

    lines: tuple[str, ...]
    mark: str
    """Stands for what is confirmed; it is sent back with the confirmation."""
    is_confirmed: bool
    """Whether just these lines were confirmed."""
    is_changed: bool
    """Whether other lines were confirmed: something has happened meanwhile."""


class OperationsMixin:
    """Operations on rows of a ModelAdmin: each is an action of the list and a button on a row's page."""

    if TYPE_CHECKING:
        opts: Any
        admin_site: Any
        get_queryset: Callable[[HttpRequest], QuerySet[Any]]
        log_change: Callable[[HttpRequest, Any, str], Any]

    operations: Sequence[Operation] = ()

    class Media:
        """The look of the buttons."""

        css: ClassVar = {"all": ["web/admin.css"]}

    def may_do(self, request: HttpRequest, operation: Operation) -> bool:
        """Whether the viewer may do an operation at all; on which rows, the queryset says."""
        own = f"{self.opts.app_label}.change_{self.opts.model_name}"
        return request.user.has_perm(operation.right or own)

    def may_operate(self, request: HttpRequest) -> bool:
        """Whether the viewer may do any operation."""
        return any(self.may_do(request, each) for each in self.operations)

    def get_urls(self) -> list[URLPattern]:
        """The model's addresses and one for each operation."""
        own = [
            path(
                "operate/<slug:name>/",
                self.admin_site.admin_view(self.operate_view),
                name=f"{self.opts.app_label}_{self.opts.model_name}_operate",
            )
        ]
        others: list[URLPattern] = super().get_urls()  # type: ignore[misc] # ModelAdmin's
        return own + others

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """The operations that take several rows, for who may do them."""
        return {
            each.name: (self._make_action(each), each.name, each.label)
            for each in self.operations
            if each.takes_many and self.may_do(request, each)
        }

    def _make_action(self, operation: Operation) -> Callable[..., HttpResponse]:
        def action(_: Any, __: HttpRequest, rows: QuerySet[Any]) -> HttpResponse:
            ids = rows.values_list("pk", flat=True)[:MOST_ROWS]
            return HttpResponseRedirect(self._operate_url(operation, ids))

        return action

    def _operate_url(self, operation: Operation, ids: Iterable[object], back: str = "") -> str:
        url = reverse(
            f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_operate",
            args=[operation.name],
        )
        query = {"ids": ",".join(map(str, ids)), **({"back": back} if back else {})}
        return f"{url}?{urlencode(query)}"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The fields; the buttons only for who may operate."""
        fields = super().get_fields(request, obj)  # type: ignore[misc] # ModelAdmin's
        return fields if self.may_operate(request) else [f for f in fields if f != "buttons"]

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """The row, with the operations that the viewer may do."""
        row = super().get_object(request, *args, **kwargs)  # type: ignore[misc] # ModelAdmin's
        if row is not None:
            row.operations_here = [each for each in self.operations if self.may_do(request, each)]
        return row

    @admin.display(description="Operations")
    def buttons(self, row: Any) -> str:
        """A button for each operation that the row's state allows."""
        back = reverse(
            f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_change",
            args=[row.pk],
        )
        here = getattr(row, "operations_here", self.operations)
        allowed = [each for each in here if each.allows(row)]
        return (
            format_html_join(
                " ",
                '<a class="arena-button" href="{}">{}</a>',
                ((self._operate_url(each, [row.pk], back), each.label) for each in allowed),
            )
            or "–"
        )

    def operate_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Ask for confirmation (and a reason), then do it for every chosen row."""
        operation = next((each for each in self.operations if each.name == name), None)
        if operation is None:
            raise Http404
        if not self.may_do(request, operation):
            raise PermissionDenied
        rows = self._chosen(request)
        sent = request.POST if request.method == "POST" else None
        form = operation.form(sent, **self.form_arguments(operation, rows))
        rehearsal: Rehearsal | None = None
        if request.method == "POST" and form.is_valid():
            try:
                rehearsal = self._rehearse(request, operation, rows, form.cleaned_data)
                if rehearsal is None or rehearsal.is_confirmed:
                    self._operate_all(request, operation, rows, form.cleaned_data)
                    return HttpResponseRedirect(self._back(request))
            except UsageError as error:
                form.add_error(None, str(error))
        context = {
            "rehearsal": rehearsal,
            "is_rehearsed": operation.rehearse is not None,
            **self.admin_site.each_context(request),
            "title": operation.label,
            "opts": self.opts,
            "operation": operation,
            "rows": [self.describe(row) for row in rows],
            "preview": [line for row in rows for line in operation.preview(row)],
            "form": form,
            "back": self._back(request),
        }
        return render(request, "admin/operate.html", context)

    def _rehearse(
        self,
        request: HttpRequest,
        operation: Operation,
        rows: Sequence[Any],
        values: dict[str, Any],
    ) -> Rehearsal | None:
        if operation.rehearse is None:
            return None
        foreseen = [operation.rehearse(row, request, values) for row in rows]
        settled = tuple(line for each in foreseen for line in each.lines)
        drifting = tuple(line for each in foreseen for line in each.drifting)
        mark = hashlib.sha256("\n".join(settled).encode()).hexdigest()
        sent = request.POST.get("rehearsed", "")
        return Rehearsal(settled + drifting, mark, is_confirmed=sent == mark, is_changed=bool(sent))

    def describe(self, row: Any) -> str:
        """What a row is called where an operation on it is confirmed, and told to be done."""
        return str(row)

    def form_arguments(self, operation: Operation, rows: Sequence[Any]) -> dict[str, Any]:  # noqa: ARG002 for subclasses
        """What the operation's form is made with."""
        return {}

    def _chosen(self, request: HttpRequest) -> list[Any]:
        parts = ",".join(request.GET.getlist("ids")).split(",")[:MOST_ROWS]
        ids = [part for part in parts if part.isdecimal() and len(part) <= LONGEST_ID]
        rows = list(self.get_queryset(request).filter(pk__in=ids)) if ids else []
        if not rows:
            raise Http404
        return rows

    def _back(self, request: HttpRequest) -> str:
        back = request.GET.get("back", "")
        if url_has_allowed_host_and_scheme(back, allowed_hosts=None):
            return back
        return reverse(
            f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_changelist"
        )

    def _operate_all(
        self,
        request: HttpRequest,
        operation: Operation,
        rows: Sequence[Any],
        values: dict[str, Any],
    ) -> None:
        """Do it for each row; raises UsageError for one alone, so that what was filled in can be mended."""
        if len(rows) == 1 and operation.form is not ConfirmForm:
            self._operate(request, operation, rows[0], values)
            return
        for row in rows:
            try:
                self._operate(request, operation, row, values)
            except UsageError as error:
                messages.error(request, f"{operation.label}, {self.describe(row)}: {error}")

    def _operate(
        self, request: HttpRequest, operation: Operation, row: Model, values: dict[str, Any]
    ) -> None:
        label = self.describe(row)
        operation.run(row, request, values)
        reason = values.get("reason", "")
        self.log_change(request, row, f"{operation.label}{f': {reason}' if reason else ''}")
        messages.success(request, f"{operation.label}: done for {label}.")


class OperationsAdmin(OperationsMixin, ReadOnlyAdmin):
    """Rows to look at, with operations on them; by default who may change the model may do them."""


admin.site.unregister(Group)


class SuperusersMixin:
    """Rows by which rights are given: who could change them could give themselves any."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Superusers alone."""
        return request.user.is_active and request.user.is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 Django's signature
        """Superusers alone."""
        return request.user.is_active and request.user.is_superuser

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 Django's signature
        """Superusers alone."""
        return request.user.is_active and request.user.is_superuser


@admin.register(Group)
class ArenaGroupAdmin(SuperusersMixin, BoundedListMixin, GroupAdmin, ModelAdmin):  # type: ignore[type-arg] # generic for mypy only
    """Groups, e.g. the organisers."""


class PlayerAdmin(SuperusersMixin, BoundedListMixin, UserAdmin, ModelAdmin):  # type: ignore[type-arg] # generic for mypy only
    """Accounts. Superusers change them; who may only view sees neither address nor password."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "bot_count", "is_staff", "is_active", "date_joined", "last_login")
    list_filter = ("is_staff", "is_active", "groups")
    search_fields = ("username", "email")
    ordering = ("username",)
    prepopulated_fields: ClassVar = {"slug": ("username",)}
    filter_horizontal = ()  # two lists side by side, for two groups, are wider than the page
    fieldsets = (
        (None, {"fields": ("username", "slug", "password")}),
        ("Person", {"fields": ("email", "wants_mail", "time_zone")}),
        ("Rights", {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("username", "slug", "password1", "password2")}),
    )
    readonly_fields = ("last_login", "date_joined")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Player]:
        """The accounts with the number of their bots."""
        rows: QuerySet[Player] = super().get_queryset(request)
        return rows.annotate(bots_owned=Count("bots", distinct=True))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """All of it for who may change it; for others what is no secret of the person."""
        if obj is None or self.has_change_permission(request, obj):
            return super().get_fieldsets(request, obj)
        return (
            (None, {"fields": ("username", "slug", "is_active", "is_staff", "groups")}),
            ("Dates", {"fields": ("last_login", "date_joined")}),
        )

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Groups as boxes to tick: there are few, and which one is in must be seen at once."""
        kwargs["widget"] = forms.CheckboxSelectMultiple()
        field = super().formfield_for_manytomany(db_field, request, **kwargs)
        if field is not None:
            field.help_text = "What a group may do is told in the docs: organisers run tournaments, moderators suspend."
        return field

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """By address only for who may see it."""
        return self.search_fields if self.has_change_permission(request) else ("username",)

    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """None where the name cannot be written."""
        may = obj is None or self.has_change_permission(request, obj)
        return super().get_prepopulated_fields(request, obj) if may else {}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 Django's signature
        """Never: what an account did is on record. ``manage.py erase-player`` removes the person."""
        return False

    @admin.display(description="Bots", ordering="bots_owned")
    def bot_count(self, row: Any) -> int:
        """How many bots the player owns."""
        count: int = row.bots_owned
        return count


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin):
    """What staff did in the admin, whose logs and wheels they read among it: who, when, with what."""

    list_display = ("action_time", "user", "content_type", "object_repr", "change_message")
    list_filter = ("content_type", "action_time")
    search_fields = ("user__username", "object_repr", "change_message")
    list_select_related = ("user", "content_type")
    ordering = ("-pk",)
    fields = (*list_display, "object_id")
    readonly_fields = fields


@admin.register(ApiToken)
class ApiTokenAdmin(OperationsAdmin):
    """Tokens: whose, what for, until when. What they are nobody can see."""

    list_display = (
        "prefix",
        "player",
        "name",
        "scope",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    list_filter = ("scope", ("revoked_at", admin.EmptyFieldListFilter))
    search_fields = ("prefix", "player__username", "name")
    list_select_related = ("player",)
    ordering = ("-pk",)
    fields = ("buttons", *list_display)
    readonly_fields = fields
    operations = (
        Operation(
            name="revoke",
            label="Revoke",
            run=lambda row, _, __: services.revoke_token(token=row),
            allows=lambda row: row.revoked_at is None,
            warning="Programs that use it are refused from now on.",
        ),
    )


class VersionInline(ReadOnlyInline):
    """A bot's versions."""

    model = BotVersion
    fields = ("version", "state", "reason", "uploaded_at", "decided_at")
    readonly_fields = fields
    show_change_link = True
    ordering = ("-pk",)


class BotAdmin(OperationsAdmin):
    """Bots and what staff may do with them."""

    list_display = ("name", "owner", "version_count", "paused_reason", "created_at")
    list_filter = (("paused_reason", admin.EmptyFieldListFilter),)
    search_fields = ("name", "owner__username")
    list_select_related = ("owner",)
    ordering = ("name",)
    fields = ("buttons", "name", "owner", "paused_reason", "created_at")
    readonly_fields = fields
    inlines = (VersionInline,)
    operations: Sequence[Operation] = (
        Operation(
            name="pause",
            label="Pause",
            run=lambda row, _, values: services.pause_bot(bot=row, reason=values["reason"]),
            allows=lambda row: not row.paused_reason,
            form=ReasonForm,
            warning="It enters nothing and submits nothing until the pause is lifted.",
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Bot]:
        """The bots with the number of their versions."""
        rows: QuerySet[Bot] = super().get_queryset(request)
        return rows.annotate(versions_here=Count("versions"))

    @admin.display(description="Versions", ordering="versions_here")
    def version_count(self, row: Any) -> int:
        """How many versions the bot has."""
        count: int = row.versions_here
        return count

    def view_on_site(self, obj: Bot) -> str:
        """The bot's public page."""
        return reverse("bot", args=[obj.name])


class GameInline(ReadOnlyInline):
    """What a version is accepted for."""

    model = VersionGame
    fields = ("game", "options")
    readonly_fields = fields


def _may_become(target: VersionState) -> Callable[[BotVersion], bool]:
    return lambda row: VERSION_TRANSITIONS.allows(VersionState(row.state), target)


@admin.register(BotVersion)
class BotVersionAdmin(OperationsAdmin):
    """Versions: how their check went, and what staff may do with them."""

    list_display = ("bot", "version", "owner", "state", "short_reason", "uploaded_at", "decided_at")
    list_filter = ("state", "games__game", "uploaded_at")
    search_fields = ("bot__name", "version", "bot__owner__username", "wheel_sha256")
    list_select_related = ("bot__owner",)
    ordering = ("-pk",)
    fields = (
        "buttons",
        "bot",
        "version",
        "owner",
        "state",
        "reason",
        "summary",
        "parent",
        "wheel_sha256",
        "files",
        "attempts",
        "matches_played",
        "crashes",
        "crashes_in_a_row",
        "uploaded_at",
        "decided_at",
    )
    readonly_fields = fields
    inlines = (GameInline,)
    operations = (
        Operation(
            name="quarantine",
            label="Set aside",
            run=lambda row, _, values: services.quarantine_version(
                version=row, reason=values["reason"]
            ),
            allows=_may_become(VersionState.QUARANTINED),
            form=ReasonForm,
            warning="It enters nothing more; tournaments that have closed keep it.",
        ),
        Operation(
            name="release",
            label="Accept again",
            warning="Its crashes are counted anew.",
            run=lambda row, _, __: services.release_version(version=row),
            allows=lambda row: row.state == VersionState.QUARANTINED,
        ),
        Operation(
            name="retry",
            label="Check again",
            run=lambda row, _, __: services.retry_version(version=row),
            allows=lambda row: (
                row.state in {VersionState.STUCK, VersionState.QUEUED, VersionState.RUNNING}
            ),
            warning="Whoever checks it now has lost it, and its failures are counted anew.",
        ),
        Operation(
            name="withdraw",
            label="Withdraw",
            run=lambda row, _, values: services.withdraw_version(
                version=row, reason=f"by staff: {values['reason']}"
            ),
            allows=_may_become(VersionState.WITHDRAWN),
            form=ReasonForm,
            warning="It is not checked, and enters nothing more. This cannot be undone; its owner may upload another.",
        ),
    )

    @admin.display(description="Owner", ordering="bot__owner__username")
    def owner(self, row: BotVersion) -> str:
        """Whose version it is."""
        return row.bot.owner.username

    @admin.display(description="Reason")
    def short_reason(self, row: BotVersion) -> str:
        """The beginning of the reason."""
        return row.reason[:80]

    @admin.display(description="Files")
    def files(self, row: BotVersion) -> str:
        """Where its wheel and its log are, for who may audit."""
        kinds = ("wheel", *(("log",) if row.log_sha256 else ()))
        return format_html(
            "{} (needs the right to audit; each reading is noted)",
            format_html_join(
                ", ",
                '<a href="{}">{}</a>',
                (
                    (reverse(f"admin:players_botversion_{kind}", args=[row.pk]), kind)
                    for kind in kinds
                ),
            ),
        )

    def get_urls(self) -> list[URLPattern]:
        """Also the addresses of a version's files."""
        files = [
            path(
                f"<int:pk>/{kind}/",
                self.admin_site.admin_view(view),
                name=f"players_botversion_{kind}",
            )
            for kind, view in (("log", self.log_view), ("wheel", self.wheel_view))
        ]
        return [*files, *super().get_urls()]

    def log_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """What a version printed, as plain text."""
        row = self._audit(request, pk, "Read the log")
        return HttpResponse(version_log(row), content_type="text/plain; charset=utf-8")

    def wheel_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """A version's wheel."""
        row = self._audit(request, pk, "Downloaded the wheel")
        return HttpResponse(
            wheel_of(row),
            content_type="application/octet-stream",
            headers={"Content-Disposition": f'attachment; filename="{wheel_name(row)}"'},
        )

    def _audit(self, request: HttpRequest, pk: int, what: str) -> BotVersion:
        """The version, once it is noted in the admin's log that somebody reads a file of it."""
        if not request.user.has_perm("players.audit_botversion"):
            raise PermissionDenied
        row = get_object_or_404(BotVersion.objects.select_related("bot"), pk=pk)
        self.log_change(request, row, what)
        return row
