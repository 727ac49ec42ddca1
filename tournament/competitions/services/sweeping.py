"""Deleting the blobs that no row names: what a crash left between writing a blob and its row."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta

from tournament.competitions.models import EntryTrial, Match, SupersededMatch
from tournament.players.models import BotVersion
from tournament.store.clock import read_clock
from tournament.store.services import sweep

KEPT_FOR = timedelta(days=1)
"""An unnamed blob may still get its row; after a day it does not."""


def no_more(_start: str) -> Collection[str]:
    """Nothing that rows name elsewhere."""
    return ()


def sweep_blobs(*, also_keep: Callable[[str], Collection[str]] = no_more) -> int:
    """Delete old blobs that neither a version, a trial nor a match names, superseded ones included; how many those were.

    `also_keep` gives the hashes, beginning with a text, that rows name which stand above this app.
    """
    return sweep(
        in_use=lambda start: blobs_in_use(start).union(also_keep(start)),
        older_than=read_clock() - KEPT_FOR,
    )


def blobs_in_use(start: str = "") -> set[str]:
    """The hashes, beginning with `start`, of all blobs that versions, trials and matches name.

    Of whom has been erased the wheels are gone, and only their hashes are left: tournaments have sealed them.
    """
    found: set[str] = set()
    for rows, field in (
        (BotVersion.objects.filter(bot__owner__erased_at=None), "wheel_sha256"),
        (BotVersion.objects, "log_sha256"),
        (EntryTrial.objects, "log_sha256"),
        (Match.objects, "record_sha256"),
        (Match.objects, "logs_sha256"),
        (SupersededMatch.objects, "record_sha256"),
    ):
        named = rows.filter(**{f"{field}__startswith": start}).values_list(field, flat=True)
        found.update(named.iterator())
    return found - {""}
