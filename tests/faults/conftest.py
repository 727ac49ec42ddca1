"""The sites of the failure tests, and the table at the end: what failed, what was played, what was lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.faults.databases import Database
from tests.faults.harness import Site, Tally, administer, connected_to
from tests.postgresql import PostgresqlServer, postgresql_server

TEMPLATE = "arena_template"
TALLY = "faults"


@pytest.fixture(scope="session")
def postgresql(django_db_blocker) -> Iterator[PostgresqlServer]:
    """A private PostgreSQL server with a migrated database that others are copied from."""
    with postgresql_server() as server:
        administer(server, f"CREATE DATABASE {TEMPLATE}")
        with django_db_blocker.unblock(), connected_to(server.address(TEMPLATE)):
            call_command("migrate", verbosity=0, interactive=False)
        yield server


@pytest.fixture
def tally(record_property) -> Iterator[Tally]:
    """Counts for the table what this test does to a site; tell it by `fault` and `judged`."""
    counted = Tally()
    yield counted
    record_property(
        TALLY,
        [
            ", ".join(f"{times} x {kind}" for kind, times in counted.faults.items()),
            sum(verdict.played for verdict in counted.verdicts),
            sum(len(verdict.lost) for verdict in counted.verdicts),
            sum(len(verdict.doubled) for verdict in counted.verdicts),
        ],
    )


@pytest.fixture
def site(postgresql, django_db_blocker, tmp_path: Path, tally: Tally, request) -> Iterator[Site]:
    """A site on a fresh database, of which nothing runs yet."""
    name = f"arena_{abs(hash(request.node.nodeid)) % 10**12}"
    administer(postgresql, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    with django_db_blocker.unblock(), Site(postgresql, name, tmp_path, tally).entered() as made:
        yield made


def pytest_terminal_summary(terminalreporter) -> None:
    """Print a line for each test that broke a site."""
    failed = {report.nodeid for report in terminalreporter.stats.get("failed", ())}
    rows = [
        (report.nodeid.rpartition("::")[2], "FAILED" if report.nodeid in failed else "", *value)
        for report in terminalreporter.stats.get("", ())
        for name, value in report.user_properties
        if name == TALLY and report.when == "teardown"
    ]
    if not rows:
        return
    terminalreporter.section("faults")
    titles = ("test", "", "faults made", "played", "lost", "doubled")
    texts = [tuple(map(str, row)) for row in (titles, *rows)]
    widths = [max(len(row[column]) for row in texts) for column in range(len(titles))]
    for row in texts:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminalreporter.line("  ".join(cells).rstrip())
    totals = [sum(row[column] for row in rows) for column in (3, 4, 5)]
    terminalreporter.line("{} matches played, {} results lost, {} doubled".format(*totals))


@pytest.fixture(scope="session")
def embedded(tmp_path_factory, django_db_blocker) -> Database:
    """A migrated SQLite database that others are copied from."""
    made = Database(tmp_path_factory.mktemp("embedded"))
    with django_db_blocker.unblock(), made.entered():
        call_command("migrate", verbosity=0, interactive=False)
    return made


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path: Path, django_db_blocker) -> Iterator[Database]:
    """A migrated database of each kind with nothing in it; enter it, or copies of it."""
    if request.param == "sqlite":
        made = request.getfixturevalue("embedded").copy()
    else:
        server = request.getfixturevalue("postgresql")
        made = Database(tmp_path / "template", server, TEMPLATE).copy()
    with django_db_blocker.unblock():
        yield made
    made.drop()
