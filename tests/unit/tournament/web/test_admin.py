"""The admin: it shows rows, and moves them by services alone."""

from __future__ import annotations

import itertools
import re
from datetime import timedelta

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.site_factory import make_staff
from tests.tournament_factories import (
    accept,
    entrant_of,
    make_plan,
    make_tournament,
    start,
    submit,
)
from tournament.competitions.models import Match, Ruling, Series, Tournament
from tournament.competitions.services import (
    Course,
    advance_round,
    create_series,
    create_tournament,
    play_match,
)
from tournament.competitions.services.previewing import Changed, Preview
from tournament.leaderboards.models import Rating
from tournament.leaderboards.services import RatedResult, RatedTeam, append_results
from tournament.players import services as players
from tournament.players.models import Bot
from tournament.players.services import authenticate_token

TOURNAMENTS = "/admin/competitions/tournament/"


def text_of(client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def operate(client, model: str, name: str, *rows, **values):
    """Send an operation's form; and once more, where the page first shows what it would change."""
    ids = ",".join(str(row.pk) for row in rows)
    path = f"/admin/{model}/operate/{name}/?ids={ids}"
    answer = client.post(path, values, follow=True)
    shown = re.search(r'name="rehearsed" value="(\w+)"', answer.content.decode())
    if shown is None:
        return answer
    return client.post(path, {**values, "rehearsed": shown[1]}, follow=True)


def test_leaderboard_lists_rank_bot_owner_rating_matches_and_win_rate(olga, site):
    page = text_of(olga, "/admin/leaderboards/rating/")
    order = [page.index(f"{bot} 1.0") for bot in ("alpha", "aces", "bricks", "beta")]
    assert order == sorted(order)
    alpha = Rating.objects.get(bot__name="alpha")
    assert f"{alpha.shown:.2f}? (" in page
    assert "100 %" in page


def test_leaderboard_counts_bots(olga, site):
    assert re.search(r"4\s+bots", text_of(olga, "/admin/leaderboards/rating/"))
    assert re.search(r"4\s+versions", text_of(olga, "/admin/leaderboards/rating/?rows=all"))


def test_admin_asks_no_other_host(olga, site):
    for path in ("/admin/", "/admin/leaderboards/rating/", TOURNAMENTS + "add/"):
        fetched = re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"', text_of(olga, path)
        )
        assert fetched
        assert not [place for place in fetched if not place.startswith(("/", "data:", "#"))]


@pytest.mark.parametrize(
    ("query", "shown", "hidden"),
    [
        ("q=alp", "alpha", "beta"),  # by bot
        ("q=bob", "beta", "alpha"),  # by owner
        ("pool__kind__exact=mono&game=eighty", "alpha", None),
        ("pool__kind__exact=pair", None, "alpha"),  # nobody is rated in pairs
        ("game=podkidnoe", None, "alpha"),
        ("rows=all", "alpha", None),
    ],
)
def test_leaderboard_is_filtered_and_searched(olga, site, query, shown, hidden):
    page = text_of(olga, f"/admin/leaderboards/rating/?{query}")
    rows = page[page.index('id="changelist"') :]
    assert shown is None or f"{shown} 1.0" in rows
    assert hidden is None or f"{hidden} 1.0" not in rows


def test_every_model_of_ours_has_its_pages(root, site):
    token, _ = players.create_token(player=site.ann)
    for model, model_admin in admin.site._registry.items():
        if model._meta.app_label not in {"players", "leaderboards", "competitions", "scrimmages"}:
            continue
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        text_of(root, base)
        row = model_admin.get_queryset(_request(root, site)).first()
        if row is not None:
            assert root.get(f"{base}{row.pk}/change/").status_code == 200, base
    assert token.sha256 not in text_of(root, f"/admin/players/apitoken/{token.pk}/change/")


def _request(client, site):
    request = client.get("/admin/").wsgi_request
    request.user = site.root
    return request


