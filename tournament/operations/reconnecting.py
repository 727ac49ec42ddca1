"""How a worker comes back to a broker that was away.

Celery waits two seconds longer before each try, up to thirty, so after a minute without a broker a site
would stand still for a quarter of a minute more.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from celery.worker import consumer

RECONNECT_SECONDS = 2


class Consumer(consumer.Consumer):  # type: ignore[misc]
    """Takes the messages of a worker, and knocks at the same pace for as long as the broker is away."""

    def ensure_connected(self, conn: Any) -> Any:
        """Wait until `conn` is connected; the connection."""
        conn.ensure_connection = partial(
            conn.ensure_connection,
            interval_start=RECONNECT_SECONDS,
            interval_step=0,
            interval_max=RECONNECT_SECONDS,
        )
        return super().ensure_connected(conn)
