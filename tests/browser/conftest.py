"""A site, and a browser that lets nothing pass unseen."""

from __future__ import annotations

import os

import pytest

from tests.site_factory import Site, copy_site
from tests.tournament_factories import make_wheel

os.environ.setdefault(
    "DJANGO_ALLOW_ASYNC_UNSAFE", "true"
)  # Playwright's loop runs beside the tests
PASSWORD = "correct horse 9"


@pytest.fixture
def site(transactional_db) -> Site:
    return copy_site()


@pytest.fixture
def browser_context_args(browser_context_args: dict) -> dict:
    return {**browser_context_args, "timezone_id": "Asia/Tokyo", "locale": "en-GB"}


@pytest.fixture
def watched(page, live_server):
    """The page; the test fails if it logs an error, breaks its policy or asks another host."""
    troubles = []
    page.on(
        "console",
        lambda message: troubles.append(message.text) if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((live_server.url, "data:"))
            else troubles.append(f"asked {request.url}")
        ),
    )
    yield page
    assert troubles == []


@pytest.fixture
def log_in(watched, live_server):
    def enter(name: str) -> None:
        watched.goto(f"{live_server.url}/account/log-in/")
        watched.get_by_label("Username").fill(name)
        watched.get_by_label("Password").fill(PASSWORD)
        watched.get_by_role("button", name="Log in").click()
        watched.wait_for_url("**/account/bots/")

    return enter


@pytest.fixture
def wheel_path(tmp_path) -> str:
    path = tmp_path / "newcomer-1.0-py3-none-any.whl"
    path.write_bytes(make_wheel("newcomer"))
    return str(path)
