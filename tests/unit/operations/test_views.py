"""The addresses for machines: lives it, can it serve, how much does it do."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.conf import settings as site_settings
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from tests.tournament_factories import (
    make_bot,
    make_player,
    make_tournament,
    play_all,
    start,
    submit,
)
from tournament.competitions import services as competitions
from tournament.competitions.models import Attempt, Match, MatchState
from tournament.competitions.services.tallying import tally_attempts
from tournament.operations import health, selectors
from tournament.operations.health import Readiness
from tournament.store.models import Pulse
from tournament.store.pulses import DISPATCH, WORKERS
from tournament.store.services import beat
from tournament.workers.models import WorkerReport


@pytest.fixture(autouse=True)
def _nothing_is_remembered(monkeypatch):
    monkeypatch.setattr(health, "_migrated", False)
    monkeypatch.setattr(health, "_store_ok_until", 0.0)
    monkeypatch.setattr(health, "_found", None)


def all_is_well() -> None:
    for name in (DISPATCH, WORKERS):
        beat(name=name)


def values_of(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What Prometheus reads: by name and labels the values."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def metrics_of(client, **headers) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = client.get("/metrics", **headers)
    assert answer.status_code == 200, answer.content
    return values_of(answer.content.decode())


def test_process_lives_whatever_else_is_down(client):
    """No database is open to this test."""
    answer = client.get("/healthz", headers={"Host": "10.1.2.3:8000"})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_site_that_has_all_it_needs_is_ready_under_any_host_name(client):
    all_is_well()
    answer = client.get("/readyz", headers={"Host": "10.1.2.3:8000"})
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    assert set(answer.json()["needed"]) == {"database", "migrations", "store"}


@pytest.mark.django_db
def test_site_whose_queue_stands_still_is_ready_but_degraded(client, settings, tmp_path):
    settings.CELERY_BROKER_URL = f"redis+socket://{tmp_path}/none.sock?virtual_host=0"
    Pulse.objects.create(name=DISPATCH, at=selectors.read_clock() - timedelta(minutes=3))
    answer = client.get("/readyz")
    told = answer.json()
    assert (answer.status_code, told["status"]) == (200, "degraded")
    assert told["helpful"]["broker"].startswith("does not answer")
    assert told["helpful"]["queue"] == (
        "nothing has been handed out for 3 minutes; no worker has been heard of yet"
    )


def test_readiness_is_tried_once_a_second_however_many_ask(client, monkeypatch):
    now, tries = 100.0, []
    monkeypatch.setattr(health, "readiness", lambda: tries.append(now) or Readiness({}, {}))
    monkeypatch.setattr(health.time, "monotonic", lambda: now)
    assert {client.get("/readyz").status_code for _ in range(5)} == {200}
    now = 101.0
    client.get("/readyz")
    assert tries == [100.0, 101.0]


def test_who_asks_while_readiness_is_tried_is_told_what_was_found_before(monkeypatch):
    """A database that does not answer holds up one thread of the web server, not all of them."""
    known, fresh = Readiness({}, {}), Readiness({"database": "failed"}, {})
    began, may_end = threading.Event(), threading.Event()

    def take_long() -> Readiness:
        began.set()
        assert may_end.wait(60)
        return fresh

    monkeypatch.setattr(health, "readiness", take_long)
    monkeypatch.setattr(health, "_found", (time.monotonic() - 10, known))
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(health.recent_readiness)
        assert began.wait(60)
        assert health.recent_readiness() is known
        may_end.set()
        assert first.result(60) is fresh


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("broken", "thing", "words"),
    [
        ("database", "database", "failed: DatabaseError"),
        ("migrations", "migrations", "1 missing: run manage.py migrate"),
        ("store", "store", "failed: OSError"),
    ],
)
def test_site_without_what_it_needs_is_not_ready(client, monkeypatch, broken, thing, words):
    all_is_well()

    def fail() -> str:
        raise {"database": DatabaseError, "store": OSError}[broken]("a secret at 10.0.0.1")

    if broken == "migrations":
        newest = MigrationRecorder.Migration.objects.filter(app="workers").order_by("name").last()
        newest.delete()
    elif broken == "database":
        monkeypatch.setattr(health, "_check_database", fail)
    else:
        monkeypatch.setattr(health, "check_store", fail)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "not ready")
    assert answer.json()["needed"][thing] == words
    assert "secret" not in answer.content.decode()


@pytest.mark.django_db
def test_metrics_of_an_empty_site_are_all_there_at_zero(client):
    found = metrics_of(client)
    assert found["arena_players", ()] == 0
    for kind in selectors.KINDS:
        assert found["arena_queue", (("kind", kind), ("state", "stuck"))] == 0
    assert found["arena_attempts_total", (("ending", "recorded"),)] == 0
    assert found["arena_match_claim_wait_seconds_bucket", (("le", "+Inf"),)] == 0
    assert found["arena_workers", (("state", "silent"),)] == 0
    assert not any(name == "arena_dispatch_age_seconds" for name, _ in found)


@pytest.mark.django_db
def test_metrics_tell_the_queue_as_it_stands(client):
    players = [make_player(), make_player()]
    held = start(make_tournament([make_bot(f"h{n}", players[n]) for n in range(2)], name="Held"))
    going = start(make_tournament([make_bot(f"g{n}", players[n]) for n in range(2)], name="Going"))
    competitions.pause_tournament(tournament=held, reason="a doubt")
    submit(players[0], "new")
    due = competitions.dispatch(rung=True)
    assert competitions.play_match(match_id=due.blocks[0][0], trusted=True)
    Pulse.objects.filter(name="tally").delete()
    assert tally_attempts() == 1
    WorkerReport.objects.create(
        name="matches@a", host="a", level="full", python="3.11", budget_percent=100
    )
    found = metrics_of(client)
    assert found["arena_queue", (("kind", "match"), ("state", "held"))] == 1
    assert found["arena_queue", (("kind", "check"), ("state", "queued"))] == 1
    assert found["arena_queue_oldest_seconds", (("kind", "check"),)] > 0
    assert found["arena_attempts_total", (("ending", "recorded"),)] == 1
    assert found["arena_match_claim_wait_seconds_count", ()] == 1
    assert found["arena_match_claim_wait_seconds_bucket", (("le", "7200.0"),)] == 1
    assert found["arena_matches_per_second", ()] == pytest.approx(1 / 60)
    assert found["arena_worker_sandbox", (("level", "full"), ("worker", "matches@a"))] == 1
    assert found["arena_dispatch_age_seconds", ()] < 60
    assert Match.objects.get(tournament=going).state == MatchState.FINISHED


@pytest.mark.django_db
def test_attempt_is_counted_once_however_often_they_are_tallied():
    play_all(start(make_tournament([make_bot(f"c{n}") for n in range(3)])))
    Attempt.objects.update(is_tallied=False)
    counted = 0
    for _ in range(3):
        Pulse.objects.filter(name="tally").delete()
        counted += tally_attempts()
    assert counted == Attempt.objects.filter(ended_at__isnull=False).count() > 0
    assert tally_attempts() == 0, "it has just been done"


@pytest.mark.django_db
def test_metrics_take_as_many_queries_however_much_there_is(client):
    owner = make_player()

    def queries_with(more: int) -> int:
        bots = [make_bot(f"q{more}x{n}", owner) for n in range(more)]
        start(make_tournament(bots, name=f"League {more}", format="round_robin"))
        submit(owner, f"new{more}")
        with CaptureQueriesContext(connection) as captured:
            metrics_of(client)
        return len(captured)

    assert queries_with(2) == queries_with(5) <= 30


FAR = {"REMOTE_ADDR": "203.0.113.9"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("asked", "status"),
    [
        pytest.param({}, 200, id="from this machine"),
        pytest.param(FAR, 403, id="from elsewhere"),
        pytest.param({"REMOTE_ADDR": "10.1.2.3"}, 200, id="from a network that is allowed"),
        pytest.param(
            {"HTTP_X_FORWARDED_FOR": "203.0.113.9"}, 403, id="through a proxy on this machine"
        ),
        pytest.param({**FAR, "HTTP_AUTHORIZATION": "Bearer " + 20 * "x"}, 200, id="with the token"),
        pytest.param({"HTTP_AUTHORIZATION": "Bearer " + 19 * "x"}, 403, id="with a wrong token"),
        pytest.param({**FAR, "HTTP_AUTHORIZATION": "Bearer "}, 403, id="with an empty one"),
    ],
)
def test_metrics_are_for_whom_the_operator_names(client, settings, asked, status):
    settings.METRICS_TOKEN = 20 * "x"
    settings.METRICS_FROM = (*site_settings.METRICS_FROM, *_networks("10.0.0.0/8"))
    assert client.get("/metrics", **asked).status_code == status


def _networks(text: str):
    from tournament.settings import _networks

    return _networks(text)


@pytest.mark.django_db
def test_behind_tls_metrics_are_for_whom_the_proxy_names(client, settings):
    settings.HTTPS = True
    near, far = (
        {"HTTP_X_FORWARDED_FOR": "127.0.0.1"},
        {"HTTP_X_FORWARDED_FOR": "127.0.0.1, 203.0.113.9"},
    )
    assert client.get("/metrics", **near).status_code == 200
    assert client.get("/metrics", **far).status_code == 403


@pytest.mark.django_db
def test_status_line_counts_what_goes_on():
    assert selectors.site_status().line == (
        "0 bots · 0 tournaments running · 0 matches waiting, 0 in play, 0 finished"
    )


def test_probes_are_json(client):
    assert json.loads(client.get("/healthz").content)
