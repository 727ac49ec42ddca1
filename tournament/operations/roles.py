"""``manage.py web|control|worker|beat``: one process of a site, for machines whose own supervisor keeps it going.

Each of them becomes the program that `tournament.operations.stack` would start for the same part, so that units
of systemd and services of containers need to know nothing of Celery. ``manage.py healthy`` asks after one.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import NoReturn

from engine.errors import SandboxUnavailableError
from engine.sandbox.probe import require_sandbox
from engine.sdk.timecontrol import TIME_CONTROLS
from tournament.operations.errors import OperationsError
from tournament.operations.stack import (
    Address,
    beat_command,
    control_command,
    cores,
    playing_command,
    web_command,
)
from tournament.store.queues import MATCH_QUEUES, MATCHES, VALIDATION, match_queue

QUEUES = (VALIDATION, MATCHES, *MATCH_QUEUES)


def web(arguments: Sequence[str]) -> NoReturn:
    """Become the web server; 2 for an address that is none."""
    parser = _parser("web", "Serve the site's pages and API.")
    parser.add_argument(
        "--listen", default="127.0.0.1:8000", metavar="HOST:PORT", help="default: %(default)s"
    )
    given = parser.parse_args(arguments)
    try:
        address = Address.parse(given.listen)
    except OperationsError as error:
        parser.error(str(error))
    host = f"[{address.host}]" if ":" in address.host else address.host
    _become(web_command(f"{host}:{address.port}"))


def control(arguments: Sequence[str]) -> NoReturn:
    """Become the worker that dispatches."""
    _parser(
        "control", "Dispatch what is due; a site needs one, and a second does no harm."
    ).parse_args(arguments)
    _become(control_command())


def beat(arguments: Sequence[str]) -> NoReturn:
    """Become what rings dispatch."""
    _parser(
        "beat", "Ring dispatch each second; a site needs one, and a second does no harm."
    ).parse_args(arguments)
    _become(beat_command())


def worker(arguments: Sequence[str]) -> NoReturn:
    """Become a worker that plays bots; 2 for queues that there are not, 1 where no bot can be held."""
    parser = _parser("worker", "Check and play bots, as many at once as this machine has cores.")
    parser.add_argument(
        "--queues",
        default=f"{VALIDATION},{MATCHES}",
        metavar="QUEUE,…",
        help=f"what to take, of {', '.join(QUEUES)}; default: %(default)s",
    )
    parser.add_argument(
        "--time-controls",
        metavar="NAME,…",
        help=f"play only what is played with these, of {', '.join(TIME_CONTROLS)}; default: all",
    )
    parser.add_argument(
        "--slots",
        type=int,
        metavar="N",
        help="how many matches at once; default: ARENA_WORKER_SLOTS, else one a core",
    )
    parser.add_argument(
        "--name", default="matches", help="tells workers of one host apart; default: %(default)s"
    )
    given = parser.parse_args(arguments)
    try:
        queues = queues_to_take(given.queues, given.time_controls)
        slots = slots_to_fill(given.slots)
    except OperationsError as error:
        parser.error(str(error))
    try:
        if os.environ.get("ARENA_TRUST_BOTS") != "1":
            require_sandbox()
    except SandboxUnavailableError as error:
        sys.exit(f"No worker can run here: {error}")
    _become(playing_command(given.name, slots, queues))


def queues_to_take(queues: str, time_controls: str | None) -> tuple[str, ...]:
    """The queues of a worker that was asked for so. Raises OperationsError for a name that is none."""
    taken = _names(queues, QUEUES, "queue")
    if time_controls is None:
        return taken
    played = _names(time_controls, tuple(TIME_CONTROLS), "time control")
    if MATCHES not in taken:
        raise OperationsError(
            f"--time-controls says which of the queue {MATCHES} to take: name it in --queues"
        )
    others = (queue for queue in taken if queue != MATCHES)
    return tuple(dict.fromkeys([*others, *map(match_queue, played)]))


def slots_to_fill(asked: int | None) -> int:
    """How many matches a worker plays at once. Raises OperationsError for a number that is none."""
    named = os.environ.get("ARENA_WORKER_SLOTS") or str(cores())
    slots = asked if asked is not None else int(named) if named.isdecimal() else 0
    if slots < 1:
        raise OperationsError("a worker needs at least one slot: --slots or ARENA_WORKER_SLOTS")
    return slots


def healthy(arguments: Sequence[str]) -> int:
    """0 if a process of this host is well, 1 with the reason on stderr if not; for health checks of containers."""
    parser = _parser("healthy", "Ask whether a process of this host is well: exit code 0 or 1.")
    parser.add_argument("role", choices=("web", "control", "worker", "beat"))
    parser.add_argument("--name", default="matches", help="the worker's; default: %(default)s")
    parser.add_argument(
        "--url", default="http://127.0.0.1:8000", help="the web server's; default: %(default)s"
    )
    given = parser.parse_args(arguments)
    if given.role == "web":
        problem = _why_web_is_ill(given.url)
    else:
        import django

        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tournament.settings")
        django.setup()
        problem = _why_worker_is_ill(given.name) if given.role == "worker" else _why_late()
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


def _why_web_is_ill(url: str) -> str:
    hosts = os.environ.get("ARENA_ALLOWED_HOSTS") or "localhost"
    name = hosts.split(",")[0].strip().lstrip(".").replace("*", "localhost")
    request = urllib.request.Request(f"{url}/healthz", headers={"Host": name})  # noqa: S310 - the operator's own
    try:
        with urllib.request.urlopen(request, timeout=5):  # noqa: S310
            return ""
    except (OSError, urllib.error.HTTPError) as error:
        return f"{url}/healthz: {error}"


def _why_worker_is_ill(name: str) -> str:
    from tournament.workers.selectors import living_workers

    full = f"{name}@{socket.gethostname()}"
    return "" if living_workers().filter(name=full).exists() else f"nothing was heard of {full}"


def _why_late() -> str:
    from tournament.store.pulses import DISPATCH, delays

    return next((delay.reason for delay in delays() if delay.name == DISPATCH), "")


def _names(text: str, known: Sequence[str], kind: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        missing = f"there is no {kind} {unknown[0]!r}" if unknown else f"name a {kind}"
        raise OperationsError(f"{missing}; there are: {', '.join(known)}")
    return names


def _parser(command: str, description: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(prog=f"manage.py {command}", description=description)


def _become(command: Sequence[str]) -> NoReturn:
    """Go on as another program: signals reach it, and no process stands between.

    Raises ImproperlyConfigured for settings with which that program could only fail, and at length.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tournament.settings")
    from django.conf import settings

    _ = settings.ARENA_HOME  # reads them
    sys.stdout.flush()
    os.execv(command[0], list(command))
