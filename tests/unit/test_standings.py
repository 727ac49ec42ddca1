"""Tables and tie-breaks: the published vector, the rules for unplayed rounds, and the workings."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import FormatError
from engine.standings import (
    DEFAULT_ORDER,
    TITLES,
    Meeting,
    MeetingKind,
    TieBreak,
    check_order,
    rank_entrants,
    show,
)

HALF = Fraction(1, 2)
EVERY = tuple(TieBreak)


def duel(a: int, b: int, score: Fraction | int, points: int = 0) -> Meeting:
    """a against b; `score` is a's."""
    places = {Fraction(1): (1, 2), HALF: (1, 1), Fraction(0): (2, 1)}[Fraction(score)]
    return Meeting(
        kind=MeetingKind.PLAYED,
        entrants=(a, b),
        scores=(Fraction(score), 1 - Fraction(score)),
        points=(points, -points),
        places=places,
    )


def free_round(a: int, score: Fraction | int) -> Meeting:
    return Meeting(kind=MeetingKind.UNPLAYED, entrants=(a,), scores=(Fraction(score),))


def missed_round(a: int) -> Meeting:
    return Meeting(kind=MeetingKind.WITHDRAWN, entrants=(a,), scores=(Fraction(0),))


def pod(entrants: tuple[int, ...], places: tuple[int, ...]) -> Meeting:
    k = len(entrants)
    scores = tuple(
        Fraction(sum(2 * (p < q) + (p == q) for q in places) - 1, 2 * (k - 1)) for p in places
    )
    return Meeting(
        kind=MeetingKind.PLAYED,
        entrants=entrants,
        scores=scores,
        points=(0,) * k,
        places=places,
    )


THREE_ROUNDS = [
    duel(1, 4, 1),
    duel(2, 5, 1),
    duel(3, 6, HALF),
    duel(1, 2, HALF),
    duel(3, 5, 1),
    duel(4, 6, 1),
    duel(3, 1, 0),
    duel(2, 4, 1),
    duel(6, 5, 1),
]


def seeds(count: int) -> dict[int, int]:
    return {entrant: entrant for entrant in range(1, count + 1)}


def value_of(rows, entrant, name):
    row = next(row for row in rows if row.entrant == entrant)
    return next(t.value for t in row.tie_breaks if t.name == name)


def working_of(rows, entrant, name):
    row = next(row for row in rows if row.entrant == entrant)
    return next(t.working for t in row.tie_breaks if t.name == name)


@pytest.mark.parametrize(
    ("entrant", "score", "buchholz", "cut", "median", "sonneborn"),
    [
        pytest.param(1, 2.5, 5, 4, 1.5, 3.75, id="leader by opposition"),
        pytest.param(2, 2.5, 3.5, 3.5, 1, 2.25, id="met one who has nothing"),
        pytest.param(3, 1.5, 4, 4, 1.5, 0.75, id="tied and lost"),
        pytest.param(4, 1, 6.5, 5, 2.5, 1.5, id="the hardest opposition"),
        pytest.param(5, 0, 5.5, 4, 1.5, 0, id="no score, no Sonneborn-Berger"),
        pytest.param(6, 1.5, 2.5, 2.5, 1, 0.75, id="the easiest opposition"),
    ],
)
def test_published_table_of_three_rounds(entrant, score, buchholz, cut, median, sonneborn):
    rows = rank_entrants(seeds(6), THREE_ROUNDS, EVERY)
    assert value_of(rows, entrant, TieBreak.SCORE) == Fraction(score)
    assert value_of(rows, entrant, TieBreak.BUCHHOLZ) == Fraction(buchholz)
    assert value_of(rows, entrant, TieBreak.BUCHHOLZ_CUT_1) == Fraction(cut)
    assert value_of(rows, entrant, TieBreak.BUCHHOLZ_MEDIAN) == Fraction(median)
    assert value_of(rows, entrant, TieBreak.SONNEBORN_BERGER) == Fraction(sonneborn)


def test_default_order_ranks_the_published_table():
    rows = rank_entrants(seeds(6), THREE_ROUNDS)
    assert [(row.place, row.entrant) for row in rows] == [
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 6),
        (5, 4),
        (6, 5),
    ]


def test_workings_add_up_for_the_reader():
    rows = rank_entrants(seeds(6), THREE_ROUNDS, EVERY)
    assert working_of(rows, 1, TieBreak.SCORE) == "Score 2½ = 1 + ½ + 1"
    assert working_of(rows, 1, TieBreak.BUCHHOLZ) == "Buchholz 5 = 1 + 2½ + 1½"
    assert working_of(rows, 1, TieBreak.BUCHHOLZ_CUT_1) == "Buchholz cut 1 4 = 1½ + 2½ (without 1)"
    assert working_of(rows, 1, TieBreak.SONNEBORN_BERGER) == (
        "Sonneborn-Berger 3¾ = 1×1 + ½×2½ + 1×1½"
    )
    assert working_of(rows, 1, TieBreak.WINS) == "2 of 3 matches won"


