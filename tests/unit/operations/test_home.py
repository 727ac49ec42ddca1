"""A site's home, its lock, and the address that it listens on."""

from __future__ import annotations

import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tournament.operations import broker
from tournament.operations.errors import (
    BrokerUnavailableError,
    HomeBusyError,
    ListenError,
    OperationsError,
)
from tournament.operations.home import Home, default_home
from tournament.operations.stack import Address, allowed_hosts

HOLDER = """
import sys
from pathlib import Path
from tournament.operations.home import Home
with Home.open(Path(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_home_is_closed_to_others(tmp_path: Path):
    home = Home.open(tmp_path / "site")
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700


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
