"""What every answer carries, and what no request may bring."""

from __future__ import annotations

import pytest
from django.conf import settings

from tournament.web.middleware import content_security_policy

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
        ("/api/docs", "style-src 'self' 'unsafe-inline'", True),  # Swagger
        ("/api/docs", "unsafe-eval", False),
    ],
)
def test_only_the_admin_and_the_api_page_have_a_looser_policy(path, words, allowed):
    assert (words in content_security_policy(path)) is allowed


def test_no_page_has_an_inline_script_or_style(client, ann, site):
    for path in ("/", "/tournaments/cup/", "/leaderboards/eighty/mono/", "/guide/"):
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
    assert f"{LIMIT:,}" in answer.content.decode()
    if path.startswith("/api/"):
        assert answer.json()["error"]["code"] == "too_large"


def test_broken_page_says_so_without_a_database(client, db, monkeypatch):
    def fail(*_):
        raise RuntimeError("the database is gone")

    monkeypatch.setattr("tournament.web.views.competitions.public_tournaments", fail)
    monkeypatch.setattr("tournament.web.views.current_tournaments", fail)
    client.raise_request_exception = False
    answer = client.get("/")
    assert answer.status_code == 500
    assert "Our own fault" in answer.content.decode()
