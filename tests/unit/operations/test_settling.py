"""A worker goes on taking messages although the broker did not hear that it is done with one."""

from __future__ import annotations

from unittest import mock

import pytest
from kombu.transport import redis

from tournament.celery import app
from tournament.operations.settling import SettlingQoS


class Frozen:
    """A channel whose broker answers nothing."""

    unacked_key = unacked_index_key = "key"
    do_restore = False

    def conn_or_acquire(self, client=None):
        raise TimeoutError("Timeout reading from socket")


def taken(qos: SettlingQoS, tag: str) -> None:
    super(redis.QoS, qos).append(mock.Mock(), tag)


@pytest.mark.parametrize(
    "settle",
    [
        lambda qos: qos.ack("tag"),  # the task is done
        lambda qos: qos.reject("tag"),  # it cannot be done
        lambda qos: qos.reject("tag", requeue=True),  # its process was killed
    ],
)
def test_message_that_the_broker_was_not_told_of_keeps_no_place(settle):
    qos = SettlingQoS(Frozen(), prefetch_count=1)
    taken(qos, "tag")
    assert not qos.can_consume()
    with pytest.raises(TimeoutError):
        settle(qos)
    assert qos.can_consume()


def test_workers_of_the_site_count_so():
    assert app.conf.imports == ("tournament.tasks",)
    assert redis.Channel.QoS is SettlingQoS
