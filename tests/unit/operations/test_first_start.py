"""What a fresh site is given, once."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.test import RequestFactory

from tournament.competitions.models import Tournament, TournamentState
from tournament.operations import first_start
from tournament.operations.api_client import error_message
from tournament.operations.console import Console
from tournament.operations.cups import CUPS
from tournament.operations.demonstration import (
    repeated_schedule,
    seeded_secret,
    write_project,
)
from tournament.operations.home import Home, users_home
from tournament.operations.stack import Stack
from tournament.operations.supervisor import Supervisor
from tournament.players.models import BotVersion, Player


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(Home(tmp_path), "http://127.0.0.1:1", Supervisor(print))


@pytest.mark.django_db
def test_operator_can_log_in_with_what_the_first_start_says():
    password = first_start.make_admin()
    operator = authenticate(RequestFactory().post("/"), username="admin", password=password)
    assert operator is not None
    assert operator.is_staff
    assert operator.is_superuser


@pytest.mark.django_db
def test_site_is_prepared_once_however_often_it_starts(stack: Stack):
    said = io.StringIO()
    first_start.prepare_site(stack, Console(said))
    counts = Player.objects.count(), BotVersion.objects.count(), Tournament.objects.count()
    assert "with the password" in said.getvalue()
    again = io.StringIO()
    first_start.prepare_site(stack, Console(again))
    assert (
        Player.objects.count(),
        BotVersion.objects.count(),
        Tournament.objects.count(),
    ) == counts
    assert "with the password" not in again.getvalue()
    assert (
        f"ARENA_HOME={stack.home.path} python3 manage.py changepassword admin" in again.getvalue()
    )


@pytest.mark.django_db
def test_first_cups_are_open_with_the_houses_bots_in_them(stack: Stack):
    first_start.prepare_site(stack, Console(io.StringIO()))
    cups = list(Tournament.objects.order_by("pk"))
    assert [cup.slug for cup in cups] == [cup.slug for cup in CUPS]
    assert {cup.state for cup in cups} == {TournamentState.OPEN}
    house = Player.objects.get(username="house").bots.count()
    assert [cup.entrants.count() for cup in cups] == [min(cup.entrants, house) for cup in CUPS]


def test_commands_for_the_users_own_home_need_no_variable():
    home = Stack(Home(users_home()), "http://127.0.0.1:1", Supervisor(print))
    assert first_start.home_prefix(home) == ""


def test_seed_settles_secret_and_times_and_nothing_else_does():
    assert seeded_secret("a") == seeded_secret("a") != seeded_secret("b")
    assert repeated_schedule("a") == repeated_schedule("a") != repeated_schedule("b")
    schedule = repeated_schedule("a")
    assert schedule.opens_at < schedule.closes_at < schedule.starts_at
    assert schedule.closes_at.year >= 2100  # after every upload that a repetition may make


def test_guests_project_is_that_of_arena_new(tmp_path: Path):
    write_project("newcomer", tmp_path)
    assert 'newcomer = "newcomer' in (tmp_path / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'{"error": {"code": "x", "message": "too late", "details": []}}', "too late"),  # the API
        (b"<!doctype html>", ""),  # a page
        (b'{"detail": 1}', ""),  # something else's JSON
        (b'"text"', ""),  # no object at all
    ],
)
def test_refusal_is_told_by_its_message(answer, expected):
    assert error_message(answer) == expected
