"""Changing single values of a document: what a judge has to notice."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

Path = tuple[Any, ...]

UNJUDGED = {"timing", "format"}
"""A record's timing is measured, so no claim that anyone could check, and in no digest; of another format
a document is no bundle, which a test of its own shows."""


def leaves_of(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every single value of a document with its path."""
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else None
    )
    if parts is None:
        yield path, value
    else:
        for name, part in parts:
            yield from leaves_of(part, (*path, name))


def changed(value: Any, random: Random) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + random.choice((1, -1, 7))
        case float():
            return value + random.choice((0.5, -1e-9))
        case str() if value:
            place = random.randrange(len(value))
            other = chr(ord(value[place]) ^ 1)
            return value[:place] + other + value[place + 1 :]
        case None:
            return 1
    return "x"


def put(document: Any, path: Path, value: Any) -> None:
    """Write another value at its path."""
    for name in path[:-1]:
        document = document[name]
    document[path[-1]] = value
