"""A worker knocks at its broker at the same pace, however long that is away."""

from __future__ import annotations

from unittest import mock

import pytest
from kombu import Connection
from kombu.utils import functional

from tournament.celery import app
from tournament.operations.reconnecting import RECONNECT_SECONDS, Consumer


class OutageIsOverError(Exception):
    """The test has seen enough."""


def test_worker_tries_again_every_two_seconds_for_an_hour():
    consumer = Consumer.__new__(Consumer)
    consumer.app, consumer.first_connection_attempt = app, False
    consumer.broker_connection_retry_attempt = 0
    slept = 0.0

    def sleep(seconds: float) -> None:
        nonlocal slept
        slept += seconds
        if slept >= 3600:
            raise OutageIsOverError

    refused = mock.patch.object(Connection, "_connection_factory", side_effect=OSError("refused"))
    with (
        refused as tries,
        mock.patch.object(functional, "sleep", sleep),
        pytest.raises(OutageIsOverError),
    ):
        consumer.ensure_connected(Connection("redis://localhost:1/0"))
    assert tries.call_count == 3600 / RECONNECT_SECONDS


def test_workers_of_the_site_do_so():
    assert app.conf.worker_consumer == f"{Consumer.__module__}:{Consumer.__name__}"