def times(**changes) -> dict[str, str]:
    now = timezone.now().replace(microsecond=0)
    moments = {
        "opens_at": now,
        "closes_at": now + timedelta(hours=1),
        "starts_at": now + timedelta(hours=2),
        **changes,
    }
    return {
        f"{name}_{part}": f"{moment:{form}}"
        for name, moment in moments.items()
        for part, form in enumerate(("%Y-%m-%d", "%H:%M:%S"))
    }


def plan(**changes) -> dict[str, str]:
    return {
        "name": "Winter Cup",
        "game": "eighty",
        "format": "round_robin",
        "contest": "boards",
        "contest_size": "8",
        "time_control": "fast",
        "records_public": "at_once",
        "weight": "1",
        "rated": "on",
        **times(),
        **changes,
    }


def test_organiser_makes_a_tournament_with_its_conditions(olga, site):
    values = plan(
        **{"round_robin-cycles": "2", "eighty-min_bid": "60", "podkidnoe-max_draws": "1"},
        contest="games",
        contest_size="3",
        rated="",
    )
    olga.post(f"{TOURNAMENTS}add/", values)
    made = Tournament.objects.get(slug="winter-cup")
    stage = made.stages.get()
    assert (made.state, made.organiser, made.rated) == ("draft", site.olga, False)
    assert stage.options["cycles"] == 2
    assert stage.ruleset["min_bid"] == 60
    assert stage.contest == {"kind": "games", "best_of": 3}
    assert LogEntry.objects.filter(object_id=str(made.pk), user=site.olga).exists()


def test_draft_is_looked_at_again_with_how_long_it_can_last(olga, site):
    values = plan(max_entrants="12", cap="1", if_too_few="postpone")
    answer = olga.post(f"{TOURNAMENTS}add/", values, follow=True)
    made = Tournament.objects.get(slug="winter-cup")
    assert answer.redirect_chain == [(f"{TOURNAMENTS}{made.pk}/change/", 302)]
    page = answer.content.decode()
    assert "Winter Cup is a draft, which opens by itself at" in page
    assert "12 entrants: 66 matches, " in page
    assert "Time control: fast" in page  # of the stage, in words
    assert "Postponed times" in page
    for absent in (
        "Paused reason",
        "Sealed until",
        "operate/close/",
    ):  # nothing to say, or to do yet
        assert absent not in page
    assert "12 entrants: 66 matches, " in text_of(olga, f"{TOURNAMENTS}operate/open/?ids={made.pk}")


def test_form_of_a_new_tournament_begins_with_times_that_can_be(olga, site):
    page = olga.get(f"{TOURNAMENTS}add/")
    times = [
        page.context["adminform"].form[f"{name}_at"].value()
        for name in ("opens", "closes", "starts")
    ]
    assert times == sorted(times)
    assert times[1] > timezone.now()
    assert 'name="description"' in page.content.decode()
    assert "<textarea" in page.content.decode()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "This field is required"),
        ({"slug": "cup"}, "there is a tournament &#x27;cup&#x27; already"),
        (times(closes_at=timezone.now() - timedelta(days=1)), "entries must close after they open"),
        ({"game": "chess"}, "Select a valid choice"),
        ({"eighty-target": "many"}, "target=many is not allowed"),  # the service's own words
        ({"round_robin-tie_breaks": "score,luck"}, "each at most once, of"),
        ({"contest": "games", "contest_size": "999999"}, "contest.best_of"),
        ({"weight": "0"}, "weight"),
    ],
)
def test_tournament_that_cannot_be_made_says_why_and_nothing_is_stored(
    olga, site, changes, message
):
    answer = olga.post(f"{TOURNAMENTS}add/", plan(**changes))
    assert answer.status_code == 200
    assert message in answer.content.decode()
    assert set(Tournament.objects.values_list("slug", flat=True)) == {"cup", "table", "open-one"}


def test_address_taken_while_the_form_was_judged_is_told(olga, site, monkeypatch):
    monkeypatch.setattr("tournament.competitions.forms.check_plan", lambda *_: {})
    answer = olga.post(f"{TOURNAMENTS}add/", plan(slug="cup"), follow=True)
    assert "there is a tournament" in answer.content.decode()
    assert Tournament.objects.filter(slug="cup").count() == 1


