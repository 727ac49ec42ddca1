"""What the public pages say."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape

from engine.agents import AgentLog
from engine.record import decode_record, replay
from engine.referee import SeatLog
from tests.tournament_factories import (
    accept,
    make_bot,
    make_player,
    make_tournament,
    make_wheel,
    start,
    submit,
)
from tournament.competitions import services as competitions
from tournament.competitions.models import Match, Round, Tournament
from tournament.competitions.selectors import PairingPart, PairingRow
from tournament.competitions.views import match_row, spell_sitting
from tournament.players import services as players
from tournament.store.clock import read_clock
from tournament.store.pulses import MEMORY


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_home_shows_what_is_on_who_leads_and_how_to_begin(client, site):
    page = text_of(client, "/")
    assert "Open One" in page
    assert "Table" in page
    assert "Cup" in page  # among those that finished lately
    assert 'href="/bots/alpha/"' in page  # it leads
    assert 'href="/guide/"' in page


def test_home_of_an_empty_site_says_that_nothing_is_on(client, db):
    page = text_of(client, "/")
    assert "No tournament is running or announced" in page
    assert "Nobody is rated yet" in page


def test_leaderboard_has_rank_bot_owner_rating_matches_and_win_rate(client, site):
    page = text_of(client, "/leaderboards/eighty/mono/")
    order = [page.index(f'href="/bots/{bot}/"') for bot in ("alpha", "aces", "bricks", "beta")]
    assert order == sorted(order)
    assert 'href="/players/ann/"' in page
    assert "100 %" in page
    assert "provisional" in page


@pytest.mark.parametrize(
    ("query", "shown", "hidden"),
    [
        ("alp", "alpha", "beta"),  # by bot
        ("BOB", "beta", "alpha"),  # by owner, in any case
    ],
)
def test_leaderboard_is_searched_by_bot_and_by_owner(client, site, query, shown, hidden):
    page = text_of(client, f"/leaderboards/eighty/mono/?q={query}")
    assert f"/bots/{shown}/" in page
    assert f"/bots/{hidden}/" not in page


@pytest.mark.parametrize(
    "path",
    [
        "/leaderboards/chess/mono/",  # no such game
        "/leaderboards/podkidnoe/mono/",  # a kind that the game does not have
        "/leaderboards/eighty/mono/?after=nonsense",  # no cursor
        "/tournaments/none/",
        "/tournaments/cup/matches/SE/R9/M9/",
        "/tournaments/none/matches/SE/R1/M1/",
        "/tournaments/cup/matches/SE/R9/M9/record.json",
        "/bots/none/",
        "/players/none/",
        "/nothing/",
    ],
)
def test_what_is_not_there_is_not_found(client, site, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "Not found" in answer.content.decode()


def test_tournament_page_shows_bracket_standings_commitment_and_the_secret_at_the_end(client, site):
    page = text_of(client, "/tournaments/cup/")
    assert "Semi-finals" in page
    assert "won the final" in page
    assert site.cup.commitment in page
    assert "&quot;close&quot;" in page
    assert "shown when the tournament has ended" not in page
    assert "&lt;i&gt;first&lt;/i&gt;" in page  # the organiser's text is only text


def test_running_tournament_keeps_its_secret_and_shows_the_rounds_to_come(client, site):
    page = text_of(client, "/tournaments/table/")
    assert "shown when the tournament has ended" in page
    assert "Cross table" in page
    assert "How the tie-breaks came about" in page


def test_bracket_names_the_feeders_of_rounds_to_come(client, db):
    bots = [make_bot(f"bot{number}") for number in range(5)]
    tournament = start(make_tournament(bots, name="Five"))
    page = text_of(client, f"/tournaments/{tournament.slug}/")
    assert "Final" in page
    assert "winner of R1/M2" in page  # M1 is a bye, so its winner is known
    assert ">bye<" in page


def test_match_without_a_winner_has_no_winner_in_lists():
    def row(places, advances=(None, None)):
        parts = tuple(
            PairingPart(number, f"bot{number}", None, None, 0, place, goes_on)
            for number, (place, goes_on) in enumerate(zip(places, advances, strict=True))
        )
        return PairingRow("SW/R1/M1", 1, False, "play", "", parts, "finished", "", "", "", False)

    assert match_row("cup", row((2, 1))).winner == 1
    assert match_row("cup", row((1, 1))).winner is None  # a tie
    assert match_row("cup", row((1, 1), (True, False))).winner == 0  # which the lot decided
    assert match_row("cup", row((None, None))).winner is None  # not played


def test_page_renews_what_is_played_until_it_has_ended(client, site, monkeypatch):
    running = text_of(client, "/tournaments/table/")
    assert running.count("data-live=") == 2
    assert "web/live" in running
    for path in ("/tournaments/cup/", "/tournaments/open-one/"):
        assert "data-live=" not in text_of(client, path)
    monkeypatch.setattr("tournament.competitions.selectors.stages.LARGE_STAGE", 3)
    assert "data-live=" not in text_of(client, "/tournaments/table/")


def test_each_round_has_its_matches_the_newest_first(client, site):
    newest = text_of(client, "/tournaments/cup/")
    assert 'href="?stage=1&amp;round=1#matches"' in newest
    matches = newest[newest.index('id="matches"') : newest.index('id="conditions"')]
    assert "SE/R2/M1" in matches
    assert "SE/R1/M1" not in matches
    first = text_of(client, "/tournaments/cup/?round=1")
    assert "SE/R1/M1" in first[first.index('id="matches"') : first.index('id="conditions"')]
    assert client.get("/tournaments/cup/?round=none").status_code == 200


def test_running_round_robin_shows_the_first_round_that_is_not_complete(client, site):
    page = text_of(client, "/tournaments/table/")
    assert 'href="?stage=1&amp;round=3#matches"' in page  # all are published
    matches = page[page.index('id="matches"') : page.index('id="conditions"')]
    assert "RR/R1/M1" in matches
    assert "RR/R3/M1" not in matches


def test_cross_table_is_left_out_where_it_fits_no_screen(client, site, monkeypatch):
    monkeypatch.setattr("tournament.competitions.selectors.tables.CROSS_TABLE_MAX", 3)
    page = text_of(client, "/tournaments/table/")
    assert "Cross table" not in page
    assert "Standings so far" in page


def test_open_tournament_shows_the_version_that_would_play(client, site):
    page = text_of(client, "/tournaments/open-one/")
    assert "Would play" in page
    assert "1.0" in page
    assert "/account/log-in/?next=/tournaments/open-one/" in page


@pytest.fixture
def waiting(site):
    """Closed, and waiting for alpha 5.0."""
    version = submit(site.ann, "alpha", "5.0")
    tournament = site.open
    Tournament.objects.filter(pk=tournament.pk).update(closes_at=read_clock() + timedelta(hours=1))
    tournament.refresh_from_db()
    competitions.close_tournament(tournament=tournament, now=tournament.closes_at)
    return version


def test_closed_tournament_says_what_it_waits_for_and_who_would_play(client, site, waiting):
    page = text_of(client, "/tournaments/open-one/")
    assert "It waits for versions that were uploaded in time" in page
    assert "</a> 5.0: waiting to be checked" in page
    assert "Would play" in page
    assert "none accepted yet" not in page
    told = client.get("/api/tournaments/open-one").json()
    (awaited,) = told["awaited"]
    assert awaited.pop("queue").startswith("1st of 1 in the queue")
    assert awaited == {"bot": "alpha", "version": "5.0", "state": "submitted"}
    accept(waiting)
    competitions.close_tournament(tournament=site.open)
    assert "It waits for" not in text_of(client, "/tournaments/open-one/")
    assert client.get("/api/tournaments/open-one").json()["awaited"] == []


def queries_of(client: Client, path: str) -> int:
    MEMORY.forget()  # what the queue's state costs is asked each time
    with CaptureQueriesContext(connection) as queries:
        text_of(client, path)
    return len(queries)


def test_pages_ask_as_often_for_many_entrants_as_for_few(client, ann, site):
    paths = [(client, "/tournaments/open-one/"), (ann, "/account/bots/")]
    before = [queries_of(visitor, path) for visitor, path in paths]
    for number in range(6):
        bot = make_bot(f"more{number}")
        competitions.enter(tournament=site.open, bots=[bot], by=bot.owner)
    assert [queries_of(visitor, path) for visitor, path in paths] == before


def test_match_that_was_taken_back_can_still_be_read(site, client):
    match = site.table.matches.get(state="finished")
    digest = match.digest
    competitions.rerun_match(match=match, reason="the machine swapped")
    (link,) = re.findall(
        r'href="(/tournaments/table/superseded/\d+/record.json)"',
        text_of(client, "/tournaments/table/"),
    )
    assert decode_record(client.get(link).content).digest == digest
    assert client.get(link.replace("table", "cup")).status_code == 404
    assert client.get(f"/tournaments/table/superseded/{10**20}/record.json").status_code == 404
    Tournament.objects.filter(pk=site.table.pk).update(records_public="at_end")
    assert client.get(link).status_code == 404
    Tournament.objects.filter(pk=site.table.pk).update(records_public="at_once")
    Round.objects.filter(stage__tournament=site.table, index=1).update(published_at=None)
    assert client.get(link).status_code == 404


def test_conditions_of_entry_are_told_on_the_page_and_in_the_api(client, site):
    cup = make_tournament(
        [site.bots[0]],
        name="Small Cup",
        max_entrants=16,
        max_bots_per_player=2,
        min_entrants=4,
        if_too_few="postpone",
        postpone_minutes=1530,
        postpone_most=3,
        seeding="lot",
    )
    page = text_of(client, f"/tournaments/{cup.slug}/")
    for words in (
        "1 of 16 taken",
        "at most 2",
        "4, else it is postponed by 1 day 1 hour 30 minutes, at most 3 more times, then cancelled",
        "a lot that anyone can check",
    ):
        assert words in page
    entry = client.get(f"/api/tournaments/{cup.slug}").json()["entry"]
    assert (entry["max_entrants"], entry["if_too_few"], entry["late_round"]) == (
        16,
        "postpone",
        None,
    )


def test_notice_stands_on_the_players_pages_until_it_is_put_away(ann, bob, site):
    competitions.cancel_tournament(tournament=site.open, reason="the <hall> is flooded")
    paths = ("/", "/account/bots/", "/tournaments/open-one/")
    for path in paths:
        assert "Open One is cancelled: the &lt;hall&gt; is flooded" in text_of(ann, path)
        assert "Open One is cancelled" not in text_of(bob, path)
    ann.post("/account/notices/put-away/", {"back": "my-bots"})
    for path in paths:
        assert "Open One is cancelled" not in text_of(ann, path)


def test_late_entry_is_made_by_the_page_and_published(ann, client, site):
    plan = {"name": "Late", "format": "swiss", "late_until_round": 2}
    cup = start(make_tournament(site.bots[1:], **plan))
    page = text_of(ann, "/tournaments/late/")
    assert "Enter late" in page
    ann.post("/tournaments/late/enter/", {"bot": "alpha"})
    assert "alpha has entered" in text_of(ann, "/tournaments/late/")
    addendum = cup.entrants.get(name="alpha").addendum
    assert escape(addendum) in text_of(client, "/tournaments/late/")
    entries = client.get("/api/tournaments/late/entries").json()["entries"]
    assert [row["addendum"] for row in entries if row["name"] == "alpha"] == [addendum]
    assert [row["seed"] for row in entries if row["name"] == "alpha"] == [4]


def test_match_page_lists_its_attempts_but_names_no_host(client, site):
    match = Match.objects.filter(tournament=site.cup).first()
    tried = match.tries.get()
    page = text_of(client, f"/tournaments/cup/matches/{match.pairing.key}/")
    assert "Attempts" in page
    assert tried.worker not in page
    assert "with a result" in page
    told = client.get(f"/api/matches/cup/{match.pairing.key}").json()["attempts"]
    assert [each["ending"] for each in told] == ["recorded"]
    assert tried.worker not in str(told)


def test_draft_is_seen_by_organisers_only(client, olga, site):
    plan = competitions.Plan(
        name="Draft",
        game="eighty",
        format="round_robin",
        opens_at=site.open.opens_at,
        closes_at=site.open.closes_at,
        starts_at=site.open.starts_at,
    )
    competitions.create_tournament(organiser=site.olga, plan=plan)
    assert client.get("/tournaments/draft/").status_code == 404
    assert client.get("/api/tournaments/draft").status_code == 404
    assert "Draft" not in text_of(client, "/tournaments/")
    assert olga.get("/tournaments/draft/").status_code == 200


def test_cancelled_tournament_says_why(client, site):
    competitions.cancel_tournament(tournament=site.open, reason="Too few <entrants>")
    page = text_of(client, "/tournaments/open-one/")
    assert "Too few &lt;entrants&gt;" in page


def test_match_page_draws_every_deal_and_links_the_record(client, site):
    page = text_of(client, "/tournaments/cup/matches/SE/R2/M1/")
    assert "Board 1" in page
    assert page.count("Rotation 1") >= 1
    assert "Auction" in page
    assert "/tournaments/cup/matches/SE/R2/M1/record.json" in page


def test_downloaded_record_is_true_and_has_its_keys_once_the_secret_is_out(client, site):
    answer = client.get("/tournaments/cup/matches/SE/R2/M1/record.json")
    assert answer["Content-Type"] == "application/json"
    assert answer["Content-Disposition"] == 'attachment; filename="cup-SE-R2-M1.json"'
    record = decode_record(answer.content)
    replay(record)
    assert all(deal.key for game in record.games for deal in game.deals)


def test_record_of_a_running_tournament_has_no_keys_yet(client, site):
    match = Match.objects.get(tournament=site.table, state="finished")
    answer = client.get(f"/tournaments/table/matches/{match.pairing.key}/record.json")
    record = decode_record(answer.content)
    assert all(deal.key is None for game in record.games for deal in game.deals)


def test_records_that_are_public_at_the_end_stay_closed_until_then(client, site, olga):
    site.table.records_public = "at_end"
    site.table.save()
    match = Match.objects.get(tournament=site.table, state="finished")
    path = f"/tournaments/table/matches/{match.pairing.key}/"
    assert "open to all when it has ended" in text_of(client, path)
    assert client.get(f"{path}record.json").status_code == 404
    assert client.get(f"/api/matches/table/{match.pairing.key}/record").status_code == 404
    assert olga.get(f"{path}record.json").status_code == 200


CRASHES = """
from engine.sdk import Strategy, hookimpl

