"""The API: tokens, submissions, entries, reading; errors of one shape."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from engine.record import decode_record
from tests.tournament_factories import entrant_of, make_bot, make_tournament, make_wheel, start
from tournament.competitions.services import cancel_tournament
from tournament.players import services as players
from tournament.players.models import ApiToken, BotVersion
from tournament.store.pulses import MEMORY


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def api(token) -> Client:
    """A program of ann's."""
    return Client(headers=bearer(token))


@pytest.fixture
def bobs_api(site) -> Client:
    _, text = players.create_token(player=site.bob, scope="submit")
    return Client(headers=bearer(text))


def error_of(answer) -> dict:
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "details"}
    return body["error"]


def test_me_tells_whose_token_it_is(api):
    me = api.get("/api/me").json()
    assert (me["username"], me["bots"], me["scope"]) == ("ann", ["aces", "alpha"], "submit")


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ({}, "no_token"),
        ({"Authorization": "Basic abc"}, "no_token"),  # another scheme
        ({"Authorization": "Bearer abc.def"}, "bad_token"),  # unknown
        ({"Authorization": "Bearer nonsense"}, "bad_token"),  # no dot
    ],
)
def test_who_has_no_token_is_told_how_to_get_one(client, site, header, code):
    answer = client.get("/api/me", headers=header)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"
    assert error_of(answer)["code"] == code


@pytest.mark.parametrize("ending", ["revoked", "expired"])
def test_token_that_has_ended_lets_nobody_in(api, ending):
    token = ApiToken.objects.get()
    if ending == "revoked":
        players.revoke_token(token=token)
    else:
        token.expires_at = token.created_at - timedelta(days=1)
        token.save()
    assert api.get("/api/me").status_code == 401


def test_reading_token_reads_but_submits_nothing(site):
    _, text = players.create_token(player=site.ann, scope="read")
    program = Client(headers=bearer(text))
    assert program.get(f"/api/versions/{site.rejected.pk}").status_code == 200
    answer = program.post("/api/versions", make_wheel("zeta"), "application/octet-stream")
    assert answer.status_code == 403
    assert error_of(answer)["code"] == "scope"
    assert (
        program.post("/api/tournaments/open-one/entries", {}, "application/json").status_code == 403
    )
    assert program.delete("/api/tournaments/open-one/entries/alpha").status_code == 403


def test_cookies_let_nobody_act(ann, site):
    answer = ann.post("/api/versions", make_wheel("zeta"), "application/octet-stream")
    assert answer.status_code == 401
    assert not BotVersion.objects.filter(bot__name="zeta").exists()


def test_upload_over_the_quota_is_told_so(api, settings):
    settings.ARENA_UPLOADS_A_DAY = 1
    answer = api.post("/api/versions", make_wheel("zeta"), "application/octet-stream")
    assert answer.status_code == 429
    assert error_of(answer)["code"] == "quota"
    assert "within 24 hours" in error_of(answer)["message"]


@pytest.mark.parametrize("form", [False, True], ids=["as the body", "as a form's field"])
def test_wheel_is_submitted_once_and_then_known(api, form):
    def send():
        wheel = make_wheel("alpha", "3.0")
        if form:
            return api.post("/api/versions", {"wheel": SimpleUploadedFile("a.whl", wheel)})
        return api.post("/api/versions", wheel, "application/octet-stream")

    first, second = send(), send()
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert first.json()["state"] == "submitted"
    assert first.json()["is_decided"] is False


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "no_wheel"),
        (b"no zip", 422, "bad_wheel"),
        (make_wheel("beta", "9.0"), 409, "name_taken"),  # bob's
    ],
    ids=["nothing", "no wheel", "bob's"],
)
def test_wheel_that_cannot_be_taken_is_refused_with_the_reason(api, body, status, code):
    answer = api.post("/api/versions", body, "application/octet-stream")
    assert answer.status_code == status
    assert error_of(answer)["code"] == code


def test_every_reason_against_a_wheel_is_in_the_details(api):
    error = error_of(api.post("/api/versions", b"no zip", "application/octet-stream"))
    assert error["details"]
    assert error["details"][0] in error["message"]


def test_form_without_the_field_says_its_name(api):
    answer = api.post("/api/versions", {"file": SimpleUploadedFile("a.whl", b"x")})
    assert answer.status_code == 400
    assert "“wheel”" in error_of(answer)["message"]


def test_changed_wheel_of_the_same_version_is_a_conflict(api, tmp_path):
    source = "from engine.sdk import hookimpl\n\n@hookimpl\ndef make_strategy(game, ruleset, players):\n    return None\n"
    other = make_wheel("alpha", "1.0", source, tmp_path)
    answer = api.post("/api/versions", other, "application/octet-stream")
    assert answer.status_code == 409
    assert error_of(answer)["code"] == "version_exists"


def test_wheel_over_the_limit_is_too_large(api, settings):
    settings.WHEEL_MAX_BYTES = 100
    answer = api.post("/api/versions", make_wheel("alpha", "3.0"), "application/octet-stream")
    assert answer.status_code == 413
    assert error_of(answer)["code"] == "too_large"


