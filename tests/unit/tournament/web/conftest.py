"""A small site that has everything on it, and its visitors."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from tests.site_factory import Site, copy_site
from tournament.players import services as players
from tournament.store.pulses import LATE_SECONDS, MEMORY
from tournament.store.services import beat


@pytest.fixture
def site(db, monkeypatch) -> Site:
    found = copy_site()
    for name in LATE_SECONDS:  # its queue moves, however long a busy machine takes for a test
        beat(name=name)
        monkeypatch.setitem(LATE_SECONDS, name, 3600.0)
    MEMORY.forget()
    return found


@pytest.fixture
def ann(site) -> Client:
    client = Client()
    client.force_login(site.ann)
    return client


@pytest.fixture
def bob(site) -> Client:
    client = Client()
    client.force_login(site.bob)
    return client


@pytest.fixture
def olga(site) -> Client:
    """An organiser, who oversees the tournaments of others, too."""
    site.olga.user_permissions.add(Permission.objects.get(codename="oversee_tournament"))
    client = Client()
    client.force_login(site.olga)
    return client


@pytest.fixture
def root(site) -> Client:
    client = Client()
    client.force_login(site.root)
    return client


@pytest.fixture
def token(site) -> str:
    """A token of ann's that may submit."""
    _, text = players.create_token(player=site.ann, scope="submit")
    return text
