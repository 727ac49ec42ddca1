"""Who may do what: every address of the site, by every role and method, in one table.

An address that is missing here fails. Requests leave nothing behind: each is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.core import signing
from django.db import transaction
from django.test import Client
from django.urls import URLResolver, get_resolver

from tests.site_factory import Site, make_staff
from tests.tournament_factories import entrant_of, make_plan, make_player, make_tournament
from tests.unit.tournament.web.test_permissions import failed_trial
from tournament.competitions import services as competitions
from tournament.competitions.models import (
    Entrant,
    InvitationState,
    PairInvitation,
    Round,
    Ruling,
)
from tournament.leaderboards.models import Rating, RatingEvent, RatingPool
from tournament.moderation.services import suspend
from tournament.players import services as players
from tournament.players.models import Bot, BotVersion, Player, VersionState
from tournament.players.services.passwords import reset_path
from tournament.scrimmages.models import Scrimmage
from tournament.web.api import api
from tournament.workers.models import WorkerReport

ROLES = ("nobody", "ann", "bob", "olga", "otto", "mona", "sam", "root")
"""A visitor; whose it is; another player; the organiser of it, and of another; a moderator; staff without rights;
a superuser."""
LIKE_BOB = ("otto", "mona", "sam")
"""To pages that do not tell players apart, whatever rights they have in the admin: root and olga have more."""
LOGIN = "log in"
ANNS_MAIL = "ann@example.org"
DONE = "done"
"""200, or 302 to a page that says how it went."""


def row(*outcomes: int | str) -> tuple[int | str, ...]:
    """Outcomes by role, the last one for all roles that are left."""
    return outcomes + outcomes[-1:] * (len(ROLES) - len(outcomes))


EVERYBODY = row(200)
ABSENT = row(404)
PLAYERS = row(LOGIN, 200)
OWNER = row(LOGIN, 200, 404)
SHARED = (LOGIN, 200, 404, 200, 200, 404, 404, 200)  # organisers watch over scrimmages
NEVER = row(405)
NO_POST = row(LOGIN, 405)
ACTS = row(LOGIN, 302)
OWNER_ACTS = row(LOGIN, 302, 404)

PAGES: dict[str, tuple[tuple[int | str, ...], tuple[int | str, ...]]] = {
    # what it answers to GET, and to a POST of an empty form
    "/": (EVERYBODY, NEVER),
    "/guide/": (EVERYBODY, NEVER),
    "/limits/": (EVERYBODY, NEVER),
    "/bots/": (EVERYBODY, NEVER),
    "/bots/alpha/": (EVERYBODY, NEVER),
    "/players/ann/": (EVERYBODY, NEVER),
    "/leaderboards/": (EVERYBODY, NEVER),
    "/leaderboards/eighty/mono/": (EVERYBODY, NEVER),
    "/tournaments/": (EVERYBODY, NEVER),
    "/tournaments/cup/": (EVERYBODY, NEVER),
    "/tournaments/draft/": ((404, 404, 404, 200, 404, 404, 404, 200), NEVER),
    "/tournaments/cup/bundle.json.gz": (EVERYBODY, NEVER),
    "/tournaments/cup/superseded/1/record.json": (ABSENT, NEVER),
    "/tournaments/cup/matches/SE/R1/M1/": (EVERYBODY, NEVER),
    "/tournaments/cup/matches/SE/R1/M1/record.json": (EVERYBODY, NEVER),
    "/series/": (EVERYBODY, NEVER),
    "/series/weekly/": (EVERYBODY, NEVER),
    "/robots.txt": (EVERYBODY, NEVER),
    "/favicon.ico": (row(301), row(301)),
    "/healthz": (EVERYBODY, NEVER),
    "/readyz": (EVERYBODY, NEVER),
    "/metrics": (EVERYBODY, NEVER),
    # accounts
    "/account/sign-up/": (row(200, 302), row(200, 302)),
    "/account/log-in/": (EVERYBODY, EVERYBODY),
    "/account/log-out/": (NEVER, row(302)),
    "/account/": (PLAYERS, PLAYERS),
    "/account/bots/": (PLAYERS, NO_POST),
    "/account/upload/": (PLAYERS, PLAYERS),
    "/account/password/": (EVERYBODY, EVERYBODY),
    "/account/password/{reset}": (row(302), row(302)),  # to the form, without the token
    "/account/mail/{confirm}/confirm/": (EVERYBODY, EVERYBODY),
    "/account/mail/{stop}/stop/": (EVERYBODY, EVERYBODY),
    "/account/tokens/": (PLAYERS, PLAYERS),
    "/account/tokens/{token}/revoke/": (NO_POST, OWNER_ACTS),
    "/account/data/": (PLAYERS, NO_POST),
    "/account/data/archive/": (PLAYERS, NO_POST),
    "/account/versions/{rejected}/": (OWNER, NO_POST),
    "/account/versions/{rejected}/log/": (OWNER, NO_POST),
    "/account/versions/{rejected}/wheel/": (OWNER, NO_POST),
    "/account/versions/{rejected}/withdraw/": (NO_POST, OWNER_ACTS),
    "/account/trials/{trial}/": (OWNER, NO_POST),
    "/account/notices/put-away/": (NO_POST, ACTS),
    # what players do with tournaments and scrimmages; whose it is, the effects below tell
    "/tournaments/open-one/enter/": (NO_POST, ACTS),
    "/tournaments/open-one/leave/": (NO_POST, ACTS),
    "/tournaments/pairs/invite/": (NO_POST, ACTS),
    "/tournaments/pairs/invitations/{invitation}/": (NO_POST, ACTS),
    "/series/weekly/enter/": (NO_POST, ACTS),
    "/series/weekly/leave/": (NO_POST, ACTS),
    "/scrimmages/": (PLAYERS, NO_POST),
    "/scrimmages/new/": (PLAYERS, row(LOGIN, 422)),
    "/scrimmages/{scrimmage}/": (SHARED, NO_POST),
    "/scrimmages/{scrimmage}/cancel/": (NO_POST, OWNER_ACTS),
    "/scrimmages/{scrimmage}/batches/1/": (SHARED, NO_POST),
    "/scrimmages/{scrimmage}/batches/1/record.json": (SHARED, NO_POST),
    "/scrimmages/allow/alpha/": (NO_POST, OWNER_ACTS),
    "/api/docs": (EVERYBODY, EVERYBODY),
    "/api/openapi.json": (EVERYBODY, EVERYBODY),
}

PROBES = {"/healthz", "/readyz", "/metrics"}
"""Answered by a middleware, before there is any route."""

EFFECTS: dict[str, tuple[dict[str, str], Any]] = {
    # forms that answer alike whatever comes of them: what is sent, and whether it was done (for ann alone)
    "/tournaments/open-one/enter/": (
        {"bot": "aces"},
        lambda _: Entrant.objects.filter(tournament__slug="open-one", name="aces").exists(),
    ),
    "/tournaments/open-one/leave/": (
        {"entrant": "{entrant}"},
        lambda _: not Entrant.objects.filter(tournament__slug="open-one", name="alpha").exists(),
    ),
    "/tournaments/pairs/invitations/{invitation}/": (
        {"answer": "withdraw"},
        lambda _: PairInvitation.objects.filter(state=InvitationState.WITHDRAWN).exists(),
    ),
    "/scrimmages/allow/alpha/": (
        {},
        lambda _: Bot.objects.filter(name="alpha", allows_scrimmages=False).exists(),
    ),
    "/scrimmages/{scrimmage}/cancel/": (
        {},
        lambda _: Scrimmage.objects.filter(state="cancelled").exists(),
    ),
    "/account/versions/{rejected}/withdraw/": (
        {},
        lambda _: BotVersion.objects.filter(state=VersionState.WITHDRAWN).exists(),
    ),
}

# The admin

ORGANISERS = {"olga", "otto", "root"}
ROOT = {"root"}
MODERATORS = {"mona", "root"}
VIEWERS: dict[str, set[str]] = {
    "auth.group": ROOT,
    "admin.logentry": MODERATORS,
    "players.player": MODERATORS,
    "players.apitoken": ROOT,
    "players.bot": ORGANISERS | MODERATORS,
    "players.botversion": ORGANISERS | MODERATORS,
    "leaderboards.rating": ORGANISERS,
    "leaderboards.ratingpool": ORGANISERS,
    "leaderboards.ratingevent": ORGANISERS,
    "competitions.tournament": ORGANISERS,
    "competitions.entrant": ORGANISERS,
    "competitions.match": ORGANISERS,
    "competitions.round": ORGANISERS,
    "competitions.pairing": ORGANISERS,
    "competitions.ruling": ORGANISERS,
    "competitions.entrytrial": ORGANISERS,
    "competitions.series": ORGANISERS,
    "workers.workerreport": ORGANISERS,
    "scrimmages.scrimmage": ORGANISERS,
    "moderation.suspension": MODERATORS,
}
"""Who sees the list; the page of a row, too, but for what an organiser of another tournament must not see."""
OF_THE_ORGANISER = {
    f"competitions.{name}"
    for name in ("tournament", "entrant", "match", "round", "pairing", "ruling", "series")
}
ADDERS = {
    "auth.group": ROOT,
    "players.player": ROOT,
    "competitions.tournament": ORGANISERS,
    "competitions.series": ORGANISERS,
}
WRITERS = {"auth.group": ROOT, "players.player": ROOT}
DELETERS = {"auth.group": ROOT}
OPERATORS: dict[str, set[str]] = {
    "players.player": MODERATORS,
    "players.apitoken": ROOT,
    "players.bot": ORGANISERS,
    "players.botversion": ORGANISERS,
    "competitions.tournament": ORGANISERS,
    "competitions.entrant": ORGANISERS,
    "competitions.match": ORGANISERS,
    "competitions.pairing": ORGANISERS,
    "competitions.entrytrial": ORGANISERS,
    "competitions.series": ORGANISERS,
    "scrimmages.scrimmage": ORGANISERS,
    "moderation.suspension": MODERATORS,
}
OPERATORS_OF_ONE = {"players.bot/suspend": MODERATORS}
AUDITORS = MODERATORS
STAFF = {"olga", "otto", "mona", "sam", "root"}
ADMIN_PAGES: dict[str, set[str]] = {
    "/admin/": STAFF,
    "/admin/queue/": ORGANISERS | MODERATORS,  # who may see versions sees their checks
    "/admin/search/": STAFF,
    "/admin/jsi18n/": STAFF,
    "/admin/password_change/": STAFF,
    "/admin/password_change/done/": STAFF,
    "/admin/competitions/tournament/stages/": ORGANISERS,
    "/admin/players/botversion/{players.botversion}/log/": AUDITORS,
    "/admin/players/botversion/{players.botversion}/wheel/": AUDITORS,
    "/admin/players/player/{players.player}/password/": ROOT,
}
ADMIN_LEADS_ELSEWHERE = {
    # addresses that show nothing of their own: to a row's page, to an app's lists, to nothing
    "/admin/login/",
    "/admin/logout/",
    "/admin/autocomplete/",
    "/admin/r/1/1/",
    "/admin/players/",
    "/admin/nothing",
}

# The API

TOKENS = ("none", "read", "ann", "bob", "olga", "otto", "root")
"""No token; ann's that may only read; and of each player one that may submit."""
PUBLIC = (200,) * 7
NOW = datetime.now(UTC).replace(microsecond=0)
PLAN = {
    "name": "New Cup",
    "game": "eighty",
    "format": "single_elimination",
    "opens_at": (NOW + timedelta(days=1)).isoformat(),
    "closes_at": (NOW + timedelta(days=2)).isoformat(),
    "starts_at": (NOW + timedelta(days=3)).isoformat(),
}
SERIES = {
    "name": "Monthly",
    "rule": {"weekdays": [0], "at": "20:00", "open_minutes": 120, "pause_minutes": 10},
    "template": {"game": "eighty", "format": "single_elimination"},
}
API: dict[tuple[str, str], tuple[tuple[int, ...], dict[str, Any] | None]] = {
    ("GET", "/me"): ((401, 200, 200, 200, 200, 200, 200), None),
    ("GET", "/me/data"): ((401, 200, 200, 200, 200, 200, 200), None),
    ("POST", "/versions"): ((401, 403, 422, 422, 422, 422, 422), {}),
    ("GET", "/versions/{rejected}"): ((401, 200, 200, 404, 404, 404, 404), None),
    ("GET", "/versions/{rejected}/log"): ((401, 200, 200, 404, 404, 404, 404), None),
    ("GET", "/bots"): (PUBLIC, None),
    ("GET", "/limits"): (PUBLIC, None),
    ("GET", "/leaderboards/eighty/mono"): (PUBLIC, None),
    ("GET", "/leaderboards/eighty/mono/bots/alpha"): (PUBLIC, None),
    ("GET", "/tournaments"): (PUBLIC, None),
    ("POST", "/tournaments"): ((401, 403, 403, 403, 201, 201, 201), PLAN),
    ("GET", "/tournaments/cup"): (PUBLIC, None),
    ("GET", "/tournaments/draft"): ((404,) * 7, None),
    ("GET", "/tournaments/cup/bundle"): (PUBLIC, None),
    ("GET", "/tournaments/open-one/entries"): (PUBLIC, None),
    ("GET", "/tournaments/cup/pairings"): (PUBLIC, None),
    ("GET", "/tournaments/cup/standings"): (PUBLIC, None),
    ("POST", "/tournaments/open-one/entries"): (
        (401, 403, 201, 404, 404, 404, 404),
        {"bot": "aces"},
    ),
    ("DELETE", "/tournaments/open-one/entries/alpha"): ((401, 403, 204, 404, 404, 404, 404), None),
    ("GET", "/tournaments/pairs/invitations"): ((401, 403, 200, 200, 200, 200, 200), None),
    ("POST", "/tournaments/pairs/invitations"): (
        (401, 403, 201, 404, 404, 404, 404),
        {"bot": "aces", "invited": "bricks"},
    ),
    ("POST", "/tournaments/pairs/invitations/{invitation}/accept"): (
        (401, 403, 422, 201, 404, 404, 404),
        None,
    ),
    ("POST", "/tournaments/pairs/invitations/{invitation}/decline"): (
        (401, 403, 422, 204, 404, 404, 404),
        None,
    ),
    ("DELETE", "/tournaments/pairs/invitations/{invitation}"): (
        (401, 403, 204, 422, 404, 404, 404),
        None,
    ),
    ("GET", "/matches/cup/SE/R1/M1"): (PUBLIC, None),
    ("GET", "/matches/cup/SE/R1/M1/record"): (PUBLIC, None),
    ("POST", "/series"): ((401, 403, 403, 403, 201, 201, 201), SERIES),
    ("GET", "/series/weekly"): (PUBLIC, None),
    ("POST", "/series/weekly/entries"): ((401, 403, 204, 404, 404, 404, 404), {"bot": "aces"}),
    ("DELETE", "/series/weekly/entries/alpha"): ((401, 403, 204, 404, 404, 404, 404), None),
    ("GET", "/scrimmages"): ((401, 200, 200, 200, 200, 200, 200), None),
    ("POST", "/scrimmages"): ((401, 403, 422, 422, 422, 422, 422), {}),
    ("GET", "/scrimmages/{scrimmage}"): ((401, 200, 200, 404, 404, 404, 404), None),
    ("DELETE", "/scrimmages/{scrimmage}"): ((401, 403, 200, 404, 404, 404, 404), None),
}


