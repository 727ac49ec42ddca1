"""The settings of a site, all of them: what differs between sites comes from the environment.

=======================  =========================================================================
ARENA_HOME               folder of all that the site keeps (database, blobs, secrets); by default
                         ``domino-arena`` in the user's data folder
ARENA_DATABASE           ``postgresql://user:password@host:port/name``; by default SQLite in the home
ARENA_STORE              where wheels, records and logs lie: a folder, or
                         ``s3://bucket/prefix?endpoint=https://host&region=name``; by default ``blobs`` in the home
ARENA_BROKER_URL         Celery's broker; ``manage.py up`` brings its own
ARENA_SECRET_KEY_FILE    file with Django's secret key; by default made in the home on first use
ARENA_ALLOWED_HOSTS      host names the site answers to, comma separated; by default localhost only
ARENA_HTTPS              1: the site stands behind TLS (secure cookies, trusted ``X-Forwarded-Proto``)
ARENA_ADMIN              ``plain``: Django's own admin instead of Unfold's
ARENA_WORKER_SLOTS       how many matches a worker plays at once, by default one a core; and how much is sent, by
                         default 2, until the first worker has said what it takes
ARENA_MAX_UNCHECKED      how many versions of one player may wait for their check; by default 20
ARENA_UPLOADS_A_DAY      how many versions a player may upload within 24 hours; by default 100
ARENA_SCRIMMAGES_A_DAY   how many scrimmages a player may ask for within 24 hours; by default 10, 0 for none
ARENA_SCRIMMAGES_OPEN    how many of one player may be under way at once; by default 2
ARENA_SCRIMMAGE_SLOTS    how many of the site are played at once; by default half of the worker slots
ARENA_SCRIMMAGE_SETS     the most mirrored sets of one; by default 2000
ARENA_SCRIMMAGE_DAYS     after how many days their records and logs go; by default 14
ARENA_RATE_PERCENT       how often an address or a player may ask, in percent of what docs/security.md says; 0:
                         without limits, where a proxy has its own
ARENA_TRUST_BOTS         1: play bots without a sandbox; such matches are never rated
ARENA_STOP_SECONDS       what a worker that is told to stop may still finish; by default 30
ARENA_LEASE_SECONDS      how long a claim holds without a sign of life; by default 30
ARENA_LOG_LEVEL          by default INFO
ARENA_LOG_FORMAT         ``json``: a JSON object a line; by default ``line``
ARENA_MAIL               the server that takes mail: ``smtp://user:password@host:587`` (STARTTLS), ``smtps://host:465``, or
                         ``smtp://localhost:25?tls=no``; by default the site sends none
ARENA_MAIL_FROM          the address that its mail comes from
ARENA_SITE               its own address in mails, e.g. ``https://arena.example.org``
ARENA_METRICS_FROM       addresses and networks that may read ``/metrics``, comma separated; by default this machine alone
ARENA_METRICS_TOKEN_FILE file with a token of at least 20 characters; who sends it as ``Bearer`` may read it from anywhere
ARENA_RECORD_DAYS        after how many days records and logs of a ladder's matches go; by default 90
ARENA_STORE_GB           how much wheels, records and logs may take; by default 0: as much as there is
ARENA_DEBUG              1: Django's debug mode, for developers of the site only
=======================  =========================================================================
"""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import sys
from datetime import timedelta
from email.utils import parseaddr
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import validate_email

from engine.wheels.archive import MAX_WHEEL_BYTES
from tournament.operations.databases import read_database
from tournament.operations.errors import OperationsError
from tournament.operations.home import default_home, private_folder
from tournament.operations.logs import FORMATS as LOG_FORMATS
from tournament.operations.logs import LEVELS as LOG_LEVELS
from tournament.operations.logs import logging_settings

_HOST = re.compile(r"\*|\.?[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]")
_BROKERS = {"redis", "rediss", "redis+socket", "memory"}
S3_STYLES = ("auto", "path", "virtual")


def _flag(name: str) -> bool:
    value = os.environ.get(name, "0")
    if value not in {"0", "1", ""}:
        raise ImproperlyConfigured(f"{name} is {value!r}; set it to 1 or 0")
    return value == "1"


