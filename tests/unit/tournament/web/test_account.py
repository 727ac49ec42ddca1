"""Accounts, tokens, uploads, entries: what a player does in a browser."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.sessions.models import Session
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import F
from django.test import Client

from tests.tournament_factories import (
    entrant_of,
    make_bot,
    make_tournament,
    make_wheel,
    start,
    submit,
)
from tournament.players import services as players
from tournament.players.models import BotVersion, Player, SignUp
from tournament.players.services import authenticate_token
from tournament.players.views import client_address

PASSWORD = "correct horse 9"


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def wheel_file(data: bytes, name: str = "bot-1.0-py3-none-any.whl") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data, content_type="application/octet-stream")


SIGN_UP = {"username": "dora", "email": "", "password1": PASSWORD, "password2": PASSWORD}


def test_who_signs_up_is_logged_in(client, db):
    answer = client.post("/account/sign-up/", SIGN_UP, follow=True)
    assert answer.redirect_chain == [("/account/bots/", 302)]
    assert answer.context["user"].username == "dora"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"password2": "another horse 9"}, "The two passwords differ"),
        ({"password1": "12345", "password2": "12345"}, "too short"),
        ({"username": "a b"}, "Enter a valid username"),
        ({"username": "house"}, "reserved"),
    ],
)
def test_account_that_cannot_be_made_says_what_to_change(client, db, changes, message):
    answer = client.post("/account/sign-up/", {**SIGN_UP, **changes})
    assert message in answer.content.decode()
    assert not Player.objects.exists()


def test_log_in_leads_on_to_the_page_asked_for_but_to_no_other_site(client, site):
    data = {"username": "ann", "password": PASSWORD}
    there = client.post("/account/log-in/", {**data, "next": "/account/tokens/"})
    assert there["Location"] == "/account/tokens/"
    elsewhere = client.post("/account/log-in/", {**data, "next": "https://evil.example/"})
    assert elsewhere["Location"] == "/account/bots/"


def test_log_out_takes_a_post(ann):
    ann.post("/account/log-out/")
    assert ann.get("/account/").status_code == 302


def test_forms_need_their_csrf_token(site):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(site.ann)
    answer = strict.post("/tournaments/open-one/leave/", {"entrant": "1"})
    assert answer.status_code == 403
    assert "out of date" in answer.content.decode()


def test_account_page_changes_the_time_zone_and_the_password(ann, site):
    assert "autofocus" not in ann.get("/account/").content.decode()  # a phone would scroll to it
    ann.post(
        "/account/", {"form": "account", "account-time_zone": "Europe/Oslo", "account-email": ""}
    )
    site.ann.refresh_from_db()
    assert site.ann.time_zone == "Europe/Oslo"
    new = "battery staple 8"
    change = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    ann.post("/account/", {"form": "password", **{f"password-{k}": v for k, v in change.items()}})
    site.ann.refresh_from_db()
    assert site.ann.check_password(new)
    assert ann.get("/account/").status_code == 200  # still logged in


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"password-revoke_tokens": "on"}, "Your 2 API tokens are revoked"),
        ({}, "Your API tokens go on"),
    ],
)
def test_who_changes_the_password_says_whether_tokens_end_with_it(ann, site, sent, said):
    tokens = [players.create_token(player=site.ann, name=name)[0] for name in ("laptop", "ci")]
    others = players.create_token(player=site.bob)[0]
    elsewhere = Client()
    elsewhere.force_login(site.ann)
    assert (
        "checked"
        in re.search(r"<input[^>]+password-revoke_tokens[^>]+>", text_of(ann, "/account/"))[0]
    )
    new = "battery staple 8"
    change = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    form = {"form": "password", **{f"password-{k}": v for k, v in change.items()}, **sent}
    assert said in ann.post("/account/", form, follow=True).text
    assert elsewhere.get("/account/").status_code == 302
    for token in (*tokens, others):
        token.refresh_from_db()
    assert [token.revoked_at is not None for token in (*tokens, others)] == [bool(sent)] * 2 + [
        False
    ]


def test_token_is_shown_once_works_and_can_be_revoked(ann, site):
    made = ann.post(
        "/account/tokens/", {"name": "laptop", "scope": "submit", "days": "30"}, follow=True
    )
    text = re.search(r'class="secret">([^<]+)<', made.content.decode())[1]
    token = authenticate_token(text)
    assert (token.player, token.name, token.scope) == (site.ann, "laptop", "submit")
    again = text_of(ann, "/account/tokens/")
    assert text not in again
    assert token.prefix in again
    ann.post(f"/account/tokens/{token.prefix}/revoke/")
    assert "revoked" in text_of(ann, "/account/tokens/")
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_fresh_token_is_stored_nowhere(ann, site):
    answer = ann.post("/account/tokens/", {"name": "laptop", "scope": "read", "days": "30"})
    text = re.search(r'class="secret">([^<]+)<', answer.content.decode())[1]
    assert authenticate_token(text).name == "laptop"
    kept = [row.get_decoded() for row in Session.objects.all()]
    assert kept
    assert not [row for row in kept if text in str(row)]
    assert text not in text_of(ann, "/account/tokens/")


def fail_to_log_in(client, name: str, path: str = "/account/log-in/", **extra):
    return client.post(path, {"username": name, "password": "wrong"}, **extra)


@pytest.mark.parametrize("path", ["/account/log-in/", "/admin/login/"])
def test_many_wrong_passwords_make_an_address_wait_with_a_name(client, site, settings, path):
    site.ann.set_password("the right one")
    site.ann.save()
    answers = [fail_to_log_in(client, "ann", path) for _ in range(settings.AXES_FAILURE_LIMIT)]
    assert [answer.status_code for answer in answers[:-1]] == [200] * (len(answers) - 1)
    for answer in (
        answers[-1],
        client.post("/account/log-in/", {"username": "ann", "password": "the right one"}),
    ):
        assert answer.status_code == 429
        assert 0 < int(answer["Retry-After"]) <= 601
        assert re.search(r"Try again at \d\d:\d\d UTC, in (9|10) minutes", answer.content.decode())
    assert fail_to_log_in(client, "bob").status_code == 200  # another name
    assert fail_to_log_in(client, "ann", REMOTE_ADDR="10.0.0.9").status_code == 200  # and address


def test_waiting_ends_and_a_right_password_clears_the_count(client, site, settings):
    site.ann.set_password("the right one")
    site.ann.save()
    right = {"username": "ann", "password": "the right one"}
    for _ in range(settings.AXES_FAILURE_LIMIT - 1):
        fail_to_log_in(client, "ann")
    assert client.post("/account/log-in/", right).status_code == 302
    assert not AccessAttempt.objects.exists()
    client.logout()
    for _ in range(settings.AXES_FAILURE_LIMIT):
        fail_to_log_in(client, "ann")
    AccessAttempt.objects.update(
        attempt_time=F("attempt_time") - settings.AXES_COOLOFF_TIME - timedelta(seconds=1)
    )
    assert client.post("/account/log-in/", right).status_code == 302


def test_password_that_was_tried_is_not_kept(client, site):
    client.post("/account/log-in/", {"username": "ann", "password": "hunter-two"})
    assert "hunter-two" not in str(AccessAttempt.objects.values())


@pytest.mark.parametrize(
    ("https", "forwarded", "expected"),
    [
        (False, "10.0.0.1", "127.0.0.1"),  # anybody can send the header
        (True, "6.6.6.6, 10.0.0.1", "10.0.0.1"),  # the last one is the server's before the site
        (True, "", "127.0.0.1"),
        (True, "nonsense", None),
        (
            True,
            "::ffff:192.0.2.7",
            "192.0.2.7",
        ),  # IPv4 where IPv6 listens for both: not all of it one /64
    ],
)
def test_address_is_taken_from_whom_can_be_trusted(rf, settings, https, forwarded, expected):
    settings.HTTPS = https
    request = rf.get("/", **({"HTTP_X_FORWARDED_FOR": forwarded} if forwarded else {}))
    assert client_address(request) == expected


def test_one_address_makes_so_many_accounts_an_hour(db, settings):
    settings.SIGN_UPS_AN_HOUR = 2

    def make(name, **extra):
        data = {"username": name, "password1": "long enough 1", "password2": "long enough 1"}
        return Client().post("/account/sign-up/", data, **extra)

    assert [make(f"one{number}").status_code for number in range(2)] == [302, 302]
    refused = make("one2")
    assert re.search(r"try again at \d\d:\d\d UTC", refused.content.decode())
    assert make("other", REMOTE_ADDR="10.0.0.9").status_code == 302
    SignUp.objects.update(at=F("at") - timedelta(hours=1, seconds=1))
    assert make("one2").status_code == 302
    assert SignUp.objects.count() == 1
    own_network = [f"2001:db8::{number}" for number in range(1, 4)]
    assert [
        make(f"six{number}", REMOTE_ADDR=address).status_code
        for number, address in enumerate(own_network)
    ] == [302, 302, 200], "who has one address of IPv6 has all of its /64"


def test_nobody_revokes_the_token_of_another(bob, token):
    prefix = token.partition(".")[0]
    assert bob.post(f"/account/tokens/{prefix}/revoke/").status_code == 404
    assert authenticate_token(token)


def test_uploaded_wheel_gets_a_page_that_tells_how_it_goes(ann):
    answer = ann.post("/account/upload/", {"wheel": wheel_file(make_wheel("alpha", "3.0"))})
    version = BotVersion.objects.get(version="3.0")
    assert answer["Location"] == f"/account/versions/{version.pk}/"
    assert "waiting to be checked" in text_of(ann, answer["Location"])


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"no zip at all", "bot.whl", "cannot be taken"),  # every reason of the wheel reader
        (b"x", "bot.zip", "its name must end in .whl"),
        (b"", "bot.whl", "empty"),
    ],
)
def test_file_that_is_no_wheel_is_refused_with_the_reason(ann, data, name, message):
    answer = ann.post("/account/upload/", {"wheel": wheel_file(data, name)})
    assert message in answer.content.decode()
    assert not BotVersion.objects.filter(bot__name="bot").exists()


def test_wheel_over_the_limit_is_refused(ann, settings):
    settings.WHEEL_MAX_BYTES = 100
    answer = ann.post("/account/upload/", {"wheel": wheel_file(make_wheel("alpha", "3.0"))})
    assert "(100 bytes), the most that is allowed" in answer.content.decode()


def test_wheel_of_somebody_elses_bot_is_refused(bob):
    answer = bob.post("/account/upload/", {"wheel": wheel_file(make_wheel("alpha", "3.0"))})
    assert answer.status_code == 422
    assert "belongs to someone else" in answer.content.decode()


def test_my_bots_show_reason_log_and_entries_to_their_owner(ann, bob, site):
    page = text_of(ann, "/account/bots/")
    assert "illegal action: &lt;b&gt;bid 55&lt;/b&gt;" in page
    assert f"/account/versions/{site.rejected.pk}/log/" in page
    assert "1.0 would play as things stand" in page
    assert "illegal action" not in text_of(bob, "/account/bots/")


def test_log_is_text_whatever_it_says(ann, site):
    page = text_of(ann, f"/account/versions/{site.rejected.pk}/log/")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert" not in page


def test_wheel_is_given_back_as_it_was_submitted(ann):
    version = BotVersion.objects.get(bot__name="alpha", version="1.0")
    answer = ann.get(f"/account/versions/{version.pk}/wheel/")
    assert answer.content == make_wheel("alpha", "1.0")
    assert answer["Content-Disposition"].startswith("attachment")


def test_owner_withdraws_a_version_and_nobody_else_can(ann, bob, site):
    version = submit(site.ann, "alpha", "4.0")
    assert bob.post(f"/account/versions/{version.pk}/withdraw/").status_code == 404
    ann.post(f"/account/versions/{version.pk}/withdraw/")
    version.refresh_from_db()
    assert version.state == "withdrawn"
    assert (
        "cannot become"
        in ann.post(f"/account/versions/{version.pk}/withdraw/", follow=True).content.decode()
    )


def test_version_of_a_paused_bot_says_that_it_waits_for_the_pause(ann, site):
    version = submit(site.ann, "alpha", "4.0")
    assert "less than a minute" in text_of(ann, f"/account/versions/{version.pk}/")
    players.pause_bot(bot=version.bot, reason="under <suspicion>")
    page = text_of(ann, f"/account/versions/{version.pk}/")
    assert "is paused by staff:</strong> under &lt;suspicion&gt;" in page
    assert "less than a minute" not in page


def test_bot_enters_and_leaves_by_the_buttons(ann, site):
    ann.post("/tournaments/open-one/enter/", {"bot": "aces"})
    entrant = entrant_of(site.open, "aces")
    answer = ann.post("/tournaments/open-one/leave/", {"entrant": entrant.pk, "back": "my-bots"})
    assert answer["Location"] == "/account/bots/"
    assert not site.open.entrants.filter(name="aces").exists()


@pytest.mark.parametrize(
    ("action", "data", "message"),
    [
        ("enter", {"bot": "alpha"}, "has entered already"),
        ("enter", {"bot": "beta"}, "bot: that is not a bot of yours"),  # bob's
        ("enter", {}, "bot: This field is required"),
        ("leave", {"entrant": "999999"}, "entrant: that is not an entry of yours"),
    ],
)
def test_entry_that_cannot_be_says_why(ann, site, action, data, message):
    answer = ann.post(f"/tournaments/open-one/{action}/", data, follow=True)
    assert message in answer.content.decode()
    assert list(site.open.entrants.values_list("name", flat=True)) == ["alpha"]


def test_nobody_takes_out_the_entrant_of_another(bob, site):
    entrant = entrant_of(site.open, "alpha")
    bob.post("/tournaments/open-one/leave/", {"entrant": entrant.pk})
    assert site.open.entrants.filter(name="alpha").exists()


def test_who_leaves_after_the_close_withdraws(ann, site):
    started = start(make_tournament(site.bots, name="Late"))
    entrant = entrant_of(started, "alpha")
    assert "Withdraw" in text_of(ann, f"/tournaments/{started.slug}/")
    ann.post(f"/tournaments/{started.slug}/leave/", {"entrant": entrant.pk})
    entrant.refresh_from_db()
    assert entrant.state == "withdrawn"


def test_pair_enters_by_naming_both(ann, site):
    pairs = make_tournament([], name="Pairs", kind="pair")
    assert "Partner" in text_of(ann, f"/tournaments/{pairs.slug}/")
    ann.post(f"/tournaments/{pairs.slug}/enter/", {"bot": "alpha", "partner": "aces"})
    assert pairs.entrants.get().name == "alpha + aces"


def test_paused_bot_is_offered_no_entry(ann, site):
    bot = make_bot("resting", site.ann)
    bot.paused_reason = "asked to"
    bot.save()
    page = text_of(ann, "/tournaments/open-one/")
    assert 'value="resting"' not in page
    assert 'value="aces"' in page


def test_who_enters_a_bot_of_another_is_told_so(ann, site):
    answer = ann.post("/tournaments/open-one/enter/", {"bot": "beta"}, follow=True)
    assert "that is not a bot of yours" in answer.content.decode()