class Visitors:
    """The site, who is on it, and what their addresses name."""

    def __init__(self, site: Site) -> None:
        self.site = site
        sam, mona = make_player("sam"), make_player("mona")
        for person in (sam, mona):
            person.is_staff = True
            person.save()
        mona.groups.add(Group.objects.get(name="moderators"))
        own = {name: getattr(site, name) for name in ("ann", "bob", "olga", "root")}
        self.people: dict[str, Player] = {
            **own,
            "otto": make_staff("otto"),
            "sam": sam,
            "mona": mona,
        }
        self.cookies = {name: self._log_in(person) for name, person in self.people.items()}
        self.places = self._make_places()

    @staticmethod
    def _log_in(person: Player) -> str:
        client = Client()
        client.force_login(person)
        return client.cookies["sessionid"].value

    def _make_places(self) -> dict[str, Any]:
        site = self.site
        alpha, _, beta, _ = site.bots
        pairs = make_tournament(name="Pairs", kind="pair", organiser=site.olga)
        invitation = competitions.invite_partner(
            tournament=pairs, bot=alpha, invited=beta, by=site.ann
        )
        competitions.create_tournament(organiser=site.olga, plan=make_plan(name="Draft"))
        series = competitions.create_series(
            organiser=site.olga,
            now=NOW,
            name="Weekly",
            course=competitions.Course(rule=SERIES["rule"], template=SERIES["template"]),
        )
        competitions.enter_series(series=series, bots=[alpha], by=site.ann)
        mail = {"email": ANNS_MAIL, "confirmed_email": ANNS_MAIL}
        Player.objects.filter(pk=site.ann.pk).update(**mail)
        site.ann.refresh_from_db()
        token, _ = players.create_token(player=site.ann)
        suspension = suspend(subject=make_player("rude"), reason="was rude", by=site.root)
        ruling = Ruling.objects.create(
            tournament=site.table, kind="voided", subject="RR/R1/M1", reason="a doubt", by=site.olga
        )
        trial = failed_trial(site)
        match = site.table.matches.order_by("pk").first()
        WorkerReport.objects.create(
            name="w", host="h", python="3.11", rules_version="r", budget_percent=100
        )
        LogEntry.objects.log_actions(
            site.root.pk, [alpha], 2, change_message="Pause", single_object=True
        )
        return {
            "rejected": site.rejected.pk,
            "entrant": entrant_of(site.open, "alpha").pk,
            "token": token.prefix,
            "reset": reset_path(site.ann).removeprefix("/account/password/"),
            "confirm": signing.dumps([site.ann.pk, ANNS_MAIL], salt="arena.mail.confirm"),
            "stop": signing.dumps(site.ann.pk, salt="arena.mail.stop"),
            "trial": trial.pk,
            "scrimmage": site.scrimmage.pk,
            "invitation": invitation.pk,
            # a row of each model in the admin
            "auth.group": Group.objects.get(name="organisers").pk,
            "admin.logentry": LogEntry.objects.latest("pk").pk,
            "players.player": site.ann.pk,
            "players.apitoken": token.pk,
            "players.bot": alpha.pk,
            "players.botversion": site.rejected.pk,
            "leaderboards.rating": Rating.objects.latest("pk").pk,
            "leaderboards.ratingpool": RatingPool.objects.latest("pk").pk,
            "leaderboards.ratingevent": RatingEvent.objects.latest("pk").pk,
            "competitions.tournament": site.table.pk,
            "competitions.entrant": site.table.entrants.latest("pk").pk,
            "competitions.match": match.pk,
            "competitions.round": Round.objects.filter(stage__tournament=site.table)
            .latest("pk")
            .pk,
            "competitions.pairing": match.pairing_id,
            "competitions.ruling": ruling.pk,
            "competitions.entrytrial": trial.pk,
            "competitions.series": series.pk,
            "workers.workerreport": "w",
            "scrimmages.scrimmage": site.scrimmage.pk,
            "moderation.suspension": suspension.pk,
        }

    def client(self, role: str) -> Client:
        """A browser in which this role is logged in."""
        client = Client()
        if role != "nobody":
            client.cookies["sessionid"] = self.cookies[role]
        return client

    def path(self, path: str) -> str:
        """An address with what it names put in."""
        for name, value in self.places.items():
            path = path.replace(f"{{{name}}}", str(value))
        return path

    def ask(self, client: Client, method: str, path: str, *, probe: Any = None, **more: Any) -> Any:
        """What comes of a request, or what `probe` says after it; nothing of it stays."""
        with transaction.atomic():
            send = getattr(client, method.lower())
            answer = send(self.path(path), **more)
            if answer.streaming:
                b"".join(answer)
            found = outcome(answer) if probe is None else bool(probe(answer))
            transaction.set_rollback(True)
        return found


