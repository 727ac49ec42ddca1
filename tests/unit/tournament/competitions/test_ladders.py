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
    Pairing,
    Round,
    Stage,
    StageEntrant,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors import late_round
from tournament.competitions.selectors.bundles import why_no_bundle
from tournament.competitions.services import StageWish, sweeping
from tournament.operations import housekeeping
from tournament.operations.housekeeping import keep_small
from tournament.store.clock import in_seconds, read_clock

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


# What is played on and on is not kept for ever


def old_ladder(bots, **changes) -> list[Match]:
    """The first matches of a ladder that goes on, finished 100 days ago."""
    tournament = ladder(bots)
    play_open(tournament)
    Match.objects.filter(tournament=tournament).update(
        finished_at=in_seconds(-100 * 86_400), **changes
    )
    return list(tournament.matches.select_related("tournament", "pairing").order_by("pk"))


def expire(days: int = 90) -> int:
    return services.expire_old_records(before=read_clock() - timedelta(days=days))


def test_old_records_go_while_result_digest_and_ratings_stay(bots, client):
    match, *_ = old_ladder(bots)
    digest, sha256 = match.digest, match.record_sha256
    before = [str(part.score) for part in match.pairing.entrants.order_by("index")]
    assert expire(days=101) == 0
    assert expire() == 2
    assert expire() == 0
    match.refresh_from_db()
    assert (match.digest, match.record_sha256, match.record_has_expired) == (digest, "", True)
    assert [str(part.score) for part in match.pairing.entrants.order_by("index")] == before
    assert sha256 not in services.blobs_in_use()
    path = f"/tournaments/{match.tournament.slug}/matches/{match.pairing.key}/"
    page = client.get(path).content.decode()
    assert "It has expired: records of a ladder are kept for 90 days" in page
    assert digest in page
    assert client.get(f"{path}record.json").status_code == 404
    told = client.get(f"/api/matches/{match.tournament.slug}/{match.pairing.key}").json()
    assert (told["digest"], told["record"], told["record_expired"]) == (digest, None, True)


@pytest.mark.parametrize(
    "link",
    [
        lambda match: services.keep_record(match=match, kept=True),
        lambda match: Pairing.objects.filter(pk=match.pairing_id).update(is_ruled=True),
        lambda match: Pairing.objects.filter(pk=match.pairing_id).update(edition=2),
        lambda match: Tournament.objects.update(bundle_digest="sha256:" + 64 * "0"),
    ],
    ids=["kept by staff", "ruled upon", "played anew", "in a bundle that was told"],
)
def test_what_something_links_to_stays(bots, link):
    match, *_ = old_ladder(bots)
    link(match)
    expire()
    services.expire_oldest_records()
    match.refresh_from_db()
    assert match.record_sha256


def test_records_of_other_formats_stay_for_ever(bots):
    tournament = play_all(start(make_tournament(bots)))
    Match.objects.update(finished_at=in_seconds(-1000 * 86_400))
    assert expire() == services.expire_oldest_records() == 0
    assert not tournament.matches.filter(record_sha256="").exists()


def test_ladder_that_outlives_its_records_has_no_bundle_and_says_why(bots):
    match, *_ = old_ladder(bots)
    expire()
    tournament = match.tournament
    services.stop_stage(tournament=tournament, reason="the season is over")
    play_open(tournament)
    services.dispatch(rung=True)
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.FINISHED
    assert "longer than records of a ladder are kept (90 days)" in why_no_bundle(tournament)
    with pytest.raises(TournamentStateError, match="no record that could be kept"):
        services.keep_record(match=Match.objects.get(pk=match.pk), kept=True)


def test_store_over_its_budget_lets_the_oldest_records_go(bots, settings, monkeypatch, tmp_path):
    own = {"BACKEND": "tournament.store.storage.BlobStorage", "OPTIONS": {"location": tmp_path}}
    settings.STORAGES = {**settings.STORAGES, "blobs": own}
    bots = [make_bot(f"own{number}") for number in range(3)]
    young = old_ladder(bots)
    Match.objects.update(finished_at=Now())
    monkeypatch.setattr(sweeping, "KEPT_FOR", timedelta(seconds=-60))
    keep_small()
    whole = housekeeping.store_bytes()
    assert whole is not None
    assert housekeeping.budget_warning() == ""
    settings.ARENA_STORE_BYTES = int(whole) + 1
    assert "GB of ARENA_STORE_GB" in housekeeping.budget_warning(), "it is nearly full"
    keep_small()
    assert not Match.objects.filter(pk__in=[m.pk for m in young], record_sha256="").exists()
    settings.ARENA_STORE_BYTES = int(whole) - 1
    keep_small()
    assert housekeeping.store_bytes() < whole
    assert Match.objects.filter(pk__in=[m.pk for m in young], record_sha256="").count() == len(
        young
    )
