"""The site never waits for its broker: each address answers while that is frozen or gone, and says what is delayed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.conf import settings as site_settings
from django.http import HttpResponse

from engine.idleness import own_times
from tests.brokers import Broker, running_broker
from tests.unit.tournament.web.test_permissions import PAGES, ROLES, failed_trial, outcome_of
from tournament.celery import app
from tournament.operations import health
from tournament.store.clock import read_clock
from tournament.store.models import Pulse
from tournament.store.pulses import MEMORY

pytestmark = pytest.mark.stack

MOST_SECONDS = 1.0
TRIES = 5
"""A machine whose disk is busy may keep a page waiting by itself; a broker that is waited for does so each time."""


@pytest.fixture
def own_broker(settings, monkeypatch) -> Iterator[Broker]:
    """The site's broker, and Celery's."""
    with running_broker() as found:
        settings.CELERY_BROKER_URL = found.url
        monkeypatch.setattr(app.conf, "broker_url", found.url)
        yield found


def quickest(ask: Callable[[], object]) -> tuple[float, object]:
    """The seconds for which some try at the least was waiting, and what it gave; no more than one if that was short.

    What this thread ran, and what it waited to run on a busy machine, is no waiting for a broker.
    """
    best = float("inf")
    answer: object = None
    for _ in range(TRIES):
        began, busy = time.monotonic(), sum(own_times())
        answer = ask()
        waited = time.monotonic() - began - (sum(own_times()) - busy) / 1e9
        best = min(best, waited)
        if best < MOST_SECONDS:
            break
    return best, answer


def stand_still() -> None:
    """Let the pulses be as they are some time after the broker has stopped."""
    Pulse.objects.update(at=read_clock() - timedelta(hours=2))
    MEMORY.forget()


def test_every_address_answers_within_a_second_while_the_broker_is_frozen(
    site, root, token, own_broker
):
    before = own_broker.visitors()
    os.kill(own_broker.process.pid, signal.SIGSTOP)
    stand_still()
    places = site.places(trial=failed_trial(site).pk)
    slow, other = {}, {}
    for page, outcomes in PAGES.items():
        seconds, found = quickest(lambda page=page: outcome_of(root, page.format(**places)))
        if seconds >= MOST_SECONDS:
            slow[page] = seconds
        if found != outcomes[ROLES.index("root")]:
            other[page] = found
    for path in ("/api/me", f"/api/versions/{site.rejected.pk}", "/api/scrimmages"):
        headers = {"Authorization": f"Bearer {token}"}
        seconds, found = quickest(
            lambda path=path, headers=headers: root.get(path, headers=headers)
        )
        assert isinstance(found, HttpResponse)
        assert (found.status_code, seconds < MOST_SECONDS) == (200, True), path
    for path in ("/healthz", "/metrics"):
        seconds, found = quickest(lambda path=path: root.get(path).status_code)
        assert (found, seconds < MOST_SECONDS) == (200, True), path
    os.kill(own_broker.process.pid, signal.SIGCONT)
    assert (slow, other) == ({}, {})
    assert own_broker.visitors() - before <= 1, "no page so much as comes to the broker"


@pytest.mark.parametrize("end", [signal.SIGSTOP, signal.SIGKILL], ids=["frozen", "gone"])
def test_site_without_its_broker_says_what_is_delayed(client, site, own_broker, end, monkeypatch):
    monkeypatch.setattr(health, "_store_ok_until", 0.0)
    monkeypatch.setattr(health, "RECENT_SECONDS", 0.0)  # each request tries it
    found = (client.get("/readyz").json()["status"] for _ in range(TRIES))
    assert "ready" in found  # at the latest then, since a busy machine delays the broker, too
    assert "Arena-Delayed" not in client.get("/api/bots").headers
    assert "Delayed:" not in client.get("/").content.decode()
    os.kill(own_broker.process.pid, end)
    stand_still()
    seconds, answer = quickest(lambda: client.get("/readyz"))
    assert isinstance(answer, HttpResponse)
    assert (answer.status_code, seconds < MOST_SECONDS) == (200, True)
    assert answer.json()["status"] == "degraded"
    assert "does not answer" in answer.json()["helpful"]["broker"]
    assert "Delayed:</strong> nothing has been handed out for 2 hours" in (
        client.get("/").content.decode()
    )
    assert (
        "nothing has been handed out for 2 hours"
        in (client.get("/api/bots").headers["Arena-Delayed"])
    )
    assert own_broker.url == site_settings.CELERY_BROKER_URL