def test_tournament_is_opened_closed_started_paused_resumed_and_cancelled(olga, site):
    olga.post(f"{TOURNAMENTS}add/", plan())
    made = Tournament.objects.get(slug="winter-cup")
    page = text_of(olga, f"{TOURNAMENTS}{made.pk}/change/")
    assert "operate/open/" in page
    assert "operate/start/" not in page
    states = []
    for name, values in (
        ("open", {}),
        ("pause", {"reason": "the hall is dark"}),
        ("resume", {}),
        ("cancel", {"reason": "snow"}),
    ):
        answer = operate(olga, "competitions/tournament", name, made, **values)
        assert "done for Winter Cup" in answer.content.decode()
        made.refresh_from_db()
        states.append((made.state, made.paused_reason, made.cancelled_reason))
    assert states == [
        ("open", "", ""),
        ("open", "the hall is dark", ""),
        ("open", "", ""),
        ("cancelled", "", "snow"),
    ]
    assert LogEntry.objects.filter(object_id=str(made.pk), change_message__contains="snow").exists()


def test_list_of_tournaments_asks_as_often_for_many_as_for_few(olga, site):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert "finished" in text_of(olga, TOURNAMENTS)
        return len(captured)

    before = queries()
    for number in range(3):
        start(make_tournament(site.bots, name=f"More {number}"))
    assert queries() == before


def test_operation_out_of_place_says_why_and_changes_nothing(olga, site):
    answer = operate(olga, "competitions/tournament", "start", site.cup)
    assert "Start, Cup: " in answer.content.decode()
    site.cup.refresh_from_db()
    assert site.cup.state == "finished"


def test_cancelling_shows_beforehand_what_it_changes_in_the_ratings(olga, site):
    key = f"table/{Match.objects.filter(tournament=site.table).first().pairing.key}"
    Match.objects.filter(tournament=site.table).update(rated=True)
    teams = (RatedTeam((("alpha", "1.0"),), 1), RatedTeam((("beta", "1.0"),), 2))
    append_results(game="eighty", kind="mono", results=[RatedResult(key, teams)])
    page = text_of(olga, f"{TOURNAMENTS}operate/cancel/?ids={site.table.pk}")
    assert "counts for nothing" in page
    assert "alpha 1.0: " in page
    assert "→" in page


def test_series_that_was_switched_off_says_why_and_is_switched_on_again(olga, site):
    series = create_series(
        organiser=site.olga,
        name="Friday Cup",
        course=Course(
            rule={"weekdays": [4], "at": "18:00", "open_minutes": 60},
            template={"game": "eighty", "format": "round_robin"},
        ),
        now=timezone.now(),
    )
    Series.objects.update(is_active=False, stopped_reason="there is no format 'gone'")
    assert "there is no format" in text_of(olga, "/admin/competitions/series/")
    answer = operate(olga, "competitions/series", "restart", series)
    assert "done for Friday Cup" in answer.content.decode()
    series.refresh_from_db()
    assert (series.is_active, series.stopped_reason) == (True, "")


