"""What can be done with scrimmages; each function is one use case."""

from __future__ import annotations

from tournament.scrimmages.services.asking import (
    CANCELLED_BY_OWNER,
    Wish,
    ask,
    cancel_scrimmage,
    keep_records,
    retry_scrimmage,
)
from tournament.scrimmages.services.dispatching import (
    end_barred_scrimmages,
    queue_scrimmages,
    return_expired_scrimmages,
    scrimmages_to_play,
)
from tournament.scrimmages.services.forgetting import (
    forget_scrimmages,
    scrimmage_blobs_to_forget,
)
from tournament.scrimmages.services.playing import BatchPlay, play_batch
from tournament.scrimmages.services.sweeping import expire_oldest_batches, expire_records

__all__ = [
    "CANCELLED_BY_OWNER",
    "BatchPlay",
    "Wish",
    "ask",
    "cancel_scrimmage",
    "end_barred_scrimmages",
    "expire_oldest_batches",
    "expire_records",
    "forget_scrimmages",
    "keep_records",
    "play_batch",
    "queue_scrimmages",
    "retry_scrimmage",
    "return_expired_scrimmages",
    "scrimmage_blobs_to_forget",
    "scrimmages_to_play",
]
