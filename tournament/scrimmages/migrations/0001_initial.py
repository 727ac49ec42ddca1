"""Scrimmages and the batches that they are played in."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('players', '0005_allows_scrimmages'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Scrimmage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run_after', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('queued_at', models.DateTimeField(editable=False, null=True)),
                ('lease_owner', models.CharField(blank=True, default='', editable=False, max_length=100)),
                ('lease_until', models.DateTimeField(editable=False, null=True)),
                ('fence', models.PositiveIntegerField(default=0, editable=False)),
                ('attempts', models.PositiveSmallIntegerField(default=0, editable=False)),
                ('game', models.CharField(max_length=20)),
                ('ruleset', models.JSONField(default=dict)),
                ('time_control', models.CharField(max_length=20)),
                ('difference', models.CharField(choices=[('small', 'even a small one: 10 Elo, winning 51 % of the plays'), ('clear', 'a clear one: 30 Elo, 54 %'), ('large', 'only a large one: 80 Elo, 61 %'), ('no_worse', 'none, it must only be no worse (by 30 Elo)')], max_length=10)),
                ('elo0', models.FloatField()),
                ('elo1', models.FloatField()),
                ('most_sets', models.PositiveIntegerField()),
                ('seed', models.CharField(max_length=64)),
                ('rules_version', models.CharField(default='arena-rules/1', editable=False, max_length=30)),
                ('state', models.CharField(choices=[('waiting', 'waiting for its turn'), ('queued', 'handed to a worker'), ('running', 'being played'), ('finished', 'finished'), ('cancelled', 'cancelled'), ('stuck', 'could not be played: waits for an operator')], default='waiting', editable=False, max_length=10)),
                ('counts', models.JSONField(default=list, editable=False)),
                ('likelihood_ratio', models.FloatField(editable=False, null=True)),
                ('answer', models.CharField(blank=True, choices=[('better', 'better'), ('not_better', 'not better'), ('undecided', 'not decided'), ('fault', 'ended by a fault')], editable=False, max_length=10)),
                ('reason', models.TextField(blank=True, editable=False)),
                ('failure', models.TextField(blank=True, editable=False)),
                ('asked_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('started_at', models.DateTimeField(editable=False, null=True)),
                ('ended_at', models.DateTimeField(editable=False, null=True)),
                ('asked_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scrimmages', to=settings.AUTH_USER_MODEL)),
                ('first', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='players.botversion')),
                ('other', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='players.botversion')),
            ],
        ),
        migrations.CreateModel(
            name='Batch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('scores', models.JSONField()),
                ('termination', models.CharField(max_length=20)),
                ('digest', models.CharField(max_length=71)),
                ('record_sha256', models.CharField(blank=True, max_length=64)),
                ('logs_sha256', models.CharField(blank=True, max_length=64)),
                ('is_sandboxed', models.BooleanField()),
                ('wall_ms', models.PositiveIntegerField()),
                ('fence', models.PositiveIntegerField()),
                ('worker', models.CharField(max_length=100)),
                ('played_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('scrimmage', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='batches', to='scrimmages.scrimmage')),
            ],
            options={
                'verbose_name_plural': 'batches',
            },
        ),
        migrations.AddIndex(
            model_name='scrimmage',
            index=models.Index(models.F('state'), models.F('run_after'), name='scrimmage_due'),
        ),
        migrations.AddIndex(
            model_name='scrimmage',
            index=models.Index(models.F('asked_by'), models.F('asked_at'), name='scrimmage_asked'),
        ),
        migrations.AddConstraint(
            model_name='scrimmage',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'queued', 'running', 'finished', 'cancelled', 'stuck'])), name='scrimmage_state_known'),
        ),
        migrations.AddConstraint(
            model_name='scrimmage',
            constraint=models.CheckConstraint(condition=models.Q(('difference__in', ['small', 'clear', 'large', 'no_worse'])), name='scrimmage_difference_known'),
        ),
        migrations.AddConstraint(
            model_name='scrimmage',
            constraint=models.CheckConstraint(condition=models.Q(('first', models.F('other')), _negated=True), name='scrimmage_of_two'),
        ),
        migrations.AddConstraint(
            model_name='scrimmage',
            constraint=models.CheckConstraint(condition=models.Q(('elo0__lt', models.F('elo1'))), name='scrimmage_elos_ordered'),
        ),
        migrations.AddConstraint(
            model_name='scrimmage',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('answer__in', ['better', 'not_better', 'undecided', 'fault']), ('state', 'finished')), models.Q(models.Q(('state', 'finished'), _negated=True), ('answer', '')), _connector='OR'), name='scrimmage_finished_is_answered'),
        ),
        migrations.AddConstraint(
            model_name='scrimmage',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'running'), _negated=True), models.Q(('lease_until__isnull', False), models.Q(('lease_owner', ''), _negated=True)), _connector='OR'), name='scrimmage_running_is_leased'),
        ),
        migrations.AddIndex(
            model_name='batch',
            index=models.Index(models.F('played_at'), name='batch_by_age'),
        ),
        migrations.AddConstraint(
            model_name='batch',
            constraint=models.UniqueConstraint(models.F('scrimmage'), models.F('number'), name='batch_once'),
        ),
    ]
