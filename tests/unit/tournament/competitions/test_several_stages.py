"""Tournaments of several stages: planned, begun one after the other, and what rulings do to them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.tournament_factories import (
    entrant_of,
    make_bot,
    make_plan,
    make_player,
    make_tournament,
    play_all,
    start,
)
from tournament.competitions import services
from tournament.competitions.errors import InvalidTournamentError, TournamentStateError
from tournament.competitions.models import (
    Match,
    Pairing,
    Round,
    Stage,
    StageEntrant,
    StageState,
    SupersededMatch,
    Tournament,
    TournamentState,
)
from tournament.competitions.services import StageWish
from tournament.competitions.services.previewing import preview
from tournament.competitions.services.series import run_due_series

pytestmark = pytest.mark.django_db

TABLE = StageWish(format="round_robin", qualifiers=2)
FINAL = StageWish(format="single_elimination")


@pytest.fixture
def bots():
    return [make_bot(name) for name in ("alpha", "beta", "gamma", "delta")]


def staged(bots=(), stages=(TABLE, FINAL), **changes):
    return make_tournament(bots, format="", stages=stages, **changes)


def open_matches(tournament: Tournament, stage: int) -> list[Match]:
    rows = Match.objects.filter(
        tournament=tournament, pairing__round__stage__index=stage, pairing__decided_by=""
    )
    return list(rows.order_by("pk"))


def decide(tournament: Tournament) -> None:
    """Let the better seed win each match of the first stage, and the next one begin."""
    for match in open_matches(tournament, 0):
        worse = match.pairing.entrants.order_by("-entrant__seed").first()
        services.forfeit_match(match=match, offenders=[worse.entrant_id], reason="did not appear")
    services.advance_round(tournament=tournament)


def play(tournament: Tournament, stage: int) -> None:
    """Play what is open in a stage."""
    for match in open_matches(tournament, stage):
        services.play_match(match_id=match.pk, trusted=True)


def seeds_of(tournament: Tournament, stage: int) -> list[int]:
    rows = StageEntrant.objects.filter(stage__tournament=tournament, stage__index=stage)
    return list(rows.order_by("seed").values_list("entrant", flat=True))


def ids_of(tournament: Tournament, *seeds: int) -> list[int]:
    """The ids of the entrants of these seeds in the first stage."""
    return [tournament.entrants.get(seed=seed).pk for seed in seeds]


def states_of(tournament: Tournament) -> list[str]:
    return list(tournament.stages.order_by("index").values_list("state", flat=True))


def between(tournament: Tournament, *seeds: int) -> Pairing:
    """Where these met in the first stage."""
    rows = Pairing.objects.filter(tournament=tournament, round__stage__index=0)
    for seed in seeds:
        rows = rows.filter(entrants__entrant__seed=seed)
    return rows.get()


def let_win(tournament: Tournament, winner: int, loser: int) -> None:
    """Correct a result of the first stage."""
    pairing = between(tournament, winner, loser)
    seeds = pairing.entrants.values_list("entrant__seed", flat=True)
    services.correct_result(
        pairing=pairing, places=[1 if seed == winner else 2 for seed in seeds], reason="a doubt"
    )


def test_next_stage_begins_in_the_moment_the_one_before_is_over(bots):
    tournament = start(staged(bots))
    assert states_of(tournament) == [StageState.RUNNING, StageState.PENDING]
    decide(tournament)
    assert states_of(tournament) == [StageState.FINISHED, StageState.RUNNING]
    final = Pairing.objects.get(round__stage__tournament=tournament, round__stage__index=1)
    assert final.key == "S2/SE/R1/M1"
    assert list(final.entrants.values_list("entrant", flat=True)) == seeds_of(tournament, 1)


def test_places_are_those_of_the_last_stage_and_then_of_those_before(bots):
    tournament = play_all(start(staged(bots)))
    assert tournament.state == TournamentState.FINISHED
    final = Pairing.objects.get(key="S2/SE/R1/M1")
    winner = final.entrants.get(advances=True).entrant
    assert winner.place == 1
    assert sorted(tournament.entrants.values_list("place", flat=True)) == [1, 2, 3, 4]
    assert set(tournament.entrants.filter(place__lte=2).values_list("pk", flat=True)) == set(
        seeds_of(tournament, 1)
    )


def test_later_stage_has_its_own_contest_and_time(bots):
    longer = {"kind": "boards", "boards": 2, "extra_boards": 1}
    final = StageWish(format="single_elimination", contest=longer, time_control="long")
    first, second = staged(bots, (TABLE, final)).stages.order_by("index")
    assert (first.contest["boards"], second.contest) == (1, longer)
    assert second.time_control["name"] == "long" != first.time_control["name"]


def test_who_has_left_does_not_go_on(bots):
    tournament = start(staged(bots))
    leader = tournament.entrants.get(seed=1)
    services.withdraw_entrant(entrant=leader, by=leader.bots.get().bot.owner)
    decide(tournament)
    assert seeds_of(tournament, 1) == ids_of(tournament, 2, 3)
    assert tournament.stages.get(index=0).absent == [leader.pk]


def test_tournament_ends_with_the_places_so_far_if_too_few_are_left(bots):
    tournament = start(staged(bots))
    for bot in bots[:3]:
        services.withdraw_entrant(entrant=entrant_of(tournament, bot.name), by=bot.owner)
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.FINISHED
    assert states_of(tournament) == [StageState.FINISHED, StageState.SKIPPED]
    assert "at least 2 entrants" in tournament.stages.get(index=1).note
    assert entrant_of(tournament, "delta").place == 1


def test_tournament_of_fewer_than_go_on_is_cancelled_with_the_reason(bots):
    stages = (StageWish(format="round_robin", qualifiers=4), FINAL)
    tournament = start(staged(bots[:3], stages))
    assert tournament.state == TournamentState.CANCELLED
    assert "lower the qualifiers" in tournament.cancelled_reason


def test_correction_that_sends_others_on_takes_the_next_stage_back(bots):
    tournament = start(staged(bots))
    decide(tournament)
    play(tournament, 1)
    let_win(tournament, 3, 2)
    assert seeds_of(tournament, 1) == ids_of(tournament, 1, 3)
    taken = SupersededMatch.objects.get(key="S2/SE/R1/M1", edition=1)
    assert taken.record_sha256
    anew = Pairing.objects.get(key="S2/SE/R1/M1")
    assert (anew.edition, anew.decided_by) == (2, "")
    assert play_all(tournament).state == TournamentState.FINISHED


def test_preview_of_a_correction_shows_that_the_next_stage_is_taken_back(bots):
    tournament = start(staged(bots))
    decide(tournament)
    shown = preview(tournament, lambda: let_win(tournament, 3, 2))
    assert {"S2/SE/R1/M1"} < {line.what for line in shown.pairings}
    assert {line.what.split(",")[0] for line in shown.standings} == {"of stage 1", "of stage 2"}
    assert seeds_of(tournament, 1) == ids_of(tournament, 1, 2)
    assert not between(tournament, 2, 3).earlier


def test_correction_that_sends_the_same_on_leaves_the_next_stage(bots):
    tournament = start(staged(bots))
    decide(tournament)
    let_win(tournament, 4, 3)
    assert seeds_of(tournament, 1) == ids_of(tournament, 1, 2)
    assert not SupersededMatch.objects.exists()


def test_correction_that_would_send_others_on_is_refused_after_the_end(bots):
    tournament = start(staged(bots))
    decide(tournament)
    play_all(tournament)
    with pytest.raises(TournamentStateError, match="has ended"):
        let_win(tournament, 3, 2)
    assert not SupersededMatch.objects.exists()


def test_annulled_match_takes_nobody_out_of_the_next_stage(bots):
    tournament = start(staged(bots))
    decide(tournament)
    was = seeds_of(tournament, 1)
    for pairing in Pairing.objects.filter(entrants__entrant=was[0], round__stage__index=0):
        services.void_match(pairing=pairing, reason="a doubt")
        pairing.refresh_from_db()
        assert (
            pairing.earlier[0]["until_round"]
            == Round.objects.filter(stage__tournament=tournament, stage__index=0).count() + 1
        )
    assert seeds_of(tournament, 1) == was
    assert not SupersededMatch.objects.exists()


def test_correction_after_an_annulment_asks_who_would_have_gone_on_without_it(bots):
    tournament = start(staged(bots))
    decide(tournament)
    was = seeds_of(tournament, 1)
    for pairing in Pairing.objects.filter(entrants__entrant=was[0], round__stage__index=0):
        services.void_match(pairing=pairing, reason="a doubt")
    let_win(tournament, 4, 3)
    assert seeds_of(tournament, 1) == was
    assert not SupersededMatch.objects.exists()


def test_match_played_again_opens_its_stage_again(bots):
    tournament = start(staged(bots))
    decide(tournament)
    match = between(tournament, 1, 2).match
    services.rerun_match(match=match, reason="a doubt")
    assert states_of(tournament) == [StageState.RUNNING, StageState.PENDING]
    assert not StageEntrant.objects.filter(stage__index=1).exists()
    assert play_all(tournament).state == TournamentState.FINISHED


def test_disqualified_from_the_second_stage_what_was_played_in_the_first_may_count_for_nothing(
    bots,
):
    tournament = start(staged(bots))
    decide(tournament)
    was = seeds_of(tournament, 1)
    entrant = tournament.entrants.get(pk=was[0])
    services.disqualify_entrant(entrant=entrant, reason="cheating", void_played=True)
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.FINISHED
    assert seeds_of(tournament, 1) == was
    assert tournament.entrants.get(pk=was[1]).place == 1


def test_annulled_matches_no_longer_decide_who_goes_on_if_the_stage_ends_anew(bots):
    tournament = start(staged(bots))
    decide(tournament)
    voided = between(tournament, 3, 4)
    services.void_match(pairing=voided, reason="a doubt")
    services.rerun_match(match=between(tournament, 1, 2).match, reason="a doubt")
    voided.refresh_from_db()
    assert voided.earlier[0]["until_round"] == 3


@pytest.mark.parametrize(
    ("stages", "field", "says"),
    [
        ((StageWish(format="round_robin"), FINAL), "stages", "stage 1"),  # nobody goes on
        ((TABLE, StageWish(format="swiss", qualifiers=2)), "stages", "stage 2"),  # the last one
        ((TABLE,) * 5 + (FINAL,), "stages", "1 to 5"),  # too many
        ((StageWish(format="ladder", qualifiers=2), FINAL), "stages", "no end"),  # never over
        ((TABLE, StageWish(format="groups", format_options={"groups": 3})), "stages", "stage 2"),
        ((TABLE, StageWish(format="lottery")), "stages[1].format", "single_elimination"),
        (
            (TABLE, StageWish(format="swiss", format_options={"round": 3})),
            "stages[1].format_options",
            "rounds",
        ),
        ((TABLE, StageWish(format="pods")), "stages[1].format", "another format"),  # Eighty
        (
            (TABLE, StageWish(format="swiss", contest={"kind": "duel"})),
            "stages[1].contest",
            "boards",
        ),
        ((TABLE, StageWish(format="swiss", time_control="slow")), "stages[1].time_control", "fast"),
        (
            (TABLE, StageWish(format="swiss", ruleset={"no_such": 1})),
            "stages[1].ruleset",
            "no_such",
        ),
        (
            (StageWish(format="swiss", stops_after_minutes=60),),
            "stages[0].stops_after_minutes",
            "by itself",
        ),
        ((StageWish(format="swiss", matches_a_day=60),), "stages[0].matches_a_day", "rounds"),
        (
            (StageWish(format="ladder", matches_a_day=0),),
            "stages[0].matches_a_day",
            "from 1",
        ),
        ((StageWish(format="swiss", qualifiers=1), FINAL), "stages[0].qualifiers", "from 2"),
    ],
)
def test_stages_that_cannot_follow_each_other_are_refused_before_anything_is_made(
    stages, field, says
):
    with pytest.raises(InvalidTournamentError) as caught:
        services.create_tournament(
            organiser=make_player(), plan=make_plan(format="", stages=stages)
        )
    assert says in caught.value.fields[field]
    assert not Stage.objects.exists()


def test_format_and_stages_at_once_are_refused():
    with pytest.raises(InvalidTournamentError) as caught:
        services.create_tournament(organiser=make_player(), plan=make_plan(stages=(FINAL,)))
    assert "not both" in caught.value.fields["stages"]


def test_least_number_below_those_who_go_on_is_refused():
    with pytest.raises(InvalidTournamentError) as caught:
        services.create_tournament(
            organiser=make_player(),
            plan=make_plan(
                format="",
                stages=(StageWish(format="swiss", qualifiers=8), FINAL),
                min_entrants=4,
                max_entrants=16,
            ),
        )
    assert "8 cannot go on" in caught.value.fields["min_entrants"]


def test_clone_has_the_same_stages(bots):
    stages = (
        StageWish(format="swiss", format_options={"rounds": 2}, qualifiers=2),
        StageWish(format="ladder", time_control="standard", stops_after_minutes=90),
    )
    row = staged((), stages)
    now = timezone.now()
    plan = services.plan_like(row, opens_at=now, name="Again")
    again = services.create_tournament(organiser=row.organiser, plan=plan)
    kept = ("index", "format", "options", "qualifiers", "ruleset", "contest", "time_control")
    assert list(again.stages.values_list(*kept)) == list(row.stages.values_list(*kept))
    assert again.stages.get(index=1).stops_at == again.starts_at + timedelta(minutes=90)


def test_series_makes_tournaments_of_several_stages():
    series = services.create_series(
        organiser=make_player(),
        name="Weekly",
        course=services.Course(
            rule={"weekdays": [0], "at": "18:00", "open_minutes": 60, "pause_minutes": 5},
            template={"game": "eighty", "time_control": "fast", "stages": (TABLE, FINAL)},
        ),
        now=timezone.now(),
    )
    series.refresh_from_db()
    made = run_due_series(now=services.starts_to_come(series)[0] - timedelta(minutes=65))
    assert [stage.format for stage in made[0].stages.all()] == ["round_robin", "single_elimination"]


def states_on_page(client, tournament: Tournament) -> list[str]:
    """What the page says of the entrants that do what they do, by seed."""
    page = client.get(f"/tournaments/{tournament.slug}/").text
    table = page[page.index('id="entrants"') :]
    return re.findall(r"<td>([^<>]+)</td>\s*</tr>", table[: table.index("</table>")])


def test_page_tells_what_each_entrant_does(client, bots):
    tournament = staged(bots)
    assert states_on_page(client, tournament) == ["has entered"] * 4
    tournament = start(tournament)
    assert states_on_page(client, tournament) == ["plays"] * 4
    decide(tournament)
    assert states_on_page(client, tournament) == ["plays the final"] * 2 + ["out after stage 1"] * 2
    play(tournament, 1)
    services.advance_round(tournament=tournament)
    assert [text[:5] for text in states_on_page(client, tournament)] == ["place"] * 4


def test_page_of_what_was_cancelled_or_is_sealed_does_not_say_that_anybody_plays(client, bots):
    tournament = staged(bots)
    services.cancel_tournament(tournament=tournament, reason="the hall is closed")
    assert states_on_page(client, tournament) == ["has entered"] * 4
    sealed = staged(bots, name="Sealed", results_at=timezone.now() + timedelta(days=1))
    sealed = start(sealed)
    decide(sealed)
    assert states_on_page(client, sealed) == ["plays"] * 4
    play(sealed, 1)
    services.advance_round(tournament=sealed)
    assert states_on_page(client, sealed) == ["place is sealed"] * 4
