"""A bracket drawn as text."""

from __future__ import annotations

from fractions import Fraction

from engine.formats import get_format
from engine.formats.base import DecidedBy, PairingResult, SeededEntrant, StageView
from tournament.operations.brackets import draw_bracket

NAMES = {1: "ann", 2: "bob", 3: "cy", 4: "dee", 5: "eve"}


def play(entrants: int, rounds: int, name: str = "single_elimination") -> StageView:
    """A knock-out of which so many rounds were played; the better seed wins by ten times its number."""
    fmt = get_format(name)
    view = StageView(
        entrants=tuple(SeededEntrant(id=i, seed=i) for i in range(1, entrants + 1)),
        options=fmt.make_options({}),
        lot=bytes(32),
    )
    for _ in range(rounds):
        planned = fmt.next_round(view)
        assert planned is not None
        decided = planned.__class__(
            index=planned.index,
            pairings=tuple(
                pairing if pairing.result else with_result(pairing) for pairing in planned.pairings
            ),
        )
        view = StageView(
            entrants=view.entrants,
            options=view.options,
            rounds=(*view.rounds, decided),
            lot=view.lot,
        )
    return view


def with_result(pairing):
    first_wins = pairing.entrants[0] < pairing.entrants[1]
    places = (1, 2) if first_wins else (2, 1)
    return pairing.__class__(
        key=pairing.key,
        slot=pairing.slot,
        entrants=pairing.entrants,
        result=PairingResult(
            decided_by=DecidedBy.PLAY,
            places=places,
            points=tuple(10 * entrant for entrant in pairing.entrants),
            scores=tuple(Fraction(2 - place) for place in places),
            advances=tuple(place == 1 for place in places),
        ),
    )


def test_finished_bracket_leads_to_its_winner():
    assert draw_bracket(play(4, 2), NAMES).splitlines() == [
        "ann 10 ─┐",
        "        ├─ann 10 ─┐",
        "dee 40 ─┘         │",
        "                  ├─ ann",
        "bob 20 ─┐         │",
        "        ├─bob 20 ─┘",
        "cy 30  ─┘",
    ]


def test_running_bracket_shows_what_is_known():
    drawn = draw_bracket(play(4, 1), NAMES)
    assert "ann 10" in drawn
    assert drawn.count("ann") == 1


def test_bye_is_named():
    assert "(bye)" in draw_bracket(play(5, 1), NAMES)


def test_nothing_is_drawn_before_the_first_round():
    assert draw_bracket(play(4, 0), NAMES) == ""


def test_double_elimination_is_its_winners_bracket_and_a_line_for_each_other_round():
    assert draw_bracket(play(4, 4, "double_elimination"), NAMES).splitlines() == [
        "ann 10 ─┐",
        "        ├─ann 10 ─┐",
        "dee 40 ─┘         │",
        "                  ├─ ann",
        "bob 20 ─┐         │",
        "        ├─bob 20 ─┘",
        "cy 30  ─┘",
        "L/R1: dee 40 - cy 30",
        "L/R2: bob 20 - cy 30",
        "GF/1: ann 10 - bob 20",
    ]


def test_losers_of_byes_are_named_with_theirs():
    drawn = draw_bracket(play(5, 3, "double_elimination"), NAMES)
    assert "L/R1: eve - (bye)" in drawn
