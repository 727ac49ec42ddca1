"""Tournaments of several stages as people make and see them: the admin's form, pages, the API."""

from __future__ import annotations

import html
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from tests.tournament_factories import make_bot, make_player, make_tournament, play_all, start
from tests.unit.tournament.web.test_admin import times
from tournament.competitions import services
from tournament.competitions.models import Entrant, EntrantBot, Match, Stage, Tournament
from tournament.competitions.services import StageWish
from tournament.players import services as players
from tournament.players.models import Bot

pytestmark = pytest.mark.django_db
ADD = "/admin/competitions/tournament/add/"
CHOOSE = "/admin/competitions/tournament/stages/"
GROUPS = StageWish(format="groups", format_options={"groups": 2}, qualifiers=4)
DOUBLE = StageWish(format="double_elimination")


@pytest.fixture
def organiser():
    player = make_player("olga")
    player.is_staff = True
    player.save()
    player.groups.add(Group.objects.get(name="organisers"))
    return player


@pytest.fixture
def admin(client, organiser):
    client.force_login(organiser)
    return client


@pytest.fixture
def played(db) -> Tournament:
    """Groups of three, then a double elimination of four; finished."""
    owner = make_player("ann")
    bots = [make_bot(f"bot{number}", owner) for number in range(6)]
    return play_all(start(make_tournament(bots, name="Open", format="", stages=(GROUPS, DOUBLE))))


def filled_in(**changes: Any) -> dict[str, Any]:
    """The form of a Swiss and a single elimination."""
    return {
        "name": "Winter Cup",
        "game": "eighty",
        "contest": "boards",
        "contest_size": "8",
        "time_control": "fast",
        "weight": "1",
        "rated": "on",
        "records_public": "at_once",
        **times(),
        "stage1-qualifiers": "4",
        "stage1-swiss-rounds": "3",
        "stage2-contest": "games",
        "stage2-contest_size": "3",
        "stage2-time_control": "standard",
        "stage2-eighty-target": "200",
        "stage2-single_elimination-third_place": "true",
        **changes,
    }


def test_formats_are_chosen_first_and_each_stage_then_has_its_own_options(admin):
    answer = admin.get(CHOOSE, {"stage1-format": "swiss", "stage2-format": "single_elimination"})
    assert answer["Location"] == f"{ADD}?stages=swiss&stages=single_elimination"
    page = admin.get(answer["Location"]).content.decode()
    assert 'name="stage1-swiss-rounds"' in page
    assert 'name="stage1-qualifiers"' in page
    assert 'name="stage2-single_elimination-third_place"' in page
    assert 'name="stage2-qualifiers"' not in page  # nobody goes on from the last
    assert 'name="stage1-groups-groups"' not in page  # of another format


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"stage1-format": "swiss", "stage3-format": "swiss"}, "no gap"),  # stage 2 is missing
        ({"stage2-format": "swiss"}, "required"),  # the first is missing
        ({"stage1-format": "lottery"}, "lottery"),  # no such format
    ],
)
def test_choice_of_stages_that_makes_no_sense_says_so(admin, asked, says):
    assert says in admin.get(CHOOSE, asked).content.decode()