def _number(name: str, default: int, *, least: int = 1) -> int:
    value = os.environ.get(name) or str(default)
    if not value.isdecimal() or int(value) < least:
        raise ImproperlyConfigured(f"{name} is {value!r}; set it to a number from {least}")
    return int(value)


def _hosts(text: str) -> list[str]:
    hosts = [host.strip() for host in text.split(",") if host.strip()]
    wrong = next((host for host in hosts if not _HOST.fullmatch(host)), None)
    if wrong is not None:
        raise ImproperlyConfigured(
            f"ARENA_ALLOWED_HOSTS names {wrong!r}, which no request could ask for; write names of hosts alone, "
            "without https:// and port, comma separated, e.g. arena.example.org,www.example.org"
        )
    return hosts


def _broker(address: str) -> str:
    try:
        parts = urlsplit(address)
        is_broker = parts.scheme in _BROKERS and (parts.port is None or parts.port > 0)
    except ValueError:
        is_broker = False
    if not is_broker:
        raise ImproperlyConfigured(
            f"ARENA_BROKER_URL must look like redis://:password@host:6379/0, or rediss:// for TLS, or redis+socket:///path; "
            f"this one begins with {address.partition(':')[0]!r}"
        )
    return address


def _log_level(text: str) -> str:
    level = text.upper()
    if level not in LOG_LEVELS:
        raise ImproperlyConfigured(
            f"ARENA_LOG_LEVEL is {text!r}; set it to one of {', '.join(LOG_LEVELS)}"
        )
    return level


def _log_format() -> str:
    value = os.environ.get("ARENA_LOG_FORMAT") or "line"
    if value not in LOG_FORMATS:
        raise ImproperlyConfigured(
            f"ARENA_LOG_FORMAT is {value!r}; set it to one of {', '.join(LOG_FORMATS)}"
        )
    return value


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise ImproperlyConfigured(
            f"ARENA_METRICS_FROM: {error}; write addresses and networks, e.g. 127.0.0.1,10.0.0.0/8"
        ) from error


def _metrics_token(path: str | None) -> str:
    if not path:
        return ""
    try:
        token = Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(
            f"ARENA_METRICS_TOKEN_FILE {path} cannot be read: {error}"
        ) from error
    if len(token) < 20 or token.split() != [token]:
        raise ImproperlyConfigured(
            f"ARENA_METRICS_TOKEN_FILE {path} must hold one word of at least 20 characters, "
            "e.g. of openssl rand -hex 20"
        )
    return token


def _mail(address: str) -> dict[str, Any]:
    """Django's settings for a mail server. Raises ImproperlyConfigured for an address that is none."""
    parts, query = urlsplit(address), dict(parse_qsl(urlsplit(address).query))
    try:
        port = parts.port
    except ValueError:
        port = 0
    is_known = parts.scheme in {"smtp", "smtps"} and parts.hostname and port != 0
    if not is_known or parts.path.strip("/") or query not in ({}, {"tls": "no"}):
        raise ImproperlyConfigured(
            "ARENA_MAIL is no address of a mail server; write smtp://user:password@host:587, smtps://host:465, or "
            "smtp://localhost:25?tls=no where mail does not leave the machine"
        )
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": port or (465 if parts.scheme == "smtps" else 587),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_USE_TLS": parts.scheme == "smtp" and not query,
    }


def _sender(address: str) -> str:
    try:
        validate_email(parseaddr(address)[1])
    except ValidationError:
        raise ImproperlyConfigured(
            f"ARENA_MAIL_FROM is {address!r}; ARENA_MAIL needs the address that mail comes from, e.g. "
            "arena@example.org"
        ) from None
    return address


