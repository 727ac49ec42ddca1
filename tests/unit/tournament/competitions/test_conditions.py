"""How long a match and a tournament can last, told to who plans it."""

from __future__ import annotations

import math

import pytest

from engine.errors import FormatError
from engine.formats import get_format
from tests.tournament_factories import make_plan, make_player
from tests.unit.formats.stages import play_stage, start
from tournament.competitions.models import TournamentState
from tournament.competitions.selectors import forecast, spell_forecasts
from tournament.competitions.selectors.conditions import conditions_of, longest_match_seconds
from tournament.competitions.services import StageWish, create_tournament

pytestmark = pytest.mark.django_db


def draft(**changes):
    return create_tournament(organiser=make_player(), plan=make_plan(**changes))


@pytest.mark.parametrize("slots", [1, 2, 5])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("single_elimination", {}),  # rounds that halve
        ("double_elimination", {}),  # rounds of very different sizes
        ("round_robin", {}),  # rounds of the same size
        ("swiss", {"rounds": 4}),
    ],
)
def test_no_stage_takes_longer_than_was_foretold(settings, slots, name, options):
    settings.ARENA_WORKER_SLOTS = slots
    row = draft(format=name, format_options=options)
    fmt, match = get_format(name), longest_match_seconds(row.stages.get())
    for count in (5, 8, 11):
        played = play_stage(fmt, start(fmt, count, **options))
        turns = sum(
            math.ceil(sum(not pairing.is_bye for pairing in each.pairings) / slots)
            for each in played.rounds
        )
        assert turns * match <= forecast(row, count).seconds


def test_all_stages_count_and_the_cap_too(settings):
    settings.ARENA_WORKER_SLOTS = 4
    stages = (
        StageWish(format="round_robin", qualifiers=4),
        StageWish(format="single_elimination", contest={"kind": "boards", "boards": 2}),
    )
    row = draft(format="", stages=stages, cap=1)
    first, second = (longest_match_seconds(stage) for stage in row.stages.all())
    found = forecast(row, 6)
    assert (found.matches, found.seconds) == (15 + 3, 15 * first + 3 * second)


def test_what_cannot_be_told_is_none_or_refused():
    assert forecast(draft(format="ladder"), 8) is None  # it goes on until it is stopped
    with pytest.raises(FormatError):
        forecast(draft(name="Groups", format="groups", format_options={"groups": 4}), 3)


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({"max_entrants": 12, "min_entrants": 6}, [6, 12]),  # as the organiser has set them
        ({}, [8, 16, 32, 64]),  # nobody knows
    ],
)
def test_draft_is_forecast_for_as_many_as_there_may_be(changes, counts):
    lines = spell_forecasts(draft(**changes))
    assert lines[0].startswith("A match: ")
    assert [int(line.split()[0]) for line in lines[1:]] == counts


def test_closed_tournament_is_forecast_for_those_who_are_there():
    row = draft()
    row.state = TournamentState.CLOSED
    assert "0 entrants cannot play it" in spell_forecasts(row)[-1]


def test_conditions_name_tie_breaks_as_people_do():
    found = dict(conditions_of(draft(format="swiss").stages.get()))
    assert "Sonneborn-Berger" in found["Tie breaks"]
    assert found["Rounds"] == "not set"
    assert found["It lasts at most"].startswith("10 min, if all bots use all their time")
