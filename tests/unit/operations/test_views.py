"""The addresses for machines."""

from __future__ import annotations

import pytest
from django.db import DatabaseError
from django.test import RequestFactory

from tournament.operations import selectors, views
from tournament.store.services import beat


@pytest.mark.django_db
def test_site_is_well_while_it_reaches_its_database():
    beat(name=selectors.DISPATCH)
    answer = views.healthz(RequestFactory().get("/healthz"))
    assert answer.status_code == 200
    assert b'"status": "ok"' in answer.content


def test_site_without_its_database_says_so(monkeypatch):
    def fail() -> float:
        raise DatabaseError

    monkeypatch.setattr(views, "dispatch_age_seconds", fail)
    assert views.healthz(RequestFactory().get("/healthz")).status_code == 503


@pytest.mark.django_db
def test_metrics_count_every_state_even_if_there_is_none():
    lines = views.metrics(RequestFactory().get("/metrics")).content.decode().splitlines()
    assert "arena_players 0" in lines
    assert 'arena_matches{state="stuck"} 0' in lines
    assert 'arena_scrimmages{state="stuck"} 0' in lines
    assert 'arena_workers{state="silent"} 0' in lines
    assert not any(line.startswith("arena_dispatch_age_seconds ") for line in lines)


@pytest.mark.django_db
def test_age_of_dispatch_is_that_of_its_last_beat():
    assert selectors.dispatch_age_seconds() is None
    beat(name=selectors.DISPATCH)
    age = selectors.dispatch_age_seconds()
    assert age is not None
    assert 0 <= age < 60


@pytest.mark.django_db
def test_status_line_counts_what_goes_on():
    assert selectors.site_status().line == (
        "0 bots · 0 tournaments running · 0 matches waiting, 0 in play, 0 finished"
    )
