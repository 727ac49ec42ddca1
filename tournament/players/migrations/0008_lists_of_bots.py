"""Bots are found by their names in any case, and listed by them, through indexes."""

from django.db import migrations, models
from django.db.models.functions import Upper

from tournament.store.migration_operations import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('players', '0007_erasure_keys'),
    ]

    operations = [
        AddIndexConcurrently('bot', models.Index(Upper('name'), name='bot_in_any_case')),
        AddIndexConcurrently('bot', models.Index('name', name='bot_by_name')),
        AddIndexConcurrently(
            'botversion',
            models.Index('bot', name='botversion_accepted', condition=models.Q(state='accepted')),
        ),
    ]