@pytest.fixture
def visitors(site) -> Visitors:
    return Visitors(site)


def outcome(answer: Any) -> int | str:
    """The status, or that it leads to a log-in."""
    where = answer.headers.get("Location", "")
    return LOGIN if "/log-in/" in where or "/login/" in where else answer.status_code


def in_admin(role: str, may: set[str], refused: int = 403) -> int | str:
    """What the admin answers to a role where these may do something."""
    if role not in STAFF:
        return LOGIN
    return DONE if role in may else refused


def told(status: int | str) -> int | str:
    return DONE if status in {200, 302} else status


def differences(found: dict[Any, Any], expected: dict[Any, Any]) -> list[str]:
    """Where an answer is not what the table says."""
    return [
        f"{what}: {found[what]}, not {outcome}"
        for what, outcome in expected.items()
        if found[what] != outcome
    ]


@pytest.mark.parametrize("role", [role for role in ROLES if role not in LIKE_BOB])
def test_each_page_is_open_to_just_those_it_is_for(visitors, role):
    check_pages(visitors, role, list(PAGES))


@pytest.mark.parametrize("role", LIKE_BOB)
def test_pages_that_tell_players_apart_know_each_of_them(visitors, role):
    told_apart = [
        path for path, rows in PAGES.items() if any(len(set(outcomes[1:])) > 1 for outcomes in rows)
    ]
    assert {"/account/versions/{rejected}/", "/tournaments/draft/"} < set(told_apart)
    check_pages(visitors, role, told_apart)


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", LIKE_BOB)
def test_pages_for_all_players_are_for_each_of_them(visitors, role):
    check_pages(visitors, role, list(PAGES))


