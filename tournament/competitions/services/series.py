"""Series: tournaments that come again and again at a local time.

A slot is the start of one of them. It is computed in the series' time zone and stored in UTC, unique in
the series, so that several dispatches at once make one tournament. A time in a gap of the local clock
means the first instant after it, one in a repeated hour its first. After an outage only the latest
missed slot is run, late, with its entries open as long as always.
"""

from __future__ import annotations

import logging
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import msgspec
from django.db import transaction
from django.utils.text import slugify

from engine.errors import UsageError
from tournament.competitions.errors import InvalidTournamentError
from tournament.competitions.models import Series, SeriesSlot, Tournament
from tournament.competitions.services.planning import Plan, check_plan, create_tournament
from tournament.players.models import Player

logger = logging.getLogger(__name__)

_TIMES = ("opens_at", "closes_at", "starts_at")
_OWN = ("name", "slug", *_TIMES)


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a series starts its tournaments."""

    weekdays: tuple[int, ...]
    """Monday is 0."""
    at: str
    """``HH:MM`` in the series' time zone."""
    open_minutes: int
    """For how long entries are open."""
    pause_minutes: int = 5
    """Between the close and the start."""

    @property
    def time(self) -> time:
        """The local time of the start. Raises ValueError if `at` is none."""
        return time.fromisoformat(self.at)

    @property
    def lead(self) -> timedelta:
        """How long before its start a tournament is announced and opened."""
        return timedelta(minutes=self.open_minutes + self.pause_minutes)


def create_series(
    *,
    organiser: Player,
    name: str,
    rule: Mapping[str, object],
    template: Mapping[str, object],
    now: datetime,
    time_zone: str = "UTC",
) -> Series:
    """Make a series. `template` has the fields of a `Plan` without name, address and times.

    Raises InvalidTournamentError with a message for every field that has to change.
    """
    errors: dict[str, str] = {}
    slug = slugify(name)[:40]
    if not slug or Series.objects.filter(slug=slug).exists():
        errors["name"] = "give it a name of its own, with at least one letter or digit"
    if time_zone not in zoneinfo.available_timezones():
        errors["time_zone"] = (
            f"there is no time zone {time_zone!r}: use a name such as Europe/Paris"
        )
    checked = _check_rule(rule, errors)
    if checked is not None:
        _check_template(template, checked, now, errors)
    if errors or checked is None:
        raise InvalidTournamentError(errors)
    return Series.objects.create(
        name=name.strip(),
        slug=slug,
        organiser=organiser,
        rule=msgspec.to_builtins(checked),
        time_zone=time_zone,
        template=dict(template),
    )


def _check_rule(rule: Mapping[str, object], errors: dict[str, str]) -> Rule | None:
    try:
        checked = msgspec.convert(dict(rule), Rule)
        is_time = checked.time.tzinfo is None and checked.time.second == 0
    except (msgspec.ValidationError, ValueError) as error:
        errors["rule"] = str(error)
        return None
    if not is_time:
        errors["rule"] = "`at` is a time of day such as 18:30"
    elif not checked.weekdays or not set(checked.weekdays) <= set(range(7)):
        errors["rule"] = "`weekdays` are numbers from 0 (Monday) to 6, at least one"
    elif not 1 <= checked.open_minutes <= 60 * 24 * 30 or not 0 <= checked.pause_minutes <= 60 * 24:
        errors["rule"] = (
            "entries are open for 1 minute to 30 days, the pause lasts 0 to 1440 minutes"
        )
    else:
        return checked
    return None


def _check_template(
    template: Mapping[str, object], rule: Rule, now: datetime, errors: dict[str, str]
) -> None:
    own = sorted(set(template) & set(_OWN))
    if own:
        errors["template"] = f"leave out {', '.join(own)}: each tournament gets its own"
        return
    try:
        plan = _plan("A series", "", rule, now + rule.lead, template)
    except TypeError as error:
        errors["template"] = f"it has a field that a tournament has not: {error}"
        return
    errors.update(check_plan(plan, now))


def run_due_series(*, now: datetime) -> tuple[Tournament, ...]:
    """Make the tournaments of the slots that are due at `now`; those that were made."""
    made = []
    for series in Series.objects.filter(is_active=True).select_related("organiser"):
        try:
            tournament = _run_series(series, now)
        except (
            UsageError
        ):  # a format or option that this code no longer has: the other series go on
            logger.exception("series %s makes no tournament", series.slug)
            Series.objects.filter(pk=series.pk).update(is_active=False)
            continue
        if tournament is not None:
            made.append(tournament)
    return tuple(made)


@transaction.atomic
def _run_series(series: Series, now: datetime) -> Tournament | None:
    rule = msgspec.convert(series.rule, Rule)
    slot = latest_slot(rule, series.time_zone, now + rule.lead)
    if slot is None or slot <= series.created_at:
        return None
    row, created = SeriesSlot.objects.get_or_create(series=series, slot_utc=slot)
    if not created:
        return None
    day = slot.astimezone(zoneinfo.ZoneInfo(series.time_zone)).date().isoformat()
    missed = slot - timedelta(minutes=rule.pause_minutes) <= now
    starts_at = now + rule.lead if missed else slot
    row.tournament = create_tournament(
        organiser=series.organiser,
        plan=_plan(
            f"{series.name} {day}", f"{series.slug}-{day}", rule, starts_at, series.template
        ),
        now=now,
    )
    row.save(update_fields=["tournament"])
    return row.tournament


def _plan(
    name: str, slug: str, rule: Rule, starts_at: datetime, template: Mapping[str, Any]
) -> Plan:
    closes_at = starts_at - timedelta(minutes=rule.pause_minutes)
    return Plan(
        name=name,
        slug=slug,
        opens_at=closes_at - timedelta(minutes=rule.open_minutes),
        closes_at=closes_at,
        starts_at=starts_at,
        **template,
    )


def latest_slot(rule: Rule, time_zone: str, until: datetime) -> datetime | None:
    """The last slot not after `until`, in UTC; None if there was none in the week before."""
    zone = zoneinfo.ZoneInfo(time_zone)
    today = until.astimezone(zone).date()
    for days in range(-1, 9):
        day = today - timedelta(days=days)
        if day.weekday() in rule.weekdays:
            slot = slot_on(day, rule.time, zone)
            if slot <= until:
                return slot
    return None


def slot_on(day: date, at: time, zone: zoneinfo.ZoneInfo) -> datetime:
    """The instant in UTC at which the clocks of `zone` show `at` on `day`, gaps and repeats resolved."""
    local = datetime.combine(day, at, tzinfo=zone)
    instant = local.astimezone(UTC)
    shown = instant.astimezone(zone).replace(tzinfo=None)
    if shown == local.replace(tzinfo=None):
        return instant  # of a repeated hour the first, since its fold is 0
    return _end_of_gap(local.replace(fold=1).astimezone(UTC), instant, zone)


def _end_of_gap(before: datetime, after: datetime, zone: zoneinfo.ZoneInfo) -> datetime:
    """The first second between two instants at which the zone's offset is that of `after`."""
    target = after.astimezone(zone).utcoffset()
    low, high = 0, int((after - before).total_seconds())
    while low < high:
        middle = (low + high) // 2
        if (before + timedelta(seconds=middle)).astimezone(zone).utcoffset() == target:
            high = middle
        else:
            low = middle + 1
    return before + timedelta(seconds=low)
