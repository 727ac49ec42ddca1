"""What every answer carries, and what no request may bring."""

from __future__ import annotations

import base64
import hashlib
import logging
import re

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError

from tests.tournament_factories import make_wheel
from tournament.store.errors import StoreUnavailableError
from tournament.store.outages import OutageFilter
from tournament.web.policy import content_security_policy

LIMIT = settings.WHEEL_MAX_BYTES + 256 * 1024


@pytest.mark.parametrize(
    "path", ["/", "/nothing/", "/api/tournaments", "/admin/login/", "/healthz"]
)
def test_every_answer_has_the_safe_headers(client, db, path):
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"
    assert "camera=()" in headers["Permissions-Policy"]


@pytest.mark.parametrize(
    ("path", "words", "allowed"),
    [
        ("/", "unsafe", False),
        ("/tournaments/cup/", "unsafe", False),
        ("/admin/", "script-src 'self' 'unsafe-eval'", True),  # Alpine
        ("/admin/", "style-src-attr 'unsafe-inline'", True),
        ("/admin/", "style-src 'self' 'sha256-", True),  # its theme's, and htmx's
        ("/admin/", "'self' 'unsafe-inline'", False),
        ("/api/docs", "unsafe", False),
    ],
)
def test_only_the_admin_has_a_looser_policy(path, words, allowed):
    assert (words in content_security_policy(path)) is allowed


def test_styles_that_the_admin_brings_are_named_by_their_hashes(root):
    pages = [
        "/admin/",
        "/admin/players/player/",
        "/admin/competitions/tournament/add/",
        "/admin/queue/",
    ]
    for path in pages:
        answer = root.get(path)
        styles = re.findall(r"<style[^>]*>(.*?)</style>", answer.content.decode(), re.DOTALL)
        assert styles, path
        for text in styles:
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in answer["Content-Security-Policy"], path


def test_no_page_has_an_inline_script_or_style(client, ann, site):
    for path in ("/", "/tournaments/cup/", "/leaderboards/eighty/mono/", "/guide/", "/scrimmages/"):
        for visitor in (client, ann):
            page = visitor.get(path).content.decode()
            assert "<script>" not in page
            assert " style=" not in page
            assert " onclick=" not in page


@pytest.mark.parametrize("length", [str(LIMIT + 1), "-1", "many"])
@pytest.mark.parametrize("path", ["/account/upload/", "/api/versions"])
def test_body_over_the_limit_is_refused_unread(client, db, path, length):
    answer = client.post(path, b"x", "application/octet-stream", CONTENT_LENGTH=length)
    assert answer.status_code == 413
    assert "he wheel has more than 10 MiB (10,485,760 bytes)" in answer.content.decode()
    if path.startswith("/api/"):
        assert answer.json()["error"]["code"] == "too_large"


def test_refused_upload_asks_nobody_to_log_in_who_has(ann):
    answer = ann.post("/account/upload/", b"x", "text/plain", CONTENT_LENGTH=str(LIMIT + 1))
    assert answer.status_code == 413
    assert "Log in" not in answer.content.decode()
    assert 'href="/account/bots/">Back to My bots' in answer.content.decode()


def test_body_over_the_limit_that_is_no_wheel_is_told_as_what_it_is(client, db):
    answer = client.post("/account/log-in/", b"x", "text/plain", CONTENT_LENGTH=str(LIMIT + 1))
    assert answer.status_code == 413
    assert f"at most {LIMIT:,} bytes" in answer.content.decode()


@pytest.mark.parametrize("path", ["/account/upload/", "/api/versions"])
def test_body_in_chunks_is_told_to_come_with_its_length(client, db, path):
    answer = client.post(path, b"x", "application/octet-stream", HTTP_TRANSFER_ENCODING="chunked")
    assert answer.status_code == 411
    assert "Content-Length" in answer.content.decode()


