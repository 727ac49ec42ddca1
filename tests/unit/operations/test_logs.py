"""What is logged: in lines or as JSON, with the ids of what is being done, and no secret."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.contextvars import bound_contextvars

from tests.tournament_factories import make_bot, make_player, make_tournament, start
from tournament import tasks
from tournament.competitions import services as competitions
from tournament.operations.logs import log_formatter


class Kept(logging.Handler):
    """Lines as a process would write them."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.setFormatter(log_formatter(form))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def written() -> Iterator[Callable[[str], Kept]]:
    """Makes a handler that keeps what all loggers say in one form."""
    root, handlers = logging.getLogger(), []

    def keep(form: str) -> Kept:
        handlers.append(Kept(form))
        root.addHandler(handlers[-1])
        return handlers[-1]

    yield keep
    for handler in handlers:
        root.removeHandler(handler)


log = logging.getLogger("tests.logs")


def tell_of(error: Exception, said: str) -> None:
    """Log that something has raised it."""

    def fail() -> None:
        raise error

    try:
        fail()
    except type(error):
        log.exception(said)


def test_json_has_a_line_for_each_record_with_its_ids(written):
    kept = written("json")
    with bound_contextvars(request="abcdefgh", match=7):
        log.warning("%s of %s", 1, "two\nlines")
    log.warning("no more")
    first, second = (json.loads(line) for line in kept.lines)
    assert first["event"] == "1 of two\nlines"
    assert (first["level"], first["logger"]) == ("warning", "tests.logs")
    assert (first["request"], first["match"]) == ("abcdefgh", 7)
    assert {"timestamp", "process"} <= set(first)
    assert "request" not in second


KILLED = """
import logging.config
from billiard.util import error, get_logger
from tournament.operations.logs import logging_settings
logging.config.dictConfig(logging_settings("json", "INFO"))
get_logger()
error("Process %r exited with %r", "ForkPoolWorker-1", "signal 9")
"""


