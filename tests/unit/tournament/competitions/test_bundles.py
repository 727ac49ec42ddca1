"""A finished tournament's bundle is true, whatever happened in it; before, there is none."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from random import Random

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from engine.bundle import decode_bundle, encode_bundle, verify_bundle
from engine.errors import BundleError
from tests.changes import UNJUDGED, changed, leaves_of, put
from tests.tournament_factories import (
    accept,
    entrant_of,
    make_bot,
    make_player,
    make_tournament,
    play_all,
    start,
    submit,
)
from tournament.competitions import services
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import Match, Pairing, Tournament, TournamentState
from tournament.competitions.selectors.bundles import (
    packed_bundle,
    plain_bundle,
    tournament_bundle,
)
from tournament.competitions.services import Play, StageWish, playing

pytestmark = pytest.mark.django_db

BOARDS = {"kind": "boards", "boards": 8}
WHY = "a doubt"
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")


@pytest.fixture(autouse=True)
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


def cup(entrants: int = 4, **changes) -> Tournament:
    """A tournament that has started, of short matches that are rated."""
    owner = make_player()
    bots = [make_bot(name, owner) for name in NAMES[:entrants]]
    plan = {"game": "podkidnoe", "contest": BOARDS, **changes}
    return start(make_tournament(bots, **plan))


def play(match: Match) -> None:
    assert services.play_match(match_id=match.pk) is Play.RECORDED


def play_round(tournament: Tournament, index: int) -> None:
    for match in tournament.matches.filter(pairing__round__index=index, pairing__decided_by=""):
        play(match)
    services.advance_round(tournament=tournament)


def finish(tournament: Tournament) -> Tournament:
    tournament = play_all(tournament, trusted=False)
    assert tournament.state == TournamentState.FINISHED
    return tournament


def pairing(tournament: Tournament, key: str) -> Pairing:
    return Pairing.objects.get(tournament=tournament, key=key)


def other_places(row: Pairing) -> list[int]:
    """Turned round; the deals are drawn anew in each run, and a tie is turned into a win."""
    first, second = (part.place for part in row.entrants.all())
    return [1, 2] if first == second else [second, first]


def exported(tournament: Tournament) -> bytes:
    return b"".join(plain_bundle(tournament_bundle(tournament)))


def verified(tournament: Tournament):
    return verify_bundle(decode_bundle(exported(tournament)))


FORMATS = [
    {"format": "single_elimination", "seeding": "lot"},
    {"format": "double_elimination"},
    {"format": "round_robin", "game": "eighty", "contest": {"kind": "boards", "boards": 1}},
    {"format": "swiss"},
    {"format": "groups", "format_options": {"groups": 2}},
    {"format": "gauntlet"},
    {"format": "pods", "format_options": {"rounds": 2}},
    {"format": "ladder", "format_options": {"matches_each": 2}},
]


@pytest.mark.parametrize("plan", FORMATS, ids=[plan["format"] for plan in FORMATS])
def test_what_was_played_is_true(plan):
    tournament = finish(cup(5, **plan))
    report = verified(tournament)
    assert report.matches == tournament.matches.count() > 0
    assert report.rated == tournament.matches.filter(rated=True).count()
    assert (report.rated > 0) == (plan.get("contest", BOARDS)["boards"] >= 8)
    assert report.standings == 5


def test_stages_are_verified_one_after_the_other():
    stages = (
        StageWish(format="swiss", qualifiers=2, format_options={"rounds": 2}),
        StageWish(format="single_elimination"),
    )
    report = verified(finish(cup(5, format="", stages=stages)))
    assert (report.stages, report.rounds) == (2, 3)


def test_the_same_bundle_is_written_packed_and_plain_again_and_again():
    tournament = finish(cup(3))
    bundle = tournament_bundle(tournament)
    packed = b"".join(packed_bundle(bundle))
    assert gzip.decompress(packed) == exported(tournament) == encode_bundle(bundle)
    assert packed == b"".join(packed_bundle(tournament_bundle(tournament)))


def test_versions_that_were_rated_before_bring_their_ratings_along():
    first = finish(cup(3, format="round_robin"))
    author = entrant_of(first, "alpha").bots.get().bot.owner
    accept(submit(author, "alpha", "2.0"))
    bots = [entrant_of(first, name).bots.get().bot for name in NAMES[:3]]
    plan = {"game": "podkidnoe", "contest": BOARDS, "format": "round_robin", "name": "Next"}
    second = finish(start(make_tournament(bots, **plan)))
    ratings = tournament_bundle(second).ratings
    lines = {m.bot: m for rated in reversed(ratings) for t in rated.teams for m in t.members}
    assert (lines["alpha"].version, lines["alpha"].matches_before) == ("2.0", 0)
    assert lines["alpha"].mu_before != 25.0  # its version before was rated
    assert lines["beta"].matches_before == 2
    assert verified(first).rated == verified(second).rated == 3


TABLE_AND_FINAL = (
    StageWish(format="round_robin", qualifiers=2),
    StageWish(format="single_elimination"),
)


def test_a_stage_for_which_too_few_were_left_is_verified_as_such():
    tournament = cup(3, format="", stages=TABLE_AND_FINAL)
    for name in ("beta", "gamma"):
        gone = entrant_of(tournament, name)
        services.withdraw_entrant(entrant=gone, by=gone.bots.get().bot.owner)
    finish(tournament)
    table, final = tournament_bundle(tournament).stages
    assert (len(table.standings), final.entrants, final.rounds) == (3, (), ())
    assert verified(tournament).stages == 2


def test_an_annulled_match_still_decides_who_went_on():
    tournament = cup(3, format="", stages=TABLE_AND_FINAL)
    for index in (1, 2, 3):
        play_round(tournament, index)
    went_on = tournament_stage_entrants(tournament)
    for row in Pairing.objects.filter(tournament=tournament, round__stage__index=0, is_bye=False):
        if set(row.entrants.values_list("entrant", flat=True)) != went_on:
            services.void_match(pairing=row, reason=WHY)
    report = verified(finish(tournament))
    assert (report.stages, report.rulings) == (2, 2)


def tournament_stage_entrants(tournament: Tournament) -> set[int]:
    stage = tournament.stages.get(index=1)
    return set(stage.entrants.values_list("entrant", flat=True))


def test_pairs_are_verified():
    owner = make_player()
    bots = [make_bot(name, owner) for name in (*NAMES, "zeta")]
    tournament = make_tournament(game="eighty", kind="pair", contest=BOARDS, format="round_robin")
    for first, second in zip(bots[::2], bots[1::2], strict=True):
        services.enter(tournament=tournament, bots=[first, second], by=owner)
    tournament = finish(start(tournament))
    bundle = tournament_bundle(tournament)
    assert {len(entrant.bots) for entrant in bundle.entrants} == {2}
    assert {len(team.members) for rated in bundle.ratings for team in rated.teams} == {2}
    assert verified(tournament).rated == 3


def test_whole_games_are_verified():
    contest = {"kind": "games", "best_of": 3}
    report = verified(finish(cup(3, format="round_robin", contest=contest)))
    assert (report.matches, report.rated) == (3, 0)


def test_who_leaves_a_double_elimination_between_its_rounds():
    tournament = cup(5, format="double_elimination")
    play_round(tournament, 1)
    gone = entrant_of(tournament, "alpha")
    services.withdraw_entrant(entrant=gone, by=gone.bots.get().bot.owner)
    report = verified(finish(tournament))
    assert report.standings == 5


class TestAfterRulings:
    def test_a_bracket_that_was_paired_anew(self):
        tournament = cup(4)
        play_round(tournament, 1)
        first = pairing(tournament, "SE/R1/M1")
        play(tournament.matches.get(pairing__key="SE/R2/M1"))
        services.correct_result(pairing=first, places=other_places(first), reason=WHY)
        finish(tournament)
        report = verified(tournament)
        assert (report.rulings, report.rated) == (1, 2)
        keys = [rated.key for rated in tournament_bundle(tournament).ratings]
        assert keys == ["SE/R1/M2", "SE/R2/M1~2"]

    def test_a_final_that_is_corrected_and_restored(self):
        tournament = finish(cup(4))
        final = pairing(tournament, "SE/R2/M1")
        services.correct_result(pairing=final, places=other_places(final), reason=WHY)
        assert verified(tournament).rated == 2
        services.restore_match(pairing=final, reason="it was right after all")
        report = verified(tournament)
        assert (report.rulings, report.rated) == (1, 3)

    def test_a_swiss_result_that_is_corrected_after_rounds_were_paired_by_it(self):
        tournament = cup(5, format="swiss", format_options={"rounds": 3})
        play_round(tournament, 1)
        first = pairing(tournament, "SW/R1/M1")
        services.correct_result(pairing=first, places=other_places(first), reason=WHY)
        play_round(tournament, 2)
        services.void_match(pairing=pairing(tournament, "SW/R1/M2"), reason=WHY)
        report = verified(finish(tournament))
        assert (report.rulings, report.rated) == (2, report.matches - 2)

    def test_a_forfeit_without_a_match(self):
        tournament = cup(3, format="round_robin")
        match = tournament.matches.first()
        services.forfeit_match(
            match=match,
            offenders=[match.pairing.entrants.first().entrant_id],
            reason="did not appear",
        )
        report = verified(finish(tournament))
        assert (report.rulings, report.matches) == (1, 2)

    def test_a_double_forfeit_in_a_bracket(self):
        tournament = cup(4)
        match = tournament.matches.first()
        offenders = list(match.pairing.entrants.values_list("entrant", flat=True))
        services.forfeit_match(match=match, offenders=offenders, reason="nobody appeared")
        report = verified(finish(tournament))
        assert (report.rulings, report.matches) == (1, 2)

    def test_a_match_that_was_played_again(self):
        tournament = cup(4)
        play_round(tournament, 1)
        match = tournament.matches.get(pairing__key="SE/R1/M2")
        services.rerun_match(match=match, reason=WHY)
        finish(tournament)
        assert "SE/R1/M2~2" in [rated.key for rated in tournament_bundle(tournament).ratings]
        assert verified(tournament).matches == 3

    def test_a_disqualification_with_all_that_was_played(self):
        tournament = cup(5, format="swiss", format_options={"rounds": 3})
        play_round(tournament, 1)
        services.disqualify_entrant(
            entrant=entrant_of(tournament, "alpha"), reason="cheated", void_played=True
        )
        report = verified(finish(tournament))
        assert report.rulings == 1
        assert report.absences > 0


def test_who_withdraws_while_a_match_is_open():
    tournament = cup(5, format="round_robin")
    gone = entrant_of(tournament, "beta")
    services.withdraw_entrant(entrant=gone, by=gone.bots.get().bot.owner)
    report = verified(finish(tournament))
    assert report.matches == 6


def test_who_comes_late_and_who_was_sealed_but_did_not_start():
    owner = make_player()
    bots = [make_bot(name, owner) for name in NAMES]
    tournament = make_tournament(
        bots[:4],
        game="podkidnoe",
        contest=BOARDS,
        format="swiss",
        format_options={"rounds": 2},
        late_until_round=2,
    )
    tournament = services.close_tournament(tournament=tournament, now=tournament.closes_at)
    services.withdraw_entrant(entrant=entrant_of(tournament, "delta"), by=owner)
    services.start_tournament(tournament=tournament, now=tournament.starts_at)
    services.enter(tournament=tournament, bots=[bots[4]], by=owner)
    finish(tournament)
    bundle = tournament_bundle(tournament)
    assert [each.name for each in bundle.entrants][3:] == ["epsilon", "delta"]
    assert bundle.entrants[4].seed is None
    assert json.loads(bundle.entrants[3].addendum)["round"] == 2
    assert verified(tournament).standings == 4


def test_batches_of_a_ladder_that_were_picked_while_others_were_open():
    tournament = cup(5, format="ladder", format_options={"at_once": 2})
    for _ in range(4):
        last = tournament.matches.filter(pairing__decided_by="").order_by("-pk").first()
        play(last)
        services.advance_round(tournament=tournament)
    services.stop_stage(tournament=tournament, reason="that is enough")
    finish(tournament)
    bundle = tournament_bundle(tournament)
    assert any(part.awaited for part in bundle.stages[0].rounds)
    report = verified(tournament)
    assert report.rated == report.matches >= 5


def test_a_newer_version_that_took_its_place_on_a_ladder():
    plan = {"format_options": {"at_once": 1, "matches_each": 2}, "late_until_round": 5}
    tournament = cup(3, format="ladder", **plan)
    play_round(tournament, 1)
    alpha = entrant_of(tournament, "alpha").bots.get().bot
    accept(submit(alpha.owner, "alpha", "2.0"))
    finish(tournament)
    entrants = tournament_bundle(tournament).entrants
    versions = [each.bots[0].version for each in entrants if each.bots[0].bot == "alpha"]
    assert versions == ["1.0", "2.0"]
    report = verified(tournament)
    assert report.rated == report.matches
    assert report.absences > 0


def test_what_no_sandbox_held_is_told_and_not_rated():
    tournament = play_all(cup(3), trusted=True)
    bundle = tournament_bundle(tournament)
    assert bundle.ratings == ()
    assert not any(p.is_sandboxed for p in bundle.stages[0].rounds[1].pairings)
    assert verified(tournament).matches == 2


class TestThereIsNone:
    def test_while_it_is_played(self):
        with pytest.raises(TournamentStateError, match=r"is not over \(being played\)"):
            tournament_bundle(cup(2))

    def test_of_one_that_was_cancelled(self):
        tournament = services.cancel_tournament(tournament=cup(2), reason="rain")
        with pytest.raises(TournamentStateError, match="was cancelled"):
            tournament_bundle(tournament)

    def test_while_results_are_sealed(self):
        tournament = finish(cup(2, results_at=timezone.now() + timedelta(hours=9)))
        with pytest.raises(TournamentStateError, match="are sealed"):
            tournament_bundle(tournament)
        services.publish_results(tournament=tournament)
        assert verified(Tournament.objects.get(pk=tournament.pk)).rated == 1


def test_the_number_of_queries_does_not_grow_with_the_matches():
    owner = make_player()
    bots = [make_bot(name, owner) for name in NAMES]
    counts = []
    for entrants in (3, 5):
        plan = {"game": "podkidnoe", "format": "round_robin", "name": f"Cup {entrants}"}
        tournament = finish(start(make_tournament(bots[:entrants], contest=BOARDS, **plan)))
        with CaptureQueriesContext(connection) as queries:
            exported(Tournament.objects.get(pk=tournament.pk))
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_any_change_of_one_value_is_refused_with_its_place():
    plain, random = (
        exported(finish(cup(5, format="swiss", format_options={"rounds": 2}))),
        Random(4),
    )
    known = [
        leaf for leaf in leaves_of(msgspec.json.decode(plain)) if not UNJUDGED & {*leaf[0][:3]}
    ]
    for path, old in random.sample(known, 50):
        document = msgspec.json.decode(plain)
        put(document, path, changed(old, random))
        with pytest.raises(BundleError) as error:
            verify_bundle(decode_bundle(msgspec.json.encode(document)))
        assert error.value.place, path