def check_pages(visitors: Visitors, role: str, paths: list[str]) -> None:
    column, client = ROLES.index(role), visitors.client(role)
    found = {
        path: (
            visitors.ask(client, "GET", path),
            visitors.ask(visitors.client(role), "POST", path),
        )
        for path in paths
    }
    expected = {path: tuple(outcomes[column] for outcomes in PAGES[path]) for path in paths}
    assert differences(found, expected) == []


@pytest.mark.parametrize("role", ROLES)
def test_what_a_form_does_it_does_for_the_owner_alone(visitors, role):
    client = visitors.client(role)
    done = {
        path
        for path, (data, probe) in EFFECTS.items()
        if visitors.ask(
            client,
            "POST",
            path,
            probe=probe,
            data={name: visitors.path(value) for name, value in data.items()},
        )
    }
    assert done == (set(EFFECTS) if role == "ann" else set())


def admin_rows(role: str) -> Iterator[tuple[str, str, int | str]]:
    """Method, address and outcome of every page of the admin."""
    for path, may in ADMIN_PAGES.items():
        yield "GET", path, in_admin(role, may)
    yield from model_rows(role, VIEWERS)


def model_rows(role: str, labels: Iterable[str]) -> Iterator[tuple[str, str, int | str]]:
    """Those of these models."""
    for label in labels:
        viewers = VIEWERS[label]
        base, pk = f"/admin/{label.replace('.', '/')}/", f"{{{label}}}"
        is_anothers = label in OF_THE_ORGANISER and role == "otto"
        yield "GET", base, in_admin(role, viewers)
        # of what is another's both say only that there is no such row: the history does so to all staff
        hides = label in OF_THE_ORGANISER
        yield "GET", f"{base}{pk}/change/", in_admin(role, viewers)
        yield "GET", f"{base}{pk}/history/", in_admin(role, STAFF if hides else viewers)
        yield "GET", f"{base}add/", in_admin(role, ADDERS.get(label, set()))
        yield "GET", f"{base}{pk}/delete/", in_admin(role, DELETERS.get(label, set()))
        yield "POST", f"{base}{pk}/delete/", in_admin(role, DELETERS.get(label, set()))
        yield "POST", f"{base}{pk}/change/", in_admin(role, WRITERS.get(label, set()))
        yield "POST", f"{base}add/", in_admin(role, ADDERS.get(label, set()))
        for each in getattr(admin.site._registry[model_of(label)], "operations", ()):
            may = OPERATORS_OF_ONE.get(f"{label}/{each.name}", OPERATORS[label])
            refused = 404 if is_anothers else 403
            expected = in_admin(role, may - {"otto"} if is_anothers else may, refused)
            yield "GET", f"{base}operate/{each.name}/?ids={pk}", expected
            yield "POST", f"{base}operate/{each.name}/?ids={pk}", expected


