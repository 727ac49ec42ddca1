"""Scrimmages whose records are kept, and since when one is being played."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scrimmages', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='scrimmage',
            name='claimed_at',
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name='scrimmage',
            name='is_kept',
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
    ]
