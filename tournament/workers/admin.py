"""The workers in the admin: what holds bots on each host, what is weaker than it could be, how to mend it."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from engine.sandbox.findings import Finding
from tournament.players.admin import ReadOnlyAdmin, spell_moment
from tournament.store.queues import MATCHES
from tournament.workers.models import WorkerReport
from tournament.workers.selectors import findings_of, is_silent

_GRADES = {"ok": "ok", "weak": "could be stronger", "missing": "missing"}


@admin.register(WorkerReport)
class WorkerReportAdmin(ReadOnlyAdmin):
    """One row a worker; its page tells what ``manage.py doctor`` tells there."""

    list_display = (
        "name",
        "state",
        "takes",
        "sandbox",
        "weaker",
        "python",
        "speed",
        "last_sign_of_life",
    )
    list_filter = ("level",)
    search_fields = ("name", "host")
    ordering = ("name",)
    fields = (
        "name",
        "host",
        "state",
        "takes",
        "sandbox",
        "all_findings",
        "python",
        "all_packages",
        "rules_version",
        "speed",
        "started",
        "last_sign_of_life",
    )
    readonly_fields = fields

    class Media:
        """The look of the findings."""

        css: ClassVar = {"all": ["web/admin.css"]}

    @admin.display(description="State")
    def state(self, row: WorkerReport) -> str:
        """Whether it was heard of lately."""
        if is_silent(row):
            return format_html(
                '<b class="arena-errors">silent since {} UTC</b>', spell_moment(row.seen_at)
            )
        return "there"

    @admin.display(description="Takes")
    def takes(self, row: WorkerReport) -> str:
        """What it plays, and how much at once."""
        queues = [queue for queue in row.queues if queue != MATCHES]
        return f"{', '.join(queues) or 'nothing'}; {row.slots} at once"

    @admin.display(description="Sandbox", ordering="level")
    def sandbox(self, row: WorkerReport) -> str:
        """The level of its walls, and what comes of there being none."""
        if row.trusts_bots:
            return "none: bots are trusted, and no match is rated (ARENA_TRUST_BOTS)"
        return row.level or format_html('<b class="arena-errors">{}</b>', "none: it plays no bot")

    @admin.display(description="To mend")
    def weaker(self, row: WorkerReport) -> str:
        """What is not as strong as it could be."""
        names = [finding.name for finding in findings_of(row) if finding.grade != "ok"]
        return ", ".join(names) or "–"

    @admin.display(description="Findings")
    def all_findings(self, row: WorkerReport) -> SafeString:
        """What it found on its machine when it started, with what to do."""
        lines = format_html_join("", "{}", ((_spell(finding),) for finding in findings_of(row)))
        return format_html('<dl class="arena-findings">{}</dl>', lines)

    @admin.display(description="Packages of bots")
    def all_packages(self, row: WorkerReport) -> str:
        """What bots may use there."""
        return ", ".join(f"{name} {version}" for name, version in row.packages.items())

    @admin.display(description="Speed", ordering="budget_percent")
    def speed(self, row: WorkerReport) -> str:
        """What it grants of the time controls' CPU time: more the slower it is."""
        return f"grants {row.budget_percent} % CPU time"

    @admin.display(description="Started (UTC)", ordering="started_at")
    def started(self, row: WorkerReport) -> str:
        """When it last looked at its machine."""
        return spell_moment(row.started_at)

    @admin.display(description="Last sign of life (UTC)", ordering="seen_at")
    def last_sign_of_life(self, row: WorkerReport) -> str:
        """By the database's clock."""
        return spell_moment(row.seen_at)


def _spell(finding: Finding) -> SafeString:
    advice = format_html_join("", "<li>{}</li>", ((line,) for line in finding.advice))
    return format_html(
        '<dt>{} <span class="arena-{}">{}</span></dt><dd>{}{}{}</dd>',
        finding.name,
        finding.grade,
        _GRADES[finding.grade],
        finding.text,
        format_html("<ul>{}</ul>", advice) if finding.advice else "",
        format_html("<pre>{}</pre>", finding.snippet) if finding.snippet else "",
    )
