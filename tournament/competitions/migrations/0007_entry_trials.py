"""Trials at entry: whether a version plays under a tournament's own conditions."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('competitions', '0006_bundle_digest'),
        ('players', '0005_allows_scrimmages'),
    ]

    operations = [
        migrations.CreateModel(
            name='EntryTrial',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run_after', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('queued_at', models.DateTimeField(editable=False, null=True)),
                ('lease_owner', models.CharField(blank=True, default='', editable=False, max_length=100)),
                ('lease_until', models.DateTimeField(editable=False, null=True)),
                ('fence', models.PositiveIntegerField(default=0, editable=False)),
                ('attempts', models.PositiveSmallIntegerField(default=0, editable=False)),
                ('key', models.CharField(editable=False, max_length=64)),
                ('conditions', models.JSONField(editable=False)),
                ('due_at', models.DateTimeField(editable=False)),
                ('state', models.CharField(choices=[('pending', 'waiting to be tried'), ('queued', 'in the queue to be tried'), ('running', 'being tried'), ('passed', 'passed'), ('failed', 'failed'), ('stuck', 'could not be tried: waits for an operator')], default='pending', editable=False, max_length=7)),
                ('reason', models.TextField(blank=True, default='', editable=False)),
                ('log_sha256', models.CharField(blank=True, default='', editable=False, max_length=64)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('decided_at', models.DateTimeField(editable=False, null=True)),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='trials', to='players.botversion')),
            ],
            options={
                'indexes': [models.Index(models.F('state'), models.F('due_at'), name='entrytrial_due'), models.Index(models.F('lease_until'), name='entrytrial_lease')],
                'constraints': [models.UniqueConstraint(models.F('version'), models.F('key'), name='entrytrial_conditions_unique'), models.CheckConstraint(condition=models.Q(('state__in', ['pending', 'queued', 'running', 'passed', 'failed', 'stuck'])), name='entrytrial_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'running'), _negated=True), models.Q(('lease_until__isnull', False), models.Q(('lease_owner', ''), _negated=True)), _connector='OR'), name='entrytrial_running_is_leased'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'failed'), _negated=True), models.Q(('reason', ''), _negated=True), _connector='OR'), name='entrytrial_failed_for_a_reason')],
            },
        ),
    ]
