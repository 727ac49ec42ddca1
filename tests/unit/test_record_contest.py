"""The order of a match's games, when it ends, and what comes out, told by scores alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.games import get_game
from engine.record import BoardsContest, FinishedGame, GamesContest, next_slot, outcome_of_games
from engine.record.contest import by_entrant, seating_of

EIGHTY, PODKIDNOE = get_game("eighty"), get_game("podkidnoe")


def run(game, contest, entrants, scores):
    """Play on with `scores` by entrant, one a game, until the match is over: slots and outcome."""
    scores = iter(scores)
    slots, played = [], []
    while (slot := next_slot(game, contest, entrants, played)) is not None:
        slots.append(slot)
        score = next(scores)
        places = None
        if isinstance(contest, GamesContest):
            places = tuple(1 + sum(other > own for other in score) for own in score)
        played.append(FinishedGame(slot, score, places))
    assert next(scores, None) is None, "the match ended too early"
    return slots, outcome_of_games(contest, entrants, played)


def test_boards_are_played_rotation_by_rotation_each_with_fresh_agents():
    slots, _ = run(EIGHTY, BoardsContest(3), 2, [(1, 0)] * 6)
    assert [(s.board, s.rotation) for s in slots] == [(b, r) for r in (0, 1) for b in (0, 1, 2)]
    assert [s.is_fresh for s in slots] == [True, False, False, True, False, False]


def test_extra_boards_come_one_by_one_in_all_rotations_while_the_best_tie():
    ties, decided = [(5, 5, 2)] * 3, [(6, 5, 2)] * 3
    slots, outcome = run(PODKIDNOE, BoardsContest(1, 5), 3, [*ties, *ties, *decided])
    assert [(s.board, s.rotation) for s in slots[3:]] == [(b, r) for b in (1, 2) for r in range(3)]
    assert all(s.is_fresh for s in slots)
    assert outcome.places == (1, 2, 3)


def test_extra_boards_have_an_end():
    slots, outcome = run(EIGHTY, BoardsContest(1, 2), 2, [(4, 4)] * 6)
    assert len(slots) == 6
    assert outcome.places == (1, 1)


def test_a_tie_below_the_best_asks_for_no_extra_board():
    slots, outcome = run(PODKIDNOE, BoardsContest(1, 5), 3, [(9, 2, 2)] * 3)
    assert len(slots) == 3
    assert outcome.places == (1, 2, 2)


def test_points_compare_each_with_all_others():
    _, outcome = run(PODKIDNOE, BoardsContest(1), 3, [(5, 1, 0), (0, 0, 0), (1, 0, -2)])
    assert outcome.points == (2 * 6 - 1 + 2, 2 * 1 - 6 + 2, 2 * -2 - 6 - 1)
    assert sum(outcome.points) == 0


WIN, LOSS, LEVEL = (250, 10), (10, 250), (99, 99)


@pytest.mark.parametrize(
    ("best_of", "scores", "places"),
    [
        (1, [WIN], (1, 2)),
        (1, [LEVEL], (1, 1)),
        (3, [WIN, WIN], (1, 2)),  # the third cannot matter
        (3, [WIN, LOSS, WIN], (1, 2)),
        (3, [WIN, LEVEL, LEVEL], (1, 2)),  # one game won is not more than half of three
        (3, [LEVEL, LEVEL, LEVEL], (1, 1)),
        (2, [WIN, LOSS], (1, 1)),  # of two games both are needed
        (2, [WIN, WIN], (1, 2)),
        (4, [LOSS, LOSS, LOSS], (2, 1)),
        (5, [WIN, LOSS, LOSS, WIN, LOSS], (2, 1)),
    ],
)
def test_eighty_stops_when_one_entrant_has_won_more_than_half(best_of, scores, places):
    _, outcome = run(EIGHTY, GamesContest(best_of), 2, scores)
    assert outcome.places == places


def test_games_won_count_in_a_games_match_not_points():
    _, outcome = run(EIGHTY, GamesContest(3), 2, [(250, 249), (0, 250), (250, 249)])
    assert outcome.points == (500 - 748, 748 - 500)
    assert outcome.places == (1, 2)


def test_podkidnoe_plays_all_its_games():
    _, outcome = run(PODKIDNOE, GamesContest(3), 2, [(5, 1), (5, 1), (0, 3)])
    assert outcome.places == (1, 2)


def test_podkidnoe_ranks_by_the_entrants_beaten_a_tie_counting_half():
    scores = [(9, 9, 0), (1, 0, 2)]  # beaten: 1.5 1.5 0, then 1 0 2
    _, outcome = run(PODKIDNOE, GamesContest(2), 3, scores)
    assert outcome.places == (1, 3, 2)


def test_each_game_of_a_games_match_turns_the_seating():
    slots, _ = run(PODKIDNOE, GamesContest(5), 3, [(1, 2, 3)] * 5)
    assert [(s.board, s.rotation, s.is_fresh) for s in slots] == [
        (None, rotation, True) for rotation in (0, 1, 2, 0, 1)
    ]


@pytest.mark.parametrize(("game", "entrants"), [(EIGHTY, 2), (PODKIDNOE, 3), (PODKIDNOE, 4)])
def test_in_all_rotations_each_entrant_sits_on_each_side_once(game, entrants):
    sides = [
        by_entrant(game, seating_of(game, entrants, rotation), range(entrants))
        for rotation in range(entrants)
    ]
    assert all(sorted(column) == list(range(entrants)) for column in zip(*sides, strict=True))
    assert all(sorted(row) == list(range(entrants)) for row in sides)


@given(st.integers(1, 4), st.integers(0, 3), st.integers(2, 4), st.data())
def test_points_of_a_boards_match_sum_to_zero_and_rank_it(boards, extra, entrants, data):
    contest = BoardsContest(boards, extra)
    one = st.tuples(*[st.integers(-5, 5)] * entrants)
    played: list[FinishedGame] = []
    while (slot := next_slot(PODKIDNOE, contest, entrants, played)) is not None:
        played.append(FinishedGame(slot, data.draw(one), None))
    outcome = outcome_of_games(contest, entrants, played)
    assert sum(outcome.points) == 0
    assert boards * entrants <= len(played) <= (boards + extra) * entrants
    assert len(played) % entrants == 0
    ranked = sorted(range(entrants), key=lambda e: outcome.places[e])
    assert [outcome.points[e] for e in ranked] == sorted(outcome.points, reverse=True)
