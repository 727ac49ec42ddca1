"""Series: tournaments that come again and again at a local time.

A slot is the start of one of them. It is computed in the series' time zone and stored in UTC, unique in
the series, so that several dispatches at once make one tournament. A time in a gap of the local clock
means the first instant after it, one in a repeated hour its first. After an outage only the latest
missed slot is run, late, with its entries open as long as always.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import msgspec
from django.db import DatabaseError, transaction
from django.utils.text import slugify

from engine.errors import UsageError
from tournament.competitions.errors import EntryError, InvalidTournamentError
from tournament.competitions.models import (
    Series,
    SeriesEntry,
    SeriesEntryBot,
    SeriesSlot,
    Tournament,
)
from tournament.competitions.services.cron import parse_cron
from tournament.competitions.services.planning import (
    Plan,
    check_plan,
    create_tournament,
)
from tournament.leaderboards.models import PoolKind
from tournament.players.models import Bot, Player
from tournament.store.clock import read_clock
from tournament.store.services import guard_each

logger = logging.getLogger(__name__)

LONGEST_PAUSE_DAYS = 366 * 8 + 1
"""From one 29 February to the next there may be eight years."""
MOST_AT_ONCE = 31
"""So many tournaments of one series may be announced and not have started: one a day, open for a month."""
_STARTS_LOOKED_AT = 3000
"""So many show a rule at its densest: a month and more of the days on which it starts any, however many on each."""
MOST_POINTS = 10_000
LONGEST_NAME = 60

_TIMES = ("opens_at", "closes_at", "starts_at")
_OWN = ("name", "slug", "results_at", *_TIMES)


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When a series starts its tournaments."""

    open_minutes: int
    """For how long entries are open."""
    weekdays: tuple[int, ...] = ()
    """Monday is 0."""
    at: str = ""
    """``HH:MM`` in the series' time zone."""
    cron: str = ""
    """Instead of `weekdays` and `at`: as `services.cron` reads it, in the series' time zone."""
    pause_minutes: int = 5
    """Between the close and the start."""

    @property
    def start_time(self) -> time:
        """The local time of the start. Raises ValueError if `at` is none."""
        try:
            return time.fromisoformat(self.at)
        except ValueError:
            raise ValueError(f"{self.at!r} is no time of day: write it as 18:30") from None

    def times_on(self, day: date) -> list[time]:
        """The local times of the starts on a day, in order. Raises ValueError for a rule that is none."""
        if self.cron:
            return parse_cron(self.cron).times_on(day)
        return [self.start_time] if day.weekday() in self.weekdays else []

    @property
    def lead(self) -> timedelta:
        """How long before its start a tournament is announced and opened."""
        return timedelta(minutes=self.open_minutes + self.pause_minutes)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """All of a series but its name, as somebody wants it; `check_course` judges it."""

    rule: Mapping[str, object]
    """When its tournaments start, as a `Rule` has it."""
    template: Mapping[str, object]
    """What they are like: the fields of a `Plan` without name, address and times."""
    time_zone: str = "UTC"
    points_table: Sequence[int] = ()
    """What a place is worth for the season, from the first on; none: no season."""


def create_series(*, organiser: Player, name: str, course: Course, now: datetime) -> Series:
    """Make a series. Raises InvalidTournamentError with a message for every field that has to change."""
    errors = check_series(name=name, course=course, now=now)
    if errors:
        raise InvalidTournamentError(errors)
    return Series.objects.create(
        name=name.strip(),
        slug=slugify(name)[:40],
        organiser=organiser,
        rule=msgspec.to_builtins(check_rule(course.rule)),
        time_zone=course.time_zone,
        template=msgspec.to_builtins(dict(course.template)),
        points_table=list(course.points_table),
    )


def check_series(*, name: str, course: Course, now: datetime) -> dict[str, str]:
    """What would have to change in a series, by field; empty if `create_series` would make it."""
    errors: dict[str, str] = {}
    slug = slugify(name)[:40]
    if not slug or Series.objects.filter(slug=slug).exists():
        errors["name"] = "give it a name of its own, with at least one letter or digit"
    elif len(name.strip()) > LONGEST_NAME or not name.isprintable():
        errors["name"] = f"give it a name of at most {LONGEST_NAME} printable characters"
    return errors | check_course(course, now=now)


@transaction.atomic
def change_series(*, series: Series, course: Course, now: datetime) -> Series:
    """Let a series go on by another rule, template or table; its tournaments that are there stay as they are.

    A start that the new rule would have had before now is not made up for. Raises InvalidTournamentError as `create_series`.
    """
    errors = check_course(course, now=now)
    if errors:
        raise InvalidTournamentError(errors)
    series = Series.objects.select_for_update().get(pk=series.pk)
    starts = (msgspec.to_builtins(check_rule(course.rule)), course.time_zone)
    if starts != (series.rule, series.time_zone):
        series.rule, series.time_zone = starts
        series.changed_at = now
    series.template = msgspec.to_builtins(dict(course.template))
    series.points_table = list(course.points_table)
    series.save(update_fields=["rule", "time_zone", "template", "points_table", "changed_at"])
    return series