def test_form_makes_the_stages_each_with_its_own_match_time_and_rules(admin):
    answer = admin.post(f"{ADD}?stages=swiss&stages=single_elimination", filled_in())
    assert answer.status_code == 302, answer.content.decode()[:3000]
    first, second = Stage.objects.order_by("index")
    assert (first.format, first.options["rounds"], first.qualifiers) == ("swiss", 3, 4)
    assert (first.contest["kind"], first.time_control["name"]) == ("boards", "fast")
    assert (second.contest, second.time_control["name"]) == (
        {"kind": "games", "best_of": 3},
        "standard",
    )
    assert second.options == {"third_place": True}
    assert (first.ruleset["target"], second.ruleset["target"]) == (250, 200)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"stage1-qualifiers": ""}, "required"),  # how many go on?
        ({"stage1-swiss-rounds": "0"}, "Stage 1, format options: "),  # no round at all
        ({"stage2-contest_size": "0"}, "greater than or equal to 1"),  # no game at all
        ({"stage2-contest_size": ""}, "best_of"),  # how many games?
        ({"stage1-qualifiers": "9", "max_entrants": "8"}, "9 cannot go on"),  # never so many
        ({"stage2-eighty-target": "much"}, "Stage 2, ruleset: "),  # no such value
    ],
)
def test_form_says_of_which_stage_it_complains_and_makes_nothing(admin, changes, says):
    answer = admin.post(f"{ADD}?stages=swiss&stages=single_elimination", filled_in(**changes))
    assert says in html.unescape(answer.content.decode())
    assert not Stage.objects.exists()


def test_clone_of_several_stages_is_filled_in(admin, organiser):
    row = make_tournament(
        name="Open",
        organiser=organiser,
        format="",
        stages=(
            GROUPS,
            StageWish(format="ladder", stops_after_minutes=90, ruleset={"target": 200}),
        ),
    )
    page = admin.get(f"{ADD}?clone={row.pk}").content.decode()
    assert 'name="stage1-qualifiers" value="4"' in page
    assert 'name="stage2-stops_after_minutes" value="90"' in page
    assert 'name="stage2-eighty-target" value="200"' in page


def test_who_makes_no_tournaments_chooses_no_stages(client):
    client.force_login(make_player())
    assert client.get(CHOOSE).status_code == 302


def test_page_shows_a_table_for_each_group_and_who_goes_on(client, played):
    page = client.get("/tournaments/open/?stage=1").content.decode()
    assert "Group A</h2>" in page
    assert "Group B</h2>" in page
    assert page.count(">goes on</span>") == 4
    assert "The best 4 go on to stage 2" in page
    assert "Buchholz" in page or "buchholz" in page


def test_page_shows_both_brackets_and_the_grand_final_of_a_double_elimination(client, played):
    page = client.get("/tournaments/open/").content.decode()
    for title in ("Winners’ bracket", "Losers’ bracket", "Grand final"):
        assert title in page
    assert "S2/W/R1/M0" in page
    assert 'aria-current="true">2. Double elimination' in page


def test_page_shows_the_tables_of_the_other_stages_too(client, played):
    page = client.get("/tournaments/open/").content.decode()
    others = page[page.index('id="other-stages"') : page.index('id="conditions"')]
    assert "Stage 1: Groups" in others
    assert others.count(">goes on</span>") == 4
    assert "Group A</h3>" in others
    played_matches = Match.objects.count()
    assert (
        f"{played_matches} of {played_matches} finished" in page
    )  # no second grand final is missing


def test_page_of_a_double_elimination_shows_who_will_come_where(client, db):
    owner = make_player()
    bots = [make_bot(f"bot{number}", owner) for number in range(4)]
    start(make_tournament(bots, name="Open", format="double_elimination"))
    page = client.get("/tournaments/open/").content.decode()
    for words in (
        "winner of W/R1/M0",
        "loser of W/R1/M0",
        "Losers’ final",
        "losers’ champion",
    ):
        assert words in page


def test_match_leads_back_to_its_stage(client, played):
    match = Match.objects.filter(pairing__round__stage__index=1).first()
    page = client.get(f"/tournaments/open/matches/{match.pairing.key}/").content.decode()
    assert "?stage=2&amp;round=1#matches" in page
    assert "Stage 2, Double elimination, round 1" in page


def test_swiss_says_that_it_is_not_the_dutch_system(client, db):
    owner = make_player()
    bots = [make_bot(f"bot{number}", owner) for number in range(3)]
    play_all(start(make_tournament(bots, name="Open", format="swiss")))
    page = client.get("/tournaments/open/").content.decode()
    assert "not FIDE&#x27;s Dutch system" in page
    assert "How the tie-breaks came about" in page


