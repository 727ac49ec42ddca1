"""What cannot be: the form and the API say the same thing, and nothing is half-created."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.tournament_factories import (
    accept,
    make_bot,
    make_player,
    make_tournament,
    start,
    submit,
)
from tests.unit.tournament.web.test_admin import plan, series_values, times
from tournament.competitions.models import (
    Entrant,
    Notice,
    Series,
    Stage,
    Tournament,
    TournamentState,
)
from tournament.players import services as players
from tournament.players.models import VersionGame

NOW = datetime.now(UTC).replace(microsecond=0)
YESTERDAY = NOW - timedelta(days=1)


@pytest.fixture
def olgas_token(site) -> str:
    return players.create_token(player=site.olga, scope="submit")[1]


def post(client, path: str, body: dict[str, Any], token: str):
    return client.post(path, body, "application/json", HTTP_AUTHORIZATION=f"Bearer {token}")


def sent(**changes: Any) -> dict[str, Any]:
    """A tournament as it is sent to the API."""
    now = timezone.now()
    return {
        "name": "Winter Cup",
        "game": "eighty",
        "format": "round_robin",
        "opens_at": now.isoformat(),
        "closes_at": (now + timedelta(hours=1)).isoformat(),
        "starts_at": (now + timedelta(hours=2)).isoformat(),
        "time_control": "fast",
        **changes,
    }


@pytest.mark.parametrize(
    ("asked", "filled_in", "says"),
    [
        (
            {"max_entrants": 1},
            {"max_entrants": "1"},
            "from 2 to",
        ),  # one alone plays nobody
        (
            {"format": "swiss", "format_options": {"rounds": 0}},
            {"format": "swiss", "swiss-rounds": "0"},
            "rounds=0 is not allowed",
        ),  # zero rounds
        (
            {"format": "groups", "format_options": {"groups": 8}, "max_entrants": 6},
            {"format": "groups", "groups-groups": "8", "max_entrants": "6"},
            "8 groups need at least 16 entrants",
        ),  # more groups than entrants
        (
            {"format": "swiss", "format_options": {"rounds": 9}, "max_entrants": 8},
            {"format": "swiss", "swiss-rounds": "9", "max_entrants": "8"},
            "takes at most 7 rounds",
        ),  # nobody has so many opponents
        (
            {"format": "swiss", "format_options": {"rounds": 5}, "min_entrants": 4},
            {"format": "swiss", "swiss-rounds": "5", "min_entrants": "4"},
            "takes at most 3 rounds",
        ),  # nor would have with the fewest
        (
            {
                "opens_at": (YESTERDAY - timedelta(days=1)).isoformat(),
                "closes_at": (YESTERDAY - timedelta(hours=1)).isoformat(),
                "starts_at": YESTERDAY.isoformat(),
            },
            times(
                opens_at=YESTERDAY - timedelta(days=1),
                closes_at=YESTERDAY - timedelta(hours=1),
                starts_at=YESTERDAY,
            ),
            "this is in the past",
        ),  # a start in the past
        (
            {"results_at": NOW.isoformat()},
            {"results_at_0": f"{NOW:%Y-%m-%d}", "results_at_1": f"{NOW:%H:%M:%S}"},
            "only until a time after the start",
        ),  # seals nothing
        (
            {"late_until_round": 2},
            {"late_until_round": "2"},
            "takes nobody in after its start",
        ),  # drawn beforehand
    ],
)
def test_tournament_that_cannot_be_is_refused_alike(
    site, olga, client, olgas_token, asked, filled_in, says
):
    before = set(Tournament.objects.values_list("pk", flat=True))
    page = olga.post("/admin/competitions/tournament/add/", plan(**filled_in))
    assert says in page.content.decode()
    answer = post(client, "/api/tournaments", sent(**asked), olgas_token)
    assert answer.status_code == 422
    assert says in answer.json()["error"]["message"]
    assert set(Tournament.objects.values_list("pk", flat=True)) == before
    assert Stage.objects.count() == len(before)


@pytest.mark.parametrize(
    ("asked", "filled_in", "says"),
    [
        (
            {"time_zone": "Mars/Olympus"},
            {"time_zone": "Mars/Olympus"},
            "there is no time zone",
        ),  # nobody lives there
        (
            {"rule": {"cron": "0 18 31 4 *", "open_minutes": 60}},
            {"cron": "0 18 31 4 *", "weekdays": [], "at": ""},
            "there is no such day",
        ),  # the 31st of April
    ],
)
def test_series_that_cannot_be_is_refused_alike(
    site, olga, client, olgas_token, asked, filled_in, says
):
    page = olga.post(
        "/admin/competitions/series/add/", series_values(site, confirmed="on", **filled_in)
    )
    assert says in page.content.decode()
    body = {
        "name": "Friday Cup",
        "rule": {"weekdays": [4], "at": "18:30", "open_minutes": 60},
        "template": {"game": "eighty", "format": "round_robin"},
        **asked,
    }
    answer = post(client, "/api/series", body, olgas_token)
    assert answer.status_code == 422
    assert says in answer.json()["error"]["message"]
    assert not Series.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cap": 10**30}, "cap"),  # larger than any column
        ({"weight": 10**30}, "weight"),
        ({"name": "Winter\0Cup"}, "name"),  # PostgreSQL stores no such character
        ({"description": "cold\0"}, "description"),
        ({"description": "half \ud83c"}, "description"),  # as JSON spells it
        ({"opens_at": "0001-01-01T00:00:00+05:00"}, "opens_at"),  # before there were times in UTC
        ({"starts_at": "9999-12-31T23:59:59Z"}, "starts_at"),
        (
            {
                "format": "",
                "stages": [{"format": "ladder", "stops_after_minutes": 10**6}],
                "starts_at": "9999-12-31T23:59:59Z",
            },
            "starts_at",
        ),  # its end would be after the last year
    ],
)
def test_value_that_no_database_takes_is_refused_by_name(site, client, olgas_token, changes, field):
    answer = post(client, "/api/tournaments", sent(**changes), olgas_token)
    assert answer.status_code == 422
    assert any(line.startswith(f"{field}: ") for line in answer.json()["error"]["details"])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "x" * 61}, "at most 60"),  # longer than its column
        ({"template": {"game": ["eighty"], "format": "swiss"}}, "`$.game`"),  # a list of games
        ({"template": {"game": "eighty", "format": "swiss", "weight": "much"}}, "`$.weight`"),
        ({"template": {"game": "eighty", "stages": [{"format": 7}]}}, "`$.stages[0].format`"),
    ],
)
def test_series_of_values_that_are_none_is_refused(site, client, olgas_token, changes, says):
    body = {
        "name": "Friday Cup",
        "rule": {"weekdays": [4], "at": "18:30", "open_minutes": 60},
        "template": {"game": "eighty", "format": "round_robin"},
        **changes,
    }
    answer = post(client, "/api/series", body, olgas_token)
    assert answer.status_code == 422
    assert says in answer.json()["error"]["message"]
    assert not Series.objects.exists()


def test_what_can_be_is_made_by_the_api(site, client, olgas_token):
    body = sent(max_entrants=8, min_entrants=4, if_too_few="postpone", seeding="lot")
    answer = post(client, "/api/tournaments", body, olgas_token)
    assert (answer.status_code, answer.json()["slug"]) == (201, "winter-cup")
    made = Tournament.objects.get(slug="winter-cup")
    assert (made.organiser, made.state, made.seeding) == (site.olga, "draft", "lot")
    body = {
        "name": "Friday Cup",
        "rule": {"cron": "30 18 * * 5", "open_minutes": 60},
        "template": {"game": "eighty", "format": "round_robin"},
        "points_table": [3, 2, 1],
    }
    answer = post(client, "/api/series", body, olgas_token)
    assert (answer.status_code, len(answer.json()["next"])) == (201, 5)


def test_only_organisers_make_tournaments_and_series(site, client, token):
    for path, body in (
        ("/api/tournaments", sent()),
        ("/api/series", {"name": "x", "rule": {}, "template": {}}),
    ):
        answer = post(client, path, body, token)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_organiser")
    assert not Tournament.objects.filter(slug="winter-cup").exists()


@pytest.mark.parametrize(
    ("games", "says"),
    [
        ({"podkidnoe": {"players": [2]}}, "1.0 does not play eighty"),
        ({"eighty": {"players": [2]}}, "1.0 was not accepted for tables of 4"),
        ({"eighty": {"players": [4], "nello": [False]}}, "1.0 was not accepted for nello="),
    ],
)
def test_bot_that_cannot_play_here_is_told_why_when_it_enters(
    site, ann, client, token, games, says
):
    cup = make_tournament(name="Nello Cup", ruleset={"nello": True})
    accept(submit(site.ann, "zulu"), games)
    ann.post(f"/tournaments/{cup.slug}/enter/", {"bot": "zulu"})
    assert says in ann.get(f"/tournaments/{cup.slug}/").content.decode()
    answer = post(client, f"/api/tournaments/{cup.slug}/entries", {"bot": "zulu"}, token)
    assert answer.status_code == 422
    assert says in answer.json()["error"]["message"]
    assert not Entrant.objects.filter(tournament=cup).exists()


def test_who_has_no_version_to_play_with_is_shown_to_the_organiser_and_the_owner(
    site, ann, bob, olga, client
):
    waiting = submit(site.ann, "zulu")
    cup = make_tournament([waiting.bot], name="Waiting Cup")
    path = f"/tournaments/{cup.slug}/"
    for visitor, sees in ((ann, True), (olga, True), (bob, False), (client, False)):
        assert ("zulu: 1.0 is not checked yet" in visitor.get(path).content.decode()) is sees
    accept(waiting)
    assert "zulu: 1.0" not in ann.get(path).content.decode()
    VersionGame.objects.filter(version=waiting).delete()
    assert "zulu: 1.0 does not play eighty" in ann.get(path).content.decode()


def test_reasons_are_read_in_so_many_queries_for_any_number(site, django_assert_max_num_queries):
    from tournament.competitions.selectors import why_none_plays

    owner = make_player()
    bots = [submit(owner, f"zulu{number}").bot for number in range(6)]
    cup = make_tournament(bots, name="Waiting Cup")
    with django_assert_max_num_queries(6):
        assert len(why_none_plays(cup, [bot.pk for bot in bots])) == 6


@pytest.mark.parametrize(
    ("format_name", "options", "bots", "says"),
    [
        ("round_robin", {}, 1, "needs at least 2 entrants"),  # one entrant
        ("groups", {"groups": 4}, 3, "need at least 8 entrants"),  # more groups than entrants
        ("swiss", {"rounds": 4}, 3, "takes at most 2 rounds"),  # more rounds than opponents
    ],
)
def test_tournament_that_too_few_have_entered_is_cancelled_with_the_reason(
    site, format_name, options, bots, says
):
    cup = make_tournament(
        site.bots[:bots], name="Lonely", format=format_name, format_options=options
    )
    cup = start(cup)
    assert cup.state == TournamentState.CANCELLED
    assert says in cup.cancelled_reason
    assert says in Notice.objects.filter(player=site.ann).get().text
    assert not cup.matches.exists()


def test_bot_without_any_version_that_was_accepted_does_not_enter(site, ann, client, token):
    bot = make_bot("zulu", site.ann)
    version = bot.versions.get()
    VersionGame.objects.filter(version=version).delete()
    answer = post(client, "/api/tournaments/open-one/entries", {"bot": "zulu"}, token)
    assert answer.status_code == 422
    assert "has no version that could play here" in answer.json()["error"]["message"]
    ann.post("/tournaments/open-one/enter/", {"bot": "zulu"})
    assert site.open.entrants.count() == 1
