"""Records expire and attempts are counted; work tells since when it is being done."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('competitions', '0008_queue_clock'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='match',
            name='match_finished_has_record',
        ),
        migrations.AddField(
            model_name='attempt',
            name='is_tallied',
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.AddField(
            model_name='entrytrial',
            name='claimed_at',
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name='match',
            name='claimed_at',
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name='match',
            name='is_kept',
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.AddIndex(
            model_name='attempt',
            index=models.Index(models.F('id'), condition=models.Q(('ended_at__isnull', False), ('is_tallied', False)), name='attempt_to_tally'),
        ),
        migrations.AddConstraint(
            model_name='match',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'finished'), _negated=True), ('termination', 'forfeit'), models.Q(('digest', ''), _negated=True), _connector='OR'), name='match_finished_has_digest'),
        ),
    ]
