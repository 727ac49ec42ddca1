"""The admin of scrimmages: who asked for what, how it goes, what is stuck."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from tournament.players.admin import Operation, OperationsAdmin, ReadOnlyInline, spell_moment
from tournament.players.forms import ReasonForm
from tournament.scrimmages import services
from tournament.scrimmages.models import IN_FLIGHT, Batch, Scrimmage, ScrimmageState
from tournament.scrimmages.selectors import scrimmages


class BatchInline(ReadOnlyInline):
    """The batches of a scrimmage; their sets are on its page."""

    model = Batch
    fields = ("number", "termination", "digest", "is_sandboxed", "wall_ms", "worker", "played_at")
    readonly_fields = fields
    ordering = ("-number",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Batch]:
        """The batches without what their sets scored."""
        rows: QuerySet[Batch] = super().get_queryset(request)
        return rows.defer("scores")


@admin.register(Scrimmage)
class ScrimmageAdmin(OperationsAdmin):
    """Questions that authors have asked, and how far they are."""

    list_display = (
        "number",
        "asked_by",
        "first",
        "other",
        "game",
        "state",
        "answer",
        "sets_played",
        "attempts",
        "asked",
    )
    list_filter = ("state", "answer", "game", "difference", "asked_at")
    search_fields = (
        "asked_by__username",
        "first__bot__name",
        "other__bot__name",
    )
    ordering = ("-pk",)
    fields = (
        "buttons",
        "asked_by",
        "first",
        "other",
        "game",
        "ruleset",
        "time_control",
        "difference",
        "elo0",
        "elo1",
        "most_sets",
        "seed",
        "rules_version",
        "state",
        "counts",
        "likelihood_ratio",
        "answer",
        "reason",
        "attempts",
        "failure",
        "asked",
        "started",
        "ended",
    )
    readonly_fields = fields
    inlines = (BatchInline,)
    operations = (
        Operation(
            name="cancel",
            label="Cancel",
            run=lambda row, _, values: services.cancel_scrimmage(
                scrimmage=row, reason=f"by staff: {values['reason']}"
            ),
            allows=lambda row: row.is_open,
            form=ReasonForm,
            warning="It is not played on. What its sets say so far stays.",
        ),
        Operation(
            name="retry",
            label="Play on",
            run=lambda row, _, __: services.retry_scrimmage(scrimmage=row),
            allows=lambda row: row.state in {ScrimmageState.STUCK, *IN_FLIGHT},
            warning="Whoever plays a batch of it now has lost that batch; it is played again.",
        ),
        Operation(
            name="keep",
            label="Keep the records",
            run=lambda row, _, __: services.keep_records(scrimmage=row, kept=True),
            allows=lambda row: not row.is_kept,
            warning="Its records and logs stay, however old they become.",
        ),
        Operation(
            name="let-expire",
            label="Let the records expire",
            run=lambda row, _, __: services.keep_records(scrimmage=row, kept=False),
            allows=lambda row: row.is_kept,
            warning="Its records go with those of their age; numbers and digests stay.",
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Scrimmage]:  # noqa: ARG002 Django's signature
        """All, with who asked and who meets."""
        return scrimmages()

    @admin.display(description="No.", ordering="pk")
    def number(self, row: Scrimmage) -> int:
        """Its number in addresses."""
        return row.pk

    @admin.display(description="Sets")
    def sets_played(self, row: Scrimmage) -> str:
        """How many count so far, of how many."""
        return f"{row.sets} of {row.most_sets}"

    @admin.display(description="Asked for (UTC)", ordering="asked_at")
    def asked(self, row: Scrimmage) -> str:
        """When it was asked for."""
        return spell_moment(row.asked_at)

    @admin.display(description="Begun (UTC)")
    def started(self, row: Scrimmage) -> str:
        """When its first batch was begun."""
        return spell_moment(row.started_at)

    @admin.display(description="Over (UTC)")
    def ended(self, row: Scrimmage) -> str:
        """When it was over."""
        return spell_moment(row.ended_at)

    def view_on_site(self, obj: Scrimmage) -> str:
        """Its page."""
        return reverse("scrimmages:scrimmage", args=[obj.pk])