def _site(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.netloc or parts.path.strip("/"):
        raise ImproperlyConfigured(
            f"ARENA_SITE is {address!r}; ARENA_MAIL needs the site's own address for the links in mails, e.g. "
            "https://arena.example.org"
        )
    return f"{parts.scheme}://{parts.netloc}"


def _home() -> Path:
    try:
        return private_folder(default_home())
    except OperationsError as error:
        raise ImproperlyConfigured(f"ARENA_HOME: {error}") from error


def _secret_key(path: Path) -> str:
    """The key in `path`; made there, readable for the owner alone, if there is none yet."""
    try:
        return _read_or_make_key(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(
            f"the secret key {path} can be neither read nor made ({error}); name a file of this user's by "
            "ARENA_SECRET_KEY_FILE, in a folder that is there"
        ) from error


def _read_or_make_key(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        key = path.read_text(encoding="ascii").strip()
        if len(key) < 32:
            raise ImproperlyConfigured(
                f"{path} holds no secret key of at least 32 characters; delete it to have one made"
            ) from None
        return key
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        key = secrets.token_urlsafe(48)
        file.write(key + "\n")
    return key


def _database() -> dict[str, Any]:
    try:
        return read_database(os.environ.get("ARENA_DATABASE"), ARENA_HOME, sys.argv)
    except OperationsError as error:
        raise ImproperlyConfigured(str(error)) from error


def _store(address: str, home: Path) -> dict[str, Any]:
    parts = urlsplit(address)
    if not parts.scheme or parts.scheme == "file":
        folder = Path(unquote(parts.path)) if address else home / "blobs"
        if parts.netloc or not folder.is_absolute():
            raise ImproperlyConfigured(
                f"ARENA_STORE is {address!r}; write a folder from the root, e.g. /srv/blobs"
            )
        return {
            "blobs": {
                "BACKEND": "tournament.store.storage.BlobStorage",
                "OPTIONS": {"location": str(folder), "must_be_there": bool(address)},
            }
        }
    query = dict(parse_qsl(parts.query))
    if parts.scheme != "s3" or not parts.netloc or set(query) - {"endpoint", "region", "style"}:
        raise ImproperlyConfigured(
            f"ARENA_STORE is {address!r}; write a folder, or s3://bucket/prefix?endpoint=https://host"
            "&region=name&style=path, the last three only where the server needs them"
        )
    endpoint = urlsplit(query.get("endpoint", "https://s3"))
    if endpoint.scheme not in {"http", "https"} or not endpoint.netloc:
        raise ImproperlyConfigured(
            f"ARENA_STORE has the endpoint {query['endpoint']!r}; write it with its scheme, e.g. https://s3.example.org"
        )
    if query.get("style", "auto") not in S3_STYLES:
        raise ImproperlyConfigured(
            f"ARENA_STORE has the style {query['style']!r}; there are: {', '.join(S3_STYLES)}"
        )
    if importlib.util.find_spec("storages") is None:
        raise ImproperlyConfigured("ARENA_STORE names S3: pip install 'domino-arena[s3]'")
    place = {"bucket": parts.netloc, "prefix": parts.path.strip("/")}
    return {
        "blobs": {"BACKEND": "tournament.store.s3.S3BlobStorage", "OPTIONS": {**place, **query}},
        "nearby": {
            "BACKEND": "tournament.store.storage.BlobStorage",
            "OPTIONS": {"location": str(home / "nearby")},
        },
    }


BASE_DIR = Path(__file__).resolve().parent.parent
ARENA_HOME = _home()

# --- what a site is ---------------------------------------------------------------------------

DEBUG = _flag("ARENA_DEBUG")
SECRET_KEY = _secret_key(Path(os.environ.get("ARENA_SECRET_KEY_FILE") or ARENA_HOME / "secret_key"))
ALLOWED_HOSTS = _hosts(os.environ.get("ARENA_ALLOWED_HOSTS") or "localhost,127.0.0.1,[::1]")
ROOT_URLCONF = "tournament.urls"
WSGI_APPLICATION = "tournament.wsgi.application"
AUTH_USER_MODEL = "players.Player"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_UNFOLD = os.environ.get("ARENA_ADMIN", "unfold") != "plain"

INSTALLED_APPS = [
    *(["unfold", "unfold.contrib.filters"] if USE_UNFOLD else []),
    "tournament.store",
    "tournament.players",
    "tournament.leaderboards",
    "tournament.competitions",
    "tournament.workers",
    "tournament.scrimmages",
    "tournament.moderation",
    "tournament.web",
    "tournament.operations",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "ninja",
    "axes",
]

MIDDLEWARE = [
    "tournament.web.middleware.identify_request",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "tournament.web.middleware.security_headers",
    "tournament.operations.views.answer_probes",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "tournament.web.middleware.answer_head",
    "tournament.web.middleware.tell_delays",
    "tournament.web.middleware.shape_api_errors",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "tournament.web.middleware.refuse_nul",
    "tournament.web.middleware.limit_uploads",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "tournament.web.middleware.LimitRates",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "tournament" / "web" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "tournament.web.context.delays",
            ],
        },
    },
]