class Crash(Strategy):
    def act(self, observation):
        raise ValueError("I lost <b>count</b>")

@hookimpl
def make_strategy(game, ruleset, players):
    return Crash()
"""


@pytest.fixture
def crashed(site, tmp_path):
    """A match that bob's crasher has lost to ann's alpha."""
    from tests.tournament_factories import accept, play_all

    wheel = make_wheel("crasher", "1.0", CRASHES, tmp_path)
    crasher = accept(players.submit_wheel(owner=site.bob, data=wheel)).bot
    duel = play_all(start(make_tournament([site.bots[0], crasher], name="Duel")))
    return f"/tournaments/{duel.slug}/matches/SE/R1/M1/"


def test_fault_is_told_in_words(client, crashed):
    page = text_of(client, crashed)
    assert "crasher on seat" in page
    assert "crashed" in page
    assert "<b>count</b>" not in page


def test_what_a_bot_printed_in_a_match_is_for_its_owner(ann, bob, client, crashed):
    assert "I lost &lt;b&gt;count&lt;/b&gt;" in text_of(bob, crashed)
    for other in (ann, client):
        assert "What your bots printed" not in text_of(other, crashed) or "I lost" not in text_of(
            other, crashed
        )


def test_bot_page_shows_ratings_versions_tournaments_and_matches(client, site):
    page = text_of(client, "/bots/alpha/")
    assert "Eighty, single bots" in page
    assert "/tournaments/cup/" in page
    assert "SE/R1/M" in page
    assert "1.0" in page
    assert "2.0" not in page  # rejected: nobody's business


def test_bot_without_an_accepted_version_is_its_owners_only(client, ann, site):
    players.submit_wheel(owner=site.ann, data=make_wheel("novice"))
    assert client.get("/bots/novice/").status_code == 404
    assert ann.get("/bots/novice/").status_code == 200
    assert "novice" not in text_of(client, "/bots/")


def test_bots_are_listed_with_what_they_play_and_searched(client, site):
    assert "eighty, podkidnoe" in text_of(client, "/bots/")
    page = text_of(client, "/bots/?q=bri&game=podkidnoe")
    assert "/bots/bricks/" in page
    assert "/bots/alpha/" not in page


def test_moments_are_in_utc_and_in_the_zone_of_the_account(ann, client, site):
    site.ann.time_zone = "Asia/Tokyo"
    site.ann.save()
    assert "JST" in text_of(ann, "/tournaments/open-one/")
    page = text_of(client, "/tournaments/open-one/")
    assert "UTC</time>" in page
    assert "data-local" in page  # the browser's script adds its own


def test_pages_of_a_long_list_lead_on(client, site, monkeypatch):
    from tournament.players import views

    monkeypatch.setattr(views, "BOTS_A_PAGE", 2)
    page = text_of(client, "/bots/?q=b")  # beta, bricks; ann's bots have no b in their names
    assert "Next" not in page
    page = text_of(client, "/bots/")
    assert 'href="?page=2"' in page
    assert "/bots/bricks/" not in page
    assert "/bots/bricks/" in text_of(client, "/bots/?page=2")


def test_players_page_names_their_bots(client, site):
    make_player("carol")
    assert "alpha" in text_of(client, "/players/ann/")
    assert "No accepted bot yet" in text_of(client, "/players/carol/")


def log_of(sitting: int, rotation: int) -> SeatLog:
    log = AgentLog(text="", truncated=False)
    return SeatLog(entrant=0, bot=0, rotation=rotation, seat=2, sitting=sitting, log=log)


@pytest.mark.parametrize(
    ("sitting", "rotation", "rotations", "words"),
    [
        (0, 0, 2, "Rotation 1, seat 2"),
        (1, 1, 2, "Rotation 2, seat 2"),
        (2, 0, 2, "Extra board 1, rotation 1, seat 2"),  # agents sit down anew for each
        (5, 1, 2, "Extra board 2, rotation 2, seat 2"),
        (6, 2, 4, "Extra board 1, rotation 3, seat 2"),
        (2, 0, None, "Game 3, seat 2"),  # no boards: a sitting is a game
    ],
)
def test_every_log_says_which_part_of_the_match_it_is_of(sitting, rotation, rotations, words):
    assert spell_sitting(log_of(sitting, rotation), rotations) == words


def test_phone_shows_the_interval_that_the_page_explains(client, site):
    page = client.get("/leaderboards/eighty/mono/").content.decode()
    assert page.count('class="narrow"') == 4
    assert "The interval holds" in page


def test_rulings_are_told_on_the_page_and_in_the_api(site, client):
    match = site.table.matches.get(state="finished")
    competitions.void_match(pairing=match.pairing, reason="the hall <was> dark", by=site.olga)
    page = client.get("/tournaments/table/").content.decode()
    assert "the hall &lt;was&gt; dark" in page
    (ruling,) = client.get("/api/tournaments/table").json()["rulings"]
    assert (ruling["subject"], ruling["kind"], ruling["after"]) == (
        match.pairing.key,
        "voided",
        "annulled",
    )
