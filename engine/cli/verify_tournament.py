"""`arena verify-tournament`: is what a bundle says of a whole tournament true?"""

from __future__ import annotations

import io
import re
import zlib
from gzip import BadGzipFile, GzipFile
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from engine.bundle import BundleReport, decode_bundle, verify_bundle
from engine.cli.downloads import fetch, is_address
from engine.cli.exits import ExitCode
from engine.cli.files import read_regular_file
from engine.cli.output import print_json, progress, say
from engine.errors import BundleError, UsageError

MOST_BYTES: Final = 1 << 30
"""Of a bundle, packed and unpacked: some 70 000 matches of eight boards."""
MOST_PACKING: Final = 100
"""So many times larger than its packed file a document may be: records pack to a sixth, and what packs
better than this is made to fill the memory of who unpacks it."""
_PAGE = re.compile(r"(?P<site>.*?)/(?P<api>api/)?tournaments/(?P<slug>[-\w]+)/?")


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the judge says of a bundle."""

    source: str
    is_true: bool = msgspec.field(name="true")
    checked: BundleReport | None = None
    """What was found true, when all is."""
    place: str | None = None
    """The path of the first wrong value, e.g. ``stages[0].rounds[1].pairings[0].entrants[1]``."""
    message: str | None = None


def run(source: str, *, as_json: bool) -> ExitCode:
    """Judge the bundle at `source`, a file or an address, and say so.

    Raises UsageError if there is none.
    """
    verdict = judge(source, read_bundle(source), quiet=as_json)
    if as_json:
        print_json(msgspec.to_builtins(verdict))
    else:
        for line in verdict_lines(verdict):
            say(line)
    return ExitCode.OK if verdict.is_true else ExitCode.NOT_GOOD


def judge(source: str, data: bytes, *, quiet: bool = True) -> Verdict:
    """The verdict on a document; on a terminal its progress is shown unless `quiet`.

    Raises UsageError for what is no bundle.
    """
    try:
        bundle = decode_bundle(data)
        with progress("Matches", len(bundle.records), quiet=quiet) as show:
            report = verify_bundle(bundle, show)
    except BundleError as error:
        return Verdict(source=source, is_true=False, place=error.place, message=error.message)
    return Verdict(source=source, is_true=True, checked=report)


def read_bundle(source: str) -> bytes:
    """The document at `source`, unpacked. Raises UsageError if it cannot be had, saying what to change."""
    if is_address(source):
        data = fetch(bundle_address(source), MOST_BYTES)
    else:
        data = read_regular_file(Path(source), MOST_BYTES)
    if data[:2] == b"\x1f\x8b":
        data = _unpack(data, source)
    if len(data) > MOST_BYTES:
        raise UsageError(f"{source} is larger than {MOST_BYTES >> 20} MiB")
    return data


def bundle_address(address: str) -> str:
    """Where the bundle lies of the tournament whose page, or place in the API, this is the address of.

    Any other address is taken as that of a bundle.
    """
    parts = urlsplit(address)
    found = _PAGE.fullmatch(parts.path)
    if found is None:
        return address
    path = f"{found['site']}/api/tournaments/{found['slug']}/bundle"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _unpack(data: bytes, source: str) -> bytes:
    most = MOST_PACKING * len(data)
    try:
        with GzipFile(fileobj=io.BytesIO(data)) as packed:
            unpacked = packed.read(min(most, MOST_BYTES) + 1)
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise UsageError(f"{source} cannot be unpacked ({error}): download it once more") from error
    if len(unpacked) > most:
        raise UsageError(f"{source} unpacks to over {MOST_PACKING} times its size: it is no bundle")
    return unpacked


def verdict_lines(verdict: Verdict) -> list[str]:
    """The verdict for people: what was recomputed, what was taken as given."""
    report = verdict.checked
    if report is None:
        return [f"{verdict.source}: UNTRUE at {verdict.place}: {verdict.message}"]
    rounds = f"{_count(report.rounds, 'round')} of {_count(report.stages, 'stage')}"
    checked = {
        "tournament": report.tournament,
        "commitment": "fits the secret, and the published list the entrants",
        "deals": f"{_count(report.deals, 'deal')} dealt again from the secret",
        "matches": f"{_count(report.matches, 'match', 'es')} replayed",
        "pairings": f"{_count(report.pairings, 'pairing')} in {rounds} paired again",
        "standings": f"{_count(report.standings, 'row')} with their tie-breaks computed again",
        "ratings": f"{_count(report.rated, 'step')} computed again",
        "digest": report.digest,
        "as given": ", ".join(taken_as_given(report)),
    }
    return [
        f"{verdict.source}: true",
        *(f"  {title:<12} {text}" for title, text in checked.items()),
    ]


def taken_as_given(report: BundleReport) -> list[str]:
    """What nobody can recompute, and how often it occurs."""
    seeds = {
        "rating": "seeds by rating",
        "hand": "seeds by the organiser's hand",
        "lot": "",
    }
    given = [
        seeds[report.seeds],
        _count(report.rulings, "ruling") if report.rulings else "",
        _count(report.absences, "absence") if report.absences else "",
        "ratings from before" if report.rated else "",
    ]
    return [text for text in given if text] or ["nothing"]


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else plural}"
