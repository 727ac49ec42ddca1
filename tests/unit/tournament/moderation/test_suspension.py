"""Suspending a bot or a player: all at once, said beforehand, and lifted again."""

from __future__ import annotations

import re
from html import unescape

import pytest
from axes.models import AccessAttempt
from django.test import Client, RequestFactory

from tests.site_factory import Site, copy_site
from tests.tournament_factories import make_player, submit
from tournament.competitions.models import Entrant, Notice
from tournament.moderation.errors import ModerationError
from tournament.moderation.models import Suspension
from tournament.moderation.selectors import suspension_preview
from tournament.moderation.services import lift_suspension, suspend
from tournament.players import services as players
from tournament.players.errors import SubmissionError, TokenError
from tournament.players.models import Bot, Player
from tournament.scrimmages.models import Scrimmage


@pytest.fixture
def site(db) -> Site:
    return copy_site()


def logs_in(name: str) -> bool:
    form = {"username": name, "password": "correct horse 9"}
    return Client().post("/account/log-in/", form).status_code == 302


def answer_to_log_in(password: str, path: str = "/account/log-in/", name: str = "ann") -> str:
    answer = Client().post(path, {"username": name, "password": password})
    assert answer.status_code == 200
    return unescape(answer.text)


@pytest.mark.parametrize("path", ["/account/log-in/", "/admin/login/"])
def test_suspended_player_reads_why_after_the_right_password_alone(site, path):
    suspension = suspend(subject=site.ann, reason="shared <an> account", by=site.root)
    since = f"suspended since {suspension.at:%Y-%m-%d %H:%M} UTC: shared <an> account"
    assert since in answer_to_log_in("correct horse 9", path)
    wrong = answer_to_log_in("wrong", path)
    assert "suspended" not in wrong
    assert "shared" not in wrong
    assert complaints(wrong) == complaints(answer_to_log_in("wrong", path, "bob"))
    assert AccessAttempt.objects.get(username="ann").failures_since_start == 1, (
        "the right password is no failure, the wrong one is"
    )


def complaints(page: str) -> list[str]:
    return re.findall(r"Please enter [^<]+", page)


def test_account_that_was_closed_without_a_suspension_says_whom_to_ask(site):
    client = Client()
    assert client.login(
        request=RequestFactory().get("/"), username="ann", password="correct horse 9"
    )
    Player.objects.filter(pk=site.ann.pk).update(is_active=False)
    assert client.get("/account/").status_code == 302, "a session that was left open is nobody's"
    assert client.get("/api/me").status_code == 401
    assert "This account is closed: ask" in answer_to_log_in("correct horse 9")


def states(site: Site, bot: str) -> dict[str, str]:
    entrants = Entrant.objects.filter(bots__bot__name=bot)
    return dict(entrants.values_list("tournament__slug", "state"))


def test_suspended_player_is_out_of_everything_at_once(site):
    _, token = players.create_token(player=site.ann)
    client = Client()
    client.force_login(site.ann)
    suspension = suspend(subject=site.ann, reason="shared an account", by=site.root)
    assert client.get("/account/").status_code == 302
    assert not logs_in("ann")
    with pytest.raises(TokenError):
        players.authenticate_token(token)
    assert states(site, "alpha") == {
        "cup": "active",  # it is over, and its results stay
        "table": "disqualified",
        "open-one": "active",  # it plays if the suspension is lifted in time
    }
    table = site.table
    assert not table.pairings.filter(decided_by="", entrants__entrant__bots__bot__owner=site.ann)
    assert set(Scrimmage.objects.values_list("state", flat=True)) == {"cancelled"}
    assert set(Bot.objects.filter(owner=site.ann).values_list("paused_reason", flat=True)) == {
        "shared an account"
    }
    assert "Table, being played: alpha is disqualified" in "\n".join(suspension.effects)
    assert Notice.objects.filter(player=site.ann, text__contains="shared an account").exists()


def test_preview_says_just_what_is_done_and_changes_nothing(site):
    before = suspension_preview(site.ann)
    assert before == suspension_preview(site.ann)
    assert suspend(subject=site.ann, reason="x", by=site.root).effects == before


