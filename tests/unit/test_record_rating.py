"""Which records are rated: those that say something about strength."""

from __future__ import annotations

import pytest

from engine.agents import Failure
from engine.outcome import Termination
from engine.record import BoardsContest, GamesContest, has_acted, is_ratable, is_rated_contest
from tests.match_fakes import at_random, fails_at, play, spec_of

CRASH = Failure(Termination.CRASH, "it raised")


@pytest.mark.parametrize(
    ("contest", "is_rated"),
    [
        (BoardsContest(8, 0), True),
        (BoardsContest(7, 9), False),  # extra boards are for ties alone
        (GamesContest(25), False),  # whole games are not mirrored
    ],
)
def test_eight_boards_are_rated(contest, is_rated):
    assert is_rated_contest(contest) is is_rated


def record_of(*policies, ready=None):
    played, _ = play(spec_of("podkidnoe", BoardsContest(2)), *policies, ready=ready)
    return played.record


def test_what_was_played_to_its_end_is_ratable():
    record = record_of(at_random)
    assert is_ratable(record)
    assert has_acted(record, 0)
    assert has_acted(record, 1)


def test_a_fault_after_the_offenders_first_action_is_its_loss():
    record = record_of(fails_at(1, CRASH), at_random)
    assert has_acted(record, 0)
    assert is_ratable(record)


def test_a_fault_before_the_offenders_first_action_says_nothing():
    record = record_of(fails_at(0, CRASH), at_random)
    assert record.outcome.faults
    assert has_acted(record, 0) is is_ratable(record) is False


def test_faults_of_all_say_nothing():
    record = record_of(ready={"alpha": CRASH, "beta": CRASH})
    assert len(record.outcome.faults) == 2
    assert not is_ratable(record)