def test_stage_to_come_shows_its_conditions(client, db):
    make_tournament(name="Open", format="", stages=(GROUPS, DOUBLE))
    page = client.get("/tournaments/open/?stage=2").content.decode()
    assert "Conditions of stage 2" in page
    assert client.get("/tournaments/open/?stage=99").status_code == 200
    assert client.get("/tournaments/open/?stage=x&round=y&page=z&table=0").status_code == 200


def test_stage_that_is_not_played_says_why(client, db):
    owner = make_player()
    bots = [make_bot(f"bot{number}", owner) for number in range(6)]
    tournament = start(make_tournament(bots, name="Open", format="", stages=(GROUPS, DOUBLE)))
    for seed in (2, 3, 6, 4, 5):  # all of group B, and two of group A
        services.withdraw_entrant(entrant=tournament.entrants.get(seed=seed), by=owner)
    page = client.get("/tournaments/open/?stage=2").content.decode()
    assert "<strong>Not played:</strong>" in page


def test_pages_of_a_large_tournament_ask_no_more_than_those_of_a_small_one(
    client, db, django_assert_max_num_queries, monkeypatch
):
    owner = make_player()
    bots = [make_bot(f"bot{number:02}", owner) for number in range(16)]
    start(make_tournament(bots, name="Open", format="swiss"))
    monkeypatch.setattr("tournament.competitions.selectors.stages.LARGE_STAGE", 4)
    monkeypatch.setattr("tournament.competitions.views.LINES_A_PAGE", 5)
    with django_assert_max_num_queries(40):
        page = client.get("/tournaments/open/").content.decode()
    assert "Page 1 of 4" in page  # the table and the entrants
    assert "Page 1 of 2" in page  # the matches of the round
    last = client.get("/tournaments/open/?table=4&entrants=4&page=2").content.decode()
    assert "Page 4 of 4" in last
    assert "SW/R1/M8" in last


def test_ladder_shows_its_last_matches_and_leads_to_the_earlier_ones(client, db, monkeypatch):
    monkeypatch.setattr("tournament.competitions.views.BATCHES_A_PAGE", 2)
    owner = make_player()
    bots = [make_bot(f"bot{number}", owner) for number in range(4)]
    options = {"matches_each": 4, "at_once": 1}
    play_all(start(make_tournament(bots, name="Open", format="ladder", format_options=options)))
    page = client.get("/tournaments/open/").content.decode()
    last = Match.objects.order_by("-pk").first().pairing.round.index
    assert f"Batches {last - 1} to {last} of {last}" in page
    assert f"round={last - 2}#matches" in page
    assert "LD/R1/M1" in client.get("/tournaments/open/?round=2").content.decode()


class TestApi:
    def test_tells_all_of_each_stage(self, client, played):
        found = client.get("/api/tournaments/open").json()
        first, second = found["stages"]
        assert (first["format"], first["qualifiers"], first["state"]) == ("groups", 4, "finished")
        groups = client.get("/api/tournaments/open/standings?stage=1").json()["standings"]
        last = client.get("/api/tournaments/open/standings").json()
        assert {row["group"] for row in groups} == {"A", "B"}
        going_on = {row["entrant"] for row in groups if row["goes_on"]}
        assert going_on == {row["entrant"] for row in last["standings"]}
        assert last["stage"] == second["number"] == 2
        pairings = client.get("/api/tournaments/open/pairings?stage=2").json()["pairings"]
        assert pairings[0]["key"] == "S2/W/R1/M0"
        assert found["format"] == "groups, double_elimination"
        assert any(" = " in text for row in groups for text in row["tie_breaks"].values())

    def test_makes_tournaments_of_several_stages(self, client, organiser):
        token = players.create_token(player=organiser, scope="submit")[1]
        now = timezone.now()
        asked = {
            "name": "Winter Cup",
            "game": "eighty",
            "opens_at": now.isoformat(),
            "closes_at": (now + timedelta(hours=1)).isoformat(),
            "starts_at": (now + timedelta(hours=2)).isoformat(),
            "stages": [
                {"format": "swiss", "format_options": {"rounds": 3}, "qualifiers": 4},
                {"format": "single_elimination", "time_control": "fast"},
            ],
        }

        def send(body):
            return client.post(
                "/api/tournaments",
                body,
                "application/json",
                HTTP_AUTHORIZATION=f"Bearer {token}",
            )

        assert send(asked).status_code == 201
        assert list(Stage.objects.order_by("index").values_list("format", "qualifiers")) == [
            ("swiss", 4),
            ("single_elimination", None),
        ]
        del asked["stages"][0]["qualifiers"]
        answer = send({**asked, "slug": "other"})
        assert answer.status_code == 422
        assert "stages: stage 1: say how many go on" in answer.json()["error"]["message"]
        assert Tournament.objects.count() == 1


