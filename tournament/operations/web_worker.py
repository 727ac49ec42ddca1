"""Gunicorn's worker of the web server, whose threads get requests that are whole, and connections that they need not wait for.

Gunicorn's own hands a connection to a thread as soon as its first byte is there, and closes connections while everything
else waits: two dozen visitors who send slowly, or do not hang up, take all threads of a site. Here the loop that
watches sockets collects each request, and hands it over with its body. Who is slow holds a socket and some memory,
never a thread.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from selectors import EVENT_READ
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from engine.wheels.archive import MAX_WHEEL_BYTES

HEAD_SECONDS = 10.0
"""So long the head of a request may take, from when the connection is there or its last answer was given."""
SLOWEST_BYTES_A_SECOND = 50_000
"""A body that comes more slowly than this is not waited for."""
LARGEST_HEAD_BYTES = 64 * 1024
LARGEST_BODY_BYTES = MAX_WHEEL_BYTES + 256 * 1024
"""Larger ones are handed over unread: the site refuses them by their length."""
HELD_BYTES = 64_000_000
"""So much a process holds of requests that are not whole; beyond that the largest of them has to try again."""
LINGER_SECONDS = 2.0
"""So long a connection that is done with may take to hang up, so that its last answer arrives."""
STALLED_SECONDS = 20
"""An answer of which nothing was taken for so long is given up."""
_CHUNK = 64 * 1024
_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"(?im)^content-length:[ \t]*(\d+)[ \t]*\r$")
_CHUNKED = re.compile(rb"(?im)^transfer-encoding:")
_EXPECTS = re.compile(rb"(?im)^expect:[ \t]*100-continue[ \t]*\r\n")
_REFUSED = "HTTP/1.1 {0.value} {0.phrase}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@dataclass(slots=True, eq=False)
class Arrival:
    """What has come of a request."""

    began: float
    data: bytearray = field(default_factory=bytearray)
    head_bytes: int = 0
    """With the empty line that ends it; 0 until that is there."""
    body_bytes: int = 0
    """How long the body says it is; 0 for one that is not read here."""
    is_partial: bool = False
    """Whether a body follows that is not read here: it is too long, or does not tell its length."""
    expects: bool = False
    """Whether the sender waits for a word before it sends the body."""

    def add(self, data: bytes) -> None:
        """Take what came."""
        looked_at = max(0, len(self.data) - len(_END) + 1)
        self.data += data
        if self.head_bytes:
            return
        end = self.data.find(_END, looked_at)
        if end < 0:
            return
        self.head_bytes = end + len(_END)
        head = bytes(self.data[: end + 2])
        length = _LENGTH.search(head)
        size = _size(length[1]) if length else 0
        self.is_partial = size > LARGEST_BODY_BYTES or _CHUNKED.search(head) is not None
        self.body_bytes = 0 if self.is_partial else size
        self.expects = _EXPECTS.search(head) is not None and not self.is_whole

    def stop_expecting(self) -> None:
        """Take out the question whether to go on, which has been answered."""
        head = _EXPECTS.sub(b"", bytes(self.data[: self.head_bytes]))
        self.data[: self.head_bytes] = head
        self.head_bytes = len(head)
        self.expects = False

    @property
    def is_whole(self) -> bool:
        """Whether a thread can read all of it without waiting for its sender."""
        return self.head_bytes > 0 and len(self.data) >= self.head_bytes + self.body_bytes

    @property
    def deadline(self) -> float:
        """Until when it is waited for, by the monotonic clock."""
        return self.began + HEAD_SECONDS + self.body_bytes / SLOWEST_BYTES_A_SECOND


def _size(digits: bytes) -> int:
    return int(digits) if len(digits) <= len(str(LARGEST_BODY_BYTES)) else LARGEST_BODY_BYTES + 1


class PatientWorker(ThreadWorker):  # type: ignore[misc]  # untyped
    """Collects requests, and sees connections off, without a thread."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._arriving: dict[Any, Arrival] = {}
        """By connection what has come of its next request."""
        self._leaving: dict[Any, float] = {}
        """By connection that is done with until when it may hang up by itself."""

    def enqueue_req(self, conn: Any) -> None:
        """Collect the next request of a connection; whoever calls this has taken it out of the poller."""
        read_ahead = conn.parser.unreader.take_buffered() if conn.initialized else b""
        self._arriving[conn] = arrival = Arrival(time.monotonic())
        conn.sock.setblocking(False)
        self.poller.register(conn.sock, EVENT_READ, partial(self._on_data, conn))
        if read_ahead:
            arrival.add(read_ahead)
            self._judge(conn, arrival)

    def _on_data(self, conn: Any, _: Any) -> None:
        arrival = self._arriving.get(conn)
        if arrival is None:  # dropped for another that was readable at the same time
            return
        data = _receive(conn)
        if data:
            arrival.add(data)
            self._judge(conn, arrival)
        elif data is not None:
            self._drop(conn)

    def _judge(self, conn: Any, arrival: Arrival) -> None:
        if arrival.is_whole:
            self._hand_over(conn, arrival)
            return
        if not arrival.head_bytes and len(arrival.data) > LARGEST_HEAD_BYTES:
            self._drop(conn, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif arrival.expects:
            arrival.stop_expecting()
            _send(conn, b"HTTP/1.1 100 Continue\r\n\r\n")
        self._keep_within_bounds()

    def _hand_over(self, conn: Any, arrival: Arrival) -> None:
        """To a thread, which finds all of it there already."""
        self._forget(conn)
        conn.init()
        conn.parser.unreader.unread(bytes(arrival.data))
        conn.data_ready = True
        conn.is_partial = arrival.is_partial
        _give_up_when_stalled(conn.sock)
        super().enqueue_req(conn)

    def _keepalive_after(self, conn: Any, keepalive: bool) -> bool:
        """Whether the connection can be used again: not if that means to wait for a body that nobody wanted."""
        return not conn.is_partial and bool(super()._keepalive_after(conn, keepalive))

    def finish_request(self, conn: Any, fs: Future[Any]) -> None:
        """Keep the connection for its next request, or let it go."""
        failed = fs.cancelled() or fs.exception() is not None
        if not failed and fs.result():
            super().finish_request(conn, fs)
            return
        self._let_go(conn)

    def _let_go(self, conn: Any) -> None:
        """Say that nothing more is sent, and wait for the other end to hang up, but not for long, and not here."""
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
            self.poller.register(conn.sock, EVENT_READ, partial(self._on_leaving, conn))
        except (OSError, ValueError):  # it has hung up, or a thread has closed it
            self._close(conn)
            return
        self._leaving[conn] = time.monotonic() + LINGER_SECONDS

    def _on_leaving(self, conn: Any, _: Any) -> None:
        if conn in self._leaving and _receive(conn) == b"":
            self._close(conn)

    def murder_pending(self) -> None:
        """Close what is not waited for any longer; gunicorn calls it again and again."""
        super().murder_pending()
        now = time.monotonic()
        for conn, arrival in list(self._arriving.items()):
            if not self.alive and not arrival.data:
                self._drop(conn)
            elif arrival.deadline < now:
                self._drop(conn, HTTPStatus.REQUEST_TIMEOUT if arrival.data else None)
        for conn, until in list(self._leaving.items()):
            if until < now:
                self._close(conn)

    def _keep_within_bounds(self) -> None:
        while sum(len(each.data) for each in self._arriving.values()) > HELD_BYTES:
            largest = max(self._arriving, key=lambda conn: len(self._arriving[conn].data))
            self._drop(largest, HTTPStatus.SERVICE_UNAVAILABLE)

    def _drop(self, conn: Any, status: HTTPStatus | None = None) -> None:
        """End a connection whose request does not come, with a word if there is one to say."""
        self._forget(conn)
        if status is not None:
            _send(conn, _REFUSED.format(status).encode())
        self._close(conn)

    def _forget(self, conn: Any) -> None:
        self.poller.unregister(conn.sock)
        del self._arriving[conn]

    def _close(self, conn: Any) -> None:
        if self._leaving.pop(conn, None) is not None:
            self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()


def _receive(conn: Any) -> bytes | None:
    """What there is to read; empty if the other end has hung up, None if nothing came after all."""
    try:
        data: bytes = conn.sock.recv(_CHUNK)
    except (BlockingIOError, InterruptedError):
        return None
    except OSError:
        return b""
    return data


def _send(conn: Any, data: bytes) -> None:
    """Some bytes, if there is room for them; who sends slowly may not read either."""
    with contextlib.suppress(OSError):
        conn.sock.send(data)


def _give_up_when_stalled(sock: socket.socket) -> None:
    """Have the kernel end a connection whose other end takes nothing of an answer for too long."""
    if sock.family in {socket.AF_INET, socket.AF_INET6} and hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * STALLED_SECONDS)
