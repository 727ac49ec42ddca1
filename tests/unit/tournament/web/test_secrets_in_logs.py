"""No secret reaches a log: a whole journey, errors among it, and every line that it writes."""

from __future__ import annotations

import io
import logging

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client, override_settings

from tests.tournament_factories import make_bot, make_tournament, make_wheel, play_all, start
from tournament.competitions.models import TournamentSecret
from tournament.operations.logs import logging_settings
from tournament.players import selectors
from tournament.players import services as players
from tournament.tasks import dispatch
from tournament.web import views

PASSWORD = "Tr0ub4dor-and-3"
DATABASE, BROKER = "pgs3cret-word", "br0ker-word"


@pytest.fixture
def lines():
    """All that is written, at every level, as a site formats it."""
    logger = logging.getLogger()
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    formatter = logging_settings("json", "DEBUG")["formatters"]["json"]
    handler.setFormatter(formatter["()"](form=formatter["form"]))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(level)


def failing(message: str, error: type[Exception] = RuntimeError):
    def fail(*_args, **_kwargs):
        raise error(message)

    return fail


@override_settings(CELERY_BROKER_URL=f"redis://:{BROKER}@127.0.0.1:1/0")
def test_no_secret_of_a_whole_journey_stands_in_a_log(lines, db, monkeypatch):
    client = Client(raise_request_exception=False)
    form = {"username": "dora", "email": "", "password1": PASSWORD, "password2": PASSWORD}
    client.post("/account/sign-up/", form)
    client.post("/account/log-out/")
    client.post("/account/log-in/", {"username": "dora", "password": f"{PASSWORD}!"})  # wrong
    client.post("/account/log-in/", {"username": "dora", "password": PASSWORD})
    dora = get_user_model().objects.get(username="dora")
    made = client.post("/account/tokens/", {"name": "laptop", "scope": "submit", "days": "30"})
    token = made.context["fresh"]
    headers = {"Authorization": f"Bearer {token}"}
    wheel = SimpleUploadedFile("dora.whl", make_wheel("dora"))
    client.post("/api/versions", {"wheel": wheel}, headers=headers)
    client.get("/api/me", headers={"Authorization": f"Bearer {token}x"})  # refused
    client.get("/api/nothing", headers=headers)  # not found
    cup = play_all(start(make_tournament([make_bot("alpha", dora), make_bot("beta", dora)])))
    dispatch()

    # failures of ours while secrets are at hand
    address = f"postgresql://arena:{DATABASE}@db/arena"
    away = failing(f"cannot connect to {address}", OperationalError)
    monkeypatch.setattr(views.players, "bots_of", away)
    assert client.get("/account/bots/").status_code == 503
    monkeypatch.setattr(selectors, "public_bots", failing(f"{address} went away"))
    assert client.get("/api/bots", headers=headers).status_code == 500
    monkeypatch.setattr(players.accounts, "validate_password", failing("no table"))
    assert client.get("/account/log-out/").status_code == 405

    written = lines.getvalue()
    assert "went away" in written, "else this test would see nothing"
    session = client.cookies["sessionid"].value
    secrets = {
        "password": PASSWORD,
        "token": token,
        "secret of the token": token.partition(".")[2],
        "session": session,
        "secret of a tournament": bytes(TournamentSecret.objects.get(tournament=cup).secret).hex(),
        "password of the database": DATABASE,
        "password of the broker": BROKER,
    }
    assert {name for name, secret in secrets.items() if secret in written} == set()
