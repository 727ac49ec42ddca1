"""Deleting the blobs that no row names: what a crash left between writing a blob and its row."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from tournament.competitions.models import EntryTrial, Match, SupersededMatch
from tournament.players.models import BotVersion
from tournament.store.clock import read_clock
from tournament.store.services import sweep

KEPT_FOR = timedelta(days=1)
"""An unnamed blob may still get its row; after a day it does not."""


def sweep_blobs(*, also_keep: Collection[str] = ()) -> int:
    """Delete old blobs that neither a version, a trial nor a match names, superseded ones included; how many those were.

    `also_keep` has the hashes that rows name which stand above this app.
    """
    keep: set[str] = set(also_keep)
    for rows, field in (
        (BotVersion.objects, "wheel_sha256"),
        (BotVersion.objects, "log_sha256"),
        (EntryTrial.objects, "log_sha256"),
        (Match.objects, "record_sha256"),
        (Match.objects, "logs_sha256"),
        (SupersededMatch.objects, "record_sha256"),
    ):
        keep.update(rows.values_list(field, flat=True))
    return sweep(keep=keep, older_than=read_clock() - KEPT_FOR)
