"""Series: tournaments that come again and again at a local time.

A slot is the start of one of them. It is computed in the series' time zone and stored in UTC, unique in
the series, so that several dispatches at once make one tournament. A time in a gap of the local clock
means the first instant after it, one in a repeated hour its first. After an outage only the latest
missed slot is run, late, with its entries open as long as always.
"""

from __future__ import annotations

import dataclasses
import logging
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import msgspec
from django.db import DatabaseError, transaction
from django.utils.text import slugify

from engine.errors import UsageError
from tournament.competitions.errors import InvalidTournamentError
from tournament.competitions.models import Series, SeriesSlot, Tournament
from tournament.competitions.services.planning import Plan, check_plan, create_tournament
from tournament.players.models import Player
from tournament.store.services import guard_each

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
    except InvalidTournamentError as error:
        errors.update(error.fields)
        return
    errors.update(check_plan(plan, now))


def run_due_series(*, now: datetime) -> tuple[Tournament, ...]:
    """Make the tournaments of the slots that are due at `now`; those that were made.

    A series that cannot make its tournament is switched off with the reason, and the others go on.
    """
    made: list[Tournament] = []

    def run(series: Series) -> bool:
        try:
            tournament = _run_series(series, now)
        except UsageError as error:
            logger.warning("series %s is switched off: %s", series.slug, error)
            _switch_off(series, str(error))
        except DatabaseError:
            raise  # another dispatch made it at the same moment, or the database is away: tried again
        except Exception:
            logger.exception("series %s is switched off", series.slug)
            _switch_off(series, "an error of the site, see its log")
        else:
            made.extend([tournament] if tournament else [])
        return False

    guard_each(Series.objects.filter(is_active=True).select_related("organiser"), run)
    return tuple(made)


def _switch_off(series: Series, reason: str) -> None:
    Series.objects.filter(pk=series.pk).update(is_active=False, stopped_reason=reason[:500])


@transaction.atomic
def restart_series(*, series: Series, now: datetime) -> Series:
    """Let a series that was switched off make tournaments again, as after an outage.

    Raises InvalidTournamentError, with what would have to change, if it still cannot make one.
    """
    errors: dict[str, str] = {}
    rule = _check_rule(series.rule, errors)
    if rule is not None:
        _check_template(series.template, rule, now, errors)
    if errors or rule is None:
        raise InvalidTournamentError(errors)
    series.is_active, series.stopped_reason = True, ""
    series.save(update_fields=["is_active", "stopped_reason"])
    return series


@transaction.atomic
def _run_series(series: Series, now: datetime) -> Tournament | None:
    rule = _read_rule(series)
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


def _read_rule(series: Series) -> Rule:
    errors: dict[str, str] = {}
    rule = _check_rule(series.rule, errors)
    if rule is None:
        raise InvalidTournamentError(errors)
    return rule


def _plan(
    name: str, slug: str, rule: Rule, starts_at: datetime, template: Mapping[str, Any]
) -> Plan:
    """A tournament of a series. Raises InvalidTournamentError for a template that has other fields."""
    closes_at = starts_at - timedelta(minutes=rule.pause_minutes)
    unknown = sorted(set(template) - {field.name for field in dataclasses.fields(Plan)})
    missing = sorted({"game", "format"} - set(template))
    if unknown or missing:
        raise InvalidTournamentError(
            {
                "template": "; ".join(
                    [f"a tournament has no {name!r}" for name in unknown]
                    + [f"it needs {name!r}" for name in missing]
                )
            }
        )
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
