"""How long a match can last: no play of any bots has more sittings, games, deals or questions than are counted."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.durations import _counts, longest_seconds, spell_seconds
from engine.games import get_game
from engine.record import BoardsContest, FinishedGame, GamesContest, next_slot
from engine.sdk.timecontrol import TIME_CONTROLS, TimeControl

EIGHTY, PODKIDNOE = get_game("eighty"), get_game("podkidnoe")
OWN = TimeControl(
    "own", start_cpu_ms=1000, game_cpu_ms=2000, action_cpu_ms=100, action_wall_ms=7000
)


def test_longest_match_is_what_all_seats_may_compute_and_idle():
    cpu = 2 * 1 + 6 * 2 + 6 * 12 * 0.1
    seconds = longest_seconds(EIGHTY, BoardsContest(3), OWN, 2)
    assert seconds == pytest.approx(4 * (cpu + 2 * 7))
    slow = longest_seconds(EIGHTY, BoardsContest(3), OWN, 2, budget_percent=300)
    assert slow == pytest.approx(4 * (3 * cpu + 2 * 7))  # nobody may idle longer there


@given(
    st.sampled_from([(EIGHTY, 2), (PODKIDNOE, 2), (PODKIDNOE, 4)]),
    st.one_of(
        st.builds(BoardsContest, st.integers(1, 9), st.integers(0, 4)),
        st.builds(GamesContest, st.integers(1, 9)),
    ),
    st.randoms(use_true_random=False),
)
def test_no_match_has_more_sittings_or_games_than_are_counted(table, contest, rng):
    game, entrants = table
    played, sittings = [], 0
    while (slot := next_slot(game, contest, entrants, played)) is not None:
        sittings += slot.is_fresh
        scores = (
            [0] * entrants if rng.random() < 0.7 else [rng.randrange(3) for _ in range(entrants)]
        )
        places = (
            None if slot.board is not None else tuple(rng.sample(range(1, entrants + 1), entrants))
        )
        played.append(FinishedGame(slot, tuple(scores), places))
    most_sittings, most_games, _ = _counts(game, contest, entrants)
    assert sittings <= most_sittings
    assert len(played) <= most_games


@pytest.mark.parametrize("game", [EIGHTY, PODKIDNOE], ids=["eighty", "podkidnoe"])
@given(seed=st.integers(0, 2**32), max_draws=st.sampled_from([1, 2, None]))
def test_no_seat_has_a_choice_more_often_than_is_counted(game, seed, max_draws):
    rng = random.Random(seed)
    options = {} if game is EIGHTY else {"max_draws": max_draws}
    state = game.random_state(game.make_ruleset(options), 4, rng)
    asked = [0] * 4
    while not state.is_over:
        codes = state.legal()
        asked[state.seat] += len(codes) > 1
        state.apply(rng.choice(codes))
    assert max(asked) <= game.most_questions


def test_tournament_of_usual_size_is_well_below_a_day():
    contest = BoardsContest(8, extra_boards=10)
    for control in TIME_CONTROLS.values():
        assert longest_seconds(EIGHTY, contest, control, 2, budget_percent=400) < 80_000


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),  # never nothing
        (119.5, "2 min"),  # rounded up
        (61 * 60, "1 h 1 min"),
        (7200, "2 h"),
    ],
)
def test_durations_are_spelled_rounded_up(seconds, words):
    assert spell_seconds(seconds) == words
