"""A site's home, its lock, and the address that it listens on."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from tournament import wsgi
from tournament.operations import broker, demo, up
from tournament.operations.errors import (
    BrokerUnavailableError,
    HomeBusyError,
    ListenError,
    OperationsError,
)
from tournament.operations.home import Home, default_home, private_files
from tournament.operations.stack import Address, allowed_hosts

HOLDER = """
import sys
from pathlib import Path
from tournament.operations.home import Home
with Home.open(Path(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_home_is_stopped_only_while_no_web_server_works_in_it(tmp_path: Path):
    home = Home.open(tmp_path)
    with home.serve(), home.serve(), pytest.raises(HomeBusyError, match="a web server still works"):
        home.stopped().__enter__()
    with home.stopped():
        with pytest.raises(HomeBusyError, match="is being moved"):
            home.serve()
        with pytest.raises(HomeBusyError, match="already runs"):
            home.lock().__enter__()
    home.serve().close()


def test_web_server_on_sqlite_shows_that_it_works_in_its_home():
    if connection.vendor != "sqlite":
        assert wsgi.serving is None, "another may move it whenever it likes"
        return
    with pytest.raises(HomeBusyError, match="a web server still works"):
        Home(settings.ARENA_HOME).stopped().__enter__()


WARM = """
import sys
from tournament import wsgi
from django.db import connection
from django.template.loaders import app_directories
from django.urls import get_resolver
assert connection.connection is None, "the database was asked"
app_directories.Loader.get_contents = None  # whoever reads a template from now on fails
from django.template.loader import get_template
before = set(sys.modules)
for name in ("web/home.html", "web/base.html", "competitions/tournament.html"):
    get_template(name)
get_resolver().resolve("/tournaments/cup/")
print(sorted(set(sys.modules) - before))
"""


def test_web_server_has_read_what_its_first_page_needs_before_it_takes_requests(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", WARM],
        env={
            **os.environ,
            "ARENA_HOME": str(tmp_path),
            "DJANGO_SETTINGS_MODULE": "tournament.settings",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


def test_home_is_closed_to_others(tmp_path: Path):
    home = Home.open(tmp_path / "site")
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700


@pytest.mark.parametrize("holds", [(), ("arena.sqlite3", "secret_key")], ids=["empty", "a site's"])
def test_home_that_was_open_to_others_is_closed_with_all_that_lies_in_it(tmp_path: Path, holds):
    path = tmp_path / "site"
    path.mkdir()
    path.chmod(0o755)
    for name in holds:
        (path / name).write_text("secret")
        (path / name).chmod(0o644)
    Home.open(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {stat.S_IMODE((path / name).stat().st_mode) for name in holds} <= {0o600}


@pytest.mark.parametrize(
    "mode", [0o755, 0o1777], ids=["a folder of somebody's", "a temporary folder"]
)
def test_open_folder_with_other_things_is_refused_and_left_as_it_is(tmp_path: Path, mode):
    path = tmp_path / "shared"
    path.mkdir()
    (path / "thesis.tex").write_text("")
    path.chmod(mode)
    with pytest.raises(OperationsError, match=f"chmod 700 {path}"):
        Home.open(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_home_of_another_user_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(OperationsError, match="another user"):
        Home.open(tmp_path)


def test_what_a_site_makes_is_for_its_user_alone(tmp_path: Path):
    (tmp_path / "before").write_text("")
    with private_files():
        (tmp_path / "during").write_text("")
        subprocess.run(["touch", tmp_path / "child"], check=True)
    (tmp_path / "after").write_text("")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes["during"] == modes["child"] == 0o600
    assert modes["after"] == modes["before"]


@pytest.mark.parametrize("command", [up, demo], ids=["up", "demo"])
def test_site_is_run_with_private_files(tmp_path: Path, monkeypatch, command):
    seen = []

    def refuse() -> None:
        (tmp_path / "made").write_text("")
        seen.append(stat.S_IMODE((tmp_path / "made").stat().st_mode))
        raise OperationsError("enough seen")

    monkeypatch.delenv("ARENA_TRUST_BOTS", raising=False)
    monkeypatch.setattr(command, "require_sandbox", refuse)
    assert command.main([]) == 1
    assert seen == [0o600]


def test_file_in_the_place_of_a_home_is_said(tmp_path: Path):
    (tmp_path / "site").write_text("")
    with pytest.raises(OperationsError, match="--home"):
        Home.open(tmp_path / "site")


def test_second_site_in_a_home_is_refused_and_the_first_named(tmp_path: Path):
    first = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with first:
        assert first.stdout.readline() == "held\n"
        with (
            pytest.raises(HomeBusyError, match=f"process {first.pid}"),
            Home.open(tmp_path).lock(),
        ):
            pass
    with Home.open(tmp_path).lock():
        assert f"process {first.pid}" not in (tmp_path / "supervisor.lock").read_text()


@pytest.mark.parametrize(
    ("arena_home", "data_home", "expected"),
    [
        ("/srv/arena", "/data", "/srv/arena"),  # what the operator says goes first
        (None, "/data", "/data/domino-arena"),  # then the place for a user's data
    ],
)
def test_default_home(monkeypatch, arena_home, data_home, expected):
    monkeypatch.delenv("ARENA_HOME")
    if arena_home:
        monkeypatch.setenv("ARENA_HOME", arena_home)
    monkeypatch.setenv("XDG_DATA_HOME", data_home)
    assert str(default_home()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8000", Address("127.0.0.1", 8000)),  # the usual
        (":80", Address("", 80)),  # every interface
        ("[::1]:8000", Address("::1", 8000)),  # IPv6 in brackets
    ],
)
def test_address_is_read(text, expected):
    assert Address.parse(text) == expected


@pytest.mark.parametrize("text", ["8000", "host", "host:", "host:http", "host:65536", "host:-1"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ListenError, match="HOST:PORT"):
        Address.parse(text)


def test_taken_port_is_said_with_what_to_do():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match="--listen"):
            Address("127.0.0.1", port).bind()


def test_port_zero_takes_one_that_is_free():
    address = Address("127.0.0.1", 0)
    with address.bind() as listener:
        port = listener.getsockname()[1]
        assert port > 0
        assert address.url(port) == f"http://127.0.0.1:{port}"


def test_site_answers_to_its_own_name(monkeypatch):
    monkeypatch.delenv("ARENA_ALLOWED_HOSTS", raising=False)
    assert "10.0.0.7" in allowed_hosts(Address("10.0.0.7", 80)).split(",")
    assert allowed_hosts(Address("0.0.0.0", 80)) == "*"


def test_socket_path_stays_short_under_a_long_temporary_folder(tmp_path: Path, monkeypatch):
    deep = tmp_path / ("x" * 90)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    folder = broker.make_socket_folder()
    try:
        assert len(bytes(broker.socket_in(folder))) <= broker.LONGEST_SOCKET_PATH
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        folder.rmdir()


def test_missing_broker_names_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BrokerUnavailableError, match="apt install"):
        broker.find_server()
