"""A site moves from SQLite to PostgreSQL: whole or not at all, and goes on there."""

from __future__ import annotations

import io
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from tests.databases import connected_to
from tests.postgresql import postgresql_server
from tests.site_factory import fill_site
from tests.tournament_factories import make_player, play_all
from tournament.competitions.models import Notice, Tournament, TournamentState
from tournament.competitions.services.bundles import note_bundle_digests
from tournament.leaderboards.services import verify_ratings
from tournament.operations.databases import read_database, read_postgresql, sqlite_database
from tournament.operations.errors import OperationsError
from tournament.operations.home import Home
from tournament.operations.moving import TableProof, without_nul
from tournament.players.models import Player


@pytest.fixture
def old(tmp_path: Path, django_db_blocker) -> Path:
    """The database of a site that was played on, has told a bundle's digest, and keeps a NUL."""
    path = tmp_path / "arena.sqlite3"
    with django_db_blocker.unblock(), connected_to(sqlite_database(path)):
        call_command("migrate", interactive=False, verbosity=0)
        site = fill_site()
        note_bundle_digests()
        Notice.objects.create(player=site.ann, tournament=site.cup, text="a\0b")
    return path


@pytest.fixture
def new(django_db_blocker) -> Iterator[None]:
    """This process is connected to an empty PostgreSQL database."""
    with (
        postgresql_server() as server,
        django_db_blocker.unblock(),
        connected_to(read_postgresql(server.address(), sys.argv)),
    ):
        yield


def move(path: Path) -> str:
    said = io.StringIO()
    call_command("move_database", source=path, stdout=said)
    return said.getvalue()


def change(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as database:
        database.execute(statement)
    database.close()


@pytest.mark.slow
def test_site_moves_whole_or_not_at_all_and_goes_on(old: Path, new, tmp_path: Path):
    change(old, "UPDATE store_pulse SET at = datetime('now')")
    with pytest.raises(CommandError, match="the site still runs"):
        move(old)
    change(old, "UPDATE store_pulse SET at = '2020-01-01'")
    with (
        Home(old.parent).serve(),  # by itself it shows no sign of life in the database
        pytest.raises(CommandError, match="a web server still works"),
    ):
        move(old)

    torn = tmp_path / "torn.sqlite3"
    shutil.copy(old, torn)
    change(torn, "UPDATE competitions_match SET digest = 'sha256:' || hex(id) WHERE digest <> ''")
    with pytest.raises(CommandError, match="has a record of the digest"):
        move(torn)
    assert Player.objects.count() == 0, "nothing was moved"
    assert read_database("", old.parent, sys.argv)["NAME"] == old, "so the old site may go on"

    said = move(old)
    assert "1 rating pools" in said
    assert "4 records" in said
    assert "1 bundles" in said
    assert "In 1 values NUL" in said
    name = connection.settings_dict["NAME"]
    with pytest.raises(OperationsError, match=f"has moved to PostgreSQL at .*, database {name} "):
        read_database("", old.parent, sys.argv)
    assert Notice.objects.get(text__startswith="a").text == "a\ufffdb"
    assert Client().get("/tournaments/cup/").status_code == 200
    assert make_player("newcomer").pk > Player.objects.get(username="root").pk
    table = play_all(Tournament.objects.get(name="Table"))
    assert table.state == TournamentState.FINISHED
    assert verify_ratings(game="eighty", kind="mono") == ()

    with pytest.raises(CommandError, match="holds a site already"):
        move(old)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE shop (id int)")
    with pytest.raises(CommandError, match="it holds shop"):
        move(old)


def test_site_moves_to_postgresql_only(tmp_path: Path, django_db_blocker):
    path = tmp_path / "arena.sqlite3"
    path.touch()
    with (
        connected_to(sqlite_database(path)),
        pytest.raises(CommandError, match="set ARENA_DATABASE"),
    ):
        move(path)


def proof(rows: list[list[object]]) -> tuple[int, int]:
    counted = TableProof()
    for row in rows:
        counted.add(row)
    return counted.rows, counted.digest


rows = st.lists(st.lists(st.one_of(st.integers(), st.text(), st.none(), st.binary()), min_size=1))


@given(rows, st.randoms())
def test_proof_of_a_table_depends_on_all_of_its_rows_and_not_on_their_order(found, random):
    shuffled = random.sample(found, len(found))
    assert proof(shuffled) == proof(found)
    assert proof([*found, [1]]) != proof(found)
    if found:
        changed = [f"{found[0][0]}!", *found[0][1:]]
        assert proof([changed, *found[1:]]) != proof(found)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("a\0b", "a\ufffdb"),  # a text
        ({"a\0": ["\0", 1]}, {"a\ufffd": ["\ufffd", 1]}),  # JSON, in keys too
        (["\\u0000"], ["\\u0000"]),  # a text that only spells one
        (b"\0", b"\0"),  # bytes may have them
    ],
)
def test_nul_is_replaced_in_texts_alone(value, kept):
    assert without_nul(value) == kept
