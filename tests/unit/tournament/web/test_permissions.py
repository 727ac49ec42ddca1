"""The addresses of the site that are read, and what five visitors get there; `test_rights` has all roles and methods."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from engine.checking import Conditions
from engine.sdk.timecontrol import time_control
from tournament.competitions.models import EntryTrial, TrialState
from tournament.competitions.selectors.trials import conditions_key

ROLES = ("nobody", "ann", "bob", "olga", "root")
"""A visitor, the owner of what is asked for, another player, an organiser, a superuser."""
LOGIN = "login"
EVERYBODY = (200,) * 5
PLAYERS = (LOGIN, 200, 200, 200, 200)
OWNER = (LOGIN, 200, 404, 404, 404)
SHARED = (LOGIN, 200, 404, 200, 200)
STAFF = (LOGIN, LOGIN, LOGIN, 200, 200)
ROOT = (LOGIN, LOGIN, LOGIN, 403, 200)
AUDITOR = ROOT

PAGES = {
    # the public side
    "/": EVERYBODY,
    "/guide/": EVERYBODY,
    "/limits/": EVERYBODY,
    "/bots/": EVERYBODY,
    "/bots/alpha/": EVERYBODY,
    "/players/ann/": EVERYBODY,
    "/leaderboards/": EVERYBODY,
    "/leaderboards/eighty/mono/": EVERYBODY,
    "/tournaments/": EVERYBODY,
    "/tournaments/cup/": EVERYBODY,
    "/series/": EVERYBODY,
    "/series/unknown/": (404,) * 5,
    "/tournaments/cup/bundle.json.gz": EVERYBODY,
    "/tournaments/cup/superseded/1/record.json": (404,) * 5,  # none has been taken back
    "/tournaments/cup/matches/SE/R1/M1/": EVERYBODY,
    "/tournaments/cup/matches/SE/R1/M1/record.json": EVERYBODY,
    "/robots.txt": EVERYBODY,
    "/favicon.ico": (301,) * 5,
    "/account/sign-up/": (200, 302, 302, 302, 302),  # who is in is sent to their bots
    "/account/log-in/": EVERYBODY,
    # the account
    "/account/": PLAYERS,
    "/account/bots/": PLAYERS,
    "/account/upload/": PLAYERS,
    "/account/data/": PLAYERS,
    "/account/data/archive/": PLAYERS,
    "/account/tokens/": PLAYERS,
    "/account/password/": (200, 200, 200, 200, 200),
    "/account/password/MQ/abc/": (410, 410, 410, 410, 410),  # no whole link
    "/account/mail/abc/confirm/": (410, 410, 410, 410, 410),  # no whole link
    "/account/mail/abc/stop/": (
        200,
        200,
        200,
        200,
        200,
    ),  # it asks; what is wrong with the link it says then
    "/account/versions/{rejected}/": OWNER,
    "/account/versions/{rejected}/log/": OWNER,
    "/account/versions/{rejected}/wheel/": OWNER,
    "/account/trials/{trial}/": OWNER,
    # scrimmages: for who asked, and staff
    "/scrimmages/": PLAYERS,
    "/scrimmages/new/": PLAYERS,
    "/scrimmages/{scrimmage}/": SHARED,
    "/scrimmages/{scrimmage}/batches/1/": SHARED,
    "/scrimmages/{scrimmage}/batches/1/record.json": SHARED,
    # what is only posted
    "/scrimmages/{scrimmage}/cancel/": (LOGIN, 405, 405, 405, 405),
    "/scrimmages/allow/alpha/": (LOGIN, 405, 405, 405, 405),
    "/account/log-out/": (405,) * 5,
    "/account/tokens/abc/revoke/": (LOGIN, 405, 405, 405, 405),
    "/account/versions/{rejected}/withdraw/": (LOGIN, 405, 405, 405, 405),
    "/series/unknown/enter/": (LOGIN, 405, 405, 405, 405),
    "/series/unknown/leave/": (LOGIN, 405, 405, 405, 405),
    "/account/notices/put-away/": (LOGIN, 405, 405, 405, 405),
    "/tournaments/open-one/enter/": (LOGIN, 405, 405, 405, 405),
    "/tournaments/open-one/leave/": (LOGIN, 405, 405, 405, 405),
    "/tournaments/open-one/invite/": (LOGIN, 405, 405, 405, 405),
    "/tournaments/open-one/invitations/1/": (LOGIN, 405, 405, 405, 405),
    # the API: cookies let nobody in
    "/api/docs": EVERYBODY,
    "/api/openapi.json": EVERYBODY,
    "/api/limits": EVERYBODY,
    "/api/me": (401,) * 5,
    "/api/me/data": (401,) * 5,
    "/api/versions": (405,) * 5,
    "/api/versions/{rejected}": (401,) * 5,
    "/api/versions/{rejected}/log": (401,) * 5,
    "/api/bots": EVERYBODY,
    "/api/leaderboards/eighty/mono": EVERYBODY,
    "/api/leaderboards/eighty/mono/bots/alpha": EVERYBODY,
    "/api/tournaments": EVERYBODY,
    "/api/series": (405,) * 5,
    "/api/tournaments/cup": EVERYBODY,
    "/api/tournaments/cup/bundle": EVERYBODY,
    "/api/tournaments/cup/entries": EVERYBODY,
    "/api/tournaments/cup/pairings": EVERYBODY,
    "/api/tournaments/cup/standings": EVERYBODY,
    "/api/tournaments/cup/invitations": (401,) * 5,
    "/api/tournaments/cup/invitations/1": (405,) * 5,
    "/api/tournaments/cup/invitations/1/accept": (405,) * 5,
    "/api/tournaments/cup/invitations/1/decline": (405,) * 5,
    "/api/series/unknown": (404,) * 5,
    "/api/series/unknown/entries": (405,) * 5,
    "/api/series/unknown/entries/alpha": (405,) * 5,
    "/api/tournaments/cup/entries/alpha": (405,) * 5,
    "/api/matches/cup/SE/R1/M1": EVERYBODY,
    "/api/matches/cup/SE/R1/M1/record": EVERYBODY,
    "/api/scrimmages": (401,) * 5,
    "/api/scrimmages/{scrimmage}": (401,) * 5,
    # the admin
    "/admin/": STAFF,
    "/admin/queue/": STAFF,
    "/admin/auth/group/": ROOT,
    "/admin/players/player/": ROOT,
    "/admin/players/apitoken/": ROOT,
    "/admin/players/bot/": STAFF,
    "/admin/players/bot/operate/pause/?ids={bot}": STAFF,
    "/admin/players/botversion/": STAFF,
    "/admin/players/botversion/{rejected}/change/": STAFF,
    "/admin/players/botversion/{rejected}/log/": AUDITOR,
    "/admin/leaderboards/rating/": STAFF,
    "/admin/leaderboards/ratingpool/": STAFF,
    "/admin/leaderboards/ratingevent/": STAFF,
    "/admin/leaderboards/rating/add/": (LOGIN, LOGIN, LOGIN, 403, 403),
    "/admin/competitions/tournament/": STAFF,
    "/admin/competitions/tournament/add/": STAFF,
    "/admin/competitions/tournament/stages/": STAFF,
    "/admin/competitions/tournament/{cup}/change/": STAFF,
    "/admin/competitions/tournament/{cup}/delete/": (LOGIN, LOGIN, LOGIN, 403, 403),
    "/admin/competitions/tournament/operate/pause/?ids={table}": STAFF,
    "/admin/competitions/entrant/": STAFF,
    "/admin/competitions/match/": STAFF,
    "/admin/workers/workerreport/": STAFF,
    "/admin/scrimmages/scrimmage/": STAFF,
    "/admin/scrimmages/scrimmage/{scrimmage}/change/": STAFF,
    "/admin/scrimmages/scrimmage/operate/cancel/?ids={scrimmage}": STAFF,
    "/admin/competitions/pairing/": STAFF,
    "/admin/competitions/round/": STAFF,
    "/admin/competitions/ruling/": STAFF,
    "/admin/competitions/entrytrial/": STAFF,
    "/admin/competitions/entrytrial/{trial}/change/": STAFF,
    "/admin/competitions/entrytrial/operate/retry/?ids={trial}": STAFF,
    "/admin/competitions/series/": STAFF,
    "/admin/competitions/series/add/": STAFF,
}


def failed_trial(site) -> EntryTrial:
    """One of ann's version."""
    conditions = Conditions(game="eighty", seats=4, ruleset={}, time_control=time_control("fast"))
    return EntryTrial.objects.create(
        version=site.rejected,
        key=conditions_key(conditions),
        conditions=msgspec.to_builtins(conditions),
        due_at=site.open.closes_at,
        state=TrialState.FAILED,
        reason="it crashed",
    )


def outcome_of(client: Client, path: str) -> int | str:
    answer = client.get(path)
    if answer.status_code == 302 and (
        "/log-in/" in answer["Location"] or "/login/" in answer["Location"]
    ):
        return LOGIN
    return answer.status_code


def own_addresses(resolver: URLResolver, start: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Every address of the site but those of the admin, which all go through `admin_view`."""
    for entry in resolver.url_patterns:
        path = start + str(entry.pattern)
        if isinstance(entry, URLResolver):
            if not path.startswith("admin/"):
                yield from own_addresses(entry, path)
        else:
            yield path, entry


def test_no_address_is_missing_in_the_table():
    tabled = set()
    resolver = get_resolver()
    for page in PAGES:
        path = page.split("?")[0]
        for name in ("rejected", "bot", "cup", "table", "scrimmage", "trial"):
            path = path.replace(f"{{{name}}}", "1")
        tabled.add(resolver.resolve(path).route)
    missing = {path for path, _ in own_addresses(resolver)} - tabled
    assert missing == {"api/"}, "the API's root only names the API for reversing"


def test_the_secret_is_in_no_admin():
    from django.contrib import admin

    from tournament.competitions.models import TournamentSecret

    assert TournamentSecret not in admin.site._registry
