"""Messages that a worker is done with, though it could not tell the broker so.

kombu logs an acknowledgement that fails, and goes on; but the message stays among those that the worker has
taken, so it takes that many fewer. A broker that froze for two seconds left a worker of one process waiting
for ever. Here such a message counts as done. The broker gives it out again after the visibility timeout,
which does no harm.
"""

from __future__ import annotations

from kombu.transport import redis, virtual


class SettlingQoS(redis.QoS):
    """Counts the messages that a worker has taken and is not done with."""

    def ack(self, delivery_tag: str) -> None:
        """Be done with a message. Raises what the broker does, and is done with it all the same."""
        try:
            super().ack(delivery_tag)  # type: ignore[no-untyped-call]
        finally:
            virtual.QoS.ack(self, delivery_tag)  # type: ignore[no-untyped-call]

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Give a message back, or be done with it; so as well if that fails."""
        try:
            super().reject(delivery_tag, requeue)  # type: ignore[no-untyped-call]
        finally:
            virtual.QoS.ack(self, delivery_tag)  # type: ignore[no-untyped-call]


def settle_messages() -> None:
    """Let the channels of this process count so."""
    redis.Channel.QoS = SettlingQoS
