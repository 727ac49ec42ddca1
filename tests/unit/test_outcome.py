"""Places, and the one line that a fault leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.outcome import FAULTS, LONGEST_DETAIL, Fault, Termination, clean_detail, places_by
from engine.record import outcome_of_faults


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ((5, 3), (1, 2)),
        ((3, 3), (1, 1)),  # ties share the place
        ((9, 7, 7, 1), (1, 2, 2, 4)),  # and the next place is left out
        ((1, 7, 7, 7), (4, 1, 1, 1)),
        ((-1, 0), (2, 1)),
    ],
)
def test_equal_values_share_the_better_place(values, places):
    assert places_by(values) == places


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
def test_a_place_counts_who_is_better(values):
    places = places_by(values)
    assert min(places) == 1
    for value, place in zip(values, places, strict=True):
        assert place - 1 == len([other for other in values if other > value])


@pytest.mark.parametrize(
    ("entrants", "offenders", "places"),
    [
        (2, [1], (1, 2)),
        (4, [3], (1, 1, 1, 4)),
        (4, [0, 2], (3, 1, 3, 1)),
        (3, [0, 1, 2], (1, 1, 1)),  # nobody is better than anybody
        (2, [0, 0], (2, 1)),  # both seats of one entrant
    ],
)
def test_after_faults_the_offenders_share_the_last_place(entrants, offenders, places):
    faults = [Fault(entrant, None, Termination.CRASH, "x") for entrant in offenders]
    outcome = outcome_of_faults(entrants, faults)
    assert outcome.places == places
    assert outcome.points == (0,) * entrants


def test_the_first_fault_names_the_termination():
    faults = [Fault(1, 1, Termination.TIME, "x"), Fault(0, 2, Termination.MEMORY, "y")]
    assert outcome_of_faults(2, faults).termination == "time"


def test_a_bot_cannot_complete_a_match_or_forfeit_it_by_a_fault():
    assert set(Termination) - FAULTS == {Termination.COMPLETED, Termination.FORFEIT}


@given(st.text() | st.text(alphabet="/\\.~C: ab\n\x1b\u202e0x"))
def test_a_detail_is_one_short_printable_line_whatever_a_bot_says(text):
    detail = clean_detail(text)
    assert detail.isprintable()
    assert len(detail) <= LONGEST_DETAIL
    assert detail == detail.strip()
