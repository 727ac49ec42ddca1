"""A worker tells what its machine is, gives signs of life, and signs off."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import msgspec
from django.conf import settings
from django.db.models.functions import Now

from engine.errors import SandboxUnavailableError
from engine.sandbox.limits import limits_here
from engine.sandbox.probe import ProbeReport, probe_sandbox, require_sandbox
from engine.sandbox.speed import budget_percent
from tournament.competitions.models import RULES_VERSION
from tournament.store.clock import in_seconds
from tournament.store.pulses import WORKERS
from tournament.store.queues import MATCH_QUEUES, VALIDATION
from tournament.store.services import beat
from tournament.store.tallies import SLOTS, measure
from tournament.workers.models import WorkerReport
from tournament.workers.selectors import capacity

ALL_QUEUES = (VALIDATION, *MATCH_QUEUES)
REPORT_SECONDS = 30
"""How often a worker gives a sign of life."""
_FORGET_SECONDS = 7 * 86_400
"""Containers have another name after each start: what is silent for so long is forgotten."""


def report_worker(*, name: str, queues: Sequence[str] = ALL_QUEUES, slots: int = 1) -> None:
    """Try the walls here, measure this machine, and write both down with what the worker takes."""
    found = {**_look_here(), "queues": list(queues), "slots": slots}
    WorkerReport.objects.update_or_create(name=name, defaults=found)
    WorkerReport.objects.filter(seen_at__lt=in_seconds(-_FORGET_SECONDS)).delete()
    _note_presence()


def give_sign_of_life(*, name: str, queues: Sequence[str] = ALL_QUEUES, slots: int = 1) -> None:
    """Say that the worker is there, and how fast; where no bot can be held, or its row is gone, look again."""
    known = WorkerReport.objects.filter(name=name)
    if not known.exclude(level="").update(seen_at=Now(), budget_percent=budget_percent()):
        report_worker(name=name, queues=queues, slots=slots)
    else:
        _note_presence()


def sign_off(*, name: str) -> None:
    """Say that the worker stops in order: it is not missed."""
    WorkerReport.objects.filter(name=name).delete()
    measure(SLOTS, capacity().total)


def _note_presence() -> None:
    """For the pages, which tell by it whether the queue moves and when it is somebody's turn."""
    beat(name=WORKERS)
    measure(SLOTS, capacity().total)


def _look_here() -> dict[str, Any]:
    report, limits = _probe(), limits_here()
    return {
        "host": socket.gethostname(),
        "level": report.level or "",
        "trusts_bots": settings.ARENA_TRUST_BOTS,
        "findings": [msgspec.to_builtins(finding) for finding in report.findings],
        "python": limits.python,
        "packages": limits.packages,
        "rules_version": RULES_VERSION,
        "budget_percent": budget_percent(),
        "started_at": Now(),
        "seen_at": Now(),
    }


def _probe() -> ProbeReport:
    """What the walls come to; tried once a process if they hold, so that its forks need not try again."""
    try:
        return require_sandbox()
    except SandboxUnavailableError:
        return probe_sandbox()
