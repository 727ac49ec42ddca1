"""Owners say whether others may ask for scrimmages against a bot; until they do, others may."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('players', '0004_sign_up'),
    ]

    operations = [
        migrations.AddField(
            model_name='bot',
            name='allows_scrimmages',
            field=models.BooleanField(db_default=True, default=True),
        ),
    ]
