"""What a site says that bots get there, beside what they get on this machine."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from engine.errors import UsageError
from engine.sandbox.limits import PublishedLimits, spell_bytes

_SECONDS = 10
_MOST_BYTES = 1 << 20


class SiteWorker(msgspec.Struct, frozen=True, kw_only=True):
    """One of the site's workers that were heard of lately."""

    python: str
    budget_percent: int
    """What it grants of the time controls' CPU time, for its speed."""
    level: str | None
    """Of its walls; None where it plays bots without."""


class SiteLimits(PublishedLimits, frozen=True, kw_only=True):
    """What ``/api/limits`` answers; fields that it may have besides are passed over."""

    workers: tuple[SiteWorker, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A site's limits beside those of this machine."""

    url: str
    limits: SiteLimits
    differences: tuple[str, ...]
    """A sentence each."""
    slower: tuple[float, float] | None
    """How many times as slow as this machine its fastest and its slowest worker are; None if it has none."""


def compare_with_site(url: str, here: PublishedLimits, budget_percent: int) -> Comparison:
    """Ask a site for its limits. Raises UsageError if there is no site, or it answers something else."""
    there = fetch_limits(url)
    percents = [worker.budget_percent for worker in there.workers]
    slower = None
    if percents:
        slower = (min(percents) / budget_percent, max(percents) / budget_percent)
    return Comparison(
        url=url, limits=there, differences=tuple(find_differences(here, there)), slower=slower
    )


def fetch_limits(url: str) -> SiteLimits:
    """What the site at `url` answers. Raises UsageError saying what to change."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"{url!r} is no address of a site: write it as https://arena.example.org")
    address = f"{url.rstrip('/')}/api/limits"
    request = urllib.request.Request(address, headers={"Accept": "application/json"})  # noqa: S310 - http or https, as was looked at
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            body = answer.read(_MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise UsageError(
            f"{address} answers {error.code}: is this a site of Domino Arena that tells its limits?"
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UsageError(f"{address} cannot be read: {error}") from error
    try:
        return msgspec.json.decode(body, type=SiteLimits)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{address} does not answer with limits: {error}") from error


def find_differences(here: PublishedLimits, there: SiteLimits) -> Iterator[str]:
    """In what a bot finds it otherwise there than here, a sentence each."""
    pythons = sorted({worker.python for worker in there.workers} or {there.python})
    if pythons != [here.python]:
        yield f"Python: {' and '.join(pythons)} there, {here.python} here"
    for name in sorted(here.packages.keys() | there.packages.keys()):
        yield from _differ(name, here.packages.get(name), there.packages.get(name))
    for name, title in _NUMBERS.items():
        yield from _differ(title, _spell(name, here), _spell(name, there))
    controls_here = {control.name: control for control in here.time_controls}
    controls_there = {control.name: control for control in there.time_controls}
    for name in controls_here.keys() | controls_there.keys():
        if controls_here.get(name) != controls_there.get(name):
            yield f"the time control {name} is another there"


_NUMBERS = {
    "memory_bytes": "memory",
    "numpy_bytes": "memory for numpy",
    "stack_bytes": "stack",
    "open_files": "open files",
    "log_bytes": "log",
    "traceback_bytes": "traceback",
    "wheel_bytes": "a wheel",
    "unpacked_bytes": "a wheel, unpacked",
    "unpacked_ratio": "a wheel's growth when it is unpacked",
    "wheel_files": "files of a wheel",
    "wheel_folders": "folders of a wheel",
    "wheel_path_characters": "characters of a path in a wheel",
}


def _spell(name: str, limits: PublishedLimits) -> str:
    value: int = getattr(limits, name)
    return spell_bytes(value) if name.endswith("_bytes") else str(value)


def _differ(title: str, here: str | None, there: str | None) -> Iterator[str]:
    if here != there:
        yield f"{title}: {there or 'none'} there, {here or 'none'} here"


def spell_speed(slower: tuple[float, float]) -> str:
    """``1.7 × slower than this machine``, for a range too."""
    fastest, slowest = (f"{factor:.1f}" for factor in slower)
    if fastest == slowest == "1.0":
        return "as fast as this machine"
    if fastest == slowest:
        factor = slower[0]
        return (
            f"{factor:.1f} × slower than this machine"
            if factor > 1
            else f"{1 / factor:.1f} × faster than this machine"
        )
    return f"between {fastest} and {slowest} times as slow as this machine"
