"""The settings: safe by default, said by the environment, and all of them documented."""

from __future__ import annotations

import json
import os
import re
import runpy
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

ROOT = Path(__file__).parent.parent.parent.parent
ASK = """
import json
from tournament import settings as s
print(json.dumps({name: getattr(s, name, None) for name in (
    "DEBUG", "SECRET_KEY", "ALLOWED_HOSTS", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE",
    "SECURE_SSL_REDIRECT", "CSRF_TRUSTED_ORIGINS", "INSTALLED_APPS", "CELERY_BROKER_URL",
    "ARENA_WORKER_SLOTS", "DATABASES", "CELERY_TASK_ACKS_LATE", "CELERY_WORKER_PREFETCH_MULTIPLIER",
    "CELERY_BROKER_TRANSPORT_OPTIONS", "CELERY_RESULT_BACKEND", "SESSION_COOKIE_NAME",
    "EMAIL_HOST_USER", "EMAIL_HOST_PASSWORD", "EMAIL_PORT", "EMAIL_USE_SSL", "EMAIL_USE_TLS", "ARENA_SITE",
    "CELERY_BEAT_SCHEDULE",
)}, default=str))
"""


def load(home: Path, *, fails: bool = False, **environment: str):
    """The settings as a fresh process reads them; what it says, if it is to refuse."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ARENA_")}
    run = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=ROOT,
        env={**kept, "ARENA_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if fails:
        assert run.returncode != 0
        return run.stderr
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_site_is_shut_by_default(tmp_path):
    found = load(tmp_path / "home")
    assert found["DEBUG"] is False
    assert found["ALLOWED_HOSTS"] == ["localhost", "127.0.0.1", "[::1]"]
    assert found["CELERY_RESULT_BACKEND"] is None
    assert found["CELERY_TASK_ACKS_LATE"] is True
    assert found["CELERY_WORKER_PREFETCH_MULTIPLIER"] == 1
    assert found["DATABASES"]["default"]["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_secret_key_is_made_once_for_the_owner_alone(tmp_path):
    home = tmp_path / "home"
    first = load(home)["SECRET_KEY"]
    assert len(first) >= 50
    assert load(home)["SECRET_KEY"] == first
    assert stat.S_IMODE((home / "secret_key").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert load(tmp_path / "other")["SECRET_KEY"] != first


def test_home_that_others_can_read_is_closed_or_refused(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    load(home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "thesis.tex").write_text("")
    shared.chmod(0o755)
    assert "chmod 700" in load(shared, fails=True)


def test_secret_key_that_is_none_is_refused(tmp_path):
    (tmp_path / "key").write_text("short")
    said = load(tmp_path, fails=True, ARENA_SECRET_KEY_FILE=str(tmp_path / "key"))
    assert "at least 32 characters" in said


def test_plain_http_on_localhost_works_and_tls_is_strict(tmp_path):
    plain = load(tmp_path)
    assert (plain["SESSION_COOKIE_SECURE"], plain["SECURE_SSL_REDIRECT"]) == (False, None)
    assert plain["SESSION_COOKIE_NAME"] is None  # Django's own
    tls = load(tmp_path, ARENA_HTTPS="1", ARENA_ALLOWED_HOSTS="arena.example.org, .example.com")
    assert tls["SESSION_COOKIE_SECURE"]
    assert tls["CSRF_COOKIE_SECURE"]
    assert tls["SESSION_COOKIE_NAME"] == "__Host-sessionid"
    assert tls["CSRF_TRUSTED_ORIGINS"] == ["https://arena.example.org", "https://*.example.com"]


def test_site_behind_tls_passes_all_of_djangos_checks(tmp_path):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ARENA_")}
    found = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "INFO"],
        cwd=ROOT,
        env={
            **kept,
            "DJANGO_ALLOW_ASYNC_UNSAFE": "",  # the browser tests of the same process set it
            "ARENA_BOOTSTRAP": "0",
            "DJANGO_SETTINGS_MODULE": "tournament.settings",
            "ARENA_HOME": str(tmp_path),
            "ARENA_HTTPS": "1",
            "ARENA_ALLOWED_HOSTS": "arena.example.org",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "no issues" in found.stdout + found.stderr


def test_postgresql_is_read_from_its_address(tmp_path):
    found = load(tmp_path, ARENA_DATABASE="postgresql://ada:p%40ss@db.example.org:5433/arena")
    database = found["DATABASES"]["default"]
    assert database["ENGINE"] == "django.db.backends.postgresql"
    assert [database[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME")] == [
        "ada",
        "p@ss",
        "db.example.org",
        5433,
        "arena",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ARENA_DATABASE", "mysql://x/y"),  # not supported
        ("ARENA_DATABASE", "postgresql://host"),  # no database
        ("ARENA_DEBUG", "yes"),  # neither 1 nor 0
        ("ARENA_WORKER_SLOTS", "0"),  # nobody would play
        ("ARENA_WORKER_SLOTS", "two"),  # no number
        ("ARENA_LOG_FORMAT", "xml"),  # neither of both
        ("ARENA_METRICS_FROM", "10.0.0.0/8,everybody"),  # one is no network
        ("ARENA_METRICS_TOKEN_FILE", "/dev/null"),  # no token in it
        (
            "ARENA_ALLOWED_HOSTS",
            "https://arena.example.org",
        ),  # no name of a host: it would match no request
        ("ARENA_ALLOWED_HOSTS", "arena.example.org:8000"),  # nor is that
        (
            "ARENA_BROKER_URL",
            "127.0.0.1:6379",
        ),  # Celery would look for another kind of broker, for ever
        ("ARENA_BROKER_URL", "amqp://host"),  # one that is not supported
        ("ARENA_BROKER_URL", "redis://host:port"),  # no number
        ("ARENA_LOG_LEVEL", "chatty"),  # no level
        ("ARENA_SECRET_KEY_FILE", "/nowhere/key"),  # no folder that it could be made in
        ("ARENA_SECRET_KEY_FILE", "/"),  # no file
        ("ARENA_STORE", "s3://arena?endpoint=s3.example.org"),  # no scheme
        ("ARENA_STORE", "s3://arena?style=virtually"),  # no style
        ("ARENA_STORE", "blobs"),  # of which folder?
    ],
)
def test_setting_that_makes_no_sense_is_refused_by_name(tmp_path, monkeypatch, name, value):
    monkeypatch.setenv("ARENA_HOME", str(tmp_path))
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=name):
        runpy.run_path(str(ROOT / "tournament" / "settings.py"))


def test_admin_is_unfolds_unless_told_otherwise(tmp_path):
    assert "unfold" in load(tmp_path)["INSTALLED_APPS"]
    assert "unfold" not in load(tmp_path, ARENA_ADMIN="plain")["INSTALLED_APPS"]


def test_every_setting_is_documented_where_operators_look():
    source = (ROOT / "tournament" / "settings.py").read_text(encoding="utf-8")
    docstring, code = source.split('"""', 2)[1:]
    code += (ROOT / "tournament" / "operations" / "home.py").read_text(encoding="utf-8")
    read = set(re.findall(r'"(ARENA_[A-Z_]+)"', code))
    sandbox = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("engine/sandbox/*.py"))
    read_by_sandbox = set(re.findall(r'environ\.get\("(ARENA_[A-Z_]+)"', sandbox))
    pages = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    assert read
    assert read == set(re.findall(r"^(ARENA_[A-Z_]+)", docstring, re.MULTILINE))
    tabled = set(re.findall(r"^\| `(ARENA_[A-Z_]+)`", pages, re.MULTILINE))
    assert read | read_by_sandbox == tabled