@pytest.mark.parametrize(
    ("method", "path", "arguments", "status", "code"),
    [
        ("get", "/api/nothing", {}, 404, "not_found"),  # no route
        ("get", "/api/versions/x", {}, 404, "not_found"),  # no number
        ("put", "/api/bots", {}, 405, "method_not_allowed"),
        ("head", "/api/nothing", {}, 404, ""),  # no body
        (
            "post",
            "/api/versions",
            {"data": b"x", "content_type": "multipart/form-data"},  # no boundary
            400,
            "bad_request",
        ),
        (
            "post",
            "/api/versions",
            {"data": b"x", "content_type": "text/plain", "CONTENT_LENGTH": str(LIMIT + 1)},
            413,
            "too_large",
        ),
        (
            "post",
            "/api/versions",
            {"data": b"x", "content_type": "text/plain", "HTTP_TRANSFER_ENCODING": "chunked"},
            411,
            "length_required",
        ),
        ("get", "/api/bots?q=%00", {}, 400, "bad_request"),
        ("get", "/api/bots", {"HTTP_HOST": "evil.example"}, 400, "bad_request"),
    ],
)
def test_every_error_of_the_api_has_the_one_shape(
    client, site, token, method, path, arguments, status, code
):
    answer = getattr(client, method)(
        path, headers={"Authorization": f"Bearer {token}"}, **arguments
    )
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/json"
    if code:
        assert set(answer.json()["error"]) == {"code", "message", "details"}
        assert answer.json()["error"]["code"] == code
    if status == 405:
        assert answer["Allow"] == "GET"


def test_our_own_failure_has_the_one_shape_too(client, site, monkeypatch):
    monkeypatch.setattr("tournament.players.selectors.public_bots", None)
    client.raise_request_exception = False
    answer = client.get("/api/bots")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "our_fault")


@pytest.mark.parametrize("path", ["/", "/tournaments/cup/", "/api/bots", "/api/openapi.json"])
def test_head_is_answered_where_get_is(client, site, path):
    head, get = client.head(path), client.get(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head["Content-Type"] == get["Content-Type"]
    assert int(head["Content-Length"]) > 0


def test_store_that_is_away_is_told_to_who_uploads(client, site, token, monkeypatch):
    def fail(_: bytes) -> str:
        raise StoreUnavailableError("timed out")

    monkeypatch.setattr("tournament.players.services.bots.put_blob", fail)
    client.raise_request_exception = False
    wheel = SimpleUploadedFile("novice.whl", make_wheel("novice"))
    answer = client.post(
        "/api/versions", {"wheel": wheel}, headers={"Authorization": f"Bearer {token}"}
    )
    assert (answer.status_code, answer["Retry-After"]) == (503, "15")
    assert answer.json()["error"]["code"] == "unavailable"
    assert "its store of wheels and records does not answer" in answer.json()["error"]["message"]


def test_outage_costs_the_log_a_line_for_each_request_and_one_traceback(
    client, site, monkeypatch, caplog
):
    def fail(*_, **__):
        raise OperationalError("connection refused\nIs the server running?")

    monkeypatch.setattr("tournament.players.selectors.public_bots", fail)
    client.raise_request_exception = False
    logger = logging.getLogger("django.request")
    monkeypatch.setattr(logger, "filters", [OutageFilter()])  # as on a site that has just started
    for path in ("/bots/", "/api/bots", "/bots/"):
        assert client.get(path).status_code == 503
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [bool(record.exc_info) for record in lines] == [True, False, False, False]
    told = [record.getMessage() for record in lines[1:]]
    assert all(
        each.endswith(": its database does not answer (connection refused)") for each in told
    )
    assert told[1].startswith("GET /api/bots: 503 after ")


def test_broken_page_says_so_without_a_database(client, db, monkeypatch):
    def fail(*_):
        raise RuntimeError("the database is gone")

    monkeypatch.setattr("tournament.web.views.competitions.public_tournaments", fail)
    monkeypatch.setattr("tournament.web.views.current_tournaments", fail)
    client.raise_request_exception = False
    answer = client.get("/")
    assert answer.status_code == 500
    assert "Our own fault" in answer.content.decode()
