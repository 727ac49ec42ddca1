"""`manage.py web|control|worker|beat` become what `up` would start, and `healthy` asks after them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import SandboxUnavailableError
from tournament.operations import roles
from tournament.operations.stack import (
    beat_command,
    control_command,
    playing_command,
    web_command,
    worker_command,
)
from tournament.store.services import beat
from tournament.workers.models import WorkerReport

MANAGE = Path(__file__).parents[3] / "manage.py"


def manage(home: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """What a fresh process says to these arguments, in an environment that knows of no site."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ARENA_", "DJANGO_"))
    }
    return subprocess.run(
        [sys.executable, MANAGE, *arguments],
        env={**kept, "ARENA_BOOTSTRAP": "0", "ARENA_HOME": str(home), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def became(monkeypatch):
    """The program that this process would have become."""
    found = []
    monkeypatch.setattr(os, "execv", lambda program, command: found.append(command))
    monkeypatch.setattr(roles, "require_sandbox", lambda: None)
    monkeypatch.setattr(roles, "cores", lambda: 6)
    monkeypatch.delenv("ARENA_WORKER_SLOTS", raising=False)
    return found


@pytest.mark.parametrize(
    ("role", "arguments", "command"),
    [
        (roles.web, [], web_command("127.0.0.1:8000")),  # closed to others unless told otherwise
        (roles.web, ["--listen", "[::]:80"], web_command("[::]:80")),  # IPv6 keeps its brackets
        (roles.control, [], control_command()),  # as `up` starts it
        (roles.beat, [], beat_command()),  # as `up` starts it
        (roles.worker, [], playing_command("matches", 6)),  # a slot a core
        (roles.worker, ["--slots", "3"], playing_command("matches", 3)),  # said here
        (
            roles.worker,
            ["--queues", "validation", "--name", "checks"],
            playing_command("checks", 6, ["validation"]),  # a host for checks alone
        ),
        (
            roles.worker,
            ["--time-controls", "long,fast"],
            playing_command("matches", 6, ["validation", "matches.long", "matches.fast"]),
        ),
        (
            roles.worker,
            ["--queues", "matches", "--time-controls", "fast"],
            playing_command("matches", 6, ["matches.fast"]),  # fast play and nothing else
        ),
    ],
)
def test_role_becomes_the_program_that_the_stack_would_start(became, role, arguments, command):
    role(arguments)
    assert became == [command]


def test_worker_takes_the_slots_that_its_host_was_given(became, monkeypatch):
    monkeypatch.setenv("ARENA_WORKER_SLOTS", "5")
    roles.worker([])
    assert became == [playing_command("matches", 5)]
    assert playing_command("matches", 5) == worker_command(
        "matches", "validation,matches", "prefork", "--concurrency", "5"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--queues", "control"], "no queue 'control'; there are: validation, matches"),  # its own role
        (["--queues", ""], "name a queue"),  # nothing to do
        (["--time-controls", "blitz"], "no time control 'blitz'; there are: fast, standard, long"),
        (["--queues", "validation", "--time-controls", "fast"], "name it in --queues"),  # of what?
        (["--slots", "0"], "at least one slot"),  # nobody would play
        (["--slots", "many"], "invalid int"),  # no number
    ],
)  # fmt: skip
def test_worker_that_makes_no_sense_is_a_usage_error(became, capsys, arguments, told):
    with pytest.raises(SystemExit) as error:
        roles.worker(arguments)
    assert error.value.code == 2
    assert told in " ".join(capsys.readouterr().err.split())
    assert became == []


def test_slots_that_are_no_number_are_refused_by_their_name(became, monkeypatch, capsys):
    monkeypatch.setenv("ARENA_WORKER_SLOTS", "two")
    with pytest.raises(SystemExit):
        roles.worker([])
    assert "ARENA_WORKER_SLOTS" in capsys.readouterr().err


def test_address_that_is_none_is_a_usage_error(became, capsys):
    with pytest.raises(SystemExit):
        roles.web(["--listen", "everywhere"])
    assert "write HOST:PORT" in capsys.readouterr().err


def test_worker_does_not_start_where_no_bot_can_be_held(became, monkeypatch):
    def refuse():
        raise SandboxUnavailableError(("there is no bwrap",))

    monkeypatch.setattr(roles, "require_sandbox", refuse)
    with pytest.raises(SystemExit, match="there is no bwrap"):
        roles.worker([])
    monkeypatch.setenv("ARENA_TRUST_BOTS", "1")
    roles.worker([])
    assert len(became) == 1, "bots that are trusted need no walls"


@pytest.mark.parametrize(
    "role", ["web", "healthy control"]
)  # one that becomes another program, one that stays
def test_settings_that_make_no_sense_are_told_in_a_line_instead_of_a_traceback(role, tmp_path):
    done = manage(tmp_path, *role.split(), ARENA_BROKER_URL="127.0.0.1:6379")
    assert done.returncode == 1
    assert "ARENA_BROKER_URL must look like redis://" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql://arena:s3cret@127.0.0.1:1/arena", "does not answer"),  # nobody is there
        ("", "run manage.py migrate"),  # a home without tables
    ],
)
def test_command_without_its_database_says_what_to_do(tmp_path, address, told):
    done = manage(tmp_path, "ratings", "verify", ARENA_DATABASE=address)
    assert done.returncode == 1
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "s3cret" not in done.stderr


@pytest.mark.django_db
def test_worker_is_well_while_it_is_heard_of(monkeypatch, capsys):
    monkeypatch.setattr(roles.socket, "gethostname", lambda: "one")
    assert roles.healthy(["worker"]) == 1
    assert "nothing was heard of matches@one" in capsys.readouterr().err
    WorkerReport.objects.create(name="matches@one", budget_percent=100)
    assert roles.healthy(["worker"]) == 0
    assert roles.healthy(["worker", "--name", "fast"]) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["control", "beat"])
def test_who_lets_dispatch_run_is_well_while_it_runs(role, capsys):
    assert roles.healthy([role]) == 1
    assert "nothing has been handed out yet" in capsys.readouterr().err
    beat(name="dispatch")
    assert roles.healthy([role]) == 0


def test_web_server_that_does_not_answer_is_ill(capsys):
    assert roles.healthy(["web", "--url", "http://127.0.0.1:9"]) == 1
    assert "http://127.0.0.1:9/healthz" in capsys.readouterr().err


@pytest.mark.django_db
def test_web_server_that_answers_is_well(live_server):
    assert roles.healthy(["web", "--url", live_server.url]) == 0


@pytest.mark.parametrize(
    ("hosts", "asked"),
    [
        ("", "localhost"),  # the settings' own
        ("arena.example.org, www.example.org", "arena.example.org"),  # it answers to no other
        (".example.org", "example.org"),  # a domain with all below it
        ("*", "localhost"),  # any will do
    ],
)
def test_web_server_is_asked_by_a_name_that_it_answers_to(monkeypatch, hosts, asked):
    monkeypatch.setenv("ARENA_ALLOWED_HOSTS", hosts)
    requests = []
    monkeypatch.setattr(
        "urllib.request.urlopen",
        lambda request, **_: requests.append(request) or contextlib.nullcontext(),
    )
    assert roles.healthy(["web"]) == 0
    assert [request.get_header("Host") for request in requests] == [asked]
