"""Rules in the notation of cron: ``30 18 1-7 * 6`` is half past six in the evening, on the first days of a month.

Five fields between blanks: minute, hour, day of the month, month, weekday (0 and 7 are Sunday). Each is
``*``, a number, a range ``a-b``, either with a step ``/n``, or several of these between commas. If both
days are restricted, one of them is enough, as cron has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, time

_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("weekday", 0, 7),
)


@dataclass(frozen=True, slots=True)
class CronRule:
    """On which days at which local times."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """Monday is 0."""
    needs_both_days: bool
    """Whether the day of the month and the weekday must both fit: one of them is every day."""

    def times_on(self, day: date) -> list[time]:
        """The local times on `day`, in order."""
        fits_day, fits_weekday = day.day in self.days, day.weekday() in self.weekdays
        fits = fits_day and fits_weekday if self.needs_both_days else fits_day or fits_weekday
        if day.month not in self.months or not fits:
            return []
        return [
            time(hour, minute) for hour in sorted(self.hours) for minute in sorted(self.minutes)
        ]


def parse_cron(text: str) -> CronRule:
    """Read a rule. Raises ValueError, saying which field is wrong and what it may be."""
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ValueError(
            "a rule has five fields between blanks: minute, hour, day of the month, month, weekday; "
            f"{text!r} has {len(fields)}"
        )
    minutes, hours, days, months, weekdays = (
        _read_field(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
    )
    return CronRule(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=frozenset((number - 1) % 7 for number in weekdays),
        needs_both_days="*" in {fields[2], fields[4]},
    )


def _read_field(field: str, name: str, low: int, high: int) -> frozenset[int]:
    numbers: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            begin, end = low, high
        elif _is_number(first) and (not dash or _is_number(last)):
            begin = int(first)
            end = int(last) if dash else (high if slash else begin)
        else:
            begin, end = 1, 0
        is_step = not slash or (_is_number(step) and int(step) > 0)
        if not low <= begin <= end <= high or not is_step:
            raise ValueError(
                f"{part!r} is no {name}: it is * or numbers from {low} to {high}, as 5, 1-5, */2 or 1,3"
            )
        numbers.update(range(begin, end + 1, int(step) if slash else 1))
    return frozenset(numbers)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 2
