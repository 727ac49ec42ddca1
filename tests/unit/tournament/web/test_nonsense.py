"""Numbers without bounds and characters that no database takes, in every place of every address: never a 500."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import get_resolver

from tests.unit.tournament.web.test_permissions import PAGES, failed_trial, own_addresses
from tournament.competitions.models import Match

NONSENSE = {
    "just over 64 bits": "9223372036854775808",
    "huge": "9" * 30,
    "more digits than Python reads": "9" * 4301,
    "negative": "-1",
    "hugely negative": "-" + "9" * 30,
    "no number": "x",
    "a digit that is none": "²",
    "a NUL": "a\0b",
}
QUERY = ("page", "after", "q", "game", "state", "round", "back", "next")
"""Every parameter that a page or a route of the API reads, but those that choose rows by their ids."""
READ_NO_PARAMETER = {"/api/docs", "/api/openapi.json", "/robots.txt", "/favicon.ico"}
LIKE_ANOTHER = {"huge", "hugely negative", "no number"}
"""Just over 64 bits, more digits than Python reads, negative and a digit that is none are worse."""
each_value = pytest.mark.parametrize("value", NONSENSE.values(), ids=NONSENSE)
each_kind = pytest.mark.parametrize(
    "value",
    [
        pytest.param(value, id=name, marks=[pytest.mark.exhaustive] if name in LIKE_ANOTHER else [])
        for name, value in NONSENSE.items()
    ],
)


@pytest.fixture
def places(site) -> dict[str, object]:
    return site.places(trial=failed_trial(site).pk)


@pytest.fixture
def program(root, token) -> Client:
    """A superuser's browser that also sends ann's token: nothing is refused before it is read."""
    root.raise_request_exception = False
    root.defaults["HTTP_AUTHORIZATION"] = f"Bearer {token}"
    return root


def is_broken(answer) -> bool:
    return answer.status_code >= 500


@each_kind
def test_no_parameter_of_any_page_breaks_it(program, places, value):
    pages = {page.format(**places).split("?")[0] for page in PAGES}
    public = {path for path in pages if not path.startswith("/admin/")} - READ_NO_PARAMETER
    broken = [path for path in public if is_broken(program.get(path, dict.fromkeys(QUERY, value)))]
    broken += [path for path in public if is_broken(program.get(path, {"page": value}))]
    assert not broken


@pytest.mark.parametrize("name", ["id__in", "id__exact", "p", "q"])
@pytest.mark.parametrize("value", ["9" * 30, "9" * 4301, "a\0b"], ids=["huge", "endless", "NUL"])
def test_no_parameter_of_a_list_of_the_admin_breaks_it(program, site, name, value):
    models = ("auth/group", "players/player", "players/bot", "leaderboards/rating")
    answers = {model: program.get(f"/admin/{model}/", {name: value}) for model in models}
    assert not [model for model, answer in answers.items() if is_broken(answer)]


@each_value
def test_no_choice_of_rows_breaks_an_operation(program, site, value):
    path = "/admin/players/bot/operate/pause/"
    assert program.get(path, {"ids": value}).status_code in {400, 404}
    both = program.get(path, {"ids": f"{value},{site.bots[0].pk}"})
    assert both.status_code in {200, 400}


@each_kind
def test_no_part_of_any_address_breaks_it(program, site, value):
    value = value.replace("\0", "%00")
    routes = [path.replace("^", "").replace("$", "") for path, _ in own_addresses(get_resolver())]
    paths = {
        "/" + with_part(route, number, value)
        for route in routes
        for number in range(len(re.findall(r"<[^>]+>", route)))
    }
    paths |= {f"/admin/players/bot/{value}/change/", f"/admin/players/bot/operate/{value}/"}
    methods = (program.get, program.post, program.delete)
    assert not [path for path in paths for method in methods if is_broken(method(path))]


def with_part(route: str, number: int, value: str) -> str:
    """The route with `value` in the place of its parameter `number`, and a tournament's name in the others."""
    count = iter(range(9))
    fill: Callable[[re.Match[str]], str] = lambda _: value if next(count) == number else "cup"  # noqa: E731
    return re.sub(r"<[^>]+>", fill, route)


@each_value
def test_no_field_of_any_form_breaks_it(program, site, value):
    match = Match.objects.filter(tournament=site.table).first()
    forms = {
        "/tournaments/open-one/enter/": ("bot", "partner"),
        "/tournaments/open-one/leave/": ("entrant",),
        "/account/": ("form",),
        "/scrimmages/new/": ("first", "other", "game", "difference", "most_sets", "time_control"),
        "/scrimmages/allow/alpha/": ("allowed",),
        "/account/tokens/": ("name", "scope", "days"),
        f"/admin/competitions/match/operate/forfeit/?ids={match.pk}": ("offenders",),
        "/admin/players/botversion/": ("_selected_action", "action"),
    }
    usual = {"reason": "a test", "name": "laptop", "scope": "read", "days": "30", "action": "check"}
    broken = [
        (path, name)
        for path, names in forms.items()
        for name in names
        if is_broken(program.post(path, {**usual, name: value}))
    ]
    assert not broken


@each_kind
def test_no_number_of_the_form_for_a_tournament_breaks_it(program, value):
    usual = {
        "name": "Spring",
        "game": "eighty",
        "format": "single_elimination",
        "contest": "boards",
        "contest_size": "8",
        "time_control": "fast",
        "records_public": "at_once",
        "weight": "1",
        **{f"{name}_at_1": "12:00" for name in ("opens", "closes", "starts")},
        "opens_at_0": "2099-01-01",
        "closes_at_0": "2099-01-02",
        "starts_at_0": "2099-01-03",
    }
    path = "/admin/competitions/tournament/add/"
    names = ("contest_size", "extra_boards", "weight", "cap", "slug", "eighty-target")
    answers = {name: program.post(path, {**usual, name: value}) for name in names}
    assert not [name for name, answer in answers.items() if is_broken(answer)]


@pytest.mark.parametrize(
    "value",
    [10**30, None, [], {}, "a\0b", "\ud800", "x" * 10_000],
    ids=["number", "null", "list", "object", "NUL", "surrogate", "long"],
)
@pytest.mark.parametrize("name", ["bot", "partner"])
def test_no_body_breaks_the_api(program, site, name, value):
    body = {"bot": "aces", name: value}
    answer = program.post("/api/tournaments/open-one/entries", body, "application/json")
    assert answer.status_code in {201, 404, 422}


@pytest.mark.parametrize(
    "value",
    [10**30, None, {}, "a\0b", "\ud800", {"\ud800": "\ud800"}, {"target": 10**30}],
    ids=["number", "null", "object", "NUL", "surrogate", "surrogates", "option"],
)
def test_no_wish_for_a_scrimmage_breaks_the_api(program, site, value):
    wish = {"bot": "aces", "against": "beta", "game": "eighty"}
    names = (
        *wish,
        "version",
        "against_version",
        "difference",
        "most_sets",
        "time_control",
        "ruleset",
    )
    for each in names:
        answer = program.post("/api/scrimmages", {**wish, each: value}, "application/json")
        assert answer.status_code in {201, 422, 429}, (each, answer.content)


@pytest.mark.parametrize("path", ["/bots/?q=a%00b", "/tournaments/cup%00/", "/api/bots?q=%00"])
def test_nul_is_refused_before_a_database_does(client, db, path):
    answer = client.get(path)
    assert answer.status_code == 400
