"""Which database an address names, and how each process of a site connects to it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tournament.operations.databases import (
    COMMAND,
    MIGRATION,
    WEB,
    WORKER,
    connection_options,
    limits_of,
    process_name,
    read_database,
)
from tournament.operations.errors import OperationsError
from tournament.operations.stack import celery_command, web_command, worker_command

HOME = Path("/srv/arena")
ADDRESS = "postgresql://ada:p%40ss@db.example.org:5433/arena"


def arguments_of(command: list[str]) -> list[str]:
    """What `sys.argv` is in a process that ``python -m`` starts."""
    assert command[1] == "-m"
    return [f"/lib/{command[2]}/__main__.py", *command[3:]]


@pytest.mark.parametrize(
    ("arguments", "name", "limits"),
    [
        (arguments_of(web_command(3)), "web", WEB),  # as `up` starts it
        (["/usr/bin/gunicorn", "tournament.wsgi:application"], "web", WEB),  # as a container does
        (
            arguments_of(worker_command("matches", "matches", "prefork")),
            f"matches@{socket.gethostname()}",
            WORKER,
        ),
        (["/usr/bin/celery", "-A", "x", "worker", "--hostname=a@b"], "a@b", WORKER),  # with =
        (["celery", "-A", "x", "worker", "-n", "a@b"], "a@b", WORKER),  # the short option
        (["celery", "-A", "x", "worker"], "worker", WORKER),  # without a name
        (arguments_of(celery_command("beat")), "beat", WORKER),
        (["manage.py", "migrate", "--no-input"], "migrate", MIGRATION),
        (["/srv/manage.py", "ratings", "rebuild"], "ratings", COMMAND),
        (["manage.py"], "manage.py", COMMAND),  # nothing is asked of it
        ([""], "python", COMMAND),  # an interactive one
    ],
)
def test_process_is_known_by_its_arguments(arguments, name, limits):
    assert process_name(arguments) == name
    assert limits_of(arguments) is limits


def test_name_that_postgresql_would_cut_is_cut_between_letters():
    options = connection_options(["manage.py", "x" * 56 + "é"])
    assert options["application_name"] == "arena " + "x" * 56


def test_no_timeout_is_without_its_unit():
    """PostgreSQL takes milliseconds."""
    assert "-c lock_timeout=10000 " in connection_options(["gunicorn"])["options"]


def test_tls_is_said_in_the_address():
    database = read_database(f"{ADDRESS}?sslmode=verify-full&sslrootcert=/etc/ca.pem", HOME, [""])
    assert database["OPTIONS"]["sslmode"] == "verify-full"
    assert database["OPTIONS"]["sslrootcert"] == "/etc/ca.pem"


@pytest.mark.parametrize(
    "address",
    [
        "mysql://x/y",  # not supported
        "postgresql://host",  # no database
        "postgresql://host:port/name",  # no number
        f"{ADDRESS}?options=-c%20fsync%3Doff",  # not for an address to say
    ],
)
def test_address_that_names_no_database_is_refused(address):
    with pytest.raises(OperationsError, match="must look like postgresql://"):
        read_database(address, HOME, [""])


def test_without_an_address_it_is_the_file_in_the_home():
    assert read_database("", HOME, [""])["NAME"] == HOME / "arena.sqlite3"


def test_home_whose_site_has_moved_away_is_refused_without_the_new_address(tmp_path: Path):
    (tmp_path / "arena.sqlite3").touch()
    marker = tmp_path / "moved-to"
    marker.write_text("PostgreSQL at db.example.org:5433, database arena (2026-11-30 18:00 UTC)\n")
    with pytest.raises(OperationsError) as refusal:
        read_database("", tmp_path, [""])
    assert "has moved to PostgreSQL at db.example.org:5433, database arena (2026" in str(
        refusal.value
    )
    assert "set ARENA_DATABASE" in str(refusal.value)
    assert f"delete {marker}" in str(refusal.value)
    assert read_database(ADDRESS, tmp_path, [""])["NAME"] == "arena"
    marker.unlink()
    assert read_database("", tmp_path, [""])["NAME"] == tmp_path / "arena.sqlite3"