def model_of(label: str) -> Any:
    return next(model for model in admin.site._registry if model._meta.label_lower == label)


@pytest.mark.parametrize(
    "role",
    [
        *ROLES[:4],
        pytest.param("otto", marks=pytest.mark.exhaustive),  # has the rights of olga: below
        "mona",
        "sam",
        pytest.param("root", marks=pytest.mark.exhaustive),  # sees all pages, which takes longest
    ],
)
def test_each_page_and_operation_of_the_admin_is_open_to_just_those_it_is_for(visitors, role):
    check_rows(visitors, role, list(admin_rows(role)))


def test_organiser_of_another_tournament_meets_just_what_the_table_says(visitors):
    rights = {name: visitors.people[name].get_all_permissions() for name in ("olga", "otto")}
    assert rights["olga"] == rights["otto"]
    check_rows(visitors, "otto", list(model_rows("otto", sorted(OF_THE_ORGANISER))))


def check_rows(visitors: Visitors, role: str, rows: list[tuple[str, str, int | str]]) -> None:
    client = visitors.client(role)
    found = {(method, path): told(visitors.ask(client, method, path)) for method, path, _ in rows}
    expected = {(method, path): outcome for method, path, outcome in rows}
    assert differences(found, expected) == []


def test_organiser_of_another_tournament_sees_no_row_of_it(visitors):
    client = visitors.client("otto")
    for label in OF_THE_ORGANISER:
        base = f"/admin/{label.replace('.', '/')}/"
        answer = client.get(visitors.path(f"{base}{{{label}}}/change/"))
        assert (answer.status_code, answer["Location"]) == (302, "/admin/"), label
        listed = client.get(base).content.decode()
        assert "Table" not in listed, label


