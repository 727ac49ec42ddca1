"""What is kept of a stage: who played it, who was absent when, and what rulings replaced."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps

from tests.tournament_factories import entrant_of, make_bot, make_tournament, play_all, start
from tournament.competitions import services
from tournament.competitions.models import (
    DecidedBy,
    Match,
    Pairing,
    Round,
    Stage,
    StageEntrant,
    StageState,
    Tournament,
    TournamentState,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def bots():
    return [make_bot(name) for name in ("alpha", "beta", "gamma", "delta")]


def play_round(tournament: Tournament, index: int) -> None:
    for match in Match.objects.filter(
        tournament=tournament, pairing__round__index=index, pairing__decided_by=""
    ):
        services.play_match(match_id=match.pk, trusted=True)


def rows_of(tournament: Tournament) -> list[tuple[object, ...]]:
    entrants = StageEntrant.objects.filter(stage__tournament=tournament).order_by("stage", "seed")
    return [
        *entrants.values_list("stage__index", "entrant", "seed", "first_round", "mu"),
        *Stage.objects.filter(tournament=tournament).values_list(
            "state", "started_at", "finished_at", "absent"
        ),
        *Round.objects.filter(stage__tournament=tournament)
        .order_by("index")
        .values_list("index", "absent"),
    ]


def test_stage_knows_its_entrants_and_who_was_absent_when(bots):
    tournament = start(make_tournament(bots, format="swiss", format_options={"rounds": 3}))
    play_round(tournament, 1)
    alpha = entrant_of(tournament, "alpha")
    services.withdraw_entrant(entrant=alpha, by=bots[0].owner)
    play_all(tournament)
    stage = tournament.stages.get()
    assert (stage.state, stage.absent) == (StageState.FINISHED, [alpha.pk])
    assert [each.absent for each in stage.rounds.all()] == [[], [alpha.pk], [alpha.pk]]
    assert list(stage.entrants.values_list("entrant", "seed")) == list(
        tournament.entrants.order_by("seed").values_list("pk", "seed")
    )


def test_migration_writes_what_the_services_would_have_written(bots):
    tournament = start(
        make_tournament(
            bots, format="swiss", format_options={"rounds": 3}, late_until_round=2, slug="late"
        )
    )
    late = make_bot("late")
    services.enter(tournament=tournament, bots=[late], by=late.owner)
    play_round(tournament, 1)
    services.withdraw_entrant(entrant=entrant_of(tournament, "beta"), by=bots[1].owner)
    assert play_all(tournament).state == TournamentState.FINISHED
    begun = start(make_tournament(bots, slug="begun"))
    services.withdraw_entrant(entrant=entrant_of(begun, "beta"), by=bots[1].owner)
    kept = [rows_of(tournament), rows_of(begun)]
    StageEntrant.objects.all().delete()
    Stage.objects.update(state=StageState.PENDING, started_at=None, finished_at=None, absent=[])
    Round.objects.update(absent=[])
    import_module("tournament.competitions.migrations.0005_several_stages").fill_stages(apps, None)
    assert [_without_times(rows_of(tournament)), _without_times(rows_of(begun))] == [
        _without_times(rows) for rows in kept
    ]
    assert Stage.objects.filter(started_at=None).count() == 0


def _without_times(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [tuple(value for value in row if not hasattr(value, "tzinfo")) for row in rows]


def test_replaced_result_is_kept_with_how_many_rounds_were_paired_by_it(bots):
    tournament = start(make_tournament(bots, format="swiss", format_options={"rounds": 3}))
    play_round(tournament, 1)
    services.advance_round(tournament=tournament)
    pairing = Pairing.objects.get(tournament=tournament, key="SW/R1/M1")
    was = list(pairing.entrants.values_list("place", "points"))
    services.void_match(pairing=pairing, reason="a doubt")
    pairing.refresh_from_db()
    (earlier,) = pairing.earlier
    assert pairing.is_ruled
    assert (earlier["until_round"], earlier["is_ruled"]) == (2, False)
    assert earlier["result"]["decided_by"] == DecidedBy.PLAY
    assert list(zip(earlier["result"]["places"], earlier["result"]["points"], strict=True)) == was


def test_bracket_is_paired_anew_so_no_round_stays_that_the_old_result_paired(bots):
    tournament = start(make_tournament(bots))
    play_round(tournament, 1)
    services.advance_round(tournament=tournament)
    pairing = Pairing.objects.get(tournament=tournament, key="SE/R1/M1")
    places = list(pairing.entrants.values_list("place", flat=True))
    services.correct_result(pairing=pairing, places=places[::-1], reason="a doubt")
    pairing.refresh_from_db()
    assert [each["until_round"] for each in pairing.earlier] == [1]
    services.rerun_match(match=pairing.match, reason="again")
    pairing.refresh_from_db()
    assert (pairing.earlier, pairing.is_ruled) == ([], False)


def test_forfeit_is_a_ruling_without_an_earlier_result(bots):
    tournament = start(make_tournament(bots))
    match = tournament.matches.order_by("pk").first()
    offender = match.pairing.entrants.get(index=0).entrant_id
    services.forfeit_match(match=match, offenders=[offender], reason="did not appear")
    match.pairing.refresh_from_db()
    assert match.pairing.is_ruled
    assert match.pairing.earlier == []


def test_ladder_freezes_strengths_and_keeps_what_a_batch_did_not_know(bots):
    tournament = start(make_tournament(bots, format="ladder"))
    stage = tournament.stages.get()
    assert all(mu is not None for mu in stage.entrants.values_list("mu", flat=True))
    first, second = tournament.matches.order_by("pk")
    services.play_match(match_id=first.pk, trusted=True)
    services.advance_round(tournament=tournament)
    assert [each.awaited for each in stage.rounds.all()] == [[], [second.pairing.key]]
