"""Numbers that the metrics count up."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('store', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Tally',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('label', models.CharField(blank=True, default='', max_length=60)),
                ('value', models.FloatField(default=0)),
            ],
            options={
                'verbose_name_plural': 'tallies',
                'constraints': [models.UniqueConstraint(models.F('name'), models.F('label'), name='tally_unique')],
            },
        ),
    ]