def test_clone_has_all_settings_of_its_model_and_new_times(olga, site):
    values = plan(
        **{"round_robin-cycles": "2", "eighty-min_bid": "60", "eighty-nello": "false"},
        max_entrants="12",
        max_bots_per_player="2",
        min_entrants="4",
        if_too_few="postpone",
        seeding="lot",
        extra_boards="3",
    )
    olga.post(f"{TOURNAMENTS}add/", values)
    model = Tournament.objects.get(slug="winter-cup")
    assert f"?clone={model.pk}" in text_of(olga, f"{TOURNAMENTS}{model.pk}/change/")
    page = olga.get(f"{TOURNAMENTS}add/?clone={model.pk}")
    form = page.context["adminform"].form
    sent = {}
    for field in form:
        value = field.value()
        if hasattr(value, "isoformat"):
            sent[f"{field.name}_0"], sent[f"{field.name}_1"] = (
                f"{value:%Y-%m-%d}",
                f"{value:%H:%M:%S}",
            )
        elif value not in (None, "", False):
            sent[field.name] = "on" if value is True else str(value)
    olga.post(f"{TOURNAMENTS}add/", {**sent, "name": "Spring Cup", "slug": ""})
    clone = Tournament.objects.get(slug="spring-cup")
    same = (
        "game",
        "kind",
        "weight",
        "cap",
        "rated",
        "records_public",
        "max_entrants",
        "max_bots_per_player",
        "min_entrants",
        "if_too_few",
        "postpone_minutes",
        "postpone_most",
        "seeding",
        "late_until_round",
        "results_at",
        "description",
    )
    assert {name: getattr(clone, name) for name in same} == {
        name: getattr(model, name) for name in same
    }
    fields = ("format", "options", "ruleset", "contest", "time_control")
    assert clone.stages.values_list(*fields).get() == model.stages.values_list(*fields).get()
    assert clone.starts_at - clone.opens_at == model.starts_at - model.opens_at
    assert (clone.commitment, clone.pub) == ("", "")


def series_values(site, **changes) -> dict[str, object]:
    return {
        "name": "Friday Cup",
        "like": str(site.table.pk),
        "weekdays": ["4"],
        "at": "18:30",
        "time_zone": "Europe/Paris",
        "open_minutes": "60",
        "pause_minutes": "5",
        "points": "10, 6, 3",
        **changes,
    }


def test_series_is_made_like_a_tournament_after_its_next_starts_were_shown(olga, site, client):
    path = "/admin/competitions/series/add/"
    assert "Tournaments like" in text_of(olga, path)
    shown = olga.post(path, series_values(site)).content.decode()
    assert len(re.findall(r"Fri \d\d \w{3} \d{4}, 18:30 CES?T", shown)) == 5
    assert not Series.objects.exists()
    olga.post(path, series_values(site, confirmed="on"))
    series = Series.objects.get()
    assert (series.slug, series.points_table) == ("friday-cup", [10, 6, 3])
    assert series.template["format"] == "round_robin"
    row = text_of(olga, f"/admin/competitions/series/{series.pk}/change/")
    for told in (
        "18:30 CE",
        "every Friday at 18:30, Europe/Paris",
        "60 minutes, until 5 minutes before the start",
        "Format: round_robin",
    ):
        assert told in row
    assert "{" not in row[row.index("Tournaments are") :][:400]  # nothing that only a program reads
    page = text_of(client, "/series/friday-cup/")
    assert "every Friday at 18:30, Europe/Paris" in page
    assert "10, 6, 3" in page
    assert "Friday Cup" in text_of(client, "/series/")
    assert len(client.get("/api/series/friday-cup").json()["next"]) == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"time_zone": "Mars/Olympus"}, "there is no time zone “Mars/Olympus”"),
        ({"at": "25:00"}, "&#x27;25:00&#x27; is no time of day: write it as 18:30"),
        ({"weekdays": [], "at": ""}, "say when"),
        ({"weekdays": [], "at": "", "cron": "0 18 * *"}, "five fields"),
        ({"points": "10, many"}, "whole numbers between commas"),
        ({"open_minutes": "0"}, "greater than or equal to 1"),
        ({"name": "§"}, "a name of its own"),
    ],
)
def test_series_that_cannot_be_made_says_why_and_nothing_is_stored(olga, site, changes, message):
    answer = olga.post(
        "/admin/competitions/series/add/", series_values(site, confirmed="on", **changes)
    )
    assert message in answer.content.decode()
    assert not Series.objects.exists()


def test_complaint_about_a_series_stands_at_its_field(olga, site):
    """Not above the form, where one would have to guess."""
    for changes, field in (
        ({"at": "25:00"}, "at"),
        ({"weekdays": [], "at": "", "cron": "0 18 * *"}, "cron"),
        ({"points": "99999"}, "points"),
    ):
        answer = olga.post(
            "/admin/competitions/series/add/", series_values(site, confirmed="on", **changes)
        )
        assert list(answer.context["adminform"].form.errors) == [field]