def check_course(course: Course, *, now: datetime) -> dict[str, str]:
    """What would have to change in all of a series but its name, by field."""
    errors: dict[str, str] = {}
    if course.time_zone not in zoneinfo.available_timezones():
        errors["time_zone"] = (
            f"there is no time zone {course.time_zone!r}: use a name such as Europe/Paris"
        )
    if len(course.points_table) > MOST_POINTS or not all(
        type(points) is int and 0 <= points <= MOST_POINTS for points in course.points_table
    ):
        errors["points_table"] = (
            f"it is a list of at most {MOST_POINTS} numbers from 0 to {MOST_POINTS}"
        )
    rule = _check_rule(course.rule, errors)
    if rule is not None:
        _check_density(rule, now, errors)
        _check_template(course.template, rule, now, errors)
    return errors


def check_rule(rule: Mapping[str, object]) -> Rule:
    """A rule as it is used. Raises InvalidTournamentError for one that is none."""
    errors: dict[str, str] = {}
    checked = _check_rule(rule, errors)
    if checked is None:
        raise InvalidTournamentError(errors)
    return checked


def _check_rule(rule: Mapping[str, object], errors: dict[str, str]) -> Rule | None:
    try:
        checked = msgspec.convert(dict(rule), Rule)
        if checked.cron:
            parse_cron(checked.cron)
        is_time = (
            bool(checked.cron)
            or not checked.at
            or (checked.start_time.tzinfo is None and checked.start_time.second == 0)
        )
    except (msgspec.ValidationError, ValueError) as error:
        errors["rule"] = str(error)
        return None
    if not checked.cron and not checked.at:
        errors["rule"] = "say when: weekdays and a time of day such as 18:30, or a rule like cron's"
    elif not is_time:
        errors["rule"] = "`at` is a time of day such as 18:30"
    elif checked.cron and (checked.weekdays or checked.at):
        errors["rule"] = "give `cron`, or `weekdays` and `at`, not both"
    elif not checked.cron and not (checked.weekdays and set(checked.weekdays) <= set(range(7))):
        errors["rule"] = "`weekdays` are numbers from 0 (Monday) to 6, at least one"
    elif checked.cron and not next_slots(checked, "UTC", datetime(2000, 1, 1, tzinfo=UTC), count=1):
        errors["rule"] = f"there is no such day as in {checked.cron!r}"
    elif not 1 <= checked.open_minutes <= 60 * 24 * 30 or not 0 <= checked.pause_minutes <= 60 * 24:
        errors["rule"] = (
            "entries are open for 1 minute to 30 days, the pause lasts 0 to 1440 minutes"
        )
    else:
        return checked
    return None


def _check_density(rule: Rule, now: datetime, errors: dict[str, str]) -> None:
    """Whether few enough tournaments by a rule would be announced and not have started."""
    starts = list(itertools.islice(_local_starts(rule, now.date()), _STARTS_LOOKED_AT))
    spans = (later - first for first, later in zip(starts, starts[MOST_AT_ONCE:], strict=False))
    shortest = min(spans, default=rule.lead)
    if shortest >= rule.lead:
        return
    minutes = int(shortest.total_seconds()) // 60 - rule.pause_minutes
    open_less = f", or let entries be open for {minutes} minutes at most" if minutes > 0 else ""
    errors["rule"] = (
        f"more than {MOST_AT_ONCE} tournaments of the series would be open, or wait for their start, at once: "
        f"let them start more seldom{open_less}"
    )


def _local_starts(rule: Rule, first_day: date) -> Iterator[datetime]:
    """The starts by a rule in the time of its clocks, of eight years, in order."""
    for days in range(LONGEST_PAUSE_DAYS):
        day = first_day + timedelta(days=days)
        for at in rule.times_on(day):
            yield datetime.combine(day, at)


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
def enter_series(*, series: Series, bots: Sequence[Bot], by: Player) -> SeriesEntry:
    """Enter a bot (or two as a pair) for all tournaments of a series that open from now on.

    In each it plays with the version that is active at its close. Raises EntryError.
    """
    Series.objects.select_for_update().get(pk=series.pk)
    wanted = 2 if series.template.get("kind") == PoolKind.PAIR else 1
    if len({bot.pk for bot in bots}) != wanted or len(bots) != wanted:
        raise EntryError(
            "a pair is two different bots: name both" if wanted == 2 else "enter one bot at a time"
        )
    for bot in bots:
        if bot.owner_id != by.pk and not by.is_staff:
            raise EntryError(f"{bot.name} is not yours")
        if SeriesEntryBot.objects.filter(series=series, bot=bot).exists():
            raise EntryError(f"{bot.name} is entered for {series.name} already")
    entry = SeriesEntry.objects.create(
        series=series, name=" + ".join(bot.name for bot in bots)[:80]
    )
    SeriesEntryBot.objects.bulk_create(
        SeriesEntryBot(series=series, entry=entry, position=position, bot=bot)
        for position, bot in enumerate(bots)
    )
    return entry


