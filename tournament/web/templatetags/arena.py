"""Small components: a moment in UTC and local time, a tile, a state's badge, a share in percent."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django import template
from django.template.context import Context
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

register = template.Library()

_PIPS = {
    0: (),
    1: ((1, 1),),
    2: ((0, 0), (2, 2)),
    3: ((0, 0), (1, 1), (2, 2)),
    4: ((0, 0), (2, 0), (0, 2), (2, 2)),
    5: ((0, 0), (2, 0), (1, 1), (0, 2), (2, 2)),
    6: ((0, 0), (1, 0), (2, 0), (0, 2), (1, 2), (2, 2)),
}

_PARTS = {Fraction(1, 4): "¼", Fraction(1, 2): "½", Fraction(3, 4): "¾"}

_TONES = {
    "good": {"accepted", "finished", "completed", "open", "active", "good", "better", "passed"},
    "live": {"running", "closed"},
    "warn": {"quarantined", "stuck", "paused", "provisional", "withdrawn", "not_better"},
    "bad": {"rejected", "cancelled", "disqualified", "revoked", "expired", "fault", "failed"},
}


@register.simple_tag(takes_context=True)
def moment(context: Context, when: datetime | None, *, absent: str = "–") -> str:
    """A moment in UTC, followed by the viewer's own time.

    That is the time zone of the account, else (added by the page's script) that of the browser.
    """
    if when is None:
        return absent
    utc = when.astimezone(UTC)
    zone = _zone_of(context)
    stamp = f"{utc:%Y-%m-%d %H:%M} UTC"
    if zone is None:
        return format_html(
            '<time class="nowrap" datetime="{}" data-local>{}</time>', utc.isoformat(), stamp
        )
    local = when.astimezone(zone)
    return format_html(
        '<time class="nowrap" datetime="{}">{}</time> <small class="local-time">({})</small>',
        utc.isoformat(),
        stamp,
        f"{local:%a %d %b, %H:%M} {local.tzname()}",
    )


def _zone_of(context: Context) -> ZoneInfo | None:
    name = getattr(context.get("user"), "time_zone", "")
    if not name or name == "UTC":
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return None


@register.simple_tag
def ago(when: datetime | None, *, absent: str = "–") -> str:
    """How long ago a moment was, the exact time in its tooltip."""
    if when is None:
        return absent
    utc = when.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}" class="nowrap">{} ago</time>',
        utc.isoformat(),
        f"{utc:%Y-%m-%d %H:%M:%S} UTC",
        timesince(when, depth=1),
    )


@register.simple_tag
def tile(high: int, low: int) -> SafeString:
    """A tile, drawn lying on its side."""
    pips = [(8 + 5.5 * x, 8 + 6 * y) for y, x in _PIPS[high]]
    pips += [(33 + 5.5 * x, 8 + 6 * y) for y, x in _PIPS[low]]
    return format_html(
        '<svg class="tile" viewBox="0 0 52 28" role="img" aria-label="{}-{}">'
        '<rect x="1" y="1" width="50" height="26" rx="5" stroke-width="1.5"/>'
        '<line x1="26" y1="5" x2="26" y2="23" stroke-width="1.2"/>{}</svg>',
        high,
        low,
        format_html_join("", '<circle cx="{}" cy="{}" r="2.1"/>', pips),
    )


@register.simple_tag
def badge(state: str, label: str = "") -> SafeString:
    """A state as a small coloured mark; `label` is what it says (by default the state)."""
    tone = next((tone for tone, states in _TONES.items() if state in states), "")
    return format_html('<span class="badge {}">{}</span>', tone, label or state)


@register.filter
def rating(number: float) -> str:
    """A rating to one decimal, a true minus: ``−0.3``."""
    return f"{number:.1f}".replace("-", "−")


@register.filter
def percent(share: float | None) -> str:
    """A share from 0 to 1 as ``57 %``."""
    return "–" if share is None else f"{100 * share:.0f} %"


@register.filter
def signed(number: float | None) -> str:
    """A number with its sign, a true minus: ``+12``, ``−3``, ``0``."""
    if number is None:
        return "–"
    return f"{number:+g}".replace("-", "−") if number else "0"


@register.filter
def fraction(number: Fraction | None, absent: str = "–") -> str:
    """An exact number: halves and quarters as ``2½``, others as ``7/3``."""
    if number is None:
        return absent
    whole, rest = divmod(number, 1)
    if not rest:
        return str(whole)
    if rest in _PARTS:
        return f"{whole or ''}{_PARTS[rest]}"
    return f"{number.numerator}/{number.denominator}"


@register.filter
def megabytes(count: int) -> str:
    """Bytes as ``5 MiB``."""
    return f"{count / 1024**2:g} MiB"


@register.filter
def kibibytes(count: int) -> str:
    """Bytes as ``64 KiB``."""
    return f"{count / 1024:g} KiB"


@register.filter
def seconds(milliseconds: int) -> str:
    """Milliseconds as ``0.05 s``."""
    return f"{milliseconds / 1000:g} s"