def test_lifting_opens_the_account_and_its_bots_but_brings_back_no_match(site):
    players.pause_bot(bot=site.bots[1], reason="another matter")
    suspension = suspend(subject=site.ann, reason="a mistake", by=site.root)
    lift_suspension(suspension=suspension, by=site.root)
    assert logs_in("ann")
    assert dict(Bot.objects.filter(owner=site.ann).values_list("name", "paused_reason")) == {
        "alpha": "",
        "aces": "another matter",  # which was paused for itself
    }
    assert states(site, "alpha")["table"] == "disqualified"
    assert submit(site.ann, "alpha", "3.0").state == "submitted"


def test_suspended_bot_leaves_its_owner_and_their_other_bots_alone(site):
    suspend(subject=site.bots[0], reason="it cheats", by=site.root)
    assert Player.objects.get(pk=site.ann.pk).is_active
    assert states(site, "alpha")["table"] == "disqualified"
    assert states(site, "aces")["table"] == "active"
    with pytest.raises(SubmissionError, match="it cheats"):
        submit(site.ann, "alpha", "3.0")


def test_bot_stays_paused_while_another_suspension_holds_it(site):
    of_bot = suspend(subject=site.bots[0], reason="it cheats", by=site.root)
    of_player = suspend(subject=site.ann, reason="so do they", by=site.root)
    lift_suspension(suspension=of_bot, by=site.root)
    assert Bot.objects.get(name="alpha").paused_reason == "it cheats"
    lift_suspension(suspension=of_player, by=site.root)
    assert Bot.objects.get(name="aces").paused_reason == ""


@pytest.mark.parametrize("whom", ["bot", "player"])
def test_who_may_pause_bots_lifts_no_suspension(site, whom):
    subject = site.bots[0] if whom == "bot" else site.ann
    suspension = suspend(subject=subject, reason="it cheats", by=site.root)
    client = Client()
    client.force_login(site.olga)
    for operation, form in (("lift", {}), ("pause", {"reason": "nothing to see"})):
        path = f"/admin/players/bot/operate/{operation}/?ids={site.bots[0].pk}"
        client.post(path, form)
        assert Bot.objects.get(name="alpha").paused_reason == "it cheats"
    lift_suspension(suspension=suspension, by=site.root)
    players.pause_bot(bot=Bot.objects.get(name="alpha"), reason="too loud")
    client.post(f"/admin/players/bot/operate/lift/?ids={site.bots[0].pk}")
    assert Bot.objects.get(name="alpha").paused_reason == ""


@pytest.mark.parametrize(
    ("who", "by", "reason", "message"),
    [
        ("ann", "root", " ", "give a reason"),
        ("root", "root", "x", "cannot suspend yourself"),  # nobody could lift it
        ("root", "olga", "x", "a superuser has to do that"),  # moderators judge players, not staff
        ("house", "root", "x", "is no person"),
    ],
)
def test_suspension_that_makes_no_sense_is_refused(site, who, by, reason, message):
    subject = players.ensure_house() if who == "house" else getattr(site, who)
    with pytest.raises(ModerationError, match=message):
        suspend(subject=subject, reason=reason, by=getattr(site, by))
    assert not Suspension.objects.exists()


def test_nobody_is_suspended_twice_and_nothing_is_lifted_twice(site):
    rude = make_player("rude")
    suspension = suspend(subject=rude, reason="x")
    with pytest.raises(ModerationError, match="suspended already"):
        suspend(subject=rude, reason="y")
    lift_suspension(suspension=suspension)
    with pytest.raises(ModerationError, match="was lifted"):
        lift_suspension(suspension=suspension)


def test_admin_shows_what_it_does_before_and_after(site):
    client = Client()
    client.force_login(site.root)
    path = f"/admin/players/player/operate/suspend/?ids={site.ann.pk}"
    assert "Table, being played: alpha is disqualified" in client.get(path).content.decode()
    answer = client.post(path, {"reason": "shared an account"}, follow=True)
    assert "Suspend: done for ann" in answer.content.decode()
    row = Suspension.objects.get()
    page = client.get(f"/admin/moderation/suspension/{row.pk}/change/").content.decode()
    assert "alpha is disqualified" in page
    client.post(f"/admin/moderation/suspension/operate/lift/?ids={row.pk}")
    row.refresh_from_db()
    assert row.lifted_by == site.root
