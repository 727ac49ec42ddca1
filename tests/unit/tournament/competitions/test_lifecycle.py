"""From the commitment to the first round; pausing, cancelling; who is frozen with which version."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from engine.shuffle import commitment
from tests.tournament_factories import (
    accept,
    entrant_of,
    make_bot,
    make_plan,
    make_player,
    make_tournament,
    play_all,
    start,
    submit,
)
from tournament.competitions import services
from tournament.competitions.errors import EntryError, TournamentStateError
from tournament.competitions.models import (
    EntrantState,
    MatchState,
    PauseCause,
    Tournament,
    TournamentSecret,
    TournamentState,
)
from tournament.competitions.selectors import (
    preview_cancellation,
    revealed_secret,
    versions_awaited,
    versions_that_would_play,
)
from tournament.competitions.services import lifecycle
from tournament.competitions.services.dispatching import move_due_tournaments
from tournament.competitions.services.lifecycle import make_pub
from tournament.leaderboards.models import EventKind, Rating, RatingEvent
from tournament.leaderboards.services import (
    RatedResult,
    RatedTeam,
    append_results,
    verify_ratings,
)
from tournament.players import services as players
from tournament.players.models import VERSION_TRANSITIONS, BotVersion, VersionState
from tournament.store.clock import read_clock
from tournament.store.leases import FREE_FIELDS

pytestmark = pytest.mark.django_db


def close(tournament: Tournament) -> Tournament:
    return services.close_tournament(tournament=tournament, now=tournament.closes_at)


@pytest.fixture
def bots():
    return [make_bot(name) for name in ("alpha", "beta", "gamma")]


def test_open_tournament_is_committed_to_its_secret():
    tournament = make_tournament()
    secret = TournamentSecret.objects.get(tournament=tournament).secret
    assert tournament.commitment == commitment(tournament.slug, bytes(secret))
    assert revealed_secret(tournament) is None


def test_two_tournaments_have_different_secrets():
    organiser = make_player()
    for name in ("One", "Two"):
        make_tournament(organiser=organiser, name=name)
    assert len({bytes(row.secret) for row in TournamentSecret.objects.all()}) == 2


def test_tournament_opens_once():
    tournament = make_tournament()
    before = bytes(TournamentSecret.objects.get().secret)
    with pytest.raises(TournamentStateError):
        services.open_tournament(tournament=tournament)
    assert bytes(TournamentSecret.objects.get().secret) == before


def test_entries_cannot_be_closed_before_their_time(bots):
    tournament = make_tournament(bots)
    with pytest.raises(TournamentStateError, match="until"):
        services.close_tournament(tournament=tournament)


def test_pub_is_the_scheduled_close_and_the_sorted_wheels(bots):
    tournament = close(make_tournament(bots[::-1]))
    wheels = [["alpha", "beta", "gamma"][i] for i in range(3)]
    assert json.loads(tournament.pub) == {
        "close": tournament.closes_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "entrants": [
            [name, BotVersion.objects.get(bot__name=name).wheel_sha256] for name in wheels
        ],
    }


def test_pub_of_the_published_vector():
    from datetime import UTC, datetime

    pub = make_pub(datetime(2026, 12, 1, tzinfo=UTC), [("beta", "bb"), ("alpha", "aa")])
    assert pub == ('{"close":"2026-12-01T00:00:00Z","entrants":[["alpha","aa"],["beta","bb"]]}')


def test_newest_version_uploaded_in_time_is_frozen(bots):
    alpha = bots[0]
    tournament = make_tournament(bots)
    newer = accept(submit(alpha.owner, "alpha", "1.1"))
    late = accept(submit(alpha.owner, "alpha", "1.2"))
    BotVersion.objects.filter(pk=late.pk).update(
        uploaded_at=tournament.closes_at + timedelta(seconds=1)
    )
    assert versions_that_would_play(tournament)[alpha.pk] == newer
    close(tournament)
    assert entrant_of(tournament, "alpha").bots.get().version == newer


@pytest.mark.parametrize(
    "games",
    [
        {"podkidnoe": {"players": [2]}},  # another game
        {"eighty": {"players": [2]}},  # not at a table of four
        {"eighty": {"players": [4], "nello": [False]}},  # not by these rules
    ],
)
def test_version_that_was_not_accepted_for_this_play_does_not_count(games):
    owner = make_player()
    accept(submit(owner, "delta"), games)
    good = accept(submit(owner, "delta", "0.9"))
    tournament = make_tournament([good.bot])
    newest = accept(submit(owner, "delta", "2.0"), games)
    assert versions_that_would_play(tournament) == {good.bot_id: good}
    assert newest.state == VersionState.ACCEPTED


def test_close_awaits_versions_that_are_being_checked(bots):
    tournament = make_tournament(bots)
    waiting = submit(bots[1].owner, "beta", "1.1")
    closed = close(tournament)
    assert (closed.state, closed.pub) == (TournamentState.CLOSED, "")
    assert list(versions_awaited(tournament)) == [waiting]
    with pytest.raises(TournamentStateError, match="sealed"):
        services.start_tournament(tournament=tournament, now=tournament.starts_at)
    accept(waiting)
    assert close(tournament).pub
    assert entrant_of(tournament, "beta").bots.get().version == waiting


def test_version_withdrawn_before_the_seal_gives_way_to_the_one_before(bots):
    tournament = make_tournament(bots)
    waiting = submit(bots[1].owner, "beta", "1.1")
    close(tournament)
    players.withdraw_version(version=waiting)
    close(tournament)
    assert entrant_of(tournament, "beta").bots.get().version.version == "1.0"


def test_version_older_than_an_accepted_one_is_not_awaited(bots):
    tournament = make_tournament(bots)
    submit(bots[1].owner, "beta", "1.1")
    accept(submit(bots[1].owner, "beta", "1.2"))
    assert versions_awaited(tournament) == ()
    assert close(tournament).pub


def test_late_upload_is_not_awaited(bots):
    tournament = make_tournament(bots)
    late = submit(bots[1].owner, "beta", "1.1")
    BotVersion.objects.filter(pk=late.pk).update(uploaded_at=tournament.closes_at)
    assert close(tournament).pub


def test_unchecked_version_of_a_paused_bot_is_not_awaited(bots):
    tournament = make_tournament(bots)
    submit(bots[1].owner, "beta", "1.1")
    players.pause_bot(bot=bots[1], reason="under suspicion")
    assert versions_awaited(tournament) == ()
    assert close(tournament).pub
    assert entrant_of(tournament, "beta").reason == "beta: under suspicion"


def test_pair_with_a_paused_bot_is_not_waited_for():
    owner = make_player()
    one, two = make_bot("one", owner), make_bot("two", owner)
    tournament = make_tournament(kind="pair")
    services.enter(tournament=tournament, bots=[one, two], by=owner)
    submit(owner, "one", "1.1")
    players.pause_bot(bot=two, reason="under suspicion")
    assert versions_awaited(tournament) == ()


def let_be_stuck(version: BotVersion) -> BotVersion:
    """As if the site had failed to check it five times."""
    rows = BotVersion.objects.filter(pk=version.pk)
    VERSION_TRANSITIONS.move(
        rows, VersionState.RUNNING, lease_owner="test", lease_until=read_clock()
    )
    VERSION_TRANSITIONS.move(rows, VersionState.STUCK, **FREE_FIELDS)
    version.refresh_from_db()
    return version


class TestStuckVersion:
    @pytest.fixture
    def stuck(self, bots):
        return let_be_stuck(submit(bots[1].owner, "beta", "1.1"))

    @pytest.fixture
    def held(self, bots, stuck):
        tournament = make_tournament(bots)
        move_due_tournaments(now=tournament.starts_at)
        tournament.refresh_from_db()
        return tournament

    def test_pauses_the_tournament_and_is_named(self, held):
        assert (held.state, held.pub) == (TournamentState.CLOSED, "")
        assert "waits for beta 1.1" in held.paused_reason
        assert held.pause_cause == PauseCause.STUCK_VERSION

    @pytest.mark.parametrize("act", [players.withdraw_version, players.retry_version])
    def test_decided_lets_the_tournament_go_on_by_itself(self, held, stuck, act):
        act(version=stuck)
        if stuck.state == VersionState.SUBMITTED:
            move_due_tournaments(now=held.starts_at)
            held.refresh_from_db()
            assert (held.paused_reason, held.pub) == ("", "")
            accept(stuck)
        move_due_tournaments(now=held.starts_at)
        held.refresh_from_db()
        assert (held.paused_reason, held.state) == ("", TournamentState.RUNNING)

    def test_cannot_be_waved_through_by_resuming(self, held):
        with pytest.raises(TournamentStateError, match=r"beta 1\.1.*goes on by itself"):
            services.resume_tournament(tournament=held)

    def test_does_not_end_an_organisers_pause(self, bots, stuck):
        tournament = make_tournament(bots)
        services.pause_tournament(tournament=tournament, reason="the hall is dark")
        close(tournament)
        players.withdraw_version(version=stuck)
        tournament = close(tournament)
        assert tournament.paused_reason == "the hall is dark"
        assert tournament.pub


def test_start_names_the_versions_that_it_waits_for(bots):
    tournament = make_tournament(bots)
    submit(bots[1].owner, "beta", "1.1")
    close(tournament)
    with pytest.raises(
        TournamentStateError, match=r"waits for beta 1\.1 \(waiting to be checked\)"
    ):
        services.start_tournament(tournament=tournament, now=tournament.starts_at)


@pytest.mark.parametrize("size", [3, 9])
def test_versions_that_would_play_are_read_in_so_many_queries_for_any_number(
    size, django_assert_max_num_queries
):
    owner = make_player()
    tournament = make_tournament([make_bot(f"bot{number}", owner) for number in range(size)])
    with django_assert_max_num_queries(2):
        assert len(versions_that_would_play(tournament)) == size
    with django_assert_max_num_queries(3):
        assert versions_awaited(tournament) == ()


def test_entrant_without_a_version_is_dropped_with_the_reason(bots):
    tournament = make_tournament(bots)
    players.withdraw_version(version=bots[2].versions.get())
    players.pause_bot(bot=bots[1], reason="under suspicion")
    close(tournament)
    gamma, beta = entrant_of(tournament, "gamma"), entrant_of(tournament, "beta")
    assert (gamma.state, beta.state) == (EntrantState.WITHDRAWN, EntrantState.WITHDRAWN)
    assert "no version" in gamma.reason
    assert "under suspicion" in beta.reason


def test_sealed_tournament_cannot_be_closed_again(bots):
    tournament = make_tournament(bots)
    pub = close(tournament).pub
    with pytest.raises(TournamentStateError):
        close(tournament)
    tournament.refresh_from_db()
    assert tournament.pub == pub


def test_start_seeds_by_name_where_nobody_is_rated(bots):
    tournament = start(make_tournament(bots[::-1]))
    seeds = tournament.entrants.order_by("seed").values_list("name", flat=True)
    assert list(seeds) == ["alpha", "beta", "gamma"]
    assert tournament.state == TournamentState.RUNNING
    assert tournament.matches.count() == 1  # the top seed has a bye


def test_start_seeds_the_better_rated_first(bots):
    teams = (RatedTeam((("gamma", "1.0"),), 1), RatedTeam((("alpha", "1.0"),), 2))
    append_results(game="eighty", kind="mono", results=[RatedResult("old/M1", teams)])
    tournament = start(make_tournament(bots))
    seeds = tournament.entrants.order_by("seed").values_list("name", flat=True)
    assert list(seeds) == ["gamma", "beta", "alpha"]


def test_organiser_may_bring_the_start_forward_but_dispatch_waits_for_it(bots):
    tournament = close(make_tournament(bots))
    services.dispatch(rung=True)
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.CLOSED
    planned = tournament.starts_at
    tournament = services.start_tournament(tournament=tournament, now=tournament.closes_at)
    assert tournament.state == TournamentState.RUNNING
    assert tournament.starts_at < planned


def test_tournament_does_not_start_while_entries_are_open(bots):
    with pytest.raises(TournamentStateError, match="cannot start: it is"):
        services.start_tournament(tournament=make_tournament(bots))


def test_tournament_that_nobody_can_play_is_cancelled_with_the_reason(bots):
    tournament = start(make_tournament(bots[:1]))
    assert tournament.state == TournamentState.CANCELLED
    assert "at least 2 entrants" in tournament.cancelled_reason


def test_cancelled_tournament_stays_cancelled(bots):
    tournament = start(make_tournament(bots))
    services.cancel_tournament(tournament=tournament, reason="power cut")
    assert set(tournament.matches.values_list("state", flat=True)) == {MatchState.CANCELLED}
    with pytest.raises(TournamentStateError):
        services.cancel_tournament(tournament=tournament, reason="again")
    assert not services.advance_round(tournament=tournament)
    assert services.dispatch(rung=True).blocks == ()
    assert revealed_secret(Tournament.objects.get()) is None


def test_cancelled_tournament_counts_for_nothing_in_ratings(bots):
    contest = {"kind": "boards", "boards": 8}
    tournament = start(make_tournament(bots, format="round_robin", contest=contest))
    counted, cancelled = (
        RatedResult(key, (RatedTeam((("gamma", "1.0"),), 1), RatedTeam((("alpha", "1.0"),), 2)))
        for key in ("old/M1", f"{tournament.slug}/RR/R1/M1")
    )
    append_results(game="eighty", kind="mono", results=[counted])
    before = list(Rating.objects.order_by("version").values_list("mu", "sigma", "matches"))
    append_results(game="eighty", kind="mono", results=[cancelled])
    preview = preview_cancellation(tournament)
    services.cancel_tournament(tournament=tournament, reason="power cut")
    after = list(Rating.objects.order_by("version").values_list("mu", "sigma", "matches"))
    assert after == before
    assert {change.after.mu for change in preview} == {mu for mu, _, _ in before}
    assert verify_ratings(game="eighty", kind="mono") == ()
    kinds = RatingEvent.objects.order_by("seq").values_list("kind", "match_key")
    assert list(kinds)[-1] == (EventKind.VOID, cancelled.match_key)


def test_cancellation_that_fails_leaves_ratings_and_matches_as_they_were(bots, monkeypatch):
    tournament = start(make_tournament(bots))

    def fail(tournament):
        raise ZeroDivisionError

    monkeypatch.setattr(lifecycle, "rated_match_keys", fail)
    with pytest.raises(ZeroDivisionError):
        services.cancel_tournament(tournament=tournament, reason="power cut")
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.RUNNING
    assert not tournament.matches.filter(state=MatchState.CANCELLED).exists()


def test_pause_over_a_pause_keeps_the_reason_that_it_has(bots):
    tournament = make_tournament(bots)
    services.pause_tournament(
        tournament=tournament, reason="SE/R1/M1 could not be played", cause=PauseCause.FAILURE
    )
    with pytest.raises(TournamentStateError, match="paused already: SE/R1/M1"):
        services.pause_tournament(tournament=tournament, reason="lunch")
    tournament.refresh_from_db()
    assert tournament.paused_reason == "SE/R1/M1 could not be played"


@pytest.mark.parametrize("act", [services.cancel_tournament, services.pause_tournament])
def test_nothing_is_stopped_without_a_reason(act):
    with pytest.raises(TournamentStateError, match="reason"):
        act(tournament=make_tournament(), reason=" ")


def test_paused_tournament_begins_no_match_until_it_is_resumed(bots):
    tournament = start(make_tournament(bots))
    ((match,),) = services.dispatch(rung=True).blocks
    services.pause_tournament(tournament=tournament, reason="a look at the logs")
    assert services.play_match(match_id=match) is services.Play.NOT_OURS
    assert services.dispatch(rung=True).blocks == ()
    services.resume_tournament(tournament=tournament)
    assert services.dispatch(rung=True).blocks == ((match,),)


def test_only_what_is_paused_can_be_resumed():
    with pytest.raises(TournamentStateError):
        services.resume_tournament(tournament=make_tournament())


def test_finished_tournament_reveals_the_secret_it_was_committed_to(bots):
    tournament = play_all(start(make_tournament(bots)))
    secret = revealed_secret(tournament)
    assert secret is not None
    assert commitment(tournament.slug, bytes.fromhex(secret)) == tournament.commitment
    assert sorted(tournament.entrants.values_list("place", flat=True)) == [1, 2, 3]


class TestEntering:
    def test_bot_enters_and_leaves_while_entries_are_open(self, bots):
        tournament = make_tournament(bots)
        services.leave(entrant=entrant_of(tournament, "beta"), by=bots[1].owner)
        assert set(tournament.entrants.values_list("name", flat=True)) == {"alpha", "gamma"}
        services.enter(tournament=tournament, bots=[bots[1]], by=bots[1].owner)

    def test_bot_that_is_being_checked_may_enter(self):
        owner = make_player()
        bot = submit(owner, "delta").bot
        assert make_tournament([bot]).entrants.count() == 1

    def test_bot_without_any_hope_of_playing_may_not(self):
        version = submit(make_player(), "delta")
        players.withdraw_version(version=version)
        with pytest.raises(EntryError, match="submit one first"):
            make_tournament([version.bot])

    def test_another_players_bot_may_not_be_entered_nor_taken_out(self, bots):
        tournament = make_tournament(bots[:1])
        with pytest.raises(EntryError, match="not yours"):
            services.enter(tournament=tournament, bots=[bots[1]], by=bots[2].owner)
        with pytest.raises(EntryError, match="not yours"):
            services.leave(entrant=entrant_of(tournament, "alpha"), by=bots[2].owner)

    def test_bot_enters_once(self, bots):
        with pytest.raises(EntryError, match="already"):
            make_tournament([bots[0], bots[0]])

    def test_paused_bot_may_not_enter(self, bots):
        players.pause_bot(bot=bots[0], reason="wait")
        with pytest.raises(EntryError, match="wait"):
            make_tournament(bots[:1])

    def test_draft_takes_no_entries(self, bots):
        draft = services.create_tournament(organiser=make_player(), plan=make_plan())
        with pytest.raises(TournamentStateError, match="not open"):
            services.enter(tournament=draft, bots=bots[:1], by=bots[0].owner)

    def test_closed_tournament_takes_and_gives_back_no_entries(self, bots):
        tournament = make_tournament(bots[:2])
        Tournament.objects.update(closes_at=read_clock(), starts_at=read_clock())
        with pytest.raises(TournamentStateError, match="not open"):
            services.enter(tournament=tournament, bots=bots[2:], by=bots[2].owner)
        tournament.refresh_from_db()
        close(tournament)
        with pytest.raises(TournamentStateError, match="withdraw"):
            services.leave(entrant=entrant_of(tournament, "alpha"), by=bots[0].owner)

    def test_nobody_leaves_between_the_time_of_the_close_and_the_close(self, bots):
        tournament = make_tournament(bots)
        Tournament.objects.update(closes_at=read_clock(), starts_at=read_clock())
        with pytest.raises(TournamentStateError, match="not open for entries any more"):
            services.leave(entrant=entrant_of(tournament, "alpha"), by=bots[0].owner)
        assert tournament.entrants.count() == 3

    def test_pair_is_two_different_bots_of_the_player(self):
        owner = make_player()
        one, two = make_bot("one", owner), make_bot("two", owner)
        tournament = make_tournament(kind="pair")
        for wrong in ([one], [one, one], [one, two, one]):
            with pytest.raises(EntryError, match="pair"):
                services.enter(tournament=tournament, bots=wrong, by=owner)
        entrant = services.enter(tournament=tournament, bots=[one, two], by=owner)
        assert entrant.name == "one + two"
        assert [part.bot for part in entrant.bots.all()] == [one, two]
