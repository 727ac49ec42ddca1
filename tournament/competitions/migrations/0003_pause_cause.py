"""A pause says what caused it, and a series why the site switched it off."""

from typing import Any

from django.db import migrations, models


def call_old_pauses_the_organisers(apps: Any, schema_editor: Any) -> None:
    """Pauses from before the cause was kept: an organiser has to resume them, as until now."""
    tournaments = apps.get_model("competitions", "Tournament").objects
    tournaments.exclude(paused_reason="").update(pause_cause="organiser")


class Migration(migrations.Migration):

    dependencies = [
        ('competitions', '0002_names'),
    ]

    operations = [
        migrations.AddField(
            model_name='series',
            name='stopped_reason',
            field=models.CharField(blank=True, default='', editable=False, max_length=500),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='tournament',
            name='pause_cause',
            field=models.CharField(
                blank=True,
                choices=[
                    ('organiser', 'an organiser: goes on when one resumes it'),
                    ('failure', 'a failure of ours: goes on when an organiser resumes it'),
                    (
                        'stuck_version',
                        'a version that could not be checked: goes on once it is decided',
                    ),
                ],
                default='',
                editable=False,
                max_length=13,
            ),
        ),
        migrations.RunPython(call_old_pauses_the_organisers, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name='tournament',
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ('pause_cause__in', ['', 'organiser', 'failure', 'stuck_version'])
                ),
                name='tournament_pause_cause_known',
            ),
        ),
        migrations.AddConstraint(
            model_name='tournament',
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(('pause_cause', ''), ('paused_reason', '')),
                    models.Q(
                        models.Q(('paused_reason', ''), _negated=True),
                        models.Q(('pause_cause', ''), _negated=True),
                    ),
                    _connector='OR',
                ),
                name='tournament_paused_for_a_cause',
            ),
        ),
    ]
