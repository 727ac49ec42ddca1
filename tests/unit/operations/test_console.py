"""What the commands say, and how they hear that they should end."""

from __future__ import annotations

import io
import os
import signal

import pytest

from tournament.operations.console import CLEAR_LINE, Console, bar
from tournament.operations.interruptions import heard_interruptions
from tournament.operations.up import format_duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_only_lines_that_stay_are_written():
    stream = io.StringIO()
    console = Console(stream)
    console.status("1 of 3")
    console.say("done")
    assert stream.getvalue() == "done\n"


def test_line_that_stays_takes_the_place_of_the_one_that_changes():
    stream = Terminal()
    console = Console(stream)
    console.status("1 of 3")
    console.say("done")
    console.say("and out")
    assert stream.getvalue() == f"{CLEAR_LINE}1 of 3{CLEAR_LINE}done\nand out\n"


def test_status_is_cut_to_the_terminals_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    stream = Terminal()
    Console(stream).status("x" * 50)
    assert stream.getvalue() == f"{CLEAR_LINE}{'x' * 9}"


@pytest.mark.parametrize(
    ("done", "total", "expected"),
    [
        (0, 4, "┈┈┈┈"),  # nothing yet
        (1, 2, "━━┈┈"),  # half
        (4, 4, "━━━━"),  # all
        (0, 0, "┈┈┈┈"),  # it is not known yet how many
    ],
)
def test_bar_is_filled_as_far_as_things_are_done(done, total, expected):
    assert bar(done, total, 4) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (59, "0 min"),  # less than a minute
        (3 * 60, "3 min"),
        (2 * 3600 + 300, "2 h 5 min"),
        (4 * 86400 + 3600, "4 d 1 h"),
    ],
)
def test_duration_is_told_in_the_units_that_matter(seconds, expected):
    assert format_duration(seconds) == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_first_signal_unwinds_and_the_second_asks_to_hurry(number):
    before = signal.getsignal(number)
    with heard_interruptions() as interruptions:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        assert not interruptions.is_urgent()
        os.kill(os.getpid(), number)
        assert interruptions.is_urgent()
    assert signal.getsignal(number) is before


def test_closed_terminal_is_not_heard_under_nohup():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with heard_interruptions() as interruptions:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interruptions.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)
