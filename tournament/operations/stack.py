"""The embedded stack: everything that a site consists of, on one machine, from one process.

Broker, web server, two workers and beat, each a child of the supervisor::

    broker    Valkey on a Unix socket
    web       gunicorn, on a socket that was bound before it starts
    control   a Celery worker for dispatch alone, so that it never waits behind a match
    matches   a Celery worker with a process for each core: validation and matches
    beat      ticks dispatch each second
"""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tournament.operations import broker
from tournament.operations.errors import ListenError, OperationsError
from tournament.operations.home import Home
from tournament.operations.supervisor import ChildSpec, Supervisor
from tournament.store.queues import CONTROL, MATCHES, VALIDATION

LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
ANY_HOSTS = ("", "0.0.0.0", "::")  # noqa: S104 - compared, not bound
SITE_STAGE, BROKER_STAGE = range(2)
"""What needs the broker is stopped at once, since each waits for something of its own; then the broker."""
GIVE_BACK_SECONDS = 3
"""What a worker of this site may still finish when it is told to stop; then it gives its work back."""
WORKER_STOP = ((signal.SIGTERM, GIVE_BACK_SECONDS + 5.0),)


@dataclass(frozen=True, slots=True)
class Address:
    """Where the site listens; port 0 takes any that is free."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """``HOST:PORT``, ``[IPV6]:PORT`` or ``:PORT``. Raises ListenError for anything else."""
        host, separator, port = text.rpartition(":")
        if not separator or not port.isdecimal() or int(port) > 65535:
            raise ListenError(f"{text!r} is no address; write HOST:PORT, e.g. 127.0.0.1:8000")
        return cls(host.strip("[]"), int(port))

    def bind(self) -> socket.socket:
        """A listening socket on this address. Raises ListenError if it cannot be had."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self.host, self.port))
        except OSError as error:
            listener.close()
            raise ListenError(
                f"Cannot listen on {self.host or '*'}:{self.port}: {error.strerror}. "
                "Choose another by --listen HOST:PORT"
            ) from error
        listener.listen(128)
        return listener

    def url(self, port: int) -> str:
        """The site's address for a browser on this machine, given the port that was bound."""
        host = "127.0.0.1" if self.host in ANY_HOSTS else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def allowed_hosts(address: Address) -> str:
    """The host names that a site on `address` answers to, unless the operator names others."""
    named = os.environ.get("ARENA_ALLOWED_HOSTS")
    if named:
        return named
    if address.host in ANY_HOSTS:
        return "*"
    host = f"[{address.host}]" if ":" in address.host else address.host
    return ",".join(dict.fromkeys([*LOCAL_HOSTS, host]))


@dataclass(slots=True)
class Stack:
    """A running site."""

    home: Home
    url: str
    supervisor: Supervisor

    def watch(self, until: Callable[[], bool], *, every_seconds: float = 0.2) -> None:
        """Keep the site going until `until` is true; it is asked every so often."""
        while not until():
            self.supervisor.check()
            time.sleep(every_seconds)


@contextmanager
def running_stack(
    home_path: Path,
    address: Address,
    report: Callable[[str], None],
    *,
    slots: int | None = None,
    hurry: Callable[[], bool] = lambda: False,
) -> Iterator[Stack]:
    """A site in `home_path` on `address`, its database migrated; ended when the block ends.

    Settles the site's environment variables in this process and Django with them, so it works once a
    process. `slots` is how many matches are played at once, by default one a core.

    Raises:
        OperationsError: the machine, the address or the home does not allow it.
    """
    if sys.platform != "linux":
        raise OperationsError("A site needs Linux, whose walls hold the bots; `arena` works here.")
    with ExitStack() as undo:
        home = Home.open(home_path)
        undo.enter_context(home.lock())
        listener = undo.enter_context(address.bind())
        socket_path = undo.enter_context(broker_socket(home))
        settle_environment(
            ARENA_HOME=str(home.path),
            ARENA_BROKER_URL=broker.url(socket_path),
            ARENA_WORKER_SLOTS=str(slots or cores()),
            ARENA_ALLOWED_HOSTS=allowed_hosts(address),
            ARENA_STOP_SECONDS=str(GIVE_BACK_SECONDS),
            ARENA_DEBUG="0",
        )
        migrate()
        supervisor = Supervisor(report)
        undo.callback(supervisor.stop, hurry)
        url = address.url(listener.getsockname()[1])
        for spec in children(home, socket_path, listener, slots or cores()):
            supervisor.start(spec)
        wait_until_served(url, supervisor)
        yield Stack(home, url, supervisor)


