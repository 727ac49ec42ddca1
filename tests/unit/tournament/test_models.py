"""The tables: as the models say."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.core.management import call_command


@pytest.mark.django_db
def test_migrations_say_all_that_the_models_say():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.django_db
def test_every_table_can_be_named():
    """A row without a readable name is a riddle in the admin and in logs."""
    ours = [model for model in apps.get_models() if model.__module__.startswith("tournament.")]
    assert len(ours) > 15
    assert all("__str__" in model.__dict__ for model in ours)