def test_owner_reads_status_and_log_of_a_version(api, site):
    version = api.get(f"/api/versions/{site.rejected.pk}").json()
    assert (version["state"], version["has_log"], version["games"]) == ("rejected", True, {})
    assert "illegal action" in version["reason"]
    log = api.get(f"/api/versions/{site.rejected.pk}/log")
    assert log["Content-Type"] == "text/plain; charset=utf-8"
    assert b"<script>" in log.content


@pytest.mark.parametrize("tail", ["", "/log"])
def test_versions_of_others_are_not_there(bobs_api, site, tail):
    answer = bobs_api.get(f"/api/versions/{site.rejected.pk}{tail}")
    assert answer.status_code == 404
    assert error_of(answer)["code"] == "not_found"


def test_accepted_version_tells_its_games(api, site):
    version = BotVersion.objects.get(bot__name="alpha", version="1.0")
    games = api.get(f"/api/versions/{version.pk}").json()["games"]
    assert games == {"eighty": {"players": [4]}, "podkidnoe": {"players": [2, 3, 4]}}


def test_bots_are_listed_and_searched(client, site):
    bots = client.get("/api/bots").json()
    assert [bot["name"] for bot in bots["bots"]] == ["aces", "alpha", "beta", "bricks"]
    assert bots["next"] is None
    found = client.get("/api/bots?q=bob&game=eighty").json()["bots"]
    assert [bot["name"] for bot in found] == ["beta", "bricks"]
    assert error_of(client.get("/api/bots?game=chess"))["code"] == "invalid"
    assert error_of(client.get("/api/bots?page=x"))["details"] == [
        "page: Input should be a valid integer, unable to parse string as an integer"
    ]


def test_tournaments_are_listed_by_state(client, site):
    listed = client.get("/api/tournaments").json()["tournaments"]
    assert {row["slug"] for row in listed} == {"cup", "table", "open-one"}
    running = client.get("/api/tournaments?state=running&game=eighty").json()["tournaments"]
    assert [row["slug"] for row in running] == ["table"]
    assert "there are: draft" in error_of(client.get("/api/tournaments?state=hot"))["message"]


def test_finished_tournament_has_standings_pairings_and_its_secret(client, site):
    cup = client.get("/api/tournaments/cup").json()
    assert len(cup["secret"]) == 64
    assert json.loads(cup["pub"])["entrants"]
    assert [each["pairings"] for each in cup["stages"][0]["rounds"]] == [2, 1]
    assert cup["stages"][0]["longest_match_seconds"] > 60
    standings = client.get("/api/tournaments/cup/standings").json()
    assert [row["place"] for row in standings["standings"]] == [1, 2, 3, 3]
    assert sorted(row["seed"] for row in standings["standings"]) == [1, 2, 3, 4]
    pairings = client.get("/api/tournaments/cup/pairings").json()["pairings"]
    assert [row["match"] for row in pairings] == ["cup/SE/R1/M1", "cup/SE/R1/M2", "cup/SE/R2/M1"]
    entries = client.get("/api/tournaments/cup/entries").json()["entries"]
    assert [row["place"] for row in entries] == [1, 2, 3, 3]
    table = client.get("/api/tournaments/table").json()
    assert table["secret"] is None
    assert table["conditions"]["time_control"]["name"] == "standard"
    rows = client.get("/api/tournaments/table/standings").json()["standings"]
    assert rows[0]["tie_breaks"]["score"]


@pytest.mark.parametrize(
    ("path", "name", "count"),
    [("entries", "entries", 4), ("pairings", "pairings", 6), ("standings", "standings", 4)],
)
def test_long_lists_of_a_tournament_come_in_pages(client, site, monkeypatch, path, name, count):
    whole = client.get(f"/api/tournaments/table/{path}").json()
    assert (len(whole[name]), whole["next"]) == (count, None)
    monkeypatch.setattr("tournament.competitions.api.PAGE_SIZE", 3)
    rows, page = [], 1
    while page is not None:
        part = client.get(f"/api/tournaments/table/{path}?page={page}").json()
        rows, page = [*rows, *part[name]], part["next"]
    assert rows == whole[name]
    assert client.get(f"/api/tournaments/table/{path}?page=99").json()[name] == []


def test_pairings_are_narrowed_by_stage_and_round(client, site):
    path = "/api/tournaments/table/pairings"
    found = client.get(f"{path}?stage=1&round=2").json()["pairings"]
    assert {(row["stage"], row["round"]) for row in found} == {(1, 2)}
    assert client.get(f"{path}?stage=2").json()["pairings"] == []
    assert error_of(client.get(f"{path}?stage=0"))["code"] == "invalid"
    missing = client.get("/api/tournaments/table/standings?stage=2")
    assert (missing.status_code, error_of(missing)["message"]) == (404, "table has no stage 2")


