"""What pages, the API and the admin tell of trials at entry, and to whom."""

from __future__ import annotations

import pytest

from tests.tournament_factories import accept, make_tournament, make_wheel
from tournament.competitions import services as competitions
from tournament.competitions.models import EntryTrial, TrialState
from tournament.competitions.services.trials import request_due_trials, run_trial
from tournament.players import services as players
from tournament.players.models import Bot

CANNOT = """
from engine.sdk import Strategy, hookimpl


class Cannot(Strategy):
    def act(self, observation):
        print("<b>thinking</b>")
        raise RuntimeError("no plan")


@hookimpl
def make_strategy(game, ruleset, players):
    return Cannot()
"""


@pytest.fixture
def cup(site, tmp_path):
    """ann's `cannot` and bob's beta have entered; what it asks has not been tried yet."""
    wheel = make_wheel("cannot", "1.0", CANNOT, tmp_path)
    bot = accept(players.submit_wheel(owner=site.ann, data=wheel)).bot
    beta = Bot.objects.get(name="beta")
    return make_tournament([bot, beta], name="Hurry", organiser=site.olga, time_control="fast")


@pytest.fixture
def failed(cup) -> EntryTrial:
    """The trial of ann's bot, that it failed; beta has passed its own."""
    request_due_trials()
    for trial in EntryTrial.objects.order_by("pk"):
        assert run_trial(trial_id=trial.pk, trusted=True)
    return EntryTrial.objects.get(version__bot__name="cannot")


def text_of(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_would_not_play_is_shown_to_owner_and_organiser_alone(failed, ann, bob, olga, client):
    told = "would not play: Eighty by the default rules at 4 seats"
    assert told in text_of(ann, "/tournaments/hurry/")
    assert told in text_of(olga, "/tournaments/hurry/")
    assert told not in text_of(bob, "/tournaments/hurry/")
    assert told not in text_of(client, "/tournaments/hurry/")


def test_owner_reads_why_and_what_it_printed(failed, ann, bob, olga, client):
    address = f"/account/trials/{failed.pk}/"
    assert address in text_of(ann, "/tournaments/hurry/")
    assert address not in text_of(olga, "/tournaments/hurry/")
    page = text_of(ann, address)
    assert "Eighty by the default rules at 4 seats in the time control fast" in page
    assert "RuntimeError: no plan" in page
    assert "&lt;b&gt;thinking" in page
    assert bob.get(address).status_code == 404
    assert olga.get(address).status_code == 404
    assert client.get(address).status_code == 302


def test_owner_gets_a_notice(failed, ann, bob):
    assert "cannot 1.0 would not play in Hurry" in text_of(ann, "/tournaments/hurry/")
    assert "would not play in Hurry" not in text_of(bob, "/account/bots/")


def test_own_bots_tell_what_will_be_tried(cup, bob):
    page = text_of(bob, "/tournaments/hurry/")
    assert "1.0 is tried under these rules before it plays" in page  # beta has entered
    assert "1.0 is tried under these rules once it has entered" in page  # bricks has not


def test_closed_tournament_tells_which_trials_it_waits_for(cup, client):
    competitions.close_tournament(tournament=cup, now=cup.closes_at)
    page = text_of(client, "/tournaments/hurry/")
    assert "tried under these rules: waiting to be tried" in page
    awaited = client.get("/api/tournaments/hurry").json()["awaited"]
    (beta,) = [each for each in awaited if each["bot"] == "beta"]
    assert (beta["version"], beta["state"]) == ("1.0", "pending")
    assert "of 2 in the queue" in beta["queue"]


def test_staff_have_a_trial_played_again(failed, olga, bob):
    base = "/admin/competitions/entrytrial/"
    page = text_of(olga, f"{base}{failed.pk}/change/")
    assert "in the time control fast" in page
    operate = f"{base}operate/retry/?ids={failed.pk}"
    assert bob.post(operate).status_code == 302
    failed.refresh_from_db()
    assert failed.state == TrialState.FAILED
    olga.post(operate, {"confirmed": "on"})
    failed.refresh_from_db()
    assert failed.state == TrialState.PENDING


def test_bot_that_has_failed_is_refused_with_the_reason(failed, ann):
    make_tournament(name="Hurry Again", time_control="fast", organiser=failed.version.bot.owner)
    ann.post("/tournaments/hurry-again/enter/", {"bot": "cannot"})
    assert "would not play: Eighty" in text_of(ann, "/tournaments/hurry-again/")