def test_what_the_pool_of_workers_says_is_json_too():
    """In a process of its own: a logger that hands nothing on writes past every handler of this one."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, check=True
    )
    (line,) = done.stderr.splitlines()
    told = json.loads(line)
    assert (told["event"], told["level"]) == (
        "Process 'ForkPoolWorker-1' exited with 'signal 9'",
        "error",
    )


WARNED = """
import warnings
import django
django.setup()
warnings.warn("said by a\\nlibrary")
"""


def test_what_a_library_warns_of_is_json_too(tmp_path: Path):
    """In a process of its own, since tests turn warnings into errors."""
    environ = {"ARENA_HOME": str(tmp_path), "ARENA_LOG_FORMAT": "json"}
    done = subprocess.run(
        [sys.executable, "-c", WARNED],
        env={**os.environ, **environ, "DJANGO_SETTINGS_MODULE": "tournament.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = done.stderr.splitlines()
    told = json.loads(line)
    assert (told["logger"], told["level"]) == ("py.warnings", "warning")
    assert "UserWarning: said by a\nlibrary" in told["event"]


def test_exception_stays_in_one_line_of_json_and_below_a_line_for_people(written):
    kept, lines = written("json"), written("line")
    with bound_contextvars(match=7):
        tell_of(ValueError("what went wrong"), "it failed")
    assert "ValueError: what went wrong" in json.loads(kept.lines[0])["exception"]
    head, *below = lines.lines[0].splitlines()
    assert head.endswith("it failed [match=7]")
    assert below[-1] == "ValueError: what went wrong"


def test_what_a_visitor_sends_begins_no_line_of_its_own(written):
    kept = written("line")
    log.warning("GET %s", "/x\n2026-11-30 CRITICAL root 1: forged\r\x1b[2J")
    assert len(kept.lines[0].splitlines()) == 1
    assert "\x1b" not in kept.lines[0]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(
            "\x0b\x0c\x1c\x85\u2028\u2029", id="what some readers take for the end of a line"
        ),
        pytest.param("\x08\x7f\x9b2J", id="what moves a cursor"),
        pytest.param("\u202e\u2066", id="what turns the direction of writing"),
    ],
)
def test_what_a_visitor_sends_is_shown_as_it_is(written, sent):
    kept = written("line")
    log.warning("GET /%s", sent)
    assert kept.lines[0].isprintable()


@pytest.mark.parametrize("form", ["json", "line"])
@pytest.mark.parametrize(
    "said",
    [
        "cannot connect to postgresql://arena:TOPSECRET@db.example/arena",
        "redis://:TOPSECRET@10.0.0.1:6379/0 is away",
        "sent Authorization: Bearer TOPSECRET.abcdefgh",
        "Basic TOPSECRETTOPSECRET",
        "{'password': 'TOPSECRET', 'username': 'ann'}",
        "POST password=TOPSECRET&username=ann",
        "SECRET_KEY = TOPSECRET",
        "Cookie: sessionid=TOPSECRET; csrftoken=TOPSECRET",
        "AWS_SECRET_ACCESS_KEY=TOPSECRET",
        f"Not Found: /api/versions/0a1b2c3d4e5f.{'TOPSECRET':x<43}",  # a token in the wrong place
        "Gone: /account/password/MQ/TOPSECRET-0123456789abcdef/",  # one that sets a password
        "POST /account/mail/TOPSECRET:1abc:defg/confirm/: 500 after 3 ms",  # a link that was mailed
    ],
)
def test_no_secret_is_written(written, form, said):
    kept = written(form)
    with bound_contextvars(about=said):
        tell_of(OSError(said), said)
    assert "TOPSECRET" not in kept.lines[0]
    assert "[hidden]" in kept.lines[0]


def test_long_word_of_a_visitor_is_looked_through_once(written):
    """By the square of its length it would take minutes."""
    kept = written("line")
    word = "9" * 300_000
    log.warning("Not Found: /%s", word)
    assert kept.lines[0].endswith(f"/{word}")


@pytest.mark.parametrize(
    ("sent", "is_taken"),
    [
        ("5f2c-abc.DEF_9", True),  # what proxies make
        ("a" * 64, True),  # the longest
        ("a" * 65, False),  # longer than any id
        ("short", False),
        ("forged\nline", False),
        ("<script>alert(1)</script>", False),
        ("", False),
    ],
)
def test_request_has_an_id_in_its_answer_and_its_lines(
    client, db, written, sent, is_taken, monkeypatch
):
    kept = written("json")

    def fail(*_):
        raise RuntimeError("in the middle of a request")

    monkeypatch.setattr("tournament.web.views.current_tournaments", fail)
    client.raise_request_exception = False
    answer = client.get("/", headers={"X-Request-ID": sent})
    given = answer.headers["X-Request-ID"]
    assert (given == sent) is is_taken
    assert 8 <= len(given) <= 64
    lines = [json.loads(line) for line in kept.lines]
    assert {line["request"] for line in lines} == {given}
    assert any(line["logger"] == "tournament.web.middleware" for line in lines)


@pytest.mark.django_db
def test_line_from_the_middle_of_a_match_names_task_match_and_attempt(written, monkeypatch):
    tournament = start(make_tournament([make_bot("x1", make_player()), make_bot("x2")]))
    match = competitions.dispatch(rung=True).blocks[0][0]
    kept = written("json")

    def fail(*_, **__):
        logging.getLogger("engine.somewhere").warning("from far inside")
        raise OSError("no space left")

    monkeypatch.setattr("tournament.competitions.services.playing.run_match", fail)
    tasks.play_matches.apply(args=[[match]], task_id="the-task")
    logging.getLogger("tests").warning("afterwards")
    *inside, after = (json.loads(line) for line in kept.lines)
    assert {line["event"] for line in inside} >= {
        "from far inside",
        f"match {match} could not be played",
    }
    for line in inside:
        assert (line["task"], line["task_name"]) == ("the-task", "tournament.play_matches")
        assert (line["match"], line["attempt"]) == (match, 1)
    assert not {"task", "match", "attempt"} & set(after)
    assert tournament.matches.get().attempts == 1
