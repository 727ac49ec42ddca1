"""What the processes of a site log: lines for people or JSON for machines, with the ids of what is being done, no secrets.

Code logs by the standard library's `logging`. Whoever begins something binds its ids by `structlog.contextvars`
(``request`` in the web server, ``task`` in a worker, ``match`` and ``attempt`` while one is played), and each line that is
written meanwhile, by whatever library, carries them. It is used before Django is loaded, by the settings, and must not know
Django.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog
from structlog.typing import EventDict, Processor, ProcessorReturnValue, WrappedLogger

FORMATS = ("line", "json")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
HIDDEN = "[hidden]"
_SECRETS = (
    # A password in an address: postgresql://user:password@host. Only where a word begins, for a visitor may send
    # one of many thousand letters.
    (re.compile(r"(\b\w+://[^\s:/@]*):[^\s/@]+@"), rf"\1:{HIDDEN}@"),
    # What a program sends to be let in
    (re.compile(r"(?i)\b(bearer|basic|token) [\w.+/=~-]{8,}"), rf"\1 {HIDDEN}"),
    # A token of ours, and what makes a link in a mail good: both may stand in an address, one by mistake
    (re.compile(r"\b[0-9a-f]{12}\.[\w-]{43}(?![\w-])"), HIDDEN),
    (re.compile(r"(/account/mail/|/account/password/\w+/)[^/\s]+"), rf"\1{HIDDEN}"),
    # Named secrets, as in headers, forms and settings
    (
        re.compile(
            r"(?i)((?:password|passwd|secret|secret_key|api_?key|access_key|sessionid|csrftoken|cookie)"
            r"['\"]?\s*[=:]\s*['\"]?)[^\s'\",;&]+"
        ),
        rf"\1{HIDDEN}",
    ),
)
_ESCAPED = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != ord("\t")},
    **{code: f"\\u{code:04x}" for code in (*range(0x2028, 0x202F), *range(0x2066, 0x206A))},
    ord("\n"): "\\n",
    ord("\r"): "\\r",
}
"""What moves a terminal's cursor, begins a line for some reader, or turns the direction of writing."""
_OWN = {"event", "timestamp", "level", "logger", "process", "exception", "stack"}


def logging_settings(form: str, level: str) -> dict[str, Any]:
    """Django's LOGGING for one of `FORMATS`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"outages": {"()": "tournament.store.outages.OutageFilter"}},
        "formatters": {form: {"()": log_formatter, "form": form}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": form}},
        "loggers": {
            # Celery's pool tells by it which process was killed, and keeps it from handing that on
            "multiprocessing": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
            "axes": {"level": "WARNING"},  # it tells of each login otherwise
            "django.request": {"filters": ["outages"]},
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            "django.server": {"handlers": [], "level": "INFO", "propagate": True},
            **{
                name: {"level": "WARNING"}
                for name in ("celery", "kombu", "amqp", "boto3", "botocore")
            },
        },
        "root": {"handlers": ["stderr"], "level": level},
    }


def log_formatter(form: str) -> logging.Formatter:
    """Makes a line of a record of the standard library."""
    ending: Processor = spell_line if form == "line" else structlog.processors.JSONRenderer()
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            _add_process,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.StackInfoRenderer(),
            hide_secrets,
            ending,
        ],
    )


def _add_process(_: WrappedLogger, __: str, event: EventDict) -> ProcessorReturnValue:
    record: logging.LogRecord | None = event.get("_record")
    if record is not None:
        event["process"] = record.process
    return event


def hide_secrets(_: WrappedLogger, __: str, event: EventDict) -> ProcessorReturnValue:
    """The line without what looks like a password, a token or a key, wherever in it that stands."""
    return {name: _hide(value) for name, value in event.items()}


def _hide(value: Any) -> Any:
    if isinstance(value, str):
        for pattern, instead in _SECRETS:
            value = pattern.sub(instead, value)
        return value
    if isinstance(value, Mapping):
        return {name: _hide(each) for name, each in value.items()}
    return value


def spell_line(_: WrappedLogger, __: str, event: MutableMapping[str, Any]) -> str:
    """``2026-11-30T10:00:00Z INFO name 17: message [match=3 task=abc]``, and below it what went wrong."""
    ids = " ".join(f"{name}={event[name]}" for name in sorted(event) if name not in _OWN)
    head = f"{event['timestamp']} {event['level'].upper()} {event['logger']} {event['process']}: "
    said = str(event["event"]).translate(
        _ESCAPED
    )  # what a visitor sends must not begin a line of its own
    lines = [f"{head}{said}{f' [{ids}]' if ids else ''}"]
    lines += [event[name] for name in ("exception", "stack") if event.get(name)]
    return "\n".join(lines)