def test_working_of_points_difference_keeps_signs_readable():
    rows = rank_entrants(seeds(3), [duel(1, 2, 1, 30), duel(1, 3, 0, -45)])
    assert working_of(rows, 1, TieBreak.POINTS_DIFFERENCE) == "Points difference −15 = 30 − 45"


def test_direct_encounter_decides_between_two_who_have_met():
    # 1 and 2 have one win each, 3 has none; 2 beat 1
    meetings = [duel(1, 2, 0), duel(1, 3, 1), duel(2, 4, 0), duel(3, 4, 0)]
    order = (TieBreak.SCORE, TieBreak.DIRECT_ENCOUNTER)
    rows = rank_entrants(seeds(4), meetings, order)
    assert [row.entrant for row in rows] == [4, 2, 1, 3]


def test_direct_encounter_does_not_apply_unless_all_the_tied_have_met():
    rows = rank_entrants(
        seeds(6),
        [duel(1, 4, 1), duel(2, 5, 1), duel(3, 6, 1)],
        (TieBreak.SCORE, TieBreak.DIRECT_ENCOUNTER),
    )
    assert [row.place for row in rows] == [1, 1, 1, 4, 4, 4]
    assert working_of(rows, 1, TieBreak.DIRECT_ENCOUNTER) == "not all of the tied have met"


def test_own_free_round_is_a_dummy_with_ones_own_final_score():
    rows = rank_entrants(seeds(2), [duel(1, 2, 1), free_round(1, 1), duel(1, 2, 0)])
    assert value_of(rows, 1, TieBreak.BUCHHOLZ) == 1 + 2 + 1
    assert value_of(rows, 1, TieBreak.SONNEBORN_BERGER) == 1 * 1 + 1 * 2 + 0


def test_opponents_withdrawn_rounds_count_a_half():
    rows = rank_entrants(seeds(2), [duel(1, 2, 1), missed_round(2), missed_round(2)])
    assert value_of(rows, 1, TieBreak.BUCHHOLZ) == 1
    assert value_of(rows, 2, TieBreak.SCORE) == 0


def test_free_rounds_are_no_matches():
    row = rank_entrants({1: 1}, [free_round(1, 1)])[0]
    assert (row.score, row.matches, row.wins, row.unplayed) == (1, 0, 0, 1)


def test_pods_of_three_and_four_compare():
    rows = rank_entrants(seeds(7), [pod((1, 2, 3, 4), (1, 2, 3, 4)), pod((5, 6, 7), (1, 1, 3))])
    assert value_of(rows, 1, TieBreak.SCORE) == 1
    assert value_of(rows, 2, TieBreak.SCORE) == Fraction(2, 3)
    assert value_of(rows, 5, TieBreak.SCORE) == Fraction(3, 4)
    assert value_of(rows, 1, TieBreak.BUCHHOLZ) == (Fraction(2, 3) + Fraction(1, 3) + 0) / 3
    assert value_of(rows, 1, TieBreak.SONNEBORN_BERGER) == Fraction(1, 3)
    five = next(row for row in rows if row.entrant == 5)
    assert (five.wins, five.ties, five.losses) == (0, 1, 0)


def test_lot_follows_from_its_bytes_and_the_public_seed_alone():
    def order_by(lot: bytes, ids: dict[int, int]) -> list[int]:
        rows = rank_entrants(ids, [], (TieBreak.SCORE, TieBreak.LOT), lot=lot)
        return [ids[row.entrant] for row in rows]

    renamed = {entrant + 1000: seed for entrant, seed in seeds(8).items()}
    assert order_by(b"a", seeds(8)) == order_by(b"a", renamed)
    assert order_by(b"a", seeds(8)) != order_by(b"b", seeds(8))


def test_without_a_lot_who_is_equal_shares_the_place_in_order_of_seed():
    rows = rank_entrants({7: 2, 9: 1}, [], (TieBreak.SCORE,))
    assert [(row.place, row.entrant) for row in rows] == [(1, 9), (1, 7)]


@st.composite
def meeting_lists(draw: st.DrawFn) -> list[Meeting]:
    count = draw(st.integers(2, 6))
    pairs = [(a, b) for a in range(1, count + 1) for b in range(a + 1, count + 1)]
    return [
        duel(
            a,
            b,
            draw(st.sampled_from([Fraction(0), HALF, Fraction(1)])),
            draw(st.integers(-50, 50)),
        )
        for a, b in draw(st.lists(st.sampled_from(pairs), max_size=12))
    ]


