"""Rounds are closed in their order, rated in the order of their keys, and published once."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest
from django.db import transaction

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
from tournament.competitions.errors import EntryError, TournamentStateError
from tournament.competitions.models import (
    DecidedBy,
    EntrantState,
    Match,
    MatchState,
    Notice,
    Pairing,
    Round,
    RoundState,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors import (
    match_record,
    tournament_page,
)
from tournament.competitions.services import Plan, Play, playing, rounds
from tournament.competitions.services.rounds import MAX_OPEN_PAIRINGS, in_twelfths
from tournament.leaderboards.models import Rating, RatingEvent
from tournament.leaderboards.services import verify_ratings
from tournament.store.clock import read_clock

pytestmark = pytest.mark.django_db
BOARDS = {"kind": "boards", "boards": 8}


@pytest.fixture
def bots():
    return [make_bot(name) for name in ("alpha", "beta", "gamma", "delta")]


@pytest.fixture
def as_if_sandboxed(monkeypatch):
    """Matches are played in this process and count as if they had been held by a sandbox."""
    run_match = playing.run_match
    monkeypatch.setattr(
        playing,
        "run_match",
        lambda spec, sources, *, trusted, keep_alive: run_match(
            spec, sources, trusted=True, keep_alive=keep_alive
        ),
    )


def play(match: Match) -> None:
    assert services.play_match(match_id=match.pk) is Play.RECORDED


def test_next_round_is_published_when_the_last_match_is_decided(bots, as_if_sandboxed):
    tournament = start(make_tournament(bots))
    first, second = tournament.matches.order_by("pk")
    play(first)
    assert not services.advance_round(tournament=tournament)
    play(second)
    assert services.advance_round(tournament=tournament)
    assert list(Round.objects.values_list("index", "state")) == [(1, "complete"), (2, "open")]
    assert not services.advance_round(tournament=tournament)
    assert Round.objects.count() == 2


def test_batches_of_a_ladder_go_on_and_are_rated_while_an_earlier_one_is_open(
    bots, as_if_sandboxed
):
    tournament = start(make_tournament(bots, format="ladder", contest=BOARDS))
    slow, quick = tournament.matches.order_by("pk")
    play(quick)
    assert services.advance_round(tournament=tournament)
    (again,) = tournament.matches.filter(pairing__round__index=2)
    play(again)
    assert services.advance_round(tournament=tournament)
    states = dict(tournament.stages.get().rounds.values_list("index", "state"))
    assert states == {1: "open", 2: "complete", 3: "open"}
    assert RatingEvent.objects.count() == 1
    play(slow)
    assert services.advance_round(tournament=tournament)
    assert RatingEvent.objects.count() == 3


def test_rounds_paired_ahead_are_closed_in_their_order(bots, as_if_sandboxed):
    tournament = start(make_tournament(bots, format="round_robin", contest=BOARDS))
    assert tournament.matches.count() == 6
    for match in tournament.matches.filter(pairing__round__index=2):
        play(match)
    assert not services.advance_round(tournament=tournament)
    assert not RatingEvent.objects.exists()
    for match in tournament.matches.filter(pairing__round__index=1):
        play(match)
    services.advance_round(tournament=tournament)
    states = Round.objects.order_by("index").values_list("state", flat=True)
    assert list(states) == [RoundState.COMPLETE, RoundState.COMPLETE, RoundState.OPEN]
    keys = RatingEvent.objects.order_by("seq").values_list("match_key", flat=True)
    assert list(keys) == [f"{tournament.slug}/RR/R{r}/M{m}" for r in (1, 2) for m in (1, 2)]


def test_pairing_ahead_stops_at_its_bound():
    owner = make_player()
    bots = [make_bot(f"bot{number}", owner) for number in range(34)]
    tournament = start(make_tournament(bots, format="round_robin"))
    assert Round.objects.count() == 30  # of 33, with 17 matches each
    assert 0 <= tournament.matches.count() - MAX_OPEN_PAIRINGS < 17
    first = tournament.matches.filter(pairing__round__index=1)
    for match in first:
        services.forfeit_match(
            match=match,
            offenders=[match.pairing.entrants.first().entrant_id],
            reason="did not appear",
        )
    services.advance_round(tournament=tournament)
    assert Round.objects.count() == 31


def test_round_that_waits_for_one_match_is_played_past(bots, monkeypatch, as_if_sandboxed):
    monkeypatch.setattr(rounds, "MAX_OPEN_PAIRINGS", 3)
    tournament = start(make_tournament(bots, format="round_robin"))
    assert Round.objects.count() == 2
    play(tournament.matches.get(pairing__key="RR/R1/M1"))
    for match in tournament.matches.filter(pairing__round__index=2):
        play(match)
    services.advance_round(tournament=tournament)
    assert Round.objects.count() == 3
    assert play_all(tournament, trusted=False).state == TournamentState.FINISHED


def test_stage_whose_last_rounds_wait_for_a_match_is_not_read_again(
    bots, monkeypatch, as_if_sandboxed
):
    tournament = start(make_tournament(bots, format="round_robin"))
    for match in tournament.matches.filter(pairing__round__index=2):
        play(match)
    monkeypatch.setattr(rounds, "stage_view", None)
    assert not services.advance_round(tournament=tournament)


def play_twin(plan: Plan, bots, order: list[str]) -> tuple[list[str], list[tuple[str, object]]]:
    """Play a tournament, its matches in this order of keys: the digests and the rating log."""
    tournament = services.create_tournament(organiser=make_player(), plan=plan)
    tournament = services.open_tournament(tournament=tournament, secret=bytes(32))
    for bot in bots:
        services.enter(tournament=tournament, bots=[bot], by=bot.owner)
    tournament = start(tournament)
    for key in order:
        play(tournament.matches.get(pairing__key=key))
        services.advance_round(tournament=tournament)
    log = RatingEvent.objects.order_by("seq").values_list("match_key", "teams")
    digests = tournament.matches.order_by("pairing__key").values_list("digest", flat=True)
    return list(digests), list(log)


def test_equal_tournaments_give_equal_digests_and_logs_whoever_was_faster(bots, as_if_sandboxed):
    plan = make_plan(slug="twin", format="round_robin", contest=BOARDS)
    keys = [f"RR/R{r}/M{m}" for r in (1, 2, 3) for m in (1, 2)]
    found = []
    for order in (keys, keys[::-1]):
        with transaction.atomic():
            found.append(play_twin(plan, bots, order))
            transaction.set_rollback(True)
    assert len(found[0][0]) == len(found[0][1]) == 6
    assert found[0] == found[1]


def test_all_results_are_rated_once(bots, as_if_sandboxed):
    tournament = play_all(start(make_tournament(bots, contest=BOARDS)), trusted=False)
    keys = RatingEvent.objects.order_by("seq").values_list("match_key", flat=True)
    assert list(keys) == [f"{tournament.slug}/SE/{key}" for key in ("R1/M1", "R1/M2", "R2/M1")]
    assert verify_ratings(game="eighty", kind="mono") == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"contest": {"kind": "boards", "boards": 7}},  # too few boards to tell anything
        {"contest": {"kind": "games", "best_of": 1}, "ruleset": {"target": 50}},  # no boards at all
        {"contest": BOARDS, "rated": False},  # the organiser's wish
    ],
)
def test_what_is_not_to_be_rated_is_not(bots, as_if_sandboxed, changes):
    play_all(start(make_tournament(bots[:2], **changes)), trusted=False)
    assert not RatingEvent.objects.exists()


def test_pairs_play_and_are_rated_in_a_pool_of_their_own(as_if_sandboxed):
    tournament = make_tournament(kind="pair", contest=BOARDS)
    for number in range(2):
        owner = make_player()
        pair = [make_bot(f"{seat}{number}", owner) for seat in ("north", "south")]
        services.enter(tournament=tournament, bots=pair, by=owner)
    tournament = play_all(start(tournament), trusted=False)
    record = match_record(tournament.matches.get())
    assert [[bot.bot for bot in entrant.bots] for entrant in record.entrants] == [
        ["north0", "south0"],
        ["north1", "south1"],
    ]
    assert Rating.objects.filter(pool__kind="pair").count() == 4
    assert {len(team["members"]) for team in RatingEvent.objects.get().teams} == {2}


def test_podkidnoe_is_played_and_rated_as_a_free_for_all(bots, as_if_sandboxed):
    plan = {"game": "podkidnoe", "format": "round_robin", "contest": BOARDS}
    tournament = play_all(start(make_tournament(bots, **plan)), trusted=False)
    assert tournament.state == TournamentState.FINISHED
    assert set(Rating.objects.values_list("pool__game", "pool__kind")) == {("podkidnoe", "ffa")}
    assert RatingEvent.objects.count() == 6


def test_bye_is_no_match_and_not_rated(bots, as_if_sandboxed):
    tournament = play_all(start(make_tournament(bots[:3], contest=BOARDS)), trusted=False)
    bye = Pairing.objects.get(is_bye=True)
    assert (bye.decided_by, bye.entrants.count()) == (DecidedBy.BYE, 1)
    assert not Match.objects.filter(pairing=bye).exists()
    assert tournament.matches.count() == RatingEvent.objects.count() == 2


def test_final_places_are_those_of_the_format(bots, as_if_sandboxed):
    tournament = play_all(start(make_tournament(bots)))
    page = tournament_page(tournament.slug)
    assert {row.pk: row.place for row in page.entrants} == {
        row.entrant: row.place for row in page.stages[-1].standings
    }
    assert sorted(row.place for row in page.entrants) == [1, 2, 3, 3]
    assert (page.progress.finished, page.progress.expected) == (3, None), (
        "it is over: no more are to come"
    )


def test_score_is_kept_exactly_or_refused():
    assert in_twelfths(Fraction(1, 3)) == 4
    with pytest.raises(ValueError, match="1/7"):
        in_twelfths(Fraction(1, 7))


class TestTakenOut:
    def test_who_withdraws_gives_walkovers_and_keeps_what_was_played(self, bots, as_if_sandboxed):
        tournament = start(make_tournament(bots, format="round_robin", contest=BOARDS))
        alpha = entrant_of(tournament, "alpha")
        played = tournament.matches.filter(pairing__entrants__entrant=alpha).first()
        play(played)
        services.withdraw_entrant(entrant=alpha, by=bots[0].owner)
        decided = dict(
            Pairing.objects.filter(entrants__entrant=alpha).values_list("pk", "decided_by")
        )
        assert decided.pop(played.pairing_id) == DecidedBy.PLAY
        assert set(decided.values()) == {DecidedBy.WALKOVER}
        assert tournament.matches.filter(state=MatchState.CANCELLED).count() == 2
        assert play_all(tournament, trusted=False).state == TournamentState.FINISHED
        assert RatingEvent.objects.count() == 4  # the walkovers are not rated

    def test_opponent_of_who_withdraws_advances(self, bots, as_if_sandboxed):
        tournament = start(make_tournament(bots))
        services.withdraw_entrant(entrant=entrant_of(tournament, "alpha"), by=bots[0].owner)
        assert play_all(tournament).state == TournamentState.FINISHED
        assert entrant_of(tournament, "alpha").place > 1

    @pytest.mark.parametrize(
        ("is_withdrawn", "why"), [(True, "has withdrawn"), (False, "is disqualified")]
    )
    def test_who_still_plays_is_told_of_walkovers(self, bots, is_withdrawn, why):
        tournament = start(make_tournament(bots, format="round_robin", contest=BOARDS))
        gone = entrant_of(tournament, "beta")
        services.withdraw_entrant(entrant=gone, by=bots[1].owner)
        Notice.objects.all().delete()
        alpha = entrant_of(tournament, "alpha")
        if is_withdrawn:
            services.withdraw_entrant(entrant=alpha, by=bots[0].owner)
        else:
            services.disqualify_entrant(entrant=alpha, reason="two wheels")
        told = {row.text for row in Notice.objects.filter(text__contains="a walkover for")}
        keys = {
            name: Pairing.objects.filter(entrants__entrant=alpha)
            .get(entrants__entrant__name=name)
            .key
            for name in ("gamma", "delta")
        }
        assert told == {
            f"{key}: a walkover for {name}, as alpha {why}" for name, key in keys.items()
        }

    def test_nobody_is_told_of_walkovers_in_sealed_rounds(self, bots):
        tournament = make_tournament(bots)
        tournament.results_at = read_clock() + timedelta(days=1)
        tournament.save()
        start(tournament)
        services.withdraw_entrant(entrant=entrant_of(tournament, "alpha"), by=bots[0].owner)
        assert Pairing.objects.filter(decided_by=DecidedBy.WALKOVER).exists()
        assert not Notice.objects.filter(text__contains="a walkover for").exists()

    def test_play_of_who_withdraws_is_discarded(self, bots, monkeypatch):
        tournament = start(make_tournament(bots[:2]))
        run_match = playing.run_match

        def meanwhile(spec, sources, *, trusted, keep_alive):
            services.withdraw_entrant(entrant=entrant_of(tournament, "beta"), by=bots[1].owner)
            return run_match(spec, sources, trusted=True, keep_alive=keep_alive)

        monkeypatch.setattr(playing, "run_match", meanwhile)
        match = tournament.matches.get()
        assert services.play_match(match_id=match.pk) is Play.DISCARDED
        tournament.refresh_from_db()
        assert tournament.state == TournamentState.FINISHED
        assert entrant_of(tournament, "alpha").place == 1

    def test_only_the_owner_and_staff_may_withdraw(self, bots):
        tournament = start(make_tournament(bots))
        with pytest.raises(EntryError, match="not yours"):
            services.withdraw_entrant(entrant=entrant_of(tournament, "alpha"), by=bots[1].owner)

    def test_nobody_is_taken_out_twice_or_without_a_reason(self, bots):
        tournament = start(make_tournament(bots, format="round_robin"))
        alpha = entrant_of(tournament, "alpha")
        with pytest.raises(EntryError, match="reason"):
            services.disqualify_entrant(entrant=alpha, reason="")
        services.disqualify_entrant(entrant=alpha, reason="two wheels")
        with pytest.raises(EntryError, match="any more"):
            services.disqualify_entrant(entrant=alpha, reason="again")
        assert alpha.state in (EntrantState.ACTIVE, EntrantState.DISQUALIFIED)

    def test_nobody_is_taken_out_of_a_finished_tournament(self, bots, as_if_sandboxed):
        tournament = play_all(start(make_tournament(bots)))
        with pytest.raises(TournamentStateError):
            services.disqualify_entrant(entrant=entrant_of(tournament, "alpha"), reason="late")

    def test_disqualification_can_void_what_was_played_as_its_preview_says(
        self, bots, as_if_sandboxed
    ):
        tournament = start(make_tournament(bots, format="round_robin", contest=BOARDS))
        for match in tournament.matches.filter(pairing__round__index__lte=2):
            play(match)
        services.advance_round(tournament=tournament)
        alpha = entrant_of(tournament, "alpha")

        def act() -> object:
            return services.disqualify_entrant(entrant=alpha, reason="two wheels", void_played=True)

        expected = {line.what: line.after for line in services.preview(tournament, act).ratings}
        assert len(expected) == 4  # who met alpha, and who met them
        act()
        assert set(
            Pairing.objects.filter(entrants__entrant=alpha).values_list("decided_by", flat=True)
        ) == {DecidedBy.VOID, DecidedBy.WALKOVER}
        assert expected.pop("alpha 1.0") == "no rating"
        assert not Rating.objects.filter(bot=bots[0]).exists()
        found = {str(row.version): f"{row.shown:.2f}" for row in Rating.objects.all()}
        assert {name: found[name] for name in expected} == expected
        assert verify_ratings(game="eighty", kind="mono") == ()
        assert RatingEvent.objects.filter(kind="void").count() == 2

    def test_voided_match_of_an_open_round_is_never_rated(self, bots, as_if_sandboxed):
        tournament = start(make_tournament(bots, format="round_robin", contest=BOARDS))
        alpha = entrant_of(tournament, "alpha")
        play(tournament.matches.filter(pairing__entrants__entrant=alpha).first())
        services.disqualify_entrant(entrant=alpha, reason="two wheels", void_played=True)
        play_all(Tournament.objects.get(pk=tournament.pk), trusted=False)
        assert RatingEvent.objects.count() == 3
        assert not any("alpha" in str(event.teams) for event in RatingEvent.objects.all())
