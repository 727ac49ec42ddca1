"""A forgotten password: a link to the confirmed address sets another, once, and nobody learns who has an account."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.tokens import default_token_generator
from django.contrib.sessions.models import Session
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.tournament_factories import make_player
from tournament.moderation.services import erase_player, lift_suspension, suspend
from tournament.players import services as players
from tournament.players.models import OutgoingMail, Player, ResetRequest
from tournament.players.services import passwords, send_due_mail

pytestmark = pytest.mark.django_db
ASK = "/account/password/"
NEW = "battery staple 8"
CHOSEN = {"new_password1": NEW, "new_password2": NEW}


@pytest.fixture(autouse=True)
def sends_mail(settings):
    settings.ARENA_SENDS_MAIL = True
    settings.ARENA_SITE = "https://arena.example.org"


@pytest.fixture
def ann() -> Player:
    return reader("ann")


def reader(name: str, **changes: object) -> Player:
    """A player with a password and a confirmed address."""
    player = make_player(name)
    player.set_password("the old one 7")
    player.email = player.confirmed_email = f"{name}@example.org"
    for field, value in changes.items():
        setattr(player, field, value)
    player.save()
    return player


def ask(address: str) -> str:
    """Ask for a link; what the page says then."""
    answer = Client().post(ASK, {"email": address}, follow=True)
    assert answer.redirect_chain == [("/account/log-in/", 302)]
    [said] = answer.context["messages"]
    return str(said)


def lets_in(password: str) -> bool:
    """Whether ann can log in by it."""
    answer = Client().post("/account/log-in/", {"username": "ann", "password": password})
    return answer.status_code == 302


def link_to(address: str) -> str:
    """The link that is mailed to whom asks."""
    ask(address)
    send_due_mail()
    found = re.search(r"https://arena\.example\.org(/account/password/\S+)", mail.outbox[-1].body)
    assert found
    return found[1]


def follow(link: str, client: Client | None = None, data: dict[str, str] = CHOSEN):
    """Open the link and send the form."""
    client = client or Client()
    form = client.get(link, follow=True)
    path = form.redirect_chain[-1][0] if form.redirect_chain else link
    return client.post(path, data, follow=True)


def test_link_sets_the_password_and_ends_all_that_the_old_one_may_have_opened(ann):
    elsewhere = Client()
    elsewhere.force_login(ann)
    players.create_token(player=ann, name="laptop")
    page = follow(link_to("ann@example.org"))
    assert "logged out everywhere. Your API token is revoked" in page.text
    ann.refresh_from_db()
    assert ann.check_password(NEW)
    assert elsewhere.get("/account/").status_code == 302
    assert not Session.objects.filter(pk=elsewhere.cookies["sessionid"].value).exists()
    assert ann.tokens.get().revoked_at is not None
    assert lets_in(NEW)


def test_link_is_in_no_address_once_it_was_followed(ann):
    form = Client().get(link_to("ann@example.org"), follow=True)
    assert form.redirect_chain[-1][0].endswith("/set-password/")
    assert "all your API tokens are revoked" in form.text


def test_link_is_good_once(ann):
    link = link_to("ann@example.org")
    late = Client()
    late.get(link, follow=True)
    follow(link)
    other = {"new_password1": "another horse 9", "new_password2": "another horse 9"}
    assert follow(link, data=other).status_code == 410
    assert follow(link, late, data=other).status_code == 410  # that was followed before
    ann.refresh_from_db()
    assert ann.check_password(NEW)


def test_of_two_who_follow_a_link_at_once_one_sets_the_password(ann):
    token = default_token_generator.make_token(ann)
    assert players.reset_password(player=ann, token=token, password=NEW) == 0
    assert players.reset_password(player=ann, token=token, password="another horse 9") is None
    ann.refresh_from_db()
    assert ann.check_password(NEW)


@pytest.mark.parametrize(
    "changes",
    [
        {"is_active": False},  # was suspended since
        {"email": "new@example.org", "confirmed_email": "new@example.org"},  # has another address
        {"email": "new@example.org"},  # which is not confirmed
    ],
)
def test_link_is_gone_when_the_account_is_not_what_it_was(ann, changes):
    link = link_to("ann@example.org")
    opened = Client()
    opened.get(link, follow=True)
    Player.objects.filter(pk=ann.pk).update(**changes)
    for client in (Client(), opened):
        answer = follow(link, client)
        assert answer.status_code == 410
        assert "This link does not work" in answer.text
    ann.refresh_from_db()
    assert not ann.check_password(NEW)


def test_link_is_gone_after_two_hours_and_after_a_login(ann, settings):
    link = link_to("ann@example.org")
    settings.PASSWORD_RESET_TIMEOUT = -1
    assert Client().get(link).status_code == 410
    settings.PASSWORD_RESET_TIMEOUT = 7200
    assert Client().get(link).status_code == 302
    Client().post("/account/log-in/", {"username": "ann", "password": "the old one 7"})
    assert Client().get(link).status_code == 410


@pytest.mark.parametrize(
    "path",
    ["/account/password/MQ/x/", "/account/password/-/x/", "/account/password/9/set-password/"],
)
def test_link_that_is_none_says_so(ann, path):
    assert Client().get(path).status_code == 410
    assert Client().post(path, CHOSEN).status_code == 410


@pytest.mark.parametrize(
    "changes",
    [
        {"confirmed_email": ""},  # anybody may have given the address
        {"email": "new@example.org"},  # that was it before
        {"is_active": False},  # is suspended
        {"password": "!unusable"},  # the house
    ],
)
def test_nobody_gets_a_link_whose_account_it_must_not_open(changes):
    reader("ann", **changes)
    ask("ann@example.org")
    assert send_due_mail() == 0
    assert not OutgoingMail.objects.exists()


@pytest.mark.parametrize(
    "address", ["ann@example.org", "ANN@example.org", "bob@example.org", "eve@example.org"]
)
def test_answer_and_work_are_the_same_whether_there_is_an_account_or_not(ann, address):
    reader("bob", is_active=False)
    with CaptureQueriesContext(connection) as asked:
        said = ask(address)
    assert said.startswith("If an account here has confirmed this address")
    tables = {
        table for query in asked for table in re.findall(r'(?:FROM|INTO) "(\w+)"', query["sql"])
    }
    assert {table for table in tables if table.startswith("players_")} == {
        "players_resetrequest"
    }, "no account is looked for while the visitor waits"
    assert ResetRequest.objects.get().email == address.lower()


def test_each_account_with_the_address_gets_a_link_that_names_it(ann):
    reader("bob", email="Ann@example.org", confirmed_email="Ann@example.org")
    ask("ann@example.org")
    assert send_due_mail() == 2
    assert [message.to for message in mail.outbox] == [["ann@example.org"], ["Ann@example.org"]]
    assert ["password for ann on" in each.body for each in mail.outbox] == [True, False]


def test_address_is_sent_a_link_every_ten_minutes_at_most_however_many_ask(ann):
    for _ in range(3):
        ask("ann@example.org")
        send_due_mail()
    assert len(mail.outbox) == 1
    ResetRequest.objects.update(at=passwords.read_clock() - timedelta(minutes=10, seconds=1))
    send_due_mail()
    assert not ResetRequest.objects.exists()
    ask("ann@example.org")
    assert send_due_mail() == 1


def test_who_has_no_notices_mailed_still_gets_the_link():
    reader("ann", wants_mail=False)
    ask("ann@example.org")
    assert send_due_mail() == 1


def test_password_that_is_none_says_what_to_change(ann):
    page = follow(
        link_to("ann@example.org"), data={"new_password1": "1234", "new_password2": "1234"}
    )
    assert "too short" in page.text
    ann.refresh_from_db()
    assert not ann.check_password("1234")


def test_who_has_the_mail_need_not_wait_for_what_they_tried_before(ann, settings):
    client = Client()
    for address in ("127.0.0.1", "192.0.2.1"):
        for _ in range(settings.AXES_FAILURE_LIMIT):
            Client(REMOTE_ADDR=address).post(
                "/account/log-in/", {"username": "ann", "password": "wrong"}
            )
    follow(link_to("ann@example.org"), client)
    assert client.post("/account/log-in/", {"username": "ann", "password": NEW}).status_code == 302
    assert [each.ip_address for each in AccessAttempt.objects.all()] == ["192.0.2.1"]


def test_suspended_player_comes_in_by_no_link_and_by_the_old_password_once_it_is_lifted(ann):
    link = link_to("ann@example.org")
    suspension = suspend(subject=ann, reason="was rude")
    assert follow(link).status_code == 410
    assert not lets_in(NEW)
    lift_suspension(suspension=suspension)
    assert lets_in("the old one 7")


def test_site_without_mail_says_whom_to_ask(settings, client):
    settings.ARENA_SENDS_MAIL = False
    for answer in (client.get(ASK), client.post(ASK, {"email": "ann@example.org"})):
        assert answer.status_code == 200
        assert "Ask its operators" in answer.text
    assert not ResetRequest.objects.exists()
    assert ASK in client.get("/account/log-in/").text


def test_erased_player_leaves_no_address_among_those_who_asked(ann):
    Player.objects.filter(pk=ann.pk).update(email="Ann@example.org")
    ann.refresh_from_db()
    ask("Ann@example.org")
    erase_player(player=ann)
    assert not ResetRequest.objects.exists()