@given(meeting_lists(), st.randoms())
def test_table_does_not_depend_on_the_order_in_which_entrants_are_given(meetings, generator):
    shuffled = list(seeds(6).items())
    generator.shuffle(shuffled)
    assert rank_entrants(dict(shuffled), meetings) == rank_entrants(seeds(6), meetings)


@given(meeting_lists())
def test_everyone_stands_once_and_rows_are_sorted_by_score(meetings):
    rows = rank_entrants(seeds(6), meetings)
    assert sorted(row.entrant for row in rows) == list(range(1, 7))
    assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
    assert [row.place for row in rows] == sorted(row.place for row in rows)
    assert sum(row.score for row in rows) == len(meetings)
    assert sum(row.points_difference for row in rows) == 0


@pytest.mark.parametrize(
    ("order", "message"),
    [
        pytest.param(["score", "goals"], "goals", id="unknown"),
        pytest.param(["score", "wins", "wins"], "twice", id="repeated"),
        pytest.param(["wins"], "begin with 'score'", id="the score is no tie-break to leave out"),
        pytest.param([], "begin with 'score'", id="nothing"),
    ],
)
def test_impossible_order_of_tie_breaks_is_refused(order, message):
    with pytest.raises(FormatError, match=message):
        check_order(order)


def test_default_order_is_a_possible_one():
    assert check_order([str(name) for name in DEFAULT_ORDER]) == DEFAULT_ORDER


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"),
        (HALF, "½"),
        (Fraction(5, 2), "2½"),
        (Fraction(-1, 4), "−¼"),
        (Fraction(7, 6), "7/6"),
        (Fraction(-3), "−3"),
    ],
)
def test_fractions_are_shown_as_people_write_them(value, text):
    assert show(value) == text


@st.composite
def pod_lists(draw: st.DrawFn) -> list[Meeting]:
    """Matches of two to four, and rounds without one."""
    meetings = []
    for entrants in draw(
        st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True), max_size=8)
    ):
        if len(entrants) == 1:
            meetings.append(
                draw(st.sampled_from([free_round(*entrants, 1), missed_round(*entrants)]))
            )
        else:
            points = [draw(st.integers(0, 3)) for _ in entrants]
            places = tuple(1 + sum(other > own for other in points) for own in points)
            meetings.append(pod(tuple(entrants), places))
    return meetings


GLYPHS = {"": Fraction(0), "¼": Fraction(1, 4), "½": HALF, "¾": Fraction(3, 4)}


def read(text: str) -> Fraction:
    """A number as `show` writes it."""
    sign = -1 if text.startswith("−") else 1
    text = text.removeprefix("−")
    if text[-1] in GLYPHS:
        return sign * (Fraction(text[:-1] or 0) + GLYPHS[text[-1]])
    return sign * Fraction(text)


def added_up(working: str, title: str) -> Fraction:
    """What the parts of a working come to, by the reader's own sum."""
    shown = working.removeprefix(title + " ").split(" (without ")[0]
    parts = shown.split(" = ")[-1].replace("− ", "+ −").split(" + ")
    return sum(
        (
            read(part.split("×")[0]) * (read(part.split("×")[1]) if "×" in part else 1)
            for part in parts
        ),
        Fraction(0),
    )


@pytest.mark.parametrize(
    "name",
    [
        TieBreak.SCORE,
        TieBreak.BUCHHOLZ,
        TieBreak.BUCHHOLZ_CUT_1,
        TieBreak.BUCHHOLZ_MEDIAN,
        TieBreak.SONNEBORN_BERGER,
        TieBreak.POINTS_DIFFERENCE,
    ],
)
@given(meetings=st.one_of(meeting_lists(), pod_lists()))
def test_parts_of_every_working_add_up_to_its_value(name, meetings):
    for row in rank_entrants(seeds(6), meetings, EVERY):
        found = next(value for value in row.tie_breaks if value.name == name)
        if " = " in found.working:
            assert added_up(found.working, TITLES[name]) == found.value


@given(meetings=st.one_of(meeting_lists(), pod_lists()))
def test_buchholz_is_the_opposition_of_every_round_and_the_cuts_leave_some_out(meetings):
    for row in rank_entrants(seeds(6), meetings, EVERY):
        value = {found.name: found.value for found in row.tie_breaks}
        assert value[TieBreak.BUCHHOLZ] >= value[TieBreak.BUCHHOLZ_CUT_1]
        assert value[TieBreak.BUCHHOLZ_CUT_1] >= value[TieBreak.BUCHHOLZ_MEDIAN] >= 0
