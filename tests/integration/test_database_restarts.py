"""PostgreSQL crashes and comes back between two things that a process does: it goes on with the next one."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from wsgiref.util import setup_testing_defaults

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection

from tests.databases import connected_to
from tests.postgresql import PostgresqlServer, postgresql_server
from tests.tournament_factories import make_bot, make_player, make_tournament, start
from tournament.competitions import services
from tournament.competitions.models import Match
from tournament.competitions.services import Play
from tournament.competitions.services.playing import _claim as claim_match
from tournament.operations.databases import read_postgresql
from tournament.store.clock import in_seconds, read_clock
from tournament.store.leases import Heartbeat
from tournament.store.pulses import MEMORY
from tournament.wsgi import application

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(django_db_blocker) -> Iterator[PostgresqlServer]:
    """A server that this process is connected to, with all tables."""
    with (
        postgresql_server() as server,
        django_db_blocker.unblock(),
        connected_to(read_postgresql(server.address(), sys.argv)),
    ):
        call_command("migrate", verbosity=0, interactive=False)
        yield server


def crash(server: PostgresqlServer) -> None:
    """As ``pg_ctl restart -m immediate``: nobody is told, connections break."""
    server.stop(signal.SIGQUIT)
    server.start()


def running_match(name: str) -> Match:
    owner = make_player()
    bots = [make_bot(f"{name}-{place}", owner) for place in "ab"]
    return start(make_tournament(bots, name=name)).matches.get()


def answer_to(path: str) -> tuple[str, str]:
    """The status that gunicorn would send, and the body."""
    environ = {"PATH_INFO": path, "HTTP_HOST": "localhost"}
    setup_testing_defaults(environ)
    statuses: list[str] = []
    response = application(environ, lambda status, headers, error=None: statuses.append(status))
    body = b"".join(response)
    response.close()
    return statuses[0], body.decode()


def get(path: str) -> str:
    return answer_to(path)[0]


def test_request_after_a_crash_of_the_database_is_answered(server):
    assert get("/") == "200 OK"
    assert connection.connection is not None, "the connection is kept, so it breaks"
    crash(server)
    assert get("/") == "200 OK"


def test_database_that_is_away_is_told_to_visitors_and_programs(server):
    assert get("/") == "200 OK"
    server.stop(signal.SIGQUIT)
    try:
        MEMORY.forget()
        for path in ("/", "/tournaments/", "/bots/nobody/", "/series/"):
            status, page = answer_to(path)
            assert status == "503 Service Unavailable", path
            assert "its database does not answer" in page
        status, body = answer_to("/api/bots")
        assert status == "503 Service Unavailable"
        assert "its database does not answer" in json.loads(body)["error"]["message"]
        status, page = answer_to(
            "/guide/"
        )  # it needs none, and says what is the matter all the same
        assert (status, "its database does not answer" in page) == ("200 OK", True)
        assert get("/healthz") == "200 OK"
        assert get("/readyz") == "503 Service Unavailable"
    finally:
        server.start()
    assert get("/") == "200 OK"


def test_match_during_which_the_database_crashes_is_recorded(server):
    match = running_match("crashed")
    crashes = iter([crash])

    def crash_once() -> float:
        next(crashes, lambda _: None)(server)
        return 0.0

    came = services.play_match(match_id=match.pk, trusted=True, stop_seconds=crash_once)
    assert list(crashes) == [], "it has crashed"
    match.refresh_from_db()
    assert (came, match.attempts, match.fence) == (Play.RECORDED, 0, 1)


def test_claim_outlives_a_database_that_is_away_for_less_than_the_lease(server, monkeypatch):
    match = running_match("away")
    lease = claim_match(match.pk, "worker")
    Match.objects.filter(pk=match.pk).update(lease_until=in_seconds(6000))  # a start may take long
    heartbeat = Heartbeat(Match.objects.all(), lease, seconds=6000)
    began = time.monotonic()

    server.stop(signal.SIGQUIT)
    monkeypatch.setattr(time, "monotonic", lambda: began + 3000)
    heartbeat()
    monkeypatch.setattr(time, "monotonic", lambda: began + 6001)
    with pytest.raises(OperationalError):
        heartbeat()
    monkeypatch.undo()
    server.start()

    heartbeat._prolonged = began - 3000
    heartbeat()
    match.refresh_from_db()
    assert match.lease_until > read_clock() + timedelta(seconds=5000)


def test_server_knows_who_is_connected_and_how_long_it_waits(server):
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('application_name')")
        assert cursor.fetchone()[0].startswith("arena ")
        cursor.execute(
            "SELECT current_setting('lock_timeout'), current_setting('transaction_isolation')"
        )
        assert cursor.fetchone() == ("30s", "read committed")