def test_superuser_reads_all_tournaments_and_so_does_who_may_oversee(visitors):
    from django.contrib.auth.models import Permission

    otto = visitors.people["otto"]
    otto.user_permissions.add(Permission.objects.get(codename="oversee_tournament"))
    path = visitors.path("/admin/competitions/tournament/{competitions.tournament}/change/")
    assert visitors.client("otto").get(path).status_code == 200


@pytest.mark.parametrize(
    ("role", "path", "allowed"),
    [
        (
            "mona",
            "players/player/?email__startswith=a",
            False,
        ),  # letter by letter it tells the address
        ("mona", "players/player/?email__isempty=1", False),
        (
            "mona",
            "players/player/?key__startswith=a",
            False,
        ),  # what the list of erasures names people by
        ("mona", "players/player/?is_staff__exact=1", True),  # a filter beside the list
        ("mona", "players/bot/?paused_reason__isempty=0", True),
        (
            "olga",
            "competitions/match/?tournament__name__regex=(a+)%2B$",
            False,
        ),  # may take for ever
        ("olga", "competitions/match/?tournament__id__exact=1", True),
        ("olga", "competitions/match/?state__regex=(a+)%2B$", False),
        ("olga", "competitions/tournament/?starts_at__year=2026", True),
        ("olga", "players/botversion/?games__game=eighty", True),
        ("olga", "leaderboards/rating/?game=eighty", True),
    ],
)
def test_lists_of_the_admin_are_narrowed_by_their_own_filters_alone(visitors, role, path, allowed):
    status = visitors.client(role).get(f"/admin/{path}").status_code
    assert status == (200 if allowed else 400)


