"""Mail to players: to confirmed addresses alone, after commit, tried again, and ended by whom it goes to."""

from __future__ import annotations

import re
import smtplib
from datetime import timedelta

import pytest
from django.core import mail
from django.db import transaction
from django.test import Client

from tests.tournament_factories import make_bot, make_player, make_tournament
from tournament import tasks
from tournament.competitions import services as competitions
from tournament.competitions.models import Notice
from tournament.competitions.services.notices import tell_players
from tournament.moderation.services import erase_player
from tournament.players.models import MailKind, OutgoingMail, Player
from tournament.players.services import ask_to_confirm, send_due_mail
from tournament.players.services.mail import ASKED_A_DAY
from tournament.store.clock import read_clock

pytestmark = pytest.mark.django_db
LOCMEM = "django.core.mail.backends.locmem.EmailBackend.send_messages"
TIMEOUT = TimeoutError("timed out")


@pytest.fixture(autouse=True)
def sends_mail(settings):
    settings.ARENA_SENDS_MAIL = True
    settings.ARENA_SITE = "https://arena.example.org"


def reader(name: str, **changes: object) -> Player:
    """A player who has confirmed an address."""
    player = make_player(name)
    address = f"{name}@example.org"
    fields = {"email": address, "confirmed_email": address, **changes}
    Player.objects.filter(pk=player.pk).update(**fields)
    player.refresh_from_db()
    return player


def wait(**span: int) -> None:
    """Let this time pass for all mails that wait."""
    for row in OutgoingMail.objects.all():
        row.run_after -= timedelta(**span)
        row.created_at -= timedelta(**span)
        row.save()


def links(text: str) -> list[str]:
    return re.findall(r"https://arena\.example\.org(/account/mail/\S+)", text)


def test_notice_goes_out_with_its_page_and_a_way_to_end_it():
    ann = reader("ann")
    cup = make_tournament([make_bot("alpha", ann)], name="Winter Cup")
    competitions.cancel_tournament(tournament=cup, reason="the hall is closed")
    tasks.send_mail()
    [message] = mail.outbox
    assert message.to == ["ann@example.org"]
    assert message.subject == "Domino Arena: Winter Cup"
    assert "Winter Cup is cancelled: the hall is closed" in message.body
    assert "https://arena.example.org/tournaments/winter-cup/" in message.body
    [stop] = links(message.body)
    assert message.extra_headers["List-Unsubscribe"] == f"<https://arena.example.org{stop}>"
    assert not OutgoingMail.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"email": ""},  # has none
        {"confirmed_email": ""},  # never confirmed
        {"email": "new@example.org"},  # has changed it since
        {"wants_mail": False},  # does not like it
        {"is_active": False},  # is suspended
    ],
)
@pytest.mark.parametrize("moment", ["told", "sent"])
def test_nobody_gets_mail_who_is_not_known_to_want_it_there(changes, moment):
    ann, cup = reader("ann"), make_tournament()
    if moment == "told":
        Player.objects.filter(pk=ann.pk).update(**changes)
    tell_players([Player.objects.get(pk=ann.pk)], cup, "it goes on")
    if moment == "sent":
        Player.objects.filter(pk=ann.pk).update(**changes)
    assert send_due_mail() == 0
    assert mail.outbox == []
    assert Notice.objects.filter(player=ann).exists()
    assert not OutgoingMail.objects.exists()


def test_site_without_a_mail_server_asks_nobody_to_confirm_and_keeps_no_mail(settings, client):
    """Who confirmed an address when it had one still stands in the table."""
    settings.ARENA_SENDS_MAIL = False
    assert not ask_to_confirm(player=reader("bob", confirmed_email=""))
    tell_players([reader("ann")], make_tournament(), "it goes on")
    wait(days=3, minutes=1)
    tasks.sweep()
    assert not OutgoingMail.objects.exists()
    client.force_login(Player.objects.get(username="ann"))
    assert "wants_mail" not in client.get("/account/").text


def test_what_is_taken_back_is_mailed_to_nobody():
    ann, cup = reader("ann"), make_tournament()

    @transaction.atomic
    def tell_and_fail():
        tell_players([ann], cup, "it goes on")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tell_and_fail()
    assert send_due_mail() == 0


def test_server_that_is_away_holds_up_nothing_and_is_tried_again(monkeypatch, caplog):
    cup = make_tournament()
    tell_players([reader("ann"), reader("bob")], cup, "it goes on")
    tries = []
    with monkeypatch.context() as patch:
        patch.setattr(LOCMEM, lambda *_: tries.append(1) or (_ for _ in ()).throw(TIMEOUT))
        assert send_due_mail() == 0
        assert send_due_mail() == 0
    assert len(tries) == 1
    assert "mail waits" in caplog.text
    wait(minutes=11)
    assert send_due_mail() == 2
    assert {message.to[0] for message in mail.outbox} == {"ann@example.org", "bob@example.org"}


