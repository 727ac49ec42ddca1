"""Work tells since when it is being done."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('players', '0005_allows_scrimmages'),
    ]

    operations = [
        migrations.AddField(
            model_name='botversion',
            name='claimed_at',
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