def test_series_is_like_no_tournament_that_its_organiser_may_not_see(client, site):
    otto = make_staff("otto")
    create_tournament(organiser=site.olga, plan=make_plan(name="Secret Draft"))
    client.force_login(otto)
    page = text_of(client, "/admin/competitions/series/add/")
    assert "Secret Draft" not in page
    assert site.table.name in page


def test_series_is_changed_after_its_next_starts_were_shown(olga, site):
    olga.post("/admin/competitions/series/add/", series_values(site, confirmed="on"))
    series = Series.objects.get()
    path = f"/admin/competitions/series/operate/change/?ids={series.pk}"
    page = text_of(olga, path)
    assert 'value="18:30"' in page  # it is filled in as it is
    assert re.search(r'value="4"[^>]* checked', page)
    values = series_values(site, like="", weekdays=["5"], at="09:00", points="5")
    assert "there is no such day" in text_of_post(
        olga, path, {**values, "weekdays": [], "at": "", "cron": "0 0 30 2 *"}
    )
    shown = text_of_post(olga, path, values)
    assert len(re.findall(r"Next start: Sat \d\d \w{3} \d{4}, 09:00 CES?T", shown)) == 5
    series.refresh_from_db()
    assert series.rule["at"] == "18:30"
    mark = re.search(r'name="rehearsed" value="(\w+)"', shown)
    olga.post(path, {**values, "rehearsed": mark[1]})
    template = series.template
    series.refresh_from_db()
    assert (series.rule["weekdays"], series.rule["at"]) == ([5], "09:00")
    assert (series.points_table, series.template) == ([5], template)


def text_of_post(client, path: str, values: dict[str, object]) -> str:
    return client.post(path, values).content.decode()


def test_player_enters_for_a_series_by_page_and_api(ann, olga, site, token, client):
    olga.post("/admin/competitions/series/add/", series_values(site, confirmed="on"))
    ann.post("/series/friday-cup/enter/", {"bot": "alpha"})
    assert "alpha is entered for Friday Cup" in text_of(ann, "/series/friday-cup/")
    assert "You have no bot yet" in text_of(olga, "/series/friday-cup/")
    headers = {"HTTP_AUTHORIZATION": f"Bearer {token}"}
    answer = client.post(
        "/api/series/friday-cup/entries", {"bot": "aces"}, "application/json", **headers
    )
    assert answer.status_code == 204
    assert client.get("/api/series/friday-cup").json()["entries"] == ["aces", "alpha"]
    assert client.delete("/api/series/friday-cup/entries/aces", **headers).status_code == 204
    entry = Series.objects.get().entries.get()
    ann.post("/series/friday-cup/leave/", {"entry": entry.pk})
    assert client.get("/api/series/friday-cup").json()["entries"] == []


def test_operation_without_its_reason_asks_for_it(olga, site):
    answer = operate(olga, "competitions/tournament", "cancel", site.table, reason=" ")
    assert "This field is required" in answer.content.decode()
    site.table.refresh_from_db()
    assert site.table.state == "running"


def test_operation_is_asked_for_before_it_is_done(olga, site):
    page = text_of(olga, f"{TOURNAMENTS}operate/cancel/?ids={site.table.pk}")
    assert "Table" in page
    site.table.refresh_from_db()
    assert site.table.state == "running"


def test_list_action_takes_several_at_once(olga, site):
    chosen = {"action": "pause", "_selected_action": [site.table.pk, site.open.pk]}
    asked = olga.post(TOURNAMENTS, chosen)
    olga.post(asked["Location"], {"reason": "night"})
    assert set(Tournament.objects.filter(paused_reason="night")) == {site.table, site.open}


@pytest.mark.parametrize(
    "query", ["", "ids=", "ids=999999", "ids=x"], ids=["none", "empty", "unknown", "no number"]
)
def test_operation_on_nothing_is_not_found(olga, site, query):
    assert olga.get(f"{TOURNAMENTS}operate/pause/?{query}").status_code == 404
    assert olga.get(f"{TOURNAMENTS}operate/explode/?ids={site.cup.pk}").status_code == 404


