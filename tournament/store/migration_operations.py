"""What a migration does to a big table without anybody having to wait for it.

Indexes are built, and rows are checked, while the site goes on writing; where the database cannot do that (SQLite), in
the usual way. A migration with one of these says ``atomic = False``, since PostgreSQL does neither within a
transaction. What was interrupted is done again by running the migration again.
"""

from __future__ import annotations

from typing import Any

from django.db import NotSupportedError, migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState
from django.db.models import CheckConstraint, Model


class AddIndexConcurrently(migrations.AddIndex):
    """`AddIndex` that lets others write meanwhile. What a failed try left is dropped and built anew."""

    def describe(self) -> str:
        """As `migrate` and a plan tell it."""
        return f"Concurrently {super().describe().lower()}"

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Build the index, unless it is there already, whole."""
        if not _is_postgresql(schema_editor):
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        name = self.index.name
        is_valid = _ask(
            schema_editor,
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
            [schema_editor.quote_name(name)],
        )
        if is_valid:
            return
        if is_valid is not None:
            schema_editor.execute(f"DROP INDEX CONCURRENTLY {schema_editor.quote_name(name)}")
        model = to_state.apps.get_model(app_label, self.model_name)
        _concurrent(schema_editor).add_index(model, self.index, concurrently=True)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Drop it again."""
        if not _is_postgresql(schema_editor):
            super().database_backwards(app_label, schema_editor, from_state, to_state)
            return
        model = from_state.apps.get_model(app_label, self.model_name)
        _concurrent(schema_editor).remove_index(model, self.index, concurrently=True)


class AddCheckConcurrently(migrations.AddConstraint):
    """`AddConstraint` of a check: it holds for what is written from now on, then older rows are looked at beside the work."""

    model_name: str
    constraint: CheckConstraint

    def describe(self) -> str:
        """As `migrate` and a plan tell it."""
        return f"Concurrently {super().describe().lower()}"

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Add it, unless an interrupted try did, and look at the rows."""
        if not _is_postgresql(schema_editor):
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model: type[Model] = to_state.apps.get_model(app_label, self.model_name)
        table = schema_editor.quote_name(model._meta.db_table)  # noqa: SLF001 Django's name of it
        name = schema_editor.quote_name(self.constraint.name)
        there = _ask(
            schema_editor,
            "SELECT true FROM pg_constraint WHERE conrelid = to_regclass(%s) AND conname = %s",
            [table, self.constraint.name],
        )
        if not there:
            schema_editor.execute(f"{self.constraint.create_sql(model, schema_editor)} NOT VALID")
        schema_editor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")


def _is_postgresql(schema_editor: BaseDatabaseSchemaEditor) -> bool:
    """Whether it is; raises NotSupportedError there within a transaction."""
    if schema_editor.connection.vendor != "postgresql":
        return False
    if schema_editor.connection.in_atomic_block:
        raise NotSupportedError("a migration that does so beside the work says atomic = False")
    return True


def _concurrent(schema_editor: BaseDatabaseSchemaEditor) -> Any:
    """PostgreSQL's editor, whose methods take `concurrently`."""
    return schema_editor


def _ask(schema_editor: BaseDatabaseSchemaEditor, question: str, values: list[str]) -> bool | None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(question, values)
        row = cursor.fetchone()
    return row[0] if row else None