@pytest.mark.parametrize("kind", ["log", "wheel"])
def test_reading_of_what_is_anothers_leaves_a_row_that_an_admin_can_see(visitors, kind):
    path = visitors.path(f"/admin/players/botversion/{{players.botversion}}/{kind}/")
    assert visitors.client("mona").get(path).status_code == 200
    noted = LogEntry.objects.latest("pk")
    assert noted.user == visitors.people["mona"]
    assert noted.change_message in {"Read the log", "Downloaded the wheel"}
    listed = visitors.client("root").get("/admin/admin/logentry/").content.decode()
    assert noted.change_message in listed
    before = LogEntry.objects.count()
    assert visitors.client("olga").get(path).status_code == 403
    assert LogEntry.objects.count() == before


@pytest.mark.parametrize("column", range(len(TOKENS)), ids=TOKENS)
def test_each_route_of_the_api_is_open_to_just_the_tokens_it_is_for(visitors, column):
    who = TOKENS[column]
    headers = {}
    if who != "none":
        scope, owner = ("read", "ann") if who == "read" else ("submit", who)
        _, text = players.create_token(player=visitors.people[owner], scope=scope)
        headers = {"Authorization": f"Bearer {text}"}
    client = Client(headers=headers)
    found = {
        (method, path): visitors.ask(
            client, method, f"/api{path}", data=body, content_type="application/json"
        )
        if method != "GET"
        else visitors.ask(client, method, f"/api{path}")
        for (method, path), (_, body) in API.items()
    }
    expected = {route: outcomes[column] for route, (outcomes, _) in API.items()}
    assert differences(found, expected) == []