def test_way_back_leads_to_no_other_site(olga, site):
    url = f"{TOURNAMENTS}operate/pause/?ids={site.table.pk}&back=https://evil.example/"
    assert olga.post(url, {"reason": "x"})["Location"] == TOURNAMENTS


def test_organiser_enters_bots_of_any_player(olga, site):
    page = text_of(olga, f"{TOURNAMENTS}operate/enter/?ids={site.open.pk}")
    assert "beta (bob)" in page
    assert "alpha (ann)" not in page  # is in it already
    chosen = Bot.objects.filter(name__in=["aces", "beta"])
    answer = operate(
        olga, "competitions/tournament", "enter", site.open, bots=[bot.pk for bot in chosen]
    )
    assert "Enter bots: done for Open One" in answer.content.decode()
    assert set(site.open.entrants.values_list("name", flat=True)) == {"alpha", "aces", "beta"}


def test_organiser_enters_the_house_and_it_alone(olga, site):
    house = players.ensure_house()
    accept(submit(house, "greedy"))
    operate(olga, "competitions/tournament", "enter-house", site.open)
    assert set(site.open.entrants.values_list("name", flat=True)) == {"alpha", "greedy"}
    again = operate(olga, "competitions/tournament", "enter-house", site.open)
    assert "no bot is left that could enter" in again.content.decode()


def test_organiser_enters_a_pair_of_two(olga, site):
    pairs = make_tournament([], name="Pairs", kind="pair")
    aces, beta = Bot.objects.filter(name__in=["aces", "beta"]).order_by("name")
    one = operate(olga, "competitions/tournament", "enter", pairs, bots=[beta.pk])
    assert "choose two" in one.content.decode()
    operate(olga, "competitions/tournament", "enter", pairs, bots=[beta.pk, aces.pk])
    assert pairs.entrants.get().name == "aces + beta"


def test_bots_enter_by_hand_only_while_entries_are_open(olga, site):
    page = text_of(olga, f"{TOURNAMENTS}{site.table.pk}/change/")
    assert "operate/enter" not in page
    beta = Bot.objects.get(name="beta")
    answer = operate(olga, "competitions/tournament", "enter", site.cup, bots=[beta.pk])
    assert "error" in answer.content.decode().lower()
    assert not site.cup.entrants.filter(entered_at__gt=site.cup.finished_at).exists()


def test_staff_without_the_right_may_look_but_not_operate(olga, site):
    site.olga.groups.get().permissions.filter(codename="change_tournament").delete()
    assert "operate/" not in text_of(olga, f"{TOURNAMENTS}{site.table.pk}/change/")
    answer = operate(olga, "competitions/tournament", "pause", site.table, reason="x")
    assert answer.status_code == 403


def test_rows_cannot_be_written_past_the_services(root, site):
    answer = root.post(f"{TOURNAMENTS}{site.table.pk}/change/", {"state": "finished"})
    assert answer.status_code == 403
    for path in ("competitions/match/add/", "leaderboards/rating/add/", "players/botversion/add/"):
        assert root.post(f"/admin/{path}", {}).status_code == 403


def test_disqualification_shows_what_it_would_change_and_walks_over(olga, site):
    beta = entrant_of(site.table, "beta")
    path = f"/admin/competitions/entrant/operate/disqualify/?ids={beta.pk}"
    assert "count for nothing" in text_of(olga, path)
    shown = olga.post(path, {"reason": "two accounts"}).content.decode()
    assert re.search(r"beta: open → [^<]* won, by the absence of an entrant", shown)
    beta.refresh_from_db()
    assert beta.state == "active"
    operate(olga, "competitions/entrant", "disqualify", beta, reason="two accounts")
    beta.refresh_from_db()
    assert (beta.state, beta.reason) == ("disqualified", "two accounts")


def test_organiser_withdraws_an_entrant(olga, site):
    beta = entrant_of(site.table, "beta")
    operate(olga, "competitions/entrant", "withdraw", beta, reason="its author asked")
    beta.refresh_from_db()
    assert (beta.state, beta.reason) == ("withdrawn", "its author asked")