LANGUAGE_CODE = "en"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

# --- what it keeps ----------------------------------------------------------------------------

DATABASES = {"default": _database()}

STATIC_URL = "static/"
STATIC_ROOT = ARENA_HOME / "static"
STATIC_ROOT.mkdir(mode=0o700, exist_ok=True)
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    **_store(os.environ.get("ARENA_STORE") or "", ARENA_HOME),
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
NEARBY_BYTES = 1_000_000_000
"""What a machine keeps near itself of a store that is elsewhere: wheels that it plays."""
WHEEL_CACHE = ARENA_HOME / "wheels"
"""Unpacked wheels, each in a folder named by its hash; may be deleted whenever no worker runs."""
WHEEL_MAX_BYTES = MAX_WHEEL_BYTES
DATA_UPLOAD_MAX_MEMORY_SIZE = WHEEL_MAX_BYTES + 256 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = WHEEL_MAX_BYTES
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1000
FILE_UPLOAD_PERMISSIONS = 0o600

# --- who may come in --------------------------------------------------------------------------

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "tournament.web.logging_in.PasswordBackend",
]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=10)
"""After so many wrong passwords for a name from an address, that address waits so long with that name."""
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_CLIENT_IP_CALLABLE = "tournament.players.views.client_address"
AXES_LOCKOUT_CALLABLE = "tournament.players.views.locked_out"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
SIGN_UPS_AN_HOUR = 20
"""How many accounts can be made from one address within an hour."""
PASSWORD_RESET_TIMEOUT = 2 * 3600
"""Seconds; counted from when the mail is sent."""
LOGIN_URL = "log-in"
LOGIN_REDIRECT_URL = "my-bots"
LOGOUT_REDIRECT_URL = "/"

ARENA_RATE_PERCENT = _number("ARENA_RATE_PERCENT", 100, least=0)

HTTPS = _flag("ARENA_HTTPS")
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
    SECURE_HSTS_SECONDS = 31_536_000
    # __Host-: a browser takes such a cookie over TLS only, and from no other host of the domain.
    SESSION_COOKIE_NAME = "__Host-sessionid"
    CSRF_COOKIE_NAME = "__Host-csrftoken"
    # Whether other hosts of the domain speak TLS, and whether browsers ship the name, is the domain's owner's to say.
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
    CSRF_TRUSTED_ORIGINS = [
        f"https://{'*' if host.startswith('.') else ''}{host}"
        for host in ALLOWED_HOSTS
        if host != "*"
    ]

# --- what it plays ----------------------------------------------------------------------------

