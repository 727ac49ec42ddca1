"""Quarantine: a version that crashes again and again is set aside by the site itself."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import F

from tournament.players.models import VERSION_TRANSITIONS, BotVersion, VersionState
from tournament.store.errors import BlobError
from tournament.store.services import put_blob, read_blob

CRASHES_IN_A_ROW = 3
"""Matches in a row, all ended by the version's crash, after which it is set aside."""
MANY_MATCHES = 50
"""From so many matches on the share of crashes counts, too."""
CRASH_PERCENT = 20


_MATCH = "##### The match that caused its quarantine: "
_CHECK = "##### What it wrote while it was checked"
"""Headings of a log's parts."""


@dataclass(frozen=True, slots=True)
class Crash:
    """How a version crashed in a match, for its owner."""

    match: str
    """The match's name: ``autumn-cup/SE/R1/M1``."""
    detail: str
    log: str
    """What it printed there, its traceback, what it saw, and the command that plays it again."""


@transaction.atomic(savepoint=False)
def count_match(*, version_id: int, crash: Crash | None) -> bool:
    """Count a match that a version has played; True if it is set aside now, for its crashes.

    That is after `CRASHES_IN_A_ROW`, or when `CRASH_PERCENT` of at least `MANY_MATCHES` were crashes. The
    counts begin anew when staff accept it again. Call this in the transaction that records the result, for
    several versions in the order of their ids.
    """
    rows = BotVersion.objects.filter(pk=version_id)
    if crash is None:
        rows.update(matches_played=F("matches_played") + 1, crashes_in_a_row=0)
        return False
    rows.update(
        matches_played=F("matches_played") + 1,
        crashes=F("crashes") + 1,
        crashes_in_a_row=F("crashes_in_a_row") + 1,
    )
    version = rows.get()
    too_many = _too_many(version)
    if not too_many or version.state != VersionState.ACCEPTED:
        return False
    moved = VERSION_TRANSITIONS.move(
        rows,
        VersionState.QUARANTINED,
        only_from=VersionState.ACCEPTED,
        reason=_spell_reason(too_many, crash),
        log_sha256=_add_to_log(version, crash),
        fence=F("fence") + 1,
    )
    return bool(moved)


def _too_many(version: BotVersion) -> str:
    """Which limit its crashes have reached; empty if none."""
    if version.crashes_in_a_row >= CRASHES_IN_A_ROW:
        return f"it crashed in {version.crashes_in_a_row} matches in a row"
    many = version.matches_played >= MANY_MATCHES
    if many and 100 * version.crashes >= CRASH_PERCENT * version.matches_played:
        return f"it crashed in {version.crashes} of {version.matches_played} matches"
    return ""


def _spell_reason(too_many: str, crash: Crash) -> str:
    return (
        f"{too_many}; the last time in {crash.match}: {crash.detail}. The log shows how. Mend it and upload "
        "a new version; or ask the staff to accept this one again."
    )


def _add_to_log(version: BotVersion, crash: Crash) -> str:
    """The blob of its log with the crash at the beginning, under a heading each."""
    try:
        before = read_blob(version.log_sha256).decode() if version.log_sha256 else ""
    except BlobError:  # a damaged old log must not keep the result of a match from being recorded
        before = "(the log of its check cannot be read)"
    before = before.strip() or "(it printed nothing)"
    if not before.startswith(_MATCH):  # it was set aside before, and the heading is there
        before = f"{_CHECK}\n{before}"
    cause = f"{_MATCH}{crash.match}: {crash.detail}"
    return put_blob(f"{cause}\n{crash.log.rstrip()}\n\n{before}\n".encode())
