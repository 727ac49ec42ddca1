"""Workers tell what they take, and how much at once."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("workers", "0001_initial")]

    operations = [
        migrations.AddField("workerreport", "queues", models.JSONField(default=list)),
        migrations.AddField("workerreport", "slots", models.PositiveSmallIntegerField(default=1)),
    ]