def test_detail_of_a_tournament_asks_as_often_for_many_as_for_few(client, site):
    def queries(path: str) -> int:
        MEMORY.forget()  # each answer asks whether the queue moves
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"/api/tournaments/{path}").status_code == 200
        return len(captured)

    bots = [*site.bots, *(make_bot(f"more{number}") for number in range(3))]
    start(make_tournament(bots[:3], name="Few", format="round_robin"))
    start(make_tournament(bots, name="Many", format="round_robin"))
    for part in ("", "/entries", "/pairings", "/standings"):
        assert queries(f"many{part}") == queries(f"few{part}")


def test_cancelled_tournament_says_why_and_keeps_its_secret(client, site):
    cancel_tournament(tournament=site.table, reason="the hall burnt down")
    table = client.get("/api/tournaments/table").json()
    assert (table["state"], table["cancelled_reason"]) == ("cancelled", "the hall burnt down")
    assert table["secret"] is None


def test_bot_enters_and_leaves(api, site):
    entered = api.post("/api/tournaments/open-one/entries", {"bot": "aces"}, "application/json")
    assert entered.status_code == 201
    assert entered.json()["bots"] == [{"bot": "aces", "version": None}]
    assert api.delete("/api/tournaments/open-one/entries/aces").status_code == 204
    assert not site.open.entrants.filter(name="aces").exists()


@pytest.mark.parametrize(
    ("slug", "body", "status", "code"),
    [
        ("open-one", {"bot": "alpha"}, 422, "refused"),  # is in already
        ("open-one", {"bot": "beta"}, 404, "not_found"),  # bob's
        ("open-one", {"bot": "alpha", "partner": "aces"}, 422, "refused"),  # no pairs here
        ("open-one", {}, 422, "invalid"),
        ("table", {"bot": "alpha"}, 409, "not_open"),
        ("none", {"bot": "alpha"}, 404, "not_found"),
    ],
)
def test_entry_that_cannot_be_is_refused_with_the_reason(api, slug, body, status, code):
    answer = api.post(f"/api/tournaments/{slug}/entries", body, "application/json")
    assert answer.status_code == status
    assert error_of(answer)["code"] == code


def test_pair_enters_in_the_order_of_its_seats(api, site):
    pairs = make_tournament([], name="Pairs", kind="pair")
    body = {"bot": "alpha", "partner": "aces"}
    entered = api.post(f"/api/tournaments/{pairs.slug}/entries", body, "application/json").json()
    assert [bot["bot"] for bot in entered["bots"]] == ["alpha", "aces"]


def test_leaving_after_the_close_is_withdrawing(api, site):
    late = start(make_tournament(site.bots, name="Late"))
    assert api.delete(f"/api/tournaments/{late.slug}/entries/alpha").status_code == 204
    assert entrant_of(late, "alpha").state == "withdrawn"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/tournaments/open-one/entries/beta", 404, "not_found"),  # bob's, and not in it
        ("/api/tournaments/cup/entries/alpha", 409, "not_open"),  # it is over
    ],
)
def test_leaving_that_cannot_be_is_refused(api, site, path, status, code):
    answer = api.delete(path)
    assert answer.status_code == status
    assert error_of(answer)["code"] == code


def test_leaderboard_is_read_page_by_page(client, site, monkeypatch):
    board = client.get("/api/leaderboards/eighty/mono").json()
    assert [row["bot"] for row in board["rows"]] == ["alpha", "aces", "bricks", "beta"]
    first = board["rows"][0]
    assert first["low"] < first["mu"] < first["high"]
    assert first["is_provisional"]
    assert first["win_rate"] == 1.0
    assert client.get("/api/leaderboards/eighty/mono?q=bob").json()["total"] == 2
    after = client.get("/api/leaderboards/eighty/mono?after=2-999999").json()["rows"]
    assert [row["bot"] for row in after] == ["bricks", "beta"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/leaderboards/chess/mono", 404),
        ("/api/leaderboards/eighty/mono?after=x", 422),
        ("/api/tournaments/none", 404),
        ("/api/matches/cup/SE/R9/M1", 404),
        ("/api/matches/cup/SE/R9/M1/record", 404),
    ],
)
def test_what_is_not_there_is_an_error_of_the_one_shape(client, site, path, status):
    answer = client.get(path)
    assert answer.status_code == status
    assert error_of(answer)["message"]


def test_match_and_its_record(client, site):
    match = client.get("/api/matches/cup/SE/R2/M1").json()
    assert (match["id"], match["state"], match["termination"]) == (
        "cup/SE/R2/M1",
        "finished",
        "completed",
    )
    assert match["record"] == "http://testserver/api/matches/cup/SE/R2/M1/record"
    answer = client.get(match["record"])
    assert answer["Content-Disposition"].startswith("attachment")
    assert decode_record(answer.content).digest == match["digest"]


def test_api_describes_itself(client, db):
    described = client.get("/api/openapi.json").json()
    submit = described["paths"]["/api/versions"]["post"]
    assert set(submit["requestBody"]["content"]) == {
        "multipart/form-data",
        "application/octet-stream",
    }
    assert submit["security"]
    assert "cdn" not in client.get("/api/docs").content.decode()
