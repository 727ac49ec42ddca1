"""On a site that has grown no page, no answer of the API and no dispatch reads through a whole big table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.big_site import fill_big_site
from tests.site_factory import Site
from tournament.competitions import services as competitions
from tournament.competitions.models import Match, MatchState
from tournament.competitions.services import Play
from tournament.players.models import TokenScope
from tournament.players.services import create_token
from tournament.scrimmages import services as scrimmages
from tournament.scrimmages.services import BatchPlay

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql, pytest.mark.slow]

BIG_ROWS = 1500
MOST_OF_A_TABLE = 0.3
"""Reading more of a big table than this is reading through it; counting does so in an index."""
BY_LOOKING_UP = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")
"""Off: small as the tables are, reading them through costs little, and it would be done although there are indexes."""
PUBLIC = (
    "/",
    "/tournaments/",
    "/tournaments/?game=eighty&state=running",
    "/tournaments/league-20/",
    "/tournaments/league-20/matches/RR/R9/M50/",
    "/tournaments/cup/",
    "/bots/",
    "/bots/clone2000/",
    "/players/player1000/",
    "/leaderboards/",
    "/leaderboards/eighty/mono/",
    "/leaderboards/eighty/mono/?after=1500-100100",
    "/series/",
    "/limits/",
    "/healthz",
    "/metrics",
    "/api/tournaments",
    "/api/tournaments?game=eighty&state=running",
    "/api/tournaments/league-20",
    "/api/matches/league-20/RR/R9/M50",
    "/api/bots",
    "/api/leaderboards/eighty/mono",
    "/api/leaderboards/eighty/mono/bots/clone2000",
    "/api/limits",
)
OF_A_PLAYER = (
    "/account/",
    "/account/bots/",
    "/account/tokens/",
    "/scrimmages/",
    "/scrimmages/new/",
)
OF_A_TOKEN = ("/api/me", "/api/scrimmages")
OF_STAFF = ("/admin/queue/", "/tournaments/league-20/")


def test_no_page_and_no_dispatch_reads_through_a_big_table():
    site = fill_big_site()
    tables = big_tables()
    assert {"competitions_match", "players_bot", "leaderboards_rating"} <= set(tables)
    assert find(lambda: list(Match.objects.filter(wall_ms=3)), tables), "what has no index is found"
    found = {name: find(call, tables) for name, call in hot_calls(site)}
    complaints = [f"{name}: {plan}" for name, plans in found.items() for plan in plans]
    assert not complaints, "\n".join(complaints)


def big_tables() -> dict[str, int]:
    """How many rows the big tables have."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, reltuples::int FROM pg_class WHERE relkind = 'r' AND reltuples >= %s "
            "AND relnamespace = 'public'::regnamespace",
            [BIG_ROWS],
        )
        return dict(cursor.fetchall())


def hot_calls(site: Site) -> Iterator[tuple[str, Callable[[], None]]]:
    """By name what a site does all day."""
    queued = Match.objects.filter(tournament=site.table, state=MatchState.QUEUED).first()
    assert queued is not None

    def play() -> None:
        assert competitions.play_match(match_id=queued.pk, trusted=True) is Play.RECORDED

    def play_batch() -> None:
        came = scrimmages.play_batch(scrimmage_id=site.scrimmage.pk, trusted=True)
        assert came is BatchPlay.RECORDED

    yield "dispatch", lambda: competitions.dispatch(rung=True)
    yield "dispatch of scrimmages", scrimmages.scrimmages_to_play
    yield "a match", play
    yield "the end of a block", lambda: competitions.round_is_empty(match_ids=[queued.pk])
    yield "a batch", play_batch
    for path in PUBLIC:
        yield path, get(Client(), path)
    player, staff = Client(), Client()
    player.force_login(site.ann)
    staff.force_login(site.root)
    _, token = create_token(player=site.ann, scope=TokenScope.READ)
    for path in (*OF_A_PLAYER, f"/scrimmages/{site.scrimmage.pk}/"):
        yield f"{path} of a player", get(player, path)
    for path in OF_STAFF:
        yield f"{path} of staff", get(staff, path)
    for path in OF_A_TOKEN:
        yield path, get(Client(headers={"authorization": f"Bearer {token}"}), path)


def get(client: Client, path: str) -> Callable[[], None]:
    def call() -> None:
        assert client.get(path).status_code == 200, path

    return call


def find(call: Callable[[], Any], tables: Mapping[str, int]) -> list[str]:
    """The parts of query plans that read through one of the tables."""
    with CaptureQueriesContext(connection) as captured:
        call()
    return [
        f"{node['Node Type']} of {node['Relation Name']} where {node.get('Filter')}, in: …{tail(sql)}"
        for sql in filter(None, (statement(query["sql"]) for query in captured.captured_queries))
        for node in nodes(explain(sql))
        if node.get("Relation Name") in tables
        and (
            node["Node Type"] == "Seq Scan"
            or (
                not counts(sql)
                and rows_read(node) > MOST_OF_A_TABLE * tables[node["Relation Name"]]
            )
        )
    ]


def statement(sql: str) -> str | None:
    """What can be explained of a query that was captured; None for savepoints and the like."""
    found = re.match(r"(?:DECLARE .*? FOR )?((?:SELECT|UPDATE|INSERT|DELETE)\b.*)", sql, re.DOTALL)
    return found[1] if found else None


def tail(sql: str) -> str:
    return sql[sql.find(" FROM ") :][:700]


def counts(sql: str) -> bool:
    """Whether it asks how many there are of something, which a walk along an index tells."""
    return "COUNT(" in sql.partition(" FROM ")[0]


def explain(sql: str) -> dict[str, Any]:
    """The plan with which PostgreSQL would use indexes if there are any, and, of a question, what it reads so."""
    reads = sql.startswith("SELECT") and "FOR UPDATE" not in sql
    with connection.cursor() as cursor:
        for setting in BY_LOOKING_UP:
            cursor.execute(f"SET LOCAL {setting} = off")
        cursor.execute(f"EXPLAIN ({'ANALYZE, ' if reads else ''}FORMAT JSON) {sql}")
        (found,) = cursor.fetchone()
        for setting in BY_LOOKING_UP:
            cursor.execute(f"RESET {setting}")
    (plan,) = json.loads(found) if isinstance(found, str) else found
    return plan["Plan"]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def rows_read(node: dict[str, Any]) -> float:
    """How many rows a part of a plan looked at; 0 if the plan was not tried."""
    each = node.get("Actual Rows", 0) + node.get("Rows Removed by Filter", 0)
    return each * node.get("Actual Loops", 0)