ARENA_WORKER_SLOTS = _number("ARENA_WORKER_SLOTS", 2)
ARENA_MAX_UNCHECKED = _number("ARENA_MAX_UNCHECKED", 20)
ARENA_UPLOADS_A_DAY = _number("ARENA_UPLOADS_A_DAY", 100)
ARENA_SCRIMMAGES_A_DAY = _number("ARENA_SCRIMMAGES_A_DAY", 10, least=0)
ARENA_SCRIMMAGES_OPEN = _number("ARENA_SCRIMMAGES_OPEN", 2)
ARENA_SCRIMMAGE_SLOTS = _number("ARENA_SCRIMMAGE_SLOTS", max(1, ARENA_WORKER_SLOTS // 2))
ARENA_SCRIMMAGE_SETS = _number("ARENA_SCRIMMAGE_SETS", 2000, least=20)
ARENA_SCRIMMAGE_DAYS = _number("ARENA_SCRIMMAGE_DAYS", 14)
ARENA_RECORD_DAYS = _number("ARENA_RECORD_DAYS", 90)
ARENA_STORE_BYTES = _number("ARENA_STORE_GB", 0, least=0) * 10**9
"""What the store may take; 0: as much as there is."""
ARENA_TRUST_BOTS = _flag("ARENA_TRUST_BOTS")
ARENA_LEASE_SECONDS = _number("ARENA_LEASE_SECONDS", 30)
"""How long a claim holds without a sign of life; a play prolongs it while it goes on."""

ARENA_STOP_SECONDS = _number("ARENA_STOP_SECONDS", 30)
"""What a worker that was told to stop may still finish; later it gives its work back."""

CELERY_BROKER_URL = _broker(os.environ.get("ARENA_BROKER_URL") or "redis://localhost:6379/0")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_WORKER_CONSUMER = "tournament.operations.reconnecting:Consumer"
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # A message that is not done by then is delivered a second time, which does no harm; that of a killed
    # worker is back after some 6 s.
    "visibility_timeout": 900,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "health_check_interval": 10,
    # Publishing gives up after 2 s: dispatch mends what was not sent.
    "socket_timeout": 2,
    "socket_connect_timeout": 2,
    "retry_on_timeout": False,
    "max_retries": 0,
}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED = False
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_TASK_ROUTES = {
    "tournament.dispatch": {"queue": "control"},
    "tournament.send_mail": {"queue": "control"},  # hosts that play bots know no password
    "tournament.sweep": {
        "queue": "validation"
    },  # of a big store it takes long, and dispatch waits for nothing
    "tournament.validate": {"queue": "validation"},
    "tournament.try_entry": {"queue": "matches"},
    "tournament.play_matches": {"queue": "matches"},
    "tournament.play_batch": {"queue": "matches"},
}
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
# Above what a match can last at most: no tournament is planned whose bots could take longer (services/planning.py),
# and a task begins no further match after ARENA_BLOCK_SECONDS.
CELERY_TASK_TIME_LIMIT = 86_400
ARENA_BLOCK_SECONDS = 600
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 10.0
CELERY_WORKER_ENABLE_SOFT_SHUTDOWN_ON_IDLE = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_WORKER_MAX_TASKS_PER_CHILD = 1000
CELERY_DB_REUSE_MAX = sys.maxsize
"""A worker keeps its connection to the database from task to task; `tournament.celery` looks whether it still works."""
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(ARENA_HOME / "beat-schedule")
CELERY_BEAT_SCHEDULE = {
    "dispatch": {"task": "tournament.dispatch", "schedule": 1.0},
    "sweep": {"task": "tournament.sweep", "schedule": 6 * 3600.0},
}

# --- whom it writes to ------------------------------------------------------------------------

ARENA_SENDS_MAIL = bool(os.environ.get("ARENA_MAIL"))
ARENA_SITE = ""
"""The site's own address, without a slash at its end; known where mail is sent."""
EMAIL_TIMEOUT = 5
"""Seconds: the process that dispatches sends the mail."""
if ARENA_SENDS_MAIL:
    globals().update(_mail(os.environ["ARENA_MAIL"]))
    DEFAULT_FROM_EMAIL = SERVER_EMAIL = _sender(os.environ.get("ARENA_MAIL_FROM") or "")
    ARENA_SITE = _site(os.environ.get("ARENA_SITE") or "")
    CELERY_BEAT_SCHEDULE["mail"] = {
        "task": "tournament.send_mail",
        "schedule": 10.0,
        "options": {"expires": 10},
    }

# --- how the admin looks ----------------------------------------------------------------------

UNFOLD = {
    "SITE_TITLE": "Domino Arena",
    "SITE_HEADER": "Domino Arena",
    "SITE_SUBHEADER": "Administration",
    "SITE_URL": "/",
    "SITE_ICON": "/static/web/favicon.svg",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": "/static/web/favicon.svg"}],
    "COLORS": {
        "primary": {
            "50": "oklch(97% .02 165)",
            "100": "oklch(94% .04 165)",
            "200": "oklch(89% .07 165)",
            "300": "oklch(82% .1 165)",
            "400": "oklch(74% .12 165)",
            "500": "oklch(62% .12 165)",
            "600": "oklch(48% .1 165)",
            "700": "oklch(42% .09 165)",
            "800": "oklch(36% .075 165)",
            "900": "oklch(31% .06 165)",
            "950": "oklch(22% .045 165)",
        },
    },
}

# --- what it says -----------------------------------------------------------------------------

LOGGING = logging_settings(_log_format(), _log_level(os.environ.get("ARENA_LOG_LEVEL") or "INFO"))
METRICS_FROM = _networks(os.environ.get("ARENA_METRICS_FROM") or "127.0.0.0/8,::1")
METRICS_TOKEN = _metrics_token(os.environ.get("ARENA_METRICS_TOKEN_FILE"))
"""Empty: nobody gets in by a token."""
