"""All migrations so far at once, for a new database. It has no rows, so what they did to rows is left out."""

import django.contrib.auth.models
import django.contrib.auth.validators
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('players', '0001_initial'), ('players', '0002_audit_permission'), ('players', '0003_quarantine'), ('players', '0004_sign_up'), ('players', '0005_allows_scrimmages'), ('players', '0006_claimed_at'), ('players', '0007_erasure_keys'), ('players', '0008_lists_of_bots'), ('players', '0009_mail'), ('players', '0010_forgotten_passwords')]

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='Player',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('slug', models.SlugField(max_length=60, unique=True)),
                ('time_zone', models.CharField(default='UTC', max_length=64)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
                ('key', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('erased_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('confirmation_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('confirmed_email', models.EmailField(blank=True, db_default='', default='', editable=False, max_length=254)),
                ('wants_mail', models.BooleanField(db_default=True, default=True, verbose_name='Notices by mail')),
            ],
            options={
                'verbose_name': 'player',
                'verbose_name_plural': 'players',
                'abstract': False,
                'indexes': [],
                'constraints': [],
            },
            managers=[
                ('objects', django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name='Bot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=32, validators=[django.core.validators.RegexValidator('^[a-z][a-z0-9_-]{1,31}$')])),
                ('paused_reason', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bots', to=settings.AUTH_USER_MODEL)),
                ('allows_scrimmages', models.BooleanField(db_default=True, default=True)),
            ],
            options={
                'indexes': [models.Index(django.db.models.functions.text.Upper('name'), name='bot_in_any_case'), models.Index(models.F('name'), name='bot_by_name')],
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('name'), name='bot_name_unique')],
            },
        ),
        migrations.CreateModel(
            name='BotVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run_after', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('queued_at', models.DateTimeField(editable=False, null=True)),
                ('lease_owner', models.CharField(blank=True, default='', editable=False, max_length=100)),
                ('lease_until', models.DateTimeField(editable=False, null=True)),
                ('fence', models.PositiveIntegerField(default=0, editable=False)),
                ('attempts', models.PositiveSmallIntegerField(default=0, editable=False)),
                ('version', models.CharField(max_length=64)),
                ('wheel_sha256', models.CharField(editable=False, max_length=64)),
                ('state', models.CharField(choices=[('submitted', 'waiting to be checked'), ('queued', 'in the queue to be checked'), ('running', 'being checked'), ('accepted', 'accepted'), ('rejected', 'rejected'), ('stuck', 'could not be checked: waits for an operator'), ('quarantined', 'set aside'), ('withdrawn', 'withdrawn by its owner')], default='submitted', editable=False, max_length=12)),
                ('summary', models.CharField(blank=True, max_length=300)),
                ('reason', models.TextField(blank=True)),
                ('log_sha256', models.CharField(blank=True, editable=False, max_length=64)),
                ('uploaded_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('decided_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('bot', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='players.bot')),
                ('parent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='players.botversion')),
                ('crashes', models.PositiveIntegerField(default=0, editable=False)),
                ('crashes_in_a_row', models.PositiveIntegerField(default=0, editable=False)),
                ('matches_played', models.PositiveIntegerField(default=0, editable=False)),
                ('claimed_at', models.DateTimeField(editable=False, null=True)),
            ],
            options={
                'indexes': [models.Index(models.F('state'), models.F('run_after'), name='botversion_due'), models.Index(models.F('lease_until'), name='botversion_lease'), models.Index(models.F('bot'), condition=models.Q(('state', 'accepted')), name='botversion_accepted')],
                'constraints': [models.UniqueConstraint(models.F('bot'), models.F('version'), name='botversion_version_unique'), models.UniqueConstraint(models.F('bot'), models.F('wheel_sha256'), name='botversion_wheel_unique'), models.CheckConstraint(condition=models.Q(('state__in', ['submitted', 'queued', 'running', 'accepted', 'rejected', 'stuck', 'quarantined', 'withdrawn'])), name='botversion_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'running'), _negated=True), models.Q(('lease_until__isnull', False), models.Q(('lease_owner', ''), _negated=True)), _connector='OR'), name='botversion_running_is_leased')],
                'permissions': [('audit_botversion', "Can read other players' wheels and what they printed; each reading is noted")],
            },
        ),
        migrations.CreateModel(
            name='VersionGame',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('game', models.CharField(max_length=20)),
                ('options', models.JSONField()),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='games', to='players.botversion')),
            ],
            options={
                'indexes': [],
                'constraints': [models.UniqueConstraint(models.F('version'), models.F('game'), name='versiongame_unique')],
            },
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(blank=True, max_length=60)),
                ('prefix', models.CharField(max_length=12, unique=True)),
                ('sha256', models.CharField(max_length=64)),
                ('scope', models.CharField(choices=[('read', 'read what its player may see'), ('submit', 'also submit bots and enter tournaments')], default='read', max_length=10)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('player', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to=settings.AUTH_USER_MODEL)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('scope__in', ['read', 'submit'])), name='apitoken_scope_known')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='SignUp',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('address', models.GenericIPAddressField()),
                ('at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['address', 'at'], name='sign_up_by_address')],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='OutgoingMail',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('notice', 'a notice'), ('confirmation', 'the link that confirms an address'), ('password', 'the link that sets a password')], default='notice', max_length=12)),
                ('subject', models.CharField(max_length=200)),
                ('text', models.CharField(blank=True, max_length=500)),
                ('path', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('run_after', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('player', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='mails', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'mail',
                'indexes': [models.Index(fields=['run_after'], name='outgoingmail_due')],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['notice', 'confirmation', 'password'])), name='outgoingmail_kind_known')],
            },
        ),
        migrations.CreateModel(
            name='ResetRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.EmailField(max_length=254, unique=True)),
                ('at', models.DateTimeField()),
                ('is_answered', models.BooleanField(default=False)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
    ]
