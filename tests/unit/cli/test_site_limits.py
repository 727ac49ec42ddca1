"""`arena doctor --server` tells in what a site differs from this machine, and refuses what is no site."""

from __future__ import annotations

import http.server
import json
import threading

import msgspec
import pytest

from engine.cli.exits import ExitCode
from engine.cli.site_limits import SiteLimits, SiteWorker, find_differences, spell_speed
from engine.sandbox.limits import describe_sizes, limits_here
from engine.sandbox.probe import Attempt, ProbeReport
from engine.sandbox.speed import budget_percent


def answer_of_a_site(*percents: int, python: str | None = None, **changes) -> dict:
    """What a site of our own version answers, but for `changes`."""
    here = msgspec.to_builtins(limits_here())
    workers = [
        {"python": python or here["python"], "budget_percent": percent, "level": "bubblewrap"}
        for percent in percents
    ]
    return {**here, "workers": workers, **changes}


@pytest.fixture
def site(monkeypatch):
    """A server that answers with what it is given, and the paths that it was asked for."""
    monkeypatch.setattr(
        "engine.cli.doctor.probe_sandbox",
        lambda: ProbeReport(level="bubblewrap", attempts=(Attempt("fork", True, "no"),)),
    )
    answers = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = answers.get(self.path, (404, b"not here"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def answer(body, status=200):
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            answers["/api/limits"] = (status, text)
            return f"http://127.0.0.1:{server.server_port}"

        yield answer
        server.shutdown()
        thread.join()


def test_site_like_this_machine_is_told_to_be_the_same(arena, site):
    url = site(answer_of_a_site(budget_percent()))
    told = arena("doctor", "--server", f"{url}/")
    assert told.code == ExitCode.OK
    assert "its workers are as fast as this machine" in told.out
    assert "- Python, packages and limits are the same" in told.out


def test_what_differs_is_told(arena, site):
    other = answer_of_a_site(2 * budget_percent(), python="3.99.1", wheel_bytes=1, news="unknown")
    other["packages"]["numpy"] = "1.0"
    other["packages"]["scipy"] = "9.0"
    other["time_controls"][0]["game_cpu_ms"] += 1
    told = arena("doctor", "--server", site(other))
    percent = budget_percent()
    assert "its workers are 2.0 × slower than this machine" in told.out
    assert f"they grant {2 * percent} %, this machine {percent} %" in told.out
    assert f"- Python: 3.99.1 there, {limits_here().python} here" in told.out
    assert f"- numpy: 1.0 there, {limits_here().packages['numpy']} here" in told.out
    assert "- scipy: 9.0 there, none here" in told.out
    assert "- a wheel: 1 bytes there, 10 MiB here" in told.out
    assert "- the time control fast is another there" in told.out
    assert "are the same" not in told.out


def test_answer_for_scripts_has_the_site_beside_this_machine(arena, site):
    url = site(answer_of_a_site(50, 300))
    answer = json.loads(arena("doctor", "--json", "--server", url).out)
    assert answer["server"]["url"] == url
    assert answer["server"]["differences"] == []
    assert answer["server"]["slower"] == [50 / budget_percent(), 300 / budget_percent()]
    assert json.loads(arena("doctor", "--json").out)["server"] is None


def test_site_without_workers_tells_no_speed(arena, site):
    told = arena("doctor", "--server", site(answer_of_a_site()))
    assert "no worker of it was heard of lately" in told.out


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{}", 404, "answers 404: is this a site of Domino Arena"),
        (b"<html>", 200, "does not answer with limits"),
        (b'{"python": "3.11"}', 200, "does not answer with limits"),
        (b"[" * 100_000, 200, "does not answer with limits"),
    ],
)
def test_what_is_no_site_is_refused_in_words(arena, site, body, status, words):
    told = arena("doctor", "--server", site(body, status))
    assert told.code == ExitCode.USAGE
    assert words in told.err


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("arena.example.org", "write it as https://"),
        ("file:///etc/passwd", "write it as https://"),
        ("http://", "write it as https://"),
        ("http://127.0.0.1:1", "cannot be read"),  # nobody listens there
        ("http://127.0.0.1:x", "cannot be read"),  # no port
    ],
)
def test_address_that_leads_to_no_site_is_refused_in_words(arena, url, words):
    told = arena("doctor", "--server", url)
    assert told.code == ExitCode.USAGE
    assert words in told.err


@pytest.mark.parametrize(
    ("slower", "words"),
    [
        ((1.02, 1.04), "as fast as this machine"),
        ((1.7, 1.7), "1.7 × slower than this machine"),
        ((0.5, 0.5), "2.0 × faster than this machine"),
        ((0.9, 1.7), "between 0.9 and 1.7 times as slow as this machine"),
    ],
)
def test_speed_is_spelled_for_people(slower, words):
    assert spell_speed(slower) == words


def test_python_is_that_of_the_workers_where_there_are_any():
    here = limits_here()
    worker = SiteWorker(python=here.python, budget_percent=100, level="bubblewrap")
    fields = {name: getattr(here, name) for name in here.__struct_fields__} | {"python": "3.99"}
    assert list(find_differences(here, SiteLimits(**fields, workers=(worker,)))) == []
    assert "3.99 there" in next(find_differences(here, SiteLimits(**fields, workers=())))


def test_every_number_is_told_and_compared():
    here = limits_here()
    numbers = {
        name for name, value in msgspec.structs.asdict(here).items() if isinstance(value, int)
    }
    assert {"wheel_folders", "wheel_path_characters"} <= numbers
    assert len(describe_sizes(here)) == len(numbers)
    for name in numbers:
        other = msgspec.convert(
            answer_of_a_site(100, **{name: 2 * getattr(here, name)}), SiteLimits
        )
        assert len(list(find_differences(here, other))) == 1, name