def test_match_is_decided_by_forfeit(olga, site):
    match = Match.objects.filter(tournament=site.table).exclude(state="finished").first()
    offender = match.pairing.entrants.first().entrant
    operate(olga, "competitions/match", "forfeit", match, reason="no show", offenders=[offender.pk])
    match.refresh_from_db()
    assert match.termination == "forfeit"
    assert match.pairing.entrants.first().place == 2


def test_correction_in_a_bracket_shows_its_cascade_before_it_is_applied(olga, site):
    cup = start(make_tournament(site.bots, name="Other Cup"))
    for match in cup.matches.all():
        play_match(match_id=match.pk, trusted=True)
    advance_round(tournament=cup)
    match = cup.matches.get(pairing__key="SE/R1/M1")
    loser = match.pairing.entrants.get(advances=False)
    path = f"/admin/competitions/match/operate/correct/?ids={match.pk}"
    asked = text_of(olga, path)
    assert loser.entrant.name in asked
    assert "Show what it would change" in asked
    values = {"winner": str(loser.index), "reason": "the other way round"}
    page = olga.post(path, values).content.decode()
    assert "Match SE/R2/M1: " in page
    assert "What it would change" in page
    loser.refresh_from_db()
    assert not loser.advances
    mark = re.search(r'name="rehearsed" value="(\w+)"', page)[1]

    play_match(match_id=cup.matches.get(pairing__key="SE/R2/M1").pk, trusted=True)
    page = olga.post(path, {**values, "rehearsed": mark}).content.decode()
    assert "Something has happened since you looked" in page
    loser.refresh_from_db()
    assert not loser.advances

    mark = re.search(r'name="rehearsed" value="(\w+)"', page)[1]
    answer = olga.post(path, {**values, "rehearsed": mark}, follow=True)
    assert re.search(r"done for SE/R1/M1, .+ – .+, in .+\.", answer.content.decode())
    loser.refresh_from_db()
    assert loser.advances
    ruling = Ruling.objects.get()
    assert (ruling.by, ruling.superseded.get().key) == (site.olga, "SE/R2/M1")
    assert "the other way round" in text_of(olga, "/admin/competitions/ruling/")
    assert "SE/R2/M1" in text_of(olga, f"/admin/competitions/ruling/{ruling.pk}/change/")


def test_ruling_that_is_not_possible_says_why_instead_of_a_preview(olga, site):
    match = site.cup.matches.get(pairing__key="SE/R1/M1")
    loser = match.pairing.entrants.get(advances=False)
    path = f"/admin/competitions/match/operate/correct/?ids={match.pk}"
    page = olga.post(path, {"winner": str(loser.index), "reason": "late"}).content.decode()
    assert "has ended" in page
    assert "What it would change" not in page


def test_match_page_lists_its_attempts_and_record(olga, site):
    match = Match.objects.get(tournament=site.table, state="finished")
    page = text_of(olga, f"/admin/competitions/match/{match.pk}/change/")
    assert "with a result" in page
    assert f"/tournaments/table/matches/{match.pairing.key}/record.json" in page


def test_bot_is_paused_and_lifted(olga, site):
    bot = site.bots[0]
    operate(olga, "players/bot", "pause", bot, reason="too loud")
    bot.refresh_from_db()
    assert bot.paused_reason == "too loud"
    operate(olga, "players/bot", "lift", bot)
    bot.refresh_from_db()
    assert bot.paused_reason == ""


def test_version_is_set_aside_and_accepted_again(olga, site):
    version = Bot.objects.get(name="alpha").versions.get(version="1.0")
    operate(olga, "players/botversion", "quarantine", version, reason="under suspicion")
    version.refresh_from_db()
    assert (version.state, version.reason) == ("quarantined", "under suspicion")
    operate(olga, "players/botversion", "release", version)
    version.refresh_from_db()
    assert version.state == "accepted"
    answer = operate(olga, "players/botversion", "retry", version)
    assert "is not stuck" in answer.content.decode()


