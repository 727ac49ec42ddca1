"""Comparing what a bundle says with what it must say, value by value."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.errors import BundleError


def compare(found: Any, wanted: Any, place: str) -> None:
    """Raise BundleError at the innermost value below `place` that differs."""
    _compare_plain(msgspec.to_builtins(found), msgspec.to_builtins(wanted), place)


def _compare_plain(found: Any, wanted: Any, place: str) -> None:
    if isinstance(found, dict) and isinstance(wanted, dict) and found.keys() == wanted.keys():
        for name, value in found.items():
            _compare_plain(value, wanted[name], f"{place}.{name}")
    elif _is_list(found) and _is_list(wanted) and len(found) == len(wanted):
        for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
            _compare_plain(one, other, f"{place}[{i}]")
    elif type(found) is not type(wanted) or found != wanted:
        raise BundleError(place, f"it must be {spell(wanted)}, not {spell(found)}")


def spell(value: object) -> str:
    """A value for a message, cut where a hostile bundle made it long."""
    text = repr(value)
    return text if len(text) <= _MOST_SPELT else f"{text[:_MOST_SPELT]}…"


_MOST_SPELT = 200


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)
