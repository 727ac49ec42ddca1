"""What a bot idled: real time, less CPU time, less what the machine is to blame for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agents import Limits, time_failure
from engine.idleness import HARMLESS_PART, Idleness
from engine.outcome import Termination

SECONDS = st.floats(0, 1000)


class Machine:
    """Tells how long it let somebody wait, and how often it was asked."""

    def __init__(self, *waited: float) -> None:
        self._waited = iter(waited)
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return next(self._waited)


def test_sleep_of_many_questions_adds_up_and_computing_does_not():
    idleness = Idleness(Machine(0, 0))
    for _ in range(20):
        idleness.add(0.9)
    assert idleness.seconds(cpu_seconds=3, allowed=10) == pytest.approx(15)


def test_waiting_for_the_machine_is_not_idling():
    idleness = Idleness(Machine(5, 12.5))
    idleness.add(10)
    assert idleness.seconds(cpu_seconds=1, allowed=10) == pytest.approx(1.5)


def test_what_the_machine_does_not_tell_can_be_excused():
    idleness = Idleness(Machine(0, 0))
    idleness.add(10)
    idleness.excuse(4)
    assert idleness.seconds(cpu_seconds=0, allowed=10) == pytest.approx(6)


def test_kernel_is_not_asked_about_what_is_harmless():
    machine = Machine(0)
    idleness = Idleness(machine)
    idleness.add(10 * HARMLESS_PART)
    idleness.seconds(cpu_seconds=0, allowed=10)
    assert machine.asked == 1


@given(st.lists(SECONDS), SECONDS, SECONDS, SECONDS)
def test_nobody_idles_longer_than_he_was_asked_or_shorter_than_not_at_all(opened, cpu, waited, own):
    idleness = Idleness(Machine(own, own + waited))
    for seconds in opened:
        idleness.add(seconds)
    assert 0 <= idleness.seconds(cpu, allowed=1) <= sum(opened) + 1e-9


@pytest.mark.parametrize(
    ("cpu_us", "idled_before", "words"),
    [
        (2, 9, "used up its CPU time while x"),  # the one clock goes before the other
        (0, 0, "gave no answer within 10000 ms while x"),  # all in one question
        (0, 9, "was idle for 10000 ms in all, at last while x"),  # the rest before
    ],
)
def test_fault_says_which_clock_ran_out(cpu_us, idled_before, words):
    failure = time_failure(cpu_us, Limits(1, 10_000), "x", idled_before=idled_before)
    assert (failure.kind, failure.detail) == (Termination.TIME, words)