@contextmanager
def broker_socket(home: Home) -> Iterator[Path]:
    """A place for the broker's socket, which the home knows of while it is used."""
    folder = broker.make_socket_folder()
    try:
        path = broker.socket_in(folder)
        home.broker_address.write_text(f"{path}\n")
        yield path
    finally:
        home.broker_address.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def settle_environment(**variables: str) -> None:
    """Set what the settings read, for this process and its children, and load Django."""
    import django
    from django.conf import settings

    if settings.configured:
        raise OperationsError("The settings were read before the site's home was known.")
    os.environ.update(variables, DJANGO_SETTINGS_MODULE="tournament.settings")
    django.setup()


def migrate() -> None:
    """Bring the database to the newest tables."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)


def children(
    home: Home, socket_path: Path, listener: socket.socket, slots: int
) -> Sequence[ChildSpec]:
    """The processes of a site in the order of their start."""
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}

    def spec(
        name: str,
        command: Sequence[str],
        stage: int,
        *,
        environ: Mapping[str, str] = environ,
        stop: Sequence[tuple[signal.Signals, float]] = ((signal.SIGTERM, 5.0),),
        is_ready: Callable[[], bool] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> ChildSpec:
        return ChildSpec(
            name=name,
            command=command,
            environ=environ,
            log=home.logs / f"{name}.log",
            is_ready=is_ready,
            stop=stop,
            stop_stage=stage,
            pass_fds=pass_fds,
        )

    server = broker.find_server()
    return (
        spec(
            "broker",
            broker.command(server, socket_path, home.broker_data),
            BROKER_STAGE,
            is_ready=lambda: broker.answers(socket_path),
        ),
        spec(
            "web",
            web_command(listener.fileno()),
            SITE_STAGE,
            pass_fds=(listener.fileno(),),
        ),
        spec("control", control_command(), SITE_STAGE, stop=WORKER_STOP),
        spec("matches", playing_command("matches", slots), SITE_STAGE, stop=WORKER_STOP),
        spec("beat", beat_command(), SITE_STAGE),
    )


def control_command() -> list[str]:
    """The worker that dispatches: one process, which nothing else keeps busy."""
    return worker_command("control", CONTROL, "solo")


def playing_command(
    name: str, slots: int, queues: Sequence[str] = (VALIDATION, MATCHES)
) -> list[str]:
    """A worker that checks and plays bots, `slots` at once."""
    return worker_command(name, ",".join(queues), "prefork", "--concurrency", str(slots))


def beat_command() -> list[str]:
    """What rings dispatch each second."""
    return celery_command("beat", "--pidfile=", "--loglevel", "WARNING")


def celery_command(*arguments: str) -> list[str]:
    """A Celery program of this site."""
    return [sys.executable, "-m", "celery", "--quiet", "-A", "tournament.celery", *arguments]


def worker_command(name: str, queues: str, pool: str, *arguments: str) -> list[str]:
    """A worker that takes from `queues`. Workers of one site need not talk to each other."""
    return celery_command(
        "worker",
        *("--hostname", f"{name}@%h"),
        *("--queues", queues),
        *("--pool", pool),
        *("--loglevel", "WARNING"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        *arguments,
    )


def web_command(bind: int | str) -> list[str]:
    """The web server on an address, or on a socket that is bound already, so that its restart refuses nobody."""
    return [
        *(sys.executable, "-m", "gunicorn", "tournament.wsgi:application"),
        *("--bind", bind if isinstance(bind, str) else f"fd://{bind}"),
        *("--worker-class", "tournament.operations.web_worker.PatientWorker"),
        *("--workers", "2"),
        *("--threads", "8"),
        *("--graceful-timeout", "2"),
        *("--log-level", "warning"),
        *("--logger-class", "tournament.operations.web_logs.WebLogger"),
        "--no-control-socket",
    ]


def wait_until_served(url: str, supervisor: Supervisor, *, seconds: float = 60.0) -> None:
    """Wait until the site answers that it is well. Raises OperationsError if it does not."""
    deadline = time.monotonic() + seconds
    while True:
        status = health(url)
        if status == http.client.OK:
            return
        supervisor.check()
        if time.monotonic() > deadline:
            web = next(child.spec.log for child in supervisor.children if child.spec.name == "web")
            raise OperationsError(
                f"The site does not answer (GET {url}/readyz: {status or 'no answer'}); see {web}"
            )
        time.sleep(0.1)


def health(url: str) -> int | None:
    """The status of ``/readyz``; None without an answer."""
    host = url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