@pytest.mark.parametrize(
    ("error", "is_kept"),
    [
        (smtplib.SMTPRecipientsRefused({"ann@example.org": (550, b"no such user")}), False),
        (
            smtplib.SMTPRecipientsRefused({"ann@example.org": (450, b"try later")}),
            True,
        ),  # greylisted
        (smtplib.SMTPDataError(554, b"spam"), False),
        (smtplib.SMTPDataError(451, b"local error"), True),
    ],
)
def test_one_refused_mail_keeps_no_other_from_going(monkeypatch, error, is_kept):
    ann, bob, cup = reader("ann"), reader("bob"), make_tournament()
    tell_players([ann, bob], cup, "it goes on")
    sent = []

    def send(_backend: object, messages: list) -> int:
        if messages[0].to == ["ann@example.org"]:
            raise error
        sent.extend(messages)
        return 1

    monkeypatch.setattr(LOCMEM, send)
    assert send_due_mail() == 1
    assert [message.to for message in sent] == [["bob@example.org"]]
    assert OutgoingMail.objects.filter(player=ann).exists() is is_kept


def test_mail_that_could_not_be_sent_for_three_days_is_dropped(caplog):
    tell_players([reader("ann")], make_tournament(), "it goes on")
    wait(days=3, minutes=1)
    assert send_due_mail() == 0
    assert mail.outbox == []
    assert "dropped" in caplog.text


def test_mail_that_another_process_has_taken_is_not_sent_twice(monkeypatch):
    tell_players([reader("ann")], make_tournament(), "it goes on")
    nested = []

    def open_while_another_sends(_backend: object) -> None:
        if not nested:
            nested.append(1)
            send_due_mail()

    monkeypatch.setattr(
        "django.core.mail.backends.base.BaseEmailBackend.open", open_while_another_sends
    )
    assert send_due_mail() == 0
    assert len(mail.outbox) == 1


def test_address_is_confirmed_by_the_link_that_is_sent_there(client):
    sign_up = {"username": "ann", "email": "ann@example.org"}
    client.post(
        "/account/sign-up/",
        {**sign_up, "password1": "correct horse 9", "password2": "correct horse 9"},
    )
    ann = Player.objects.get(username="ann")
    send_due_mail()
    [link] = links(mail.outbox[0].body)
    stranger = Client()
    assert "Is this your account?" in stranger.get(link).text
    ann.refresh_from_db()
    assert not ann.takes_mail  # a mail program that looks at links confirms nothing
    assert stranger.post(link).status_code == 200
    ann.refresh_from_db()
    assert ann.takes_mail


def test_link_to_a_former_address_confirms_nothing(client):
    ann = reader("ann", confirmed_email="")
    ask_to_confirm(player=ann)
    send_due_mail()
    [link] = links(mail.outbox[0].body)
    Player.objects.filter(pk=ann.pk).update(email="new@example.org")
    assert client.post(link).status_code == 410
    assert client.post(link.replace(link[20:24], "xxxx")).status_code == 410
    ann.refresh_from_db()
    assert not ann.has_confirmed_mail


def test_account_makes_the_site_write_to_strangers_at_most_every_ten_minutes(client):
    ann = make_player("ann")
    client.force_login(ann)
    page = {"form": "account", "account-time_zone": "UTC", "account-wants_mail": "on"}
    for number in range(3):
        answer = client.post(
            "/account/", {**page, "account-email": f"victim{number}@example.org"}, follow=True
        )
        assert f"on its way to victim{number}@example.org" in answer.text
        send_due_mail()
    assert [message.to for message in mail.outbox] == [["victim0@example.org"]]
    assert OutgoingMail.objects.filter(kind=MailKind.CONFIRMATION).count() == 1
    wait(minutes=10)
    send_due_mail()
    assert [message.to[0] for message in mail.outbox][1:] == ["victim2@example.org"]


def test_many_accounts_make_the_site_write_to_a_stranger_a_few_times_a_day():
    for number in range(ASKED_A_DAY + 2):
        player = make_player(f"many{number}")
        address = "stranger@example.org" if number % 2 else "Stranger@example.org"
        Player.objects.filter(pk=player.pk).update(email=address)
        assert ask_to_confirm(player=player), "it is not told whether others gave the address, too"
    assert send_due_mail() == ASKED_A_DAY
    wait(days=1)
    assert send_due_mail() == 2


def test_mail_is_ended_by_its_link_without_a_cookie_and_by_the_account(client):
    ann, cup = reader("ann"), make_tournament()
    tell_players([ann], cup, "it goes on")
    send_due_mail()
    [link] = links(mail.outbox[0].body)
    strict = Client(enforce_csrf_checks=True)
    assert "Get no more mail?" in strict.get(link).text
    tell_players([ann], cup, "and on")
    assert strict.post(link, {"List-Unsubscribe": "One-Click"}).status_code == 200
    assert send_due_mail() == 0
    ann.refresh_from_db()
    assert not ann.wants_mail
    client.force_login(ann)
    saved = {"form": "account", "account-time_zone": "UTC", "account-email": ann.email}
    client.post("/account/", {**saved, "account-wants_mail": "on"})
    ann.refresh_from_db()
    assert ann.takes_mail
    client.post("/account/", saved)
    ann.refresh_from_db()
    assert not ann.takes_mail


def test_erased_player_gets_no_mail_and_is_named_in_none():
    ann, bob = reader("ann"), reader("bob")
    cup = make_tournament()
    tell_players([ann], cup, "it goes on")
    tell_players([bob], cup, "ann invites your bot")
    erase_player(player=ann)
    send_due_mail()
    [message] = mail.outbox
    assert message.to == ["bob@example.org"]
    assert "ann invites" not in message.body
    ann.refresh_from_db()
    assert ann.confirmed_email == ""
    assert read_clock() >= ann.erased_at
