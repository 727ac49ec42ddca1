"""Scrimmages on the pages, in the API and in the admin: who sees what, what is refused, what it costs."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import msgspec
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from engine.agents import AgentLog
from engine.record import decode_record
from engine.referee import SeatLog
from tests.scrimmage_factories import make_scrimmage, play_out, version_of
from tests.tournament_factories import accept, make_bot, make_player, submit
from tournament.players import services as players
from tournament.players.models import Bot
from tournament.scrimmages import services
from tournament.scrimmages.models import Batch, Scrimmage, ScrimmageState
from tournament.store.clock import read_clock
from tournament.store.pulses import MEMORY
from tournament.store.services import put_blob


@pytest.fixture
def against_bob(site) -> Scrimmage:
    """ann's alpha against bob's beta, played to its end."""
    first, other = (version_of(Bot.objects.get(name=name)) for name in ("aces", "beta"))
    return play_out(make_scrimmage(first=first, other=other))


def text_of(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, path
    plain = re.sub(r"<(?:br|/?td|/th|/h\d|/p)[^>]*>", " ", answer.content.decode())
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", plain)))


def wish(site, **changes) -> dict[str, object]:
    own = version_of(site.bots[1])
    return {
        "first": own.pk,
        "other": "beta",
        "game": "eighty",
        "difference": "clear",
        "most_sets": "40",
        "time_control": "fast",
        **changes,
    }


def test_author_compares_a_version_with_another_bot(ann, site):
    answer = ann.post("/scrimmages/new/", wish(site), follow=True)
    row = Scrimmage.objects.latest("pk")
    assert answer.redirect_chain == [(f"/scrimmages/{row.pk}/", 302)]
    assert (str(row.first), str(row.other), row.asked_by) == ("aces 1.0", "beta 1.0", site.ann)
    page = text_of(ann, f"/scrimmages/{row.pk}/")
    assert "Is aces 1.0 better than beta 1.0? Nothing is known yet." in page
    assert "The next 20 sets: 2nd of 2 in the queue, begins in about" in page


def test_rules_are_chosen_as_by_the_api(ann, site):
    rules = {"eighty-target": "200", "eighty-nello": "false", "podkidnoe-max_draws": "1"}
    ann.post("/scrimmages/new/", wish(site, **rules, **{"eighty-min_bid": "50"}))
    row = Scrimmage.objects.latest("pk")
    assert row.ruleset == {
        "target": 200,
        "nello": False,
    }  # 50 is the usual bid, and no draws in Eighty
    assert "(nello: false, target: 200)" in text_of(ann, f"/scrimmages/{row.pk}/")
    page = ann.get("/scrimmages/new/").content.decode()
    assert page.count("if they are not the usual ones</summary>") == 2


def test_name_alone_of_ones_own_bot_means_its_newest_other_version(ann, site):
    new = accept(submit(site.ann, "aces", "2.0"))
    ann.post("/scrimmages/new/", wish(site, first=new.pk, other="aces"))
    row = Scrimmage.objects.latest("pk")
    assert (row.first.version, row.other.version) == ("2.0", "1.0")


def test_form_begins_with_the_newest_version_of_the_bot_whose_button_was_pressed(ann, site):
    new = accept(submit(site.ann, "aces", "2.0"))
    page = ann.get("/scrimmages/new/?other=aces").content.decode()
    assert f'<option value="{new.pk}" selected>aces 2.0</option>' in page
    assert 'value="aces"' in page


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"other": "nobody"}, "there is no bot called 'nobody'", id="no such bot"),
        pytest.param({"other": "beta 7"}, "beta has no version '7'", id="no such version"),
        pytest.param(
            {"other": "aces"}, "aces has no other version that was accepted", id="only one version"
        ),
        pytest.param({"other": "aces 1.0"}, "this is aces 1.0 itself", id="itself"),
        pytest.param({"most_sets": "5"}, "5 is not from 20", id="too few sets"),
        pytest.param({"game": "chess"}, "Select a valid choice", id="no such game"),
        pytest.param({"first": "0"}, "Select a valid choice", id="not one's own"),
        pytest.param({"eighty-target": "many"}, "target=many is not allowed", id="no such rule"),
    ],
)
def test_form_says_what_to_change_and_keeps_what_was_typed(ann, site, changes, says):
    before = Scrimmage.objects.count()
    answer = ann.post("/scrimmages/new/", wish(site, **changes))
    assert answer.status_code == 422
    page = unescape(answer.content.decode())
    assert says in page
    assert f'value="{changes.get("other", "beta")}"' in page
    assert Scrimmage.objects.count() == before


def test_bot_that_was_never_accepted_is_not_given_away(ann, site):
    submit(site.bob, "secret")
    answer = ann.post("/scrimmages/new/", wish(site, other="secret"))
    assert "there is no bot called 'secret'" in unescape(answer.content.decode())


def test_day_limit_is_told_with_the_moment_of_the_next(ann, site, settings):
    settings.ARENA_SCRIMMAGES_A_DAY = 1  # the site's own is one
    page = unescape(ann.post("/scrimmages/new/", wish(site)).content.decode())
    next_at = site.scrimmage.asked_at + timedelta(days=1)
    assert f"the next is possible at {next_at:%Y-%m-%d %H:%M:%S} UTC" in page
    assert f"the next is possible at {next_at:%Y-%m-%d %H:%M} UTC" in text_of(ann, "/scrimmages/")


def test_own_list_shows_where_each_stands(ann, site, against_bob):
    page = text_of(ann, "/scrimmages/")
    assert "aces 1.0 – beta 1.0" in page
    assert (
        "alpha 1.0 – aces 1.0 Eighty running 1st of 1 in the queue, begins in a few seconds 20 of 40"
        in page
    )
    assert "With your bots" not in page


def test_owner_of_the_other_bot_sees_that_it_was_used_and_how(bob, site, against_bob):
    assert "aces 1.0 – beta 1.0 asked by ann" in text_of(bob, "/scrimmages/")
    assert "Sets of aces 1.0" in text_of(bob, f"/scrimmages/{against_bob.pk}/")
    assert "Board 1" in text_of(bob, f"/scrimmages/{against_bob.pk}/batches/1/")
    answer = bob.get(f"/scrimmages/{against_bob.pk}/batches/1/record.json")
    assert decode_record(answer.content).digest == against_bob.batches.get().digest


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("ann", 200),  # who asked
        ("bob", 200),  # owns the other bot
        ("cid", 404),  # anyone else
        ("olga", 200),  # staff
    ],
)
def test_results_are_for_both_owners_and_staff(site, against_bob, name, outcome):
    client = Client()
    client.force_login(getattr(site, name, None) or make_player(name))
    base = f"/scrimmages/{against_bob.pk}/"
    for path in (base, f"{base}batches/1/", f"{base}batches/1/record.json"):
        assert client.get(path).status_code == outcome


@pytest.mark.parametrize(
    ("name", "outcome", "state"),
    [
        ("ann", 302, ScrimmageState.CANCELLED),  # who asked
        ("bob", 404, ScrimmageState.WAITING),  # owns the other bot
        ("olga", 404, ScrimmageState.WAITING),  # staff do it in the admin, with a reason
    ],
)
def test_who_asked_cancels(site, name, outcome, state):
    first, other = (version_of(Bot.objects.get(name=each)) for each in ("aces", "beta"))
    row = make_scrimmage(first=first, other=other)
    client = Client()
    client.force_login(getattr(site, name))
    assert client.post(f"/scrimmages/{row.pk}/cancel/").status_code == outcome
    row.refresh_from_db()
    assert row.state == state


def test_what_is_over_cannot_be_cancelled_and_says_so(ann, site, against_bob):
    answer = ann.post(f"/scrimmages/{against_bob.pk}/cancel/", follow=True)
    assert "It cannot be cancelled: it is finished already." in answer.content.decode()


def test_each_owner_reads_the_logs_of_the_own_bot_alone(ann, bob, olga, site, against_bob):
    logs = [
        SeatLog(
            entrant=entrant,
            bot=0,
            rotation=0,
            seat=entrant,
            sitting=0,
            log=AgentLog(text=f"secret of {name}"),
        )
        for entrant, name in enumerate(("aces", "beta"))
    ]
    against_bob.batches.update(logs_sha256=put_blob(msgspec.json.encode(logs)))
    path = f"/scrimmages/{against_bob.pk}/batches/1/"
    found = {
        name: re.findall(r"secret of \w+", text_of(client, path))
        for name, client in (("ann", ann), ("bob", bob), ("olga", olga))
    }
    assert found == {"ann": ["secret of aces"], "bob": ["secret of beta"], "olga": []}


def test_page_of_an_open_one_renews_itself_and_that_of_an_ended_one_does_not(
    ann, site, against_bob
):
    open_page = ann.get(f"/scrimmages/{site.scrimmage.pk}/").content.decode()
    ended = ann.get(f"/scrimmages/{against_bob.pk}/").content.decode()
    assert ("data-live" in open_page, "live.js" in open_page) == (True, True)
    assert ("data-live" in ended, "live.js" in ended) == (False, False)


def test_expired_record_is_said_to_be_and_its_numbers_stay(ann, site, against_bob):
    Batch.objects.update(played_at=read_clock() - timedelta(days=15))
    services.expire_records(before=read_clock() - timedelta(days=14))
    path = f"/scrimmages/{against_bob.pk}/"
    assert "expired" in text_of(ann, path)
    assert "Sets of aces 1.0" in text_of(ann, path)
    assert against_bob.batches.get().digest in text_of(ann, f"{path}batches/1/")
    text_of(ann, f"{path}batches/1/record.json", 404)


def test_owner_says_whether_others_may_compare_with_a_bot(ann, bob, site):
    assert "Compare" in text_of(ann, "/bots/beta/")
    bob.post("/scrimmages/allow/beta/", follow=True)
    assert not Bot.objects.get(name="beta").allows_scrimmages
    assert "Compare" not in text_of(ann, "/bots/beta/")
    assert "Compare" in text_of(bob, "/bots/beta/")
    answer = ann.post("/scrimmages/new/", wish(site))
    assert "the owner of beta does not allow scrimmages" in unescape(answer.content.decode())
    bob.post("/scrimmages/allow/beta/", {"allowed": "on"})
    assert Bot.objects.get(name="beta").allows_scrimmages
    assert ann.post("/scrimmages/allow/beta/").status_code == 404


def test_visitor_is_offered_no_comparison(client, site):
    assert "Compare" not in text_of(client, "/bots/beta/")


def test_fault_ends_it_in_words(ann, site, against_bob):
    Scrimmage.objects.filter(pk=against_bob.pk).update(
        answer="fault", reason="beta on seat 1: crashed. <b>raised</b> ValueError"
    )
    page = ann.get(f"/scrimmages/{against_bob.pk}/").content.decode()
    assert "a fault ended a match" in page
    assert "&lt;b&gt;raised&lt;/b&gt;" in page


@pytest.mark.parametrize("path", ["/scrimmages/", "/scrimmages/{pk}/", "/scrimmages/new/"])
def test_pages_ask_as_often_for_many_as_for_few(ann, site, settings, path):
    settings.ARENA_SCRIMMAGES_OPEN = 100
    settings.ARENA_SCRIMMAGES_A_DAY = 100
    path = path.format(pk=site.scrimmage.pk)

    def count() -> int:
        MEMORY.forget()  # what the queue's state costs is asked each time
        with CaptureQueriesContext(connection) as captured:
            text_of(ann, path)
        return len(captured)

    few = count()
    for number in range(8):
        make_bot(f"more{number}")
        make_scrimmage(first=site.scrimmage.first, other=site.scrimmage.other)
    assert count() == few <= 16


# The API


def call(method: str, path: str, token: str, body: object = None):
    send = getattr(Client(), method)
    arguments = (body, "application/json") if body is not None else ()
    return send(f"/api/scrimmages{path}", *arguments, HTTP_AUTHORIZATION=f"Bearer {token}")


BODY = {"bot": "aces", "against": "beta", "game": "eighty", "most_sets": 20, "time_control": "fast"}


def test_program_asks_waits_and_reads_the_answer(site, token):
    made = call("post", "", token, BODY)
    assert made.status_code == 201
    told = made.json()
    assert (told["state"], told["is_over"], told["verdict"]) == ("waiting", False, None)
    play_out(Scrimmage.objects.get(pk=told["id"]))
    found = call("get", f"/{told['id']}", token).json()
    assert found["is_over"]
    assert found["verdict"] in {"better", "not_better", "undecided"}
    assert sum(found["counts"]) == found["sets"]
    assert found["command"].endswith(f"--seed {found['seed']} --elo0 0 --elo1 30 --max-sets 20")
    assert len(found["digests"]) == 1
    assert found["sandboxed"] is False
    listed = call("get", "", token).json()
    assert [row["id"] for row in listed["scrimmages"]] == [told["id"], site.scrimmage.pk]
    assert listed["next"] is None


@pytest.mark.parametrize(
    ("changes", "status", "code", "says"),
    [
        pytest.param(
            {"bot": "beta"}, 422, "invalid", "you have no bot called 'beta'", id="not own"
        ),
        pytest.param({"against": "x"}, 422, "invalid", "no bot called 'x'", id="no such bot"),
        pytest.param({"most_sets": 1}, 422, "invalid", "1 is not from 20", id="too few"),
        pytest.param({"difference": "huge"}, 422, "invalid", "difference", id="no such difference"),
        pytest.param({"game": "chess"}, 422, "invalid", "accepted for chess", id="no such game"),
        pytest.param({"ruleset": {"x": 1}}, 422, "invalid", "ruleset: ", id="no such option"),
    ],
)
def test_program_is_told_what_to_change(site, token, changes, status, code, says):
    answer = call("post", "", token, {**BODY, **changes})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert says in error["message"]


def test_program_is_told_when_the_next_is_possible(site, token, settings):
    settings.ARENA_SCRIMMAGES_A_DAY = 1
    answer = call("post", "", token, BODY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "quota")
    (next_at,) = answer.json()["error"]["details"]
    assert next_at == (site.scrimmage.asked_at + timedelta(days=1)).isoformat()


def test_program_cancels_what_it_asked_for(site, token):
    path = f"/{site.scrimmage.pk}"
    assert call("delete", path, token).json()["state"] == "cancelled"
    assert call("delete", path, token).json()["error"]["code"] == "not_open"


@pytest.mark.parametrize(
    ("name", "seen", "cancelled"),
    [
        ("bob", 200, 403),  # owns the other bot
        ("olga", 404, 404),  # a token gives no rights of staff
        ("cid", 404, 404),  # anyone else
    ],
)
def test_token_of_another_reads_only_what_is_of_their_bots(site, name, seen, cancelled):
    first, other = (version_of(Bot.objects.get(name=each)) for each in ("aces", "beta"))
    row = make_scrimmage(first=first, other=other)
    player = getattr(site, name, None) or make_player(name)
    _, theirs = players.create_token(player=player, scope="submit")
    assert call("get", f"/{row.pk}", theirs).status_code == seen
    assert call("delete", f"/{row.pk}", theirs).status_code == cancelled
    row.refresh_from_db()
    assert row.is_open


def test_reading_token_asks_for_nothing(site):
    _, reading = players.create_token(player=site.ann, scope="read")
    assert call("post", "", reading, BODY).status_code == 403
    assert call("get", "", reading).status_code == 200


# The admin


def test_staff_filter_search_cancel_and_play_on(olga, site, against_bob):
    base = "/admin/scrimmages/scrimmage/"
    assert "aces 1.0" in text_of(olga, f"{base}?state__exact=finished&q=beta")
    assert "1 scrimmage" in text_of(olga, f"{base}?state__exact=waiting")
    olga.post(
        f"{base}operate/cancel/?ids={site.scrimmage.pk}", {"reason": "the site is too busy today"}
    )
    site.scrimmage.refresh_from_db()
    assert site.scrimmage.reason == "by staff: the site is too busy today"
    answer = olga.post(f"{base}operate/retry/?ids={against_bob.pk}", follow=True)
    assert "it is not stuck" in answer.content.decode()
