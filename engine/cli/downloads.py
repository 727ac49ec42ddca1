"""Fetching what a site publishes, bounded in size and time."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from typing import Final
from urllib.parse import urlsplit

from engine.errors import UsageError

SILENCE_SECONDS: Final = 30
"""So long a site may say nothing."""
MOST_SECONDS: Final = 900
"""So long all of it may take."""
_CHUNK = 1 << 20


def is_address(source: str) -> bool:
    """Whether a text names something on the net rather than a file."""
    return "://" in source


def fetch(address: str, most_bytes: int, *, most_seconds: float = MOST_SECONDS) -> bytes:
    """What lies at `address`, by http or https, redirects to them included.

    Raises UsageError, saying what to change, for another kind of address, if the site refuses (with its
    reason), and for more bytes than these.
    """
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"{address} is no address of a site: it begins with https:// or http://")
    deadline = time.monotonic() + most_seconds
    # Headers that ask for nothing packed: the size is looked at as it comes.
    request = urllib.request.Request(address, headers={"Accept": "*/*"})  # noqa: S310 - http or https, as was looked at
    try:
        with _opener().open(request, timeout=SILENCE_SECONDS) as answer:
            return _read(answer, address, most_bytes, deadline)
    except urllib.error.HTTPError as error:
        with error:
            reason = _reason(error.read(1 << 16))
        raise UsageError(f"{address} answers {error.code}{reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UsageError(f"{address} cannot be read: {error}") from error


def _opener() -> urllib.request.OpenerDirector:
    """One that follows redirects, and knows neither files nor other protocols."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _read(
    answer: http.client.HTTPResponse, address: str, most_bytes: int, deadline: float
) -> bytes:
    found = bytearray()
    while chunk := answer.read(_CHUNK):
        found += chunk
        if len(found) > most_bytes:
            raise UsageError(f"{address} is larger than {most_bytes >> 20} MiB")
        if time.monotonic() > deadline:
            raise UsageError(f"{address} takes too long: download it, and name the file")
    if answer.length:  # what is still to come of the length that was promised
        raise UsageError(f"{address} broke off {answer.length} bytes before its end: try again")
    return bytes(found)


def _reason(body: bytes) -> str:
    """What the API says of an error to people; nothing if it is none of its answers."""
    try:
        return f": {json.loads(body)['error']['message']}"
    except (ValueError, KeyError, TypeError):
        return ""