@transaction.atomic
def leave_series(*, entry: SeriesEntry, by: Player) -> None:
    """Enter it for no further tournament; those that have opened keep it. Raises EntryError."""
    owners = set(entry.bots.values_list("bot__owner", flat=True))
    if by.pk not in owners and not by.is_staff:
        raise EntryError(f"{entry.name} is not yours")
    entry.delete()


def stop_series(*, series: Series, reason: str) -> Series:
    """Let a series make no more tournaments. Raises EntryError without a reason."""
    if not reason.strip():
        raise EntryError("give a reason: the players will read it")
    _switch_off(series, reason.strip())
    series.refresh_from_db()
    return series


@transaction.atomic
def restart_series(*, series: Series, now: datetime) -> Series:
    """Let a series that was switched off make tournaments again, as after an outage.

    Raises InvalidTournamentError, with what would have to change, if it still cannot make one.
    """
    errors: dict[str, str] = {}
    rule = _check_rule(series.rule, errors)
    if rule is not None:
        _check_density(rule, now, errors)
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
    if slot is None or slot <= (series.changed_at or series.created_at):
        return None
    row, created = SeriesSlot.objects.get_or_create(series=series, slot_utc=slot)
    if not created:
        return None
    local = slot.astimezone(zoneinfo.ZoneInfo(series.time_zone))
    day = local.date().isoformat()
    if len(rule.times_on(local.date())) > 1:
        day += f"-{local:%H%M}"
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
    missing = sorted({"game"} - set(template))
    if not set(template) & {"format", "stages"}:
        missing.append("format")
    if unknown or missing:
        raise InvalidTournamentError(
            {
                "template": "; ".join(
                    [f"a tournament has no {name!r}" for name in unknown]
                    + [f"it needs {name!r}" for name in missing]
                )
            }
        )
    own = {
        "name": name,
        "slug": slug,
        "opens_at": closes_at - timedelta(minutes=rule.open_minutes),
        "closes_at": closes_at,
        "starts_at": starts_at,
    }
    try:
        return msgspec.convert({**msgspec.to_builtins(dict(template)), **own}, Plan)
    except msgspec.ValidationError as error:
        raise InvalidTournamentError({"template": str(error)}) from error


def latest_slot(rule: Rule, time_zone: str, until: datetime) -> datetime | None:
    """The last slot not after `until`, in UTC; None if there was none for eight years."""
    zone = zoneinfo.ZoneInfo(time_zone)
    today = until.astimezone(zone).date()
    for days in range(-1, LONGEST_PAUSE_DAYS):
        found = _slots_on(rule, today - timedelta(days=days), zone)
        past = [slot for slot in found if slot <= until]
        if past:
            return max(past)
    return None


def next_slots(
    rule: Rule, time_zone: str, after: datetime, *, count: int = 5
) -> tuple[datetime, ...]:
    """The next slots after a moment, in UTC and in order; fewer if there are not so many in eight years."""
    zone = zoneinfo.ZoneInfo(time_zone)
    today = after.astimezone(zone).date()
    found: set[datetime] = set()
    for days in range(-1, LONGEST_PAUSE_DAYS):
        slots = _slots_on(rule, today + timedelta(days=days), zone)
        found.update(slot for slot in slots if slot > after)
        if len(found) >= count and days > 0:
            break
    return tuple(sorted(found)[:count])


def first_starts(
    rule: Rule, time_zone: str, now: datetime, *, count: int = 5
) -> tuple[datetime, ...]:
    """The first starts by a rule that holds from `now` on; of those that would have to be open already only the last."""
    soon = latest_slot(rule, time_zone, now + rule.lead)
    is_in_time = soon is not None and soon - timedelta(minutes=rule.pause_minutes) > now
    first = (soon,) if soon is not None and is_in_time else ()
    return (*first, *next_slots(rule, time_zone, now + rule.lead, count=count - len(first)))


def starts_to_come(series: Series, *, count: int = 5) -> tuple[datetime, ...]:
    """The next starts of a series in UTC, those of tournaments that are there among them.

    None if it is switched off or its rule is none any more.
    """
    if not series.is_active or series.time_zone not in zoneinfo.available_timezones():
        return ()
    rule = _check_rule(series.rule, {})
    if rule is None:
        return ()
    now = read_clock()
    there = series.slots.filter(slot_utc__gt=now).values_list("slot_utc", flat=True)
    return tuple(sorted({*there, *first_starts(rule, series.time_zone, now, count=count)})[:count])


def _slots_on(rule: Rule, day: date, zone: zoneinfo.ZoneInfo) -> list[datetime]:
    return [slot_on(day, at, zone) for at in rule.times_on(day)]


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
