"""Limits of entries, late entries, seeding, sealed results, rulings, notices, and entries of a series."""

from typing import Any

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models
from django.db.models import F


def publish_all_rounds(apps: Any, schema_editor: Any) -> None:
    """No results were sealed until now."""
    apps.get_model("competitions", "Round").objects.update(published_at=F("opened_at"))


class Migration(migrations.Migration):

    dependencies = [
        ("competitions", "0003_pause_cause"),
        ("players", "0004_sign_up"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Notice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.CharField(max_length=500)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("seen_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Ruling",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(choices=[("corrected", "another result"), ("voided", "annulled"), ("restored", "counts as it was played"), ("rerun", "is played again"), ("forfeited", "decided without being played"), ("disqualified", "disqualified")], max_length=12)),
                ("subject", models.CharField(max_length=80)),
                ("reason", models.CharField(max_length=300)),
                ("before", models.CharField(blank=True, max_length=200)),
                ("after", models.CharField(blank=True, max_length=200)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "ordering": ("tournament", "pk"),
            },
        ),
        migrations.CreateModel(
            name="SeriesEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("entered_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                "verbose_name_plural": "series entries",
            },
        ),
        migrations.CreateModel(
            name="SeriesEntryBot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                "ordering": ("entry", "position"),
            },
        ),
        migrations.CreateModel(
            name="SupersededMatch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=40)),
                ("edition", models.PositiveSmallIntegerField()),
                ("round_index", models.PositiveIntegerField()),
                ("entrants", models.JSONField()),
                ("decided_by", models.CharField(blank=True, max_length=14)),
                ("record_sha256", models.CharField(blank=True, max_length=64)),
                ("digest", models.CharField(blank=True, max_length=71)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "superseded matches",
                "ordering": ("ruling", "pk"),
            },
        ),
        migrations.AddField(
            model_name="entrant",
            name="addendum",
            field=models.TextField(blank=True, default="", editable=False),
        ),
        migrations.AddField(
            model_name="entrant",
            name="wanted_seed",
            field=models.PositiveIntegerField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="pairing",
            name="edition",
            field=models.PositiveSmallIntegerField(default=1, editable=False),
        ),
        migrations.AddField(
            model_name="round",
            name="is_partial",
            field=models.BooleanField(default=False, editable=False),
        ),
        migrations.AddField(
            model_name="round",
            name="published_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="series",
            name="points_table",
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name="tournament",
            name="if_too_few",
            field=models.CharField(choices=[("cancel", "it is cancelled"), ("postpone", "close and start move, entries stay open")], default="cancel", max_length=8),
        ),
        migrations.AddField(
            model_name="tournament",
            name="late_until_round",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tournament",
            name="max_bots_per_player",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tournament",
            name="max_entrants",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tournament",
            name="min_entrants",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tournament",
            name="postpone_minutes",
            field=models.PositiveIntegerField(default=1440),
        ),
        migrations.AddField(
            model_name="tournament",
            name="postpone_most",
            field=models.PositiveSmallIntegerField(default=1),
        ),
        migrations.AddField(
            model_name="tournament",
            name="postponed_times",
            field=models.PositiveSmallIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="tournament",
            name="results_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tournament",
            name="seeding",
            field=models.CharField(choices=[("rating", "the ratings of the frozen versions"), ("hand", "the order in which the organiser puts the entrants"), ("lot", "a lot that anyone can check")], default="rating", max_length=6),
        ),
        migrations.AddConstraint(
            model_name="tournament",
            constraint=models.CheckConstraint(condition=models.Q(("if_too_few__in", ["cancel", "postpone"])), name="tournament_shortage_known"),
        ),
        migrations.AddConstraint(
            model_name="tournament",
            constraint=models.CheckConstraint(condition=models.Q(("seeding__in", ["rating", "hand", "lot"])), name="tournament_seeding_known"),
        ),
        migrations.AddField(
            model_name="notice",
            name="player",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="notices", to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name="notice",
            name="tournament",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="notices", to="competitions.tournament"),
        ),
        migrations.AddField(
            model_name="ruling",
            name="by",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name="ruling",
            name="round",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="rulings", to="competitions.round"),
        ),
        migrations.AddField(
            model_name="ruling",
            name="tournament",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="rulings", to="competitions.tournament"),
        ),
        migrations.AddField(
            model_name="seriesentry",
            name="series",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="entries", to="competitions.series"),
        ),
        migrations.AddField(
            model_name="seriesentrybot",
            name="bot",
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="series_entries", to="players.bot"),
        ),
        migrations.AddField(
            model_name="seriesentrybot",
            name="entry",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="bots", to="competitions.seriesentry"),
        ),
        migrations.AddField(
            model_name="seriesentrybot",
            name="series",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="competitions.series"),
        ),
        migrations.AddField(
            model_name="supersededmatch",
            name="ruling",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="superseded", to="competitions.ruling"),
        ),
        migrations.AddField(
            model_name="supersededmatch",
            name="tournament",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="superseded", to="competitions.tournament"),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(models.F("player"), models.F("seen_at"), name="notice_of_player"),
        ),
        migrations.AddConstraint(
            model_name="ruling",
            constraint=models.CheckConstraint(condition=models.Q(("kind__in", ["corrected", "voided", "restored", "rerun", "forfeited", "disqualified"])), name="ruling_kind_known"),
        ),
        migrations.AddConstraint(
            model_name="seriesentry",
            constraint=models.UniqueConstraint(models.F("series"), models.F("name"), name="seriesentry_name_unique"),
        ),
        migrations.AddConstraint(
            model_name="seriesentrybot",
            constraint=models.UniqueConstraint(models.F("entry"), models.F("position"), name="seriesentrybot_position_unique"),
        ),
        migrations.AddConstraint(
            model_name="seriesentrybot",
            constraint=models.UniqueConstraint(models.F("series"), models.F("bot"), name="seriesentrybot_bot_unique"),
        ),
        migrations.AddConstraint(
            model_name="supersededmatch",
            constraint=models.UniqueConstraint(models.F("tournament"), models.F("key"), models.F("edition"), name="supersededmatch_edition_unique"),
        ),
        migrations.RunPython(publish_all_rounds, migrations.RunPython.noop),
    ]
