"""What migrations do beside the work: an interrupted one is done again, and none runs within a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import IntegrityError, NotSupportedError, connection, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models import Q

from tournament.store.migration_operations import AddCheckConcurrently, AddIndexConcurrently
from tournament.store.models import Pulse

pytestmark = pytest.mark.django_db(transaction=True)
ADD_INDEX = AddIndexConcurrently("pulse", models.Index("at", name="pulse_by_age"))
ADD_CHECK = AddCheckConcurrently(
    "pulse", models.CheckConstraint(condition=~Q(name="bad"), name="pulse_is_good")
)


def run(operation: Operation, *, back: bool = False, atomic: bool = False) -> None:
    before = MigrationLoader(connection).project_state()
    after = before.clone()
    operation.state_forwards("store", after)
    with connection.schema_editor(atomic=atomic) as editor:
        if back:
            operation.database_backwards("store", editor, after, before)
        else:
            operation.database_forwards("store", editor, before, after)


@contextmanager
def done(operation: Operation) -> Iterator[set[str]]:
    """Do it, give the names of what the table has then, and take it back."""
    run(operation)
    try:
        yield constraints()
    finally:
        run(operation, back=True)


def constraints() -> set[str]:
    with connection.cursor() as cursor:
        return set(connection.introspection.get_constraints(cursor, "store_pulse"))


def test_index_is_built_and_taken_back():
    with done(ADD_INDEX) as found:
        assert "pulse_by_age" in found
    assert "pulse_by_age" not in constraints()


def test_check_holds_and_is_taken_back():
    with done(ADD_CHECK), pytest.raises(IntegrityError):
        Pulse.objects.create(name="bad")
    Pulse.objects.create(name="bad")


@pytest.mark.postgresql
def test_index_that_an_interrupted_try_left_broken_is_built_anew():
    Pulse.objects.bulk_create([Pulse(name="one"), Pulse(name="two")])
    with connection.cursor() as cursor, pytest.raises(IntegrityError):
        cursor.execute('CREATE UNIQUE INDEX CONCURRENTLY "pulse_by_age" ON store_pulse ((1))')
    assert "pulse_by_age" in constraints(), "it is left, and does not count"
    with done(ADD_INDEX), connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid, indisunique FROM pg_index WHERE indexrelid = 'pulse_by_age'::regclass"
        )
        assert cursor.fetchone() == (True, False)
        run(ADD_INDEX)  # once more: it is there


@pytest.mark.postgresql
def test_check_that_older_rows_break_is_looked_at_again():
    Pulse.objects.create(name="bad")
    with pytest.raises(IntegrityError):
        run(ADD_CHECK)
    with pytest.raises(IntegrityError):
        Pulse.objects.create(name="bad")  # it holds for new ones meanwhile
    Pulse.objects.all().delete()
    with done(ADD_CHECK) as found:
        assert "pulse_is_good" in found


@pytest.mark.postgresql
@pytest.mark.parametrize("operation", [ADD_INDEX, ADD_CHECK])
def test_migration_must_not_be_one_transaction(operation):
    with pytest.raises(NotSupportedError, match="atomic = False"):
        run(operation, atomic=True)
