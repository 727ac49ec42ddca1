"""Limits of requests: who asks too often is told when to come back, broker or not."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest
from django.test import Client, RequestFactory

from tests.brokers import running_broker
from tournament.players import services as players
from tournament.web import api as web_api
from tournament.web import failures, middleware, throttling
from tournament.web.throttling import COSTLY, Limiter, Rate, asker

TWO = Rate("test", 2)


@pytest.fixture
def stopped_clock(monkeypatch) -> None:
    """It stands in the middle of a minute: where one ends, what was asked in it counts for less and less."""
    middle = time.time() // 60 * 60 + 30
    monkeypatch.setattr(time, "time", lambda: middle)


@pytest.fixture
def limited(settings, monkeypatch, stopped_clock) -> Limiter:
    """As on a site, but with few requests of each kind."""
    settings.ARENA_RATE_PERCENT = 100
    found = Limiter("memory://")
    few = {
        name: Rate(name, 3)
        for name in ("PAGES", "FILES", "COSTLY", "WRITES", "LOG_INS", "PASSWORDS")
    }
    for name, rate in few.items():
        monkeypatch.setattr(throttling, name, rate)
    monkeypatch.setattr(failures, "PAGES", few["PAGES"])
    monkeypatch.setattr(throttling, "RATES", dict.fromkeys(throttling.RATES, few["COSTLY"]))
    monkeypatch.setattr(middleware, "LOG_INS", few["LOG_INS"])
    for module in (failures, middleware, web_api):
        monkeypatch.setattr(module, "limiter", lambda: found)
    return found


def test_page_that_is_asked_for_too_often_says_when_to_come_back(client, limited, db):
    assert [client.get("/guide/").status_code for _ in range(4)] == [200, 200, 200, 429]
    answer = client.get("/guide/")
    assert 1 <= int(answer["Retry-After"]) <= 120
    assert "Too many requests of this kind" in answer.content.decode()
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("start", ["/", "/api/"])
def test_addresses_that_lead_nowhere_are_limited_before_anything_is_asked(
    client, ann, limited, start, django_assert_num_queries
):
    sent = [client.get(f"{start}nothing{number}").status_code for number in range(4)]
    assert sent == [404, 404, 404, 429]
    with django_assert_num_queries(0):
        answer = ann.get(f"{start}nothing")  # their cookie is looked at for none of it
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) >= 1
    assert ("error" in answer.json()) if start == "/api/" else "Too many" in answer.text


def test_players_behind_one_address_have_their_own_limits(ann, bob, limited):
    for _ in range(4):
        ann.get("/account/")
    assert ann.get("/account/").status_code == 429
    assert bob.get("/account/").status_code == 200


@pytest.mark.parametrize("path", ["/account/", "/admin/password_change/"])
def test_stolen_cookie_tries_few_passwords(root, limited, path):
    form = {"form": "password", "password-old_password": "a guess", "old_password": "a guess"}
    assert [root.post(path, form).status_code for _ in range(4)] == [200, 200, 200, 429]
    assert root.post("/account/notices/put-away/").status_code == 302, (
        "what they know is not counted with it"
    )


def test_api_answers_in_its_own_shape(client, limited, db):
    answers = [client.get("/api/bots") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].json()["error"]["code"] == "too_many_requests"
    assert int(answers[-1]["Retry-After"]) >= 1


def test_tokens_and_addresses_of_a_player_count_together(site, limited):
    statuses = []
    for number in range(4):
        _, token = players.create_token(player=site.ann)
        client = Client(
            headers={"Authorization": f"Bearer {token}"}, REMOTE_ADDR=f"192.0.2.{number}"
        )
        statuses.append(client.get("/api/me").status_code)
    assert statuses == [200, 200, 200, 429]


def test_log_ins_from_one_address_are_limited_whatever_the_name(client, limited, db):
    sent = [
        client.post("/account/log-in/", {"username": f"name{n}", "password": "x"}).status_code
        for n in range(4)
    ]
    assert sent == [200, 200, 200, 429]
    others = ("/admin/login/", "/account/password/", "/account/password/MQ/set-password/")
    assert {
        client.post(path, {"username": "root", "password": "x"}).status_code for path in others
    } == {429}


def test_costly_pages_do_not_use_up_the_others(site, client, limited):
    path = "/tournaments/cup/bundle.json.gz"
    assert [client.get(path).status_code for _ in range(4)] == [200, 200, 200, 429]
    assert client.get("/guide/").status_code == 200


@pytest.mark.parametrize("route", sorted(throttling.RATES))
def test_route_with_a_limit_of_its_own_is_one(route):
    from django.urls import get_resolver

    names = set()
    for namespace, (_, resolver) in get_resolver().namespace_dict.items():
        names |= {f"{namespace}:{name}" for name in resolver.reverse_dict if isinstance(name, str)}
    assert route in names


def test_neighbours_in_an_ipv6_network_count_together():
    requests = [
        RequestFactory(REMOTE_ADDR=address).get("/") for address in ("2001:db8::1", "2001:db8::2")
    ]
    assert len({asker(request, by_cookie=False) for request in requests}) == 1


def test_two_processes_share_a_limit_through_the_broker(settings, monkeypatch, stopped_clock):
    settings.ARENA_RATE_PERCENT = 100
    monkeypatch.setattr(throttling, "PATIENCE_SECONDS", 60.0)  # this machine may be busy
    with running_broker() as broker:
        one, other = Limiter(broker.url), Limiter(broker.url)
        assert one.take(TWO, "somebody") is None
        assert other.take(TWO, "somebody") is None
        assert one.take(TWO, "somebody") is not None
        assert other.take(TWO, "somebody else") is None


def test_broker_that_is_frozen_is_asked_once_and_limits_hold_without_it(settings, stopped_clock):
    settings.ARENA_RATE_PERCENT = 100
    with socket.create_server(("127.0.0.1", 0)) as listener:
        heard = []
        stop = threading.Event()

        def listen() -> None:
            listener.settimeout(0.1)
            while not stop.is_set():
                with contextlib.suppress(TimeoutError):
                    heard.append(listener.accept()[0])  # and never answer

        thread = threading.Thread(target=listen)
        thread.start()
        limiter = Limiter(f"redis://127.0.0.1:{listener.getsockname()[1]}/0")
        taken = [limiter.take(TWO, "somebody") for _ in range(20)]
        stop.set()
        thread.join()
    assert taken[:2] == [None, None]
    assert None not in taken[2:]
    assert len(heard) <= 2, "one request found out that it does not answer; the others did not wait"
    for connection in heard:
        connection.close()


def test_broker_that_is_away_shuts_nobody_out(settings, caplog):
    settings.ARENA_RATE_PERCENT = 100
    limiter = Limiter("redis://127.0.0.1:1/0")
    assert limiter.take(COSTLY, "somebody") is None
    assert "counts requests alone" in caplog.text


def test_limits_can_be_switched_off(settings):
    settings.ARENA_RATE_PERCENT = 0
    limiter = Limiter("memory://")
    assert {limiter.take(TWO, "somebody") for _ in range(5)} == {None}
