"""What is not finished is found in the order in which it is due, and the last decided trials at once."""

from django.db import migrations, models

from tournament.store.migration_operations import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('competitions', '0009_expiry_and_tally'),
    ]

    operations = [
        AddIndexConcurrently(
            'match',
            models.Index(
                'run_after',
                'id',
                name='match_unfinished',
                condition=models.Q(state__in=('pending', 'queued', 'running', 'stuck')),
            ),
        ),
        AddIndexConcurrently(
            'entrytrial',
            models.Index(
                'decided_at',
                'id',
                name='entrytrial_decided',
                condition=models.Q(state__in=('passed', 'failed')),
            ),
        ),
    ]
