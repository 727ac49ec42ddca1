"""Accounts get a key that says nothing, for the list of erasures; tokens tell when they were last used."""

import uuid
from typing import Any

from django.db import migrations, models


def draw_keys(apps: Any, schema_editor: Any) -> None:
    """A key of its own for each account that is there."""
    players = apps.get_model("players", "Player").objects.using(schema_editor.connection.alias)
    for pk in players.values_list("pk", flat=True):
        players.filter(pk=pk).update(key=uuid.uuid4())


class Migration(migrations.Migration):

    dependencies = [
        ("players", "0006_claimed_at"),
    ]

    operations = [
        migrations.AddField(
            model_name="player",
            name="key",
            field=models.UUIDField(null=True, editable=False),
        ),
        migrations.RunPython(draw_keys, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="player",
            name="key",
            field=models.UUIDField(default=uuid.uuid4, editable=False, unique=True),
        ),
        migrations.AddField(
            model_name="player",
            name="erased_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="last_used_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AlterModelOptions(
            name="botversion",
            options={
                "permissions": [
                    (
                        "audit_botversion",
                        "Can read other players' wheels and what they printed; each reading is noted",
                    )
                ]
            },
        ),
    ]
