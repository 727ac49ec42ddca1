"""Playing a match: one claim, one result, and nothing written by who has lost the claim."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from engine.agents import AgentLog
from engine.errors import InfrastructureError, SandboxUnavailableError, StarvedError
from engine.outcome import Fault, Termination
from engine.record import compute_digest, decode_record, has_acted, is_ratable, with_keys
from engine.referee import PlayedMatch, SeatLog
from engine.runner import run_match
from engine.sandbox.agent import SandboxAgent
from tests.tournament_factories import make_bot, make_player, make_tournament, play_all, start
from tournament.competitions import services
from tournament.competitions.models import (
    Attempt,
    AttemptEnding,
    DecidedBy,
    Match,
    MatchState,
    Tournament,
)
from tournament.competitions.selectors import match_logs, match_page, match_record
from tournament.competitions.selectors.engine_values import matches_to_play
from tournament.competitions.services import Play, playing
from tournament.competitions.services.dispatching import return_expired_matches
from tournament.leaderboards.models import RatingEvent
from tournament.store.clock import in_seconds
from tournament.store.errors import BlobDamagedError, StoreUnavailableError
from tournament.store.leases import MAX_ATTEMPTS, StoppedError
from tournament.store.services import read_packed

pytestmark = pytest.mark.django_db


@pytest.fixture
def match() -> Match:
    """The only match of a cup of two."""
    bots = [make_bot("alpha"), make_bot("beta")]
    return start(make_tournament(bots, contest={"kind": "boards", "boards": 8})).matches.get()


@pytest.fixture
def plays(monkeypatch):
    """What happens when a match is played; by default it is played, in this process."""

    def use(act):
        def fake(spec, sources, *, trusted, keep_alive):
            if isinstance(act, Exception):
                raise act
            return act(lambda: run_match(spec, sources, trusted=True, keep_alive=keep_alive))

        monkeypatch.setattr(playing, "run_match", fake)

    use(lambda play: play())
    return use


def play(match: Match) -> Play:
    came = services.play_match(match_id=match.pk)
    match.refresh_from_db()
    return came


def endings(match: Match) -> list[str]:
    return list(match.tries.values_list("ending", flat=True))


def test_played_match_has_result_record_and_attempt(match, plays):
    assert play(match) is Play.RECORDED
    assert (match.state, match.termination) == (MatchState.FINISHED, "completed")
    record = decode_record(read_packed(match.record_sha256))
    assert record.digest == match.digest == compute_digest(record)
    assert record.match_key == "SE/R1/M1"
    assert match.lease_owner == ""
    assert match.wall_ms == record.timing.wall_ms
    assert endings(match) == [AttemptEnding.RECORDED]
    parts = match.pairing.entrants.all()
    assert tuple(part.points for part in parts) == record.outcome.points
    assert tuple(part.place for part in parts) == record.outcome.places
    assert sum(part.advances for part in parts) == 1


def test_record_names_the_frozen_wheels(match, plays):
    play(match)
    record = match_record(match)
    named = {entrant.bots[0].bot: entrant.bots[0].wheel for entrant in record.entrants}
    frozen = {
        part.bot.name: f"sha256:{part.version.wheel_sha256}"
        for entrant in match.tournament.entrants.all()
        for part in entrant.bots.all()
    }
    assert named == frozen


def test_match_loaded_with_its_block_is_not_loaded_again(match, plays, monkeypatch):
    (loaded,) = matches_to_play([match.pk, match.pk + 1]).values()
    monkeypatch.setattr(playing, "match_to_play", None)
    assert services.play_match(match_id=match.pk, loaded=loaded) is Play.RECORDED
    assert match_record(Match.objects.get()).match_key == match.pairing.key


def test_match_that_was_claimed_or_cancelled_since_its_block_was_loaded_is_left_alone(match, plays):
    loaded = matches_to_play([match.pk])[match.pk]
    Match.objects.update(fence=F("fence") + 1)
    assert services.play_match(match_id=match.pk, loaded=loaded) is Play.NOT_OURS
    assert Match.objects.get().fence == match.fence + 1
    assert services.play_match(match_id=match.pk) is Play.RECORDED, "a fresh message finds it"


def test_match_of_a_tournament_that_was_paused_since_its_block_was_loaded_is_left_alone(
    match, plays
):
    loaded = matches_to_play([match.pk])[match.pk]
    services.pause_tournament(tournament=match.tournament, reason="the power is off")
    assert services.play_match(match_id=match.pk, loaded=loaded) is Play.NOT_OURS
    services.resume_tournament(tournament=match.tournament)
    assert services.play_match(match_id=match.pk, loaded=loaded) is Play.RECORDED


def test_deal_keys_are_hidden_until_the_secret_is_out(match, plays):
    play(match)
    hidden = match_record(Match.objects.get())
    assert {deal.key for game in hidden.games for deal in game.deals} == {None}
    services.advance_round(tournament=match.tournament)
    shown = match_record(Match.objects.get())
    assert None not in {deal.key for game in shown.games for deal in game.deals}
    assert shown.digest == hidden.digest


def test_shown_keys_yield_the_deals_of_the_record(match, plays):
    tournament = play_all(match.tournament)
    shown = match_record(Match.objects.get())
    from tournament.competitions.selectors.engine_values import tournament_key

    # with_keys raises at the first deal that its key does not yield
    assert with_keys(shown, tournament_key(tournament), tournament.slug) == shown


def test_damaged_record_is_not_shown(match, plays):
    from django.core.files.storage import storages

    play(match)
    path = Path(storages["blobs"].path(f"{match.record_sha256[:2]}/{match.record_sha256[2:]}"))
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(BlobDamagedError):
        match_record(match)


@pytest.mark.parametrize(
    "harm",
    [
        Path.unlink,  # the store has lost it
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?"),  # a bit of it has changed
    ],
)
def test_wheel_that_the_store_lost_or_damaged_is_our_failure_told_by_its_hash(match, harm):
    from django.core.files.storage import storages

    sha256 = match.pairing.entrants.first().entrant.bots.get().version.wheel_sha256
    path = Path(storages["blobs"].path(f"{sha256[:2]}/{sha256[2:]}"))
    whole = path.read_bytes()
    playing._unpack.cache_clear()
    try:
        harm(path)
        assert services.play_match(match_id=match.pk, trusted=True) is Play.FAILED
    finally:
        path.write_bytes(whole)
    attempt = match.tries.get()
    assert attempt.ending == AttemptEnding.FAILED
    assert sha256 in attempt.detail
    match.refresh_from_db()
    assert (match.state, match.pairing.decided_by) == (MatchState.PENDING, "")


def test_finished_match_is_not_played_again(match, plays):
    play(match)
    assert play(match) is Play.NOT_OURS
    assert endings(match) == [AttemptEnding.RECORDED]


def test_match_that_is_being_played_is_not_played_twice(match, plays):
    came = []

    def meanwhile(go):
        came.append(services.play_match(match_id=match.pk))
        return go()

    plays(meanwhile)
    assert play(match) is Play.RECORDED
    assert came == [Play.NOT_OURS]


def test_late_result_writes_no_rows(match, plays):
    def taken_over(go):
        played = go()
        Match.objects.update(lease_until=in_seconds(-1))
        return_expired_matches()
        return played

    plays(taken_over)
    assert play(match) is Play.DISCARDED
    assert (match.state, match.termination, match.record_sha256) == (MatchState.PENDING, "", "")
    assert match.attempts == 1
    assert set(match.pairing.entrants.values_list("place", flat=True)) == {None}
    assert endings(match) == [AttemptEnding.LOST]


def test_late_result_does_not_overwrite_the_newer_one(match, plays):
    def taken_over_and_played(go):
        played = go()
        Match.objects.update(lease_until=in_seconds(-1))
        return_expired_matches()
        plays(lambda again: again())
        Match.objects.update(run_after=in_seconds(-1))
        assert services.play_match(match_id=match.pk, owner="other") is Play.RECORDED
        return played

    plays(taken_over_and_played)
    assert play(match) is Play.DISCARDED
    assert match.state == MatchState.FINISHED
    assert endings(match) == [AttemptEnding.LOST, AttemptEnding.RECORDED]
    assert match.fence == 2


def test_match_cancelled_during_play_stays_cancelled(match, plays):
    def cancelled(go):
        services.cancel_tournament(tournament=match.tournament, reason="power cut")
        return go()

    plays(cancelled)
    assert play(match) is Play.DISCARDED
    assert (match.state, match.termination) == (MatchState.CANCELLED, "")
    assert endings(match) == [AttemptEnding.CANCELLED]
    assert not RatingEvent.objects.exists()


def test_same_seeds_give_the_same_match_again(match, plays, caplog):
    caplog.set_level(logging.CRITICAL)
    digests = []

    def fail_after(go):
        digests.append(go().record.digest)
        raise InfrastructureError("the disk is full")

    plays(fail_after)
    assert play(match) is Play.FAILED
    plays(lambda go: go())
    assert play(match) is Play.RECORDED
    assert digests == [match.digest]


@pytest.mark.parametrize(
    "error",
    [
        InfrastructureError("the zygote died"),  # foreseen
        StarvedError("this machine is too busy"),  # nobody's
        SandboxUnavailableError(["no user namespaces"]),  # the machine's
        MemoryError(),  # ours
        ZeroDivisionError("a bug"),  # not foreseen at all
        ValueError(
            "bytes \0 of a bot"
        ),  # PostgreSQL takes no NUL in a text: it can be noted all the same
    ],
)
def test_own_failure_is_played_again_later(match, plays, error, caplog):
    caplog.set_level(logging.CRITICAL)
    plays(error)
    assert play(match) is Play.FAILED
    assert (match.state, match.attempts) == (MatchState.PENDING, 1)
    assert endings(match) == [AttemptEnding.FAILED]
    assert type(error).__name__ in match.tries.get().detail
    assert services.dispatch(rung=True).blocks == ()  # not before its time


def test_store_that_is_away_is_no_failure_of_a_match_however_long(match, monkeypatch, plays):
    with monkeypatch.context() as away:
        away.setattr(playing, "read_often", Mock(side_effect=StoreUnavailableError("no mount")))
        away.setattr(playing, "_unpack", playing._unpack.__wrapped__)
        for _ in range(MAX_ATTEMPTS + 1):
            assert play(match) is Play.PUT_OFF
            assert (match.state, match.attempts) == (MatchState.PENDING, 0)
            assert services.dispatch(rung=True).blocks == ()  # not at once
    assert not match.tries.exists(), "attempts that could only fail pile up nowhere"
    assert match.tournament.paused_reason == ""
    assert play(match) is Play.RECORDED


def test_record_that_the_store_does_not_take_is_played_again(match, monkeypatch, plays):
    with monkeypatch.context() as away:
        away.setattr(playing, "put_packed", Mock(side_effect=StoreUnavailableError("no mount")))
        assert play(match) is Play.PUT_OFF
    assert (match.state, match.pairing.decided_by) == (MatchState.PENDING, "")
    assert play(match) is Play.RECORDED


@pytest.mark.sandbox
def test_match_that_a_busy_machine_starves_is_void_and_played_again_with_nobody_at_fault(
    match, monkeypatch, caplog
):
    caplog.set_level(logging.CRITICAL)
    ask, starved = SandboxAgent.ask, iter([True])

    def starve_once(*arguments, **named):
        if next(starved, False):
            raise StarvedError("this machine is too busy")
        return ask(*arguments, **named)

    monkeypatch.setattr(SandboxAgent, "ask", starve_once)
    assert services.play_match(match_id=match.pk, trusted=False) is Play.FAILED
    match.refresh_from_db()
    assert (match.state, match.pairing.decided_by) == (MatchState.PENDING, "")
    assert "this machine is too busy" in match.tries.get().detail
    Match.objects.update(run_after=in_seconds(-1))
    assert services.play_match(match_id=match.pk, trusted=False) is Play.RECORDED
    match.refresh_from_db()
    assert (match.termination, match.is_sandboxed, match.rated) == ("completed", True, True)
    assert endings(match) == [AttemptEnding.FAILED, AttemptEnding.RECORDED]


def test_tournament_is_locked_before_its_match_when_a_failure_is_counted(match):
    lease = playing._claim(match.pk, "worker")
    with CaptureQueriesContext(connection) as queries:
        playing.count_failure(lease, AttemptEnding.FAILED, "a disk is full")
    tables = [
        re.search(r'(?:FROM|UPDATE) "(\w+)"', query["sql"])
        for query in queries
        if "competitions_" in query["sql"]
    ]
    assert [found[1] for found in tables][:2] == ["competitions_tournament", "competitions_match"]


def test_match_is_locked_before_its_attempt_when_it_is_cancelled(match):
    playing._claim(match.pk, "worker")
    with CaptureQueriesContext(connection) as queries:
        services.cancel_tournament(tournament=match.tournament, reason="power cut")
    updated = [
        found[1]
        for query in queries
        if (found := re.match(r'UPDATE "competitions_(match|attempt)"', query["sql"]))
    ]
    assert updated == ["match", "attempt"]  # as who records it: else each could wait for the other
    assert endings(match) == [AttemptEnding.CANCELLED]


def test_fifth_own_failure_pauses_the_tournament_and_a_resume_plays_on(match, plays, caplog):
    caplog.set_level(logging.CRITICAL)
    plays(InfrastructureError("no sandbox"))
    for _ in range(MAX_ATTEMPTS):
        assert play(match) is Play.FAILED
    assert match.state == MatchState.STUCK
    tournament = Tournament.objects.get()
    assert "SE/R1/M1" in tournament.paused_reason
    assert AttemptEnding.FAILED.label in tournament.paused_reason
    assert "no sandbox" not in tournament.paused_reason
    assert "no sandbox" in match.tries.last().detail
    plays(lambda go: go())
    assert play(match) is Play.NOT_OURS
    services.resume_tournament(tournament=tournament)
    assert play(match) is Play.RECORDED
    assert len(endings(match)) == MAX_ATTEMPTS + 1


def test_worker_that_has_to_stop_gives_the_match_back_uncounted(match, plays):
    plays(StoppedError("told to stop"))
    assert play(match) is Play.RELEASED
    assert (match.state, match.attempts) == (MatchState.PENDING, 0)
    assert endings(match) == [AttemptEnding.RELEASED]
    plays(lambda go: go())
    assert play(match) is Play.RECORDED


def test_match_by_other_rules_is_left_to_others(match, plays):
    Tournament.objects.update(rules_version="arena-rules/0")
    assert play(match) is Play.NOT_OURS


def test_match_of_trusted_bots_is_never_rated_and_says_so(match):
    assert match.rated
    services.play_match(match_id=match.pk, trusted=True)
    match.refresh_from_db()
    assert (match.rated, match.is_sandboxed) == (False, False)


def with_fault(played: PlayedMatch, *entrants: int, keep_games: int) -> PlayedMatch:
    """`played` as if these entrants had crashed in its game `keep_games`."""
    record = played.record
    record.games = record.games[:keep_games]
    places = tuple(
        len(record.entrants) - len(entrants) + 1 if i in entrants else 1
        for i in range(len(record.entrants))
    )
    record.outcome = type(record.outcome)(
        termination=Termination.CRASH,
        faults=tuple(Fault(i, None, Termination.CRASH, "boom") for i in entrants),
        points=(0,) * len(record.entrants),
        places=places,
    )
    record.digest = compute_digest(record)
    return played


@pytest.mark.parametrize(
    ("offenders", "games", "rated"),
    [
        ([1], 1, True),  # crashed after it had acted: its loss
        ([1], 0, False),  # did not start: says nothing of its strength
        ([0, 1], 1, False),  # nobody won
    ],
)
def test_fault_is_rated_from_the_offenders_first_action_on(match, plays, offenders, games, rated):
    plays(lambda go: with_fault(go(), *offenders, keep_games=games))
    assert play(match) is Play.RECORDED
    assert (match.termination, match.rated) == ("crash", rated)
    services.advance_round(tournament=match.tournament)
    assert RatingEvent.objects.count() == rated


def test_double_forfeit_lets_the_better_seed_advance(match, plays):
    plays(lambda go: with_fault(go(), 0, 1, keep_games=1))
    play(match)
    winner = match.pairing.entrants.get(advances=True)
    assert match.pairing.decided_by == DecidedBy.DOUBLE_FORFEIT
    assert winner.entrant.seed == 1
    assert {part.score for part in match.pairing.entrants.all()} == {0}


def test_who_has_acted_is_read_from_the_seating(match, plays):
    play(match)
    record = match_record(match)
    assert is_ratable(record)
    game = record.games[1]
    game.deals[0].actions = [a for a in game.deals[0].actions if a[0] in "02"]
    record.games = [game]
    sitting = {game.seating[0], game.seating[2]}
    assert {i for i in range(2) if has_acted(record, i)} == sitting


def test_logs_are_for_the_owner_alone(match, plays):
    def with_logs(go):
        played = go()
        logs = tuple(
            SeatLog(
                entrant=i, bot=0, rotation=0, seat=i, sitting=0, log=AgentLog(text=f"secret {i}")
            )
            for i in range(2)
        )
        return PlayedMatch(record=played.record, logs=logs)

    plays(with_logs)
    play(match)
    for part in match.pairing.entrants.all():
        owner = part.entrant.bots.get().bot.owner
        assert [log.log.text for log in match_logs(match, owner)] == [f"secret {part.index}"]
    assert match_logs(match, make_player()) == ()


def test_records_may_be_kept_back_until_the_end(plays):
    bots = [make_bot(name) for name in ("alpha", "beta", "gamma")]
    tournament = start(make_tournament(bots, records_public="at_end"))
    first = tournament.matches.get()
    play(first)
    assert match_page(tournament.slug, first.pairing.key).record is None
    assert match_page(tournament.slug, first.pairing.key, for_staff=True).record is not None
    play_all(tournament)
    assert match_page(tournament.slug, first.pairing.key).record is not None


class TestForfeit:
    def test_organiser_decides_a_match_without_a_record(self, match):
        loser = match.pairing.entrants.get(index=0).entrant
        services.forfeit_match(match=match, offenders=[loser.pk], reason="sent two wheels")
        match.refresh_from_db()
        assert (match.state, match.termination, match.record_sha256) == ("finished", "forfeit", "")
        assert match.pairing.decided_by == DecidedBy.FORFEIT
        assert match.pairing.entrants.get(advances=True).index == 1
        services.advance_round(tournament=match.tournament)
        assert Tournament.objects.get().state == "finished"
        assert not RatingEvent.objects.exists()
        assert match_record(match) is None

    def test_match_being_played_is_discarded(self, match, plays):
        loser = match.pairing.entrants.get(index=0).entrant

        def meanwhile(go):
            services.forfeit_match(match=match, offenders=[loser.pk], reason="late")
            return go()

        plays(meanwhile)
        assert play(match) is Play.DISCARDED
        assert match.termination == "forfeit"
        assert endings(match) == [AttemptEnding.CANCELLED]

    @pytest.mark.parametrize(
        ("offenders", "reason"),
        [
            ([], "nobody"),  # against whom?
            ([0], "not in it"),  # no such entrant
            (None, " "),  # no reason
        ],
    )
    def test_decision_that_makes_no_sense_is_refused(self, match, offenders, reason):
        from engine.errors import UsageError

        if offenders is None:
            offenders = [match.pairing.entrants.get(index=0).entrant_id]
        with pytest.raises(UsageError):
            services.forfeit_match(match=match, offenders=offenders, reason=reason)
        match.refresh_from_db()
        assert match.state == MatchState.PENDING
        assert not Attempt.objects.exists()