class TestSealed:
    @pytest.fixture
    def sealed(self, db):
        """Sealed from the last round of its groups on; finished."""
        owner = make_player("ann")
        bots = [make_bot(f"bot{number}", owner) for number in range(6)]
        tournament = start(make_tournament(bots, name="Open", format="", stages=(GROUPS, DOUBLE)))
        last = tournament.stages.get(index=0).rounds.last()
        last.published_at = None
        last.save()
        services.seal_results(tournament=tournament, until=timezone.now() + timedelta(hours=1))
        return play_all(tournament)

    def test_stages_after_a_sealed_round_are_as_if_they_had_not_begun(self, client, sealed):
        page = client.get("/tournaments/open/?stage=2").content.decode()
        assert "Grand final" not in page
        assert "S2/" not in page
        found = client.get("/api/tournaments/open").json()
        assert (found["sealed_stage"], found["sealed_from"]) == (1, 3)
        groups = client.get("/tournaments/open/?stage=1").content.decode()
        assert "other-stages" not in groups
        assert found["stages"][1]["rounds"] == []
        table = client.get("/api/tournaments/open/standings?stage=2").json()["standings"]
        pairings = client.get("/api/tournaments/open/pairings?stage=2").json()["pairings"]
        assert table == pairings == []
        assert found["stages"][1]["state"] == "pending"
        assert found["stages"][1]["started_at"] is None
        rows = client.get("/api/tournaments/open/standings?stage=1").json()["standings"]
        assert {row["goes_on"] for row in rows} == {False}
        match = Match.objects.filter(pairing__round__stage__index=1).first()
        assert client.get(f"/api/matches/open/{match.pairing.key}").status_code == 404
        bot = client.get("/bots/bot0/").content.decode()
        assert "S2/" not in bot

    def test_organiser_sees_all_of_it_and_others_not(self, admin, sealed, organiser):
        assert "Grand final" not in admin.get("/tournaments/open/?stage=2").content.decode()
        sealed.organiser = organiser
        sealed.save()
        assert "Grand final" in admin.get("/tournaments/open/?stage=2").content.decode()


def test_page_of_more_than_a_thousand_entrants_is_shown(client, db):
    """SQLite takes no query with a term for each of a thousand rows."""
    tournament = make_tournament(name="Open", format="swiss")
    owner = make_player()
    bots = Bot.objects.bulk_create(Bot(owner=owner, name=f"bot{n}") for n in range(1010))
    entrants = Entrant.objects.bulk_create(
        Entrant(tournament=tournament, name=bot.name) for bot in bots
    )
    EntrantBot.objects.bulk_create(
        EntrantBot(tournament=tournament, entrant=entrant, bot=bot)
        for entrant, bot in zip(entrants, bots, strict=True)
    )
    page = client.get("/tournaments/open/").content.decode()
    assert "Page 1 of 11" in page