def test_reading_a_players_log_is_noted(root, site):
    path = f"/admin/players/botversion/{site.rejected.pk}/log/"
    answer = root.get(path)
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert b"<script>" in answer.content
    noted = LogEntry.objects.get(object_id=str(site.rejected.pk), user=site.root)
    assert noted.change_message == "Read the log"


def test_token_is_revoked(root, site):
    token, text = players.create_token(player=site.ann)
    assert authenticate_token(text)
    operate(root, "players/apitoken", "revoke", token)
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_no_account_is_deleted_with_what_it_did(root, site):
    for player in (site.ann, site.olga):
        assert root.get(f"/admin/players/player/{player.pk}/delete/").status_code == 403


def test_organisers_have_the_rights_that_they_need_and_no_others(site):
    rights = set(site.olga.get_all_permissions())
    assert {"competitions.add_tournament", "competitions.change_match"} <= rights
    assert not {right for right in rights if ".delete_" in right or "token" in right}
    assert "players.audit_botversion" not in rights
    assert "players.change_player" not in rights


def test_commitment_is_shown_and_the_secret_is_not(olga, site):
    waiting = start(make_tournament(site.bots, name="Sealed"))
    from tournament.competitions.models import TournamentSecret

    secret = bytes(TournamentSecret.objects.get(tournament=waiting).secret).hex()
    page = text_of(olga, f"{TOURNAMENTS}{waiting.pk}/change/")
    assert waiting.commitment in page
    assert secret not in page


def test_submitted_version_waits_in_the_list(olga, site):
    submit(site.ann, "alpha", "5.0")
    assert "waiting to be checked" in text_of(
        olga, "/admin/players/botversion/?state__exact=submitted"
    )


def test_rating_that_moves_by_other_matches_keeps_nobody_from_confirming(olga, site, monkeypatch):
    """On a busy site it moves all the time."""
    numbers = itertools.count()

    def moving(tournament, act):
        return Preview((), (), (), (Changed("alpha 1.0", "9.00", f"{next(numbers)}.00"),))

    monkeypatch.setattr("tournament.competitions.services.preview", moving)
    entrant = entrant_of(site.table, "alpha")
    path = f"/admin/competitions/entrant/operate/disqualify/?ids={entrant.pk}"
    values = {"reason": "shared an account"}
    shown = text_of_post(olga, path, values)
    assert "Rating alpha 1.0: 9.00 → 0.00" in shown
    mark = re.search(r'name="rehearsed" value="(\w+)"', shown)[1]
    assert olga.post(path, {**values, "rehearsed": mark}).status_code == 302
    entrant.refresh_from_db()
    assert entrant.state == "disqualified"


def test_what_was_filled_in_wrongly_can_be_mended(olga, site):
    cup = make_tournament(organiser=site.olga, name="By Hand", seeding="hand")
    path = f"/admin/competitions/tournament/operate/order/?ids={cup.pk}"
    page = text_of_post(olga, path, {"names": "alpha\nnobody"})
    assert "&#x27;nobody&#x27; is no entrant" in page
    assert "alpha\nnobody</textarea>" in page.replace("\r", "")


def test_superuser_ticks_the_groups_of_an_account(root, site):
    path = f"/admin/players/player/{site.ann.pk}/change/"
    organisers = Group.objects.get(name="organisers")
    page = text_of(root, path)
    assert re.search(rf'<input type="checkbox" name="groups" value="{organisers.pk}"', page)
    values = {"username": "ann", "slug": "ann", "time_zone": "UTC", "is_active": "on"}
    root.post(path, {**values, "is_staff": "on", "groups": [organisers.pk]})
    assert list(site.ann.groups.all()) == [organisers]


def test_nobody_plays_in_what_has_ended(olga, site):
    for path in (
        f"/admin/competitions/tournament/{site.cup.pk}/change/",
        f"/admin/competitions/entrant/?tournament__id__exact={site.cup.pk}",
    ):
        page = text_of(olga, path)
        assert page.count("has played") == site.cup.entrants.count()
