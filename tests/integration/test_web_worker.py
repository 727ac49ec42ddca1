"""The web server's worker: visitors who send slowly, or do not hang up, keep nobody else from an answer."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tournament.operations import web_worker

WORKER = f"{web_worker.__name__}.{web_worker.PatientWorker.__name__}"
SLOW = 8
"""Visitors who dawdle, of a server with two threads."""
PATIENCE = 20.0
"""Seconds until an answer counts as none; a server that nobody keeps busy needs some milliseconds."""
POST = b"POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n"


def application(environ, start_response) -> list[bytes]:
    """Says how long the body is; ``/unread`` leaves it unread."""
    body = b"" if environ["PATH_INFO"] == "/unread" else environ["wsgi.input"].read()
    answer = str(len(body)).encode()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [
            *(sys.executable, "-m", "gunicorn", f"{__name__}:application"),
            *("--bind", f"fd://{listener.fileno()}", "--worker-class", WORKER),
            *("--workers", "1", "--threads", "2", "--graceful-timeout", "1", "--no-control-socket"),
        ]
        server = subprocess.Popen(
            command, pass_fds=[listener.fileno()], env={**os.environ, "PYTHONPATH": str(Path.cwd())}
        )
        try:
            yield listener.getsockname()[1]
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(2 * PATIENCE) == 0


@pytest.fixture
def connect(port) -> Iterator[Callable[[bytes], socket.socket]]:
    """Makes connections on which something is sent at once."""
    opened: list[socket.socket] = []

    def send(data: bytes) -> socket.socket:
        opened.append(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
        opened[-1].sendall(data)
        return opened[-1]

    yield send
    for each in opened:
        each.close()


def answers_of(connection: socket.socket, count: int) -> list[tuple[int, bytes]]:
    """The next so many answers: status and body."""
    found = []
    with connection.makefile("rb") as file:
        for _ in range(count):
            status = int(file.readline().split()[1])
            headers = http.client.parse_headers(file)
            found.append((status, file.read(int(headers["Content-Length"]))))
    return found


def answer_of(connection: socket.socket) -> tuple[int, bytes]:
    return answers_of(connection, 1)[0]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n", id="half a head"),
        pytest.param(POST % (b"", 5000) + b"\r\n{", id="half a body"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n", id="half a second request"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
            id="a body that is announced",
        ),
    ],
)
def test_who_sends_slowly_keeps_nobody_waiting(connect, sent):
    for _ in range(SLOW):
        connect(sent)
    for _ in range(4):
        assert answer_of(connect(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")) == (200, b"0")


def test_who_does_not_hang_up_keeps_nobody_waiting(connect):
    for _ in range(2 * int(PATIENCE)):  # for each of them everything else would wait two seconds
        connect(b"GET / HTTP/1.0\r\n\r\n")
    assert answer_of(connect(b"GET / HTTP/1.0\r\n\r\n")) == (200, b"0")


@pytest.mark.parametrize(
    ("pieces", "answers"),
    [
        pytest.param([POST % (b"", 3), b"\r", b"\nab", b"c"], [b"3"], id="in pieces"),
        pytest.param(
            [POST % (b"", 3) + b"\r\nabc" + POST % (b"", 2), b"\r\nab"], [b"3", b"2"], id="two"
        ),
        pytest.param([b"GET / HTTP/1.1\r\n\r\n" * 3], [b"0"] * 3, id="three at once"),
        pytest.param(
            [POST % (b"unread", 3) + b"\r\nabc", b"GET / HTTP/1.1\r\n\r\n"],
            [b"0", b"0"],
            id="unread",
        ),
        pytest.param(
            [POST % (b"", 300_000) + b"\r\n", *[b"x" * 100_000] * 3], [b"300000"], id="large"
        ),
    ],
)
def test_requests_arrive_whole_and_in_order(connect, pieces, answers):
    connection = connect(b"")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in pieces:
        connection.sendall(piece)
    assert answers_of(connection, len(answers)) == [(200, answer) for answer in answers]


def test_sender_that_asks_whether_to_go_on_is_told_to(connect):
    connection = connect(POST % (b"", 3) + b"Expect: 100-continue\r\n\r\n")
    assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(b"abc")
    assert answer_of(connection) == (200, b"3")


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: %d" % (web_worker.LARGEST_BODY_BYTES + 1),
        b"Content-Length: " + b"9" * 5000,  # more digits than Python reads
        b"Transfer-Encoding: chunked",
    ],
)
def test_body_that_is_not_read_is_not_waited_for_and_ends_the_connection(connect, header):
    connection = connect(b"POST /unread HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n")
    with connection.makefile("rb") as file:
        assert file.read().startswith(b"HTTP/1.1 ")  # to the end: the server hangs up


def test_head_without_end_is_refused(connect):
    assert (
        answer_of(connect(b"GET / HTTP/1.1\r\nX: " + b"x" * web_worker.LARGEST_HEAD_BYTES))[0]
        == 431
    )


def test_deadline_follows_the_length_of_the_body():
    arrival = web_worker.Arrival(began=0.0)
    assert arrival.deadline == web_worker.HEAD_SECONDS
    arrival.add(POST % (b"", 10 * web_worker.SLOWEST_BYTES_A_SECOND) + b"\r\n")
    assert arrival.deadline == web_worker.HEAD_SECONDS + 10
