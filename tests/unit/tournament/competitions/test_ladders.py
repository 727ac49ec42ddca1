"""A ladder on the site: batches, its budget, its end, and bots that come and go."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from tests.tournament_factories import (
    accept,
    entrant_of,
    make_bot,
    make_tournament,
    play_all,
    start,
    submit,
)
from tournament.competitions import services
from tournament.competitions.errors import EntryError, TournamentStateError
from tournament.competitions.models import (
    Entrant,
    EntrantState,
    Match,
    Round,
    Stage,
    StageEntrant,
    TournamentState,
)
from tournament.competitions.selectors import late_round
from tournament.competitions.services import StageWish

pytestmark = pytest.mark.django_db


@pytest.fixture
def bots():
    return [make_bot(name) for name in ("alpha", "beta", "gamma", "delta")]


def ladder(bots, **wish):
    stage = StageWish(format="ladder", **wish)
    return start(make_tournament(bots, format="", stages=(stage,)))


def play_open(tournament):
    for match in Match.objects.filter(tournament=tournament, pairing__decided_by=""):
        services.play_match(match_id=match.pk, trusted=True)


def test_stops_when_the_organiser_says_so_and_open_matches_still_count(bots):
    tournament = ladder(bots)
    services.stop_stage(tournament=tournament, reason="the season is over")
    services.dispatch(rung=True)
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.RUNNING
    play_open(tournament)
    services.dispatch(rung=True)
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.FINISHED
    assert Round.objects.count() == 1
    assert sorted(tournament.entrants.values_list("place", flat=True)) != [None] * 4
    assert tournament.stages.get().note == "the season is over"


def test_stops_by_itself_when_its_time_has_come(bots):
    tournament = ladder(bots, stops_after_minutes=60)
    play_open(tournament)
    Stage.objects.update(stops_at=Now())
    assert late_round(tournament) is None
    services.dispatch(rung=True)
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.FINISHED


@pytest.mark.parametrize(
    ("format", "says"),
    [("round_robin", "ends by itself")],  # a format with an end of its own
)
def test_stage_that_ends_by_itself_is_not_stopped(bots, format, says):  # noqa: A002 - its name
    tournament = start(make_tournament(bots, format=format))
    with pytest.raises(TournamentStateError, match=says):
        services.stop_stage(tournament=tournament, reason="enough")


def test_opens_no_more_matches_in_a_day_than_its_budget(bots):
    tournament = ladder(bots, matches_a_day=3)
    for _ in range(3):
        play_open(tournament)
        services.dispatch(rung=True)
    assert tournament.matches.count() == 4  # two batches of two: a batch is never cut
    Round.objects.update(opened_at=Now() - timedelta(hours=25))
    services.dispatch(rung=True)
    assert tournament.matches.count() == 6


def test_newly_accepted_version_takes_the_place_of_the_old_one_and_plays(bots):
    tournament = ladder(bots)
    old = entrant_of(tournament, "alpha")
    newer = accept(submit(bots[0].owner, "alpha", "2.0"))
    services.dispatch(rung=True)
    old.refresh_from_db()
    assert old.state == EntrantState.ACTIVE  # at a table: that match is played first
    play_open(tournament)
    services.dispatch(rung=True)
    old.refresh_from_db()
    assert old.state == EntrantState.WITHDRAWN
    new = Entrant.objects.get(tournament=tournament, name="alpha (2)")
    assert new.bots.get().version == newer
    place = StageEntrant.objects.get(entrant=new)
    assert (place.seed, place.sigma) == (5, StageEntrant.objects.get(entrant=old).sigma)
    assert Match.objects.filter(pairing__entrants__entrant=new).exists()
    assert new.addendum


def test_bot_may_leave_and_come_back(bots):
    tournament = ladder(bots)
    services.withdraw_entrant(entrant=entrant_of(tournament, "alpha"), by=bots[0].owner)
    again = services.enter(tournament=tournament, bots=[bots[0]], by=bots[0].owner)
    assert again.name == "alpha (2)"
    with pytest.raises(EntryError, match="entered already"):
        services.enter(tournament=tournament, bots=[bots[0]], by=bots[0].owner)


def test_who_comes_late_is_seated_at_once(bots):
    tournament = ladder(bots[:3])
    assert tournament.matches.count() == 1
    services.enter(tournament=tournament, bots=[bots[3]], by=bots[3].owner)
    assert tournament.matches.count() == 2


def test_ladder_of_limited_matches_ends_and_another_stage_follows(bots):
    stages = (
        StageWish(format="ladder", format_options={"matches_each": 2}, qualifiers=2),
        StageWish(format="single_elimination"),
    )
    tournament = play_all(start(make_tournament(bots, format="", stages=stages)))
    assert tournament.state == TournamentState.FINISHED
    assert tournament.pairings.filter(key="S2/SE/R1/M1").exists()
