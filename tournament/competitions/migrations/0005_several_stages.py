"""Several stages: who plays each with which seed, who was absent when, what rulings replaced; invitations."""

import json
from collections import defaultdict
from typing import Any

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


def fill_stages(apps: Any, schema_editor: Any) -> None:
    """Every tournament had one stage until now, which all of its seeded entrants played."""
    models_of = apps.get_model
    stages = models_of("competitions", "Stage").objects.select_related("tournament")
    for stage in stages.filter(tournament__state__in=["running", "finished", "cancelled"]):
        entrants = list(stage.tournament.entrants.filter(seed__isnull=False).order_by("seed"))
        if not entrants:
            continue
        models_of("competitions", "StageEntrant").objects.bulk_create(
            [
                models_of("competitions", "StageEntrant")(
                    stage=stage,
                    entrant=entrant,
                    seed=entrant.seed,
                    first_round=_first_round(entrant),
                )
                for entrant in entrants
            ],
            batch_size=500,
        )
        _fill_stage(stage, entrants)
    _mark_rulings(apps)


def _first_round(entrant: Any) -> int:
    return json.loads(entrant.addendum)["round"] if entrant.addendum else 1


def _fill_stage(stage: Any, entrants: list[Any]) -> None:
    """Its state, and who was absent.

    When somebody left was not kept. Who has left and stands in no pairing of a round was absent from it;
    who stands in one was not: else it would have been a walkover from the beginning.
    """
    left = [entrant for entrant in entrants if entrant.state != "active"]
    for each in stage.rounds.all():
        seated = set(each.pairings.values_list("entrants__entrant", flat=True))
        each.absent = sorted(
            entrant.pk
            for entrant in left
            if entrant.pk not in seated and _first_round(entrant) <= each.index
        )
        each.save(update_fields=["absent"])
    is_over = stage.tournament.state == "finished"
    stage.state = "finished" if is_over else "running"
    stage.started_at = stage.rounds.order_by("index").values_list("opened_at", flat=True).first()
    if is_over:
        stage.finished_at = stage.tournament.finished_at
        stage.absent = sorted(entrant.pk for entrant in left)
    stage.save()


def _mark_rulings(apps: Any) -> None:
    ruled = defaultdict(set)
    rulings = apps.get_model("competitions", "Ruling").objects.filter(
        kind__in=["corrected", "voided", "forfeited"]
    )
    for tournament, subject in rulings.values_list("tournament", "subject"):
        ruled[tournament].add(subject)
    pairings = apps.get_model("competitions", "Pairing").objects
    for tournament, keys in ruled.items():
        pairings.filter(tournament=tournament, key__in=keys, edition=1).exclude(
            decided_by=""
        ).update(is_ruled=True)
    pairings.filter(decided_by="void").update(is_ruled=True)


class Migration(migrations.Migration):
    dependencies = [
        ("competitions", "0004_organisers_life"),
        ("players", "0004_sign_up"),
    ]

    operations = [
        migrations.CreateModel(
            name="PairInvitation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=80)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "waits for an answer"),
                            ("accepted", "accepted"),
                            ("declined", "declined"),
                            ("withdrawn", "taken back"),
                            ("expired", "expired at the close"),
                        ],
                        default="open",
                        editable=False,
                        max_length=9,
                    ),
                ),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("answered_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "ordering": ("tournament", "pk"),
            },
        ),
        migrations.CreateModel(
            name="StageEntrant",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seed", models.PositiveIntegerField()),
                ("first_round", models.PositiveIntegerField(default=1)),
                ("mu", models.FloatField(null=True)),
                ("sigma", models.FloatField(null=True)),
            ],
            options={
                "ordering": ("stage", "seed"),
            },
        ),
        migrations.RemoveConstraint(
            model_name="entrantbot",
            name="entrantbot_bot_unique",
        ),
        migrations.AddField(
            model_name="entrantbot",
            name="is_current",
            field=models.BooleanField(default=True, editable=False),
        ),
        migrations.AddField(
            model_name="pairing",
            name="earlier",
            field=models.JSONField(default=list, editable=False),
        ),
        migrations.AddField(
            model_name="pairing",
            name="is_ruled",
            field=models.BooleanField(default=False, editable=False),
        ),
        migrations.AddField(
            model_name="round",
            name="absent",
            field=models.JSONField(default=list, editable=False),
        ),
        migrations.AddField(
            model_name="round",
            name="awaited",
            field=models.JSONField(default=list, editable=False),
        ),
        migrations.AddField(
            model_name="stage",
            name="absent",
            field=models.JSONField(default=list, editable=False),
        ),
        migrations.AddField(
            model_name="stage",
            name="finished_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="stage",
            name="matches_a_day",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="stage",
            name="note",
            field=models.CharField(blank=True, default="", editable=False, max_length=500),
        ),
        migrations.AddField(
            model_name="stage",
            name="qualifiers",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="stage",
            name="started_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="stage",
            name="state",
            field=models.CharField(
                choices=[
                    ("pending", "to come"),
                    ("running", "being played"),
                    ("finished", "finished"),
                    ("skipped", "not played"),
                ],
                default="pending",
                editable=False,
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="stage",
            name="stopped_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="stage",
            name="stops_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="entrantbot",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_current", True)),
                fields=("tournament", "bot"),
                name="entrantbot_bot_unique",
            ),
        ),
        migrations.AddConstraint(
            model_name="stage",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["pending", "running", "finished", "skipped"])),
                name="stage_state_known",
            ),
        ),
        migrations.AddField(
            model_name="pairinvitation",
            name="bot",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="invitations_sent",
                to="players.bot",
            ),
        ),
        migrations.AddField(
            model_name="pairinvitation",
            name="invited",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="invitations",
                to="players.bot",
            ),
        ),
        migrations.AddField(
            model_name="pairinvitation",
            name="tournament",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="invitations",
                to="competitions.tournament",
            ),
        ),
        migrations.AddField(
            model_name="stageentrant",
            name="entrant",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="stage_entries",
                to="competitions.entrant",
            ),
        ),
        migrations.AddField(
            model_name="stageentrant",
            name="stage",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="entrants",
                to="competitions.stage",
            ),
        ),
        migrations.AddConstraint(
            model_name="pairinvitation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "open")),
                fields=("tournament", "bot", "invited"),
                name="pairinvitation_open_unique",
            ),
        ),
        migrations.AddConstraint(
            model_name="pairinvitation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["open", "accepted", "declined", "withdrawn", "expired"])
                ),
                name="pairinvitation_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="pairinvitation",
            constraint=models.CheckConstraint(
                condition=models.Q(("bot", models.F("invited")), _negated=True),
                name="pairinvitation_two_bots",
            ),
        ),
        migrations.AddConstraint(
            model_name="stageentrant",
            constraint=models.UniqueConstraint(
                models.F("stage"), models.F("entrant"), name="stageentrant_entrant_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="stageentrant",
            constraint=models.UniqueConstraint(
                models.F("stage"), models.F("seed"), name="stageentrant_seed_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="stageentrant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("mu__isnull", True), ("sigma__isnull", True)),
                    models.Q(("mu__isnull", False), ("sigma__isnull", False)),
                    _connector="OR",
                ),
                name="stageentrant_rating_whole",
            ),
        ),
        migrations.RunPython(fill_stages, migrations.RunPython.noop),
    ]