def test_cookie_opens_no_route_of_the_api(visitors):
    root = visitors.client("root")
    closed = [route for route, (outcomes, _) in API.items() if outcomes[0] == 401]
    assert {visitors.ask(root, method, f"/api{path}") for method, path in closed} == {401}


def routes(resolver: URLResolver, start: str = "") -> Iterator[str]:
    """Every address of the site but those of the API, as patterns."""
    for entry in resolver.url_patterns:
        path = start + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from routes(entry, path)
        else:
            yield path.replace("/^", "/")  # as Django joins what it resolves


def test_no_address_is_missing_in_the_tables(visitors):
    resolver = get_resolver()
    asked = [
        *(path for path in PAGES if path not in PROBES),
        *ADMIN_LEADS_ELSEWHERE,
        *(path for _, path, _ in admin_rows("root")),
    ]
    asked += [f"/api{path}" for _, path in API]
    tabled = {resolver.resolve(visitors.path(path).partition("?")[0]).route for path in asked}
    redirects = {f"admin/{label.replace('.', '/')}/<path:object_id>/" for label in VIEWERS}
    missing = set(routes(resolver)) - tabled - redirects
    assert missing == {"api/"}, "the API's root only names the API for reversing"


def test_no_method_of_the_api_is_missing_in_the_table(visitors):
    resolver = get_resolver()
    tabled = {
        (method, resolver.resolve(f"/api{visitors.path(path)}").route) for method, path in API
    }
    here = {
        (method, f"api{path}".replace("{", "<").replace("}", ">"))
        for _, router in api._routers
        for path, view in router.path_operations.items()
        for operation in view.operations
        for method in operation.methods
    }
    assert here - tabled == set()


def test_no_model_of_the_admin_and_no_operation_is_missing():
    assert {model._meta.label_lower for model in admin.site._registry} == set(VIEWERS)
    operated = {
        model._meta.label_lower
        for model, each in admin.site._registry.items()
        if getattr(each, "operations", ())
    }
    assert operated == set(OPERATORS)
