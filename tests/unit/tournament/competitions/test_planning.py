"""Planning a tournament: all that is wrong is said at once, and nothing is half-created."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from tests.tournament_factories import make_plan, make_player
from tournament.competitions import services
from tournament.competitions.errors import InvalidTournamentError
from tournament.competitions.models import Stage, Tournament, TournamentState

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)


def test_planned_tournament_is_a_draft_with_its_stage():
    tournament = services.create_tournament(
        organiser=make_player(), plan=make_plan(name="Spring Cup", ruleset={"target": 300})
    )
    assert (tournament.state, tournament.slug) == (TournamentState.DRAFT, "spring-cup")
    assert (tournament.kind, tournament.commitment, tournament.pub) == ("mono", "", "")
    stage = tournament.stages.get()
    assert stage.ruleset["target"] == 300
    assert stage.contest == {"kind": "boards", "boards": 1, "extra_boards": 10}
    assert stage.time_control["name"] == "standard"


def test_times_are_kept_to_the_second():
    plan = make_plan(closes_at=NOW.replace(microsecond=7) + timedelta(hours=1))
    tournament = services.create_tournament(organiser=make_player(), plan=plan)
    tournament.refresh_from_db()
    assert tournament.closes_at.microsecond == 0


def test_second_tournament_of_a_name_gets_an_address_of_its_own():
    organiser = make_player()
    slugs = [
        services.create_tournament(organiser=organiser, plan=make_plan()).slug for _ in range(3)
    ]
    assert slugs == ["autumn-cup", "autumn-cup-2", "autumn-cup-3"]


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"game": "chess"}, "game", "eighty"),  # names what there is
        ({"format": "lottery"}, "format", "single_elimination"),  # names what there is
        ({"format_options": {"third": True}}, "format_options", "third"),  # no such option
        ({"ruleset": {"target": "much"}}, "ruleset", "target"),  # no such value
        ({"ruleset": {"no_such": 1}}, "ruleset", "no_such"),  # no such option
        ({"contest": {"kind": "boards", "boards": 0}}, "contest", "boards"),  # nothing to play
        ({"contest": {"kind": "duel"}}, "contest", "boards"),  # says what there is
        (
            {"contest": {"kind": "boards", "boards": 10_000}, "time_control": "long"},
            "contest",
            "no worker plays one for longer than 23 h 50 min: choose fewer boards",
        ),  # a worker would give each match up
        ({"contest": {"kind": "boards", "boards": "8"}}, "contest", "boards"),  # a text
        (
            {"contest": {"kind": "games", "best_of": 3, "extra_boards": 2}},
            "contest",
            "whole games have no extra boards",
        ),  # would be forgotten in silence
        ({"time_control": "slow"}, "time_control", "fast"),  # names what there is
        ({"kind": "ffa"}, "kind", "mono"),  # Eighty has sides
        ({"game": "podkidnoe", "kind": "pair"}, "kind", "ffa"),  # Podkidnoe has none
        ({"name": " "}, "name", "1 to 100"),  # nothing to call it
        ({"name": "§§"}, "slug", "a-z"),  # nothing to make an address of
        ({"slug": "Not A Slug"}, "slug", "a-z"),  # no address
        ({"weight": 0}, "weight", "1 to 100"),  # it would never be played
        ({"cap": 0}, "cap", "from 1"),  # it would never be played
        ({"records_public": "never"}, "records_public", "at_once"),  # names what there is
        ({"starts_at": NOW - timedelta(days=1)}, "starts_at", "before"),  # in the past
        ({"opens_at": NOW + timedelta(days=1)}, "closes_at", "after"),  # closes before it opens
        ({"starts_at": NOW + timedelta(minutes=1)}, "starts_at", "before"),  # before the close
        ({"closes_at": datetime(2027, 1, 1)}, "closes_at", "zone"),  # noqa: DTZ001 - naive
    ],
)
def test_plan_that_cannot_be_carried_out_says_what_to_change(changes, field, says):
    with pytest.raises(InvalidTournamentError) as caught:
        services.create_tournament(organiser=make_player(), plan=make_plan(**changes))
    assert says in caught.value.fields[field]
    assert not Tournament.objects.exists()
    assert not Stage.objects.exists()


def test_everything_wrong_is_said_at_once():
    with pytest.raises(InvalidTournamentError) as caught:
        services.create_tournament(
            organiser=make_player(),
            plan=make_plan(game="chess", name="", time_control="x", weight=0),
        )
    assert {"game", "name", "time_control", "weight"} <= set(caught.value.fields)


def test_tournament_that_is_all_in_the_past_is_refused():
    past = NOW - timedelta(days=2)
    plan = make_plan(
        opens_at=past, closes_at=past + timedelta(hours=1), starts_at=past + timedelta(hours=2)
    )
    with pytest.raises(InvalidTournamentError) as caught:
        services.create_tournament(organiser=make_player(), plan=plan)
    assert set(caught.value.fields) == {"closes_at", "starts_at"}


def test_taken_address_is_refused():
    organiser = make_player()
    services.create_tournament(organiser=organiser, plan=make_plan(slug="cup"))
    with pytest.raises(InvalidTournamentError, match="already"):
        services.create_tournament(organiser=organiser, plan=make_plan(slug="cup"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "closed"},  # closed without a commitment
        {"closes_at": NOW - timedelta(days=1)},  # closes before it opens
        {"weight": 0},  # no share at all
        {"kind": "solo"},  # no such kind
    ],
)
def test_database_refuses_what_the_services_would(wrong):
    tournament = services.create_tournament(organiser=make_player(), plan=make_plan())
    with pytest.raises(IntegrityError), transaction.atomic():
        Tournament.objects.filter(pk=tournament.pk).update(**wrong)
