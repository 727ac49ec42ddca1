"""Migrations change big tables without locking them: a site goes on while it is updated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db import migrations, models
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import F, Q

from tournament.store.migration_operations import AddCheckConcurrently, AddIndexConcurrently

BIG = {
    *("players.player", "players.apitoken", "players.bot", "players.botversion"),
    "players.versiongame",
    *("leaderboards.ratingevent", "leaderboards.ratingstep", "leaderboards.rating"),
    *("competitions.tournament", "competitions.stage", "competitions.round"),
    *("competitions.entrant", "competitions.entrantbot", "competitions.stageentrant"),
    *("competitions.pairing", "competitions.pairingentrant", "competitions.match"),
    *("competitions.attempt", "competitions.entrytrial", "competitions.notice"),
    *("scrimmages.scrimmage", "scrimmages.batch"),
}
"""Tables that grow with what is played, uploaded or asked."""
LAST_FREE = {
    "competitions": 9,
    "leaderboards": 2,
    "moderation": 1,
    "players": 7,
    "scrimmages": 2,
    "store": 2,
    "workers": 2,
}
"""By app the last migration from before the rule, when there was no site yet that could be locked."""
BESIDE_THE_WORK = (AddIndexConcurrently, AddCheckConcurrently)
POSTGRESQL = DatabaseWrapper({"ENGINE": "django.db.backends.postgresql", "OPTIONS": {}})
"""Never connected; it knows the types of columns."""


def complaints(
    migration: migrations.Migration, app: str, before: ProjectState
) -> Iterator[tuple[str, str]]:
    """What a migration does to a big table that locks it or breaks the version that still runs: (table, what to do).

    A migration says ``locks_briefly = {"app.model": "why it does no harm"}`` where it knows better.
    """
    excused = getattr(migration, "locks_briefly", {})
    state = before.clone()
    for operation in migration.operations:
        after = state.clone()
        operation.state_forwards(app, after)
        table = f"{app}.{_model_of(operation)}"
        if isinstance(operation, migrations.RunPython | migrations.RunSQL):
            if migration.atomic and app not in excused:
                yield app, "rewrite rows in portions, with atomic = False"
        elif table in BIG and table not in excused:
            what = _harm(operation, app, state, after)
            if what:
                yield table, what
            elif isinstance(operation, BESIDE_THE_WORK) and migration.atomic:
                yield table, "say atomic = False"
        state = after


def _model_of(operation: Operation) -> str:
    if isinstance(operation, migrations.DeleteModel):
        return operation.name_lower
    if isinstance(operation, migrations.RenameModel):
        return operation.old_name_lower
    return getattr(operation, "model_name", "").lower()


def _harm(operation: Operation, app: str, before: ProjectState, after: ProjectState) -> str:
    """What to do instead of an operation on a big table; empty if it does no harm."""
    if isinstance(operation, BESIDE_THE_WORK):
        return ""
    match operation:
        case migrations.AddIndex():
            return "use AddIndexConcurrently"
        case migrations.AddConstraint(constraint=models.CheckConstraint()):
            return "use AddCheckConcurrently"
        case migrations.AddConstraint() | migrations.AlterUniqueTogether():
            return "build a unique index concurrently and add the constraint from it"
        case migrations.AddField(field=field):
            return _harm_of_field(field)
        case migrations.AlterField(name=name):
            old = before.models[app, operation.model_name_lower].fields[name]
            new = after.models[app, operation.model_name_lower].fields[name]
            return _harm_of_change(old, new)
        case migrations.RemoveField() | migrations.DeleteModel():
            return "let a release pass that does not use it, and say so"
        case migrations.RenameField() | migrations.RenameModel() | migrations.AlterModelTable():
            return "add the new one and let a release write both: the running version knows the old one"
    return ""


def _harm_of_field(field: models.Field) -> str:
    if field.unique or field.db_index:
        return "add it without its index (db_index=False), then the index concurrently"
    if not (field.null or field.has_db_default()):
        return "give it a db_default, or the running version can write no rows"
    return ""


def _harm_of_change(old: models.Field, new: models.Field) -> str:
    if (new.unique or new.db_index) and not (old.unique or old.db_index):
        return "build the index concurrently"
    if old.null and not new.null:
        return "add a check that it is not null concurrently first"
    types = old.db_type(POSTGRESQL), new.db_type(POSTGRESQL)
    grows = all(kind.startswith(("varchar", "text")) for kind in types) and (
        new.max_length is None or (old.max_length or 0) <= new.max_length
    )
    return "" if types[0] == types[1] or grows else "add a new column and copy in portions"


@pytest.fixture(scope="module")
def loader() -> MigrationLoader:
    return MigrationLoader(None, replace_migrations=False)


def test_migrations_lock_no_big_table(loader: MigrationLoader):
    found = {
        f"{app}.{name}": list(
            complaints(migration, app, loader.project_state((app, name), at_end=False))
        )
        for (app, name), migration in loader.disk_migrations.items()
        if int(name[:4] if app in LAST_FREE else 0) > LAST_FREE.get(app, 0)
    }
    assert {name: harm for name, harm in found.items() if harm} == {}


def test_what_is_made_at_once_is_what_was_made_step_by_step(loader: MigrationLoader):
    assert {app for app, _ in loader.replacements} == {"players", "competitions"}
    for (app, name), squashed in loader.replacements.items():
        at_once = loader.project_state((app, name)).models
        step_by_step = loader.project_state(squashed.replaces[-1]).models
        of_app = {key for key in at_once if key[0] == app}
        assert of_app == {key for key in step_by_step if key[0] == app}
        assert [key for key in of_app if at_once[key] != step_by_step[key]] == []


def test_every_app_and_every_big_table_is_known():
    ours = {app.label for app in apps.get_app_configs() if app.name.startswith("tournament.")}
    with_tables = {label for label in ours if list(apps.get_app_config(label).get_models())}
    assert set(LAST_FREE) == with_tables
    assert {table for table in BIG if apps.get_model(table)} == BIG


CHECK = models.CheckConstraint(condition=Q(fence__gte=0), name="x")
INDEX = models.Index(F("fence"), name="x")


@pytest.mark.parametrize(
    ("operation", "what"),
    [
        (migrations.AddIndex("match", INDEX), "AddIndexConcurrently"),  # nobody writes meanwhile
        (AddIndexConcurrently("match", INDEX), "atomic = False"),  # not within a transaction
        (
            migrations.AddConstraint("match", CHECK),
            "AddCheckConcurrently",
        ),  # reads all rows, locked
        (
            migrations.AddConstraint("match", models.UniqueConstraint("fence", name="x")),
            "unique index",
        ),
        (migrations.AddField("match", "x", models.IntegerField(default=0)), "db_default"),
        (migrations.AddField("match", "x", models.IntegerField(null=True, db_index=True)), "index"),
        (migrations.AddField("match", "x", models.IntegerField(null=True)), None),
        (migrations.AddField("match", "x", models.IntegerField(db_default=0)), None),
        (
            migrations.AlterField("match", "fence", models.BigIntegerField()),
            "new column",
        ),  # rewrites
        (migrations.AlterField("match", "wall_ms", models.PositiveIntegerField()), "not null"),
        (migrations.AlterField("match", "digest", models.CharField(max_length=80)), None),  # grows
        (migrations.AlterField("match", "digest", models.CharField(max_length=9)), "new column"),
        (migrations.RemoveField("match", "fence"), "release"),  # the running version reads it
        (migrations.RenameField("match", "fence", "guard"), "running version"),
        (migrations.DeleteModel("Match"), "release"),
        (migrations.RunPython(migrations.RunPython.noop), "portions"),
        (migrations.AddIndex("series", models.Index("name", name="x")), None),  # a small table
    ],
)
def test_what_locks_a_big_table_is_told_with_what_to_do(loader, operation, what):
    migration = migrations.Migration("x", "competitions")
    migration.operations = [operation]
    found = list(complaints(migration, "competitions", loader.project_state()))
    assert [what in advice for _, advice in found] == ([True] if what else [])


def test_migration_that_knows_better_says_why(loader):
    migration = migrations.Migration("x", "competitions")
    migration.operations = [migrations.AddIndex("match", INDEX)]
    migration.locks_briefly = {"competitions.match": "it was emptied before"}
    assert list(complaints(migration, "competitions", loader.project_state())) == []