MAIL = {
    "ARENA_MAIL": "smtps://ann%40example.org:p%2Fw@mail.example.org",
    "ARENA_MAIL_FROM": "Arena <arena@example.org>",
    "ARENA_SITE": "https://arena.example.org/",
}


def test_mail_server_is_read_from_its_address_and_rung_for(tmp_path):
    found = load(tmp_path, **MAIL)
    assert found["EMAIL_HOST_USER"] == "ann@example.org"
    assert found["EMAIL_HOST_PASSWORD"] == "p/w"
    assert (found["EMAIL_PORT"], found["EMAIL_USE_SSL"], found["EMAIL_USE_TLS"]) == (
        465,
        True,
        False,
    )
    assert found["ARENA_SITE"] == "https://arena.example.org"
    assert "mail" in found["CELERY_BEAT_SCHEDULE"]
    assert load(tmp_path, **{**MAIL, "ARENA_MAIL": "smtp://host"})["EMAIL_USE_TLS"] is True
    assert load(tmp_path, **{**MAIL, "ARENA_MAIL": "smtp://h?tls=no"})["EMAIL_USE_TLS"] is False
    assert "mail" not in load(tmp_path)["CELERY_BEAT_SCHEDULE"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ARENA_MAIL", "mail.example.org"),  # how should it be spoken to?
        ("ARENA_MAIL", "smtp://mail.example.org:mail"),  # no number
        ("ARENA_MAIL", "smtp://mail.example.org?tls=maybe"),  # with or without?
        ("ARENA_MAIL_FROM", ""),  # no server takes mail of nobody
        ("ARENA_MAIL_FROM", "arena"),  # no address
        ("ARENA_SITE", ""),  # links would lead nowhere
        ("ARENA_SITE", "arena.example.org"),  # nor would these
    ],
)
def test_mail_that_could_not_be_sent_is_refused_at_once(tmp_path, name, value):
    said = load(tmp_path, fails=True, **{**MAIL, name: value})
    assert name in said
    assert "p%2Fw" not in said.rpartition("ImproperlyConfigured")[2]
