"""Dispatch: what is due happens, what is published is bounded and fair, and twice does no harm."""

from __future__ import annotations

import itertools
import logging
from datetime import timedelta

import pytest

from engine.errors import FormatError
from tests.tournament_factories import (
    make_bot,
    make_plan,
    make_player,
    make_tournament,
    start,
    submit,
)
from tournament.competitions import services
from tournament.competitions.models import (
    AttemptEnding,
    Match,
    MatchState,
    Pairing,
    QueueClock,
    Round,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors.engine_values import time_controls_of_matches
from tournament.competitions.services import Play, StageWish, dispatching
from tournament.competitions.services.dispatching import (
    BLOCKS_PER_SLOT,
    dispatch,
    move_due_tournaments,
    queue_matches,
    round_is_empty,
)
from tournament.players.models import BotVersion
from tournament.store.clock import in_seconds, read_clock
from tournament.store.queues import Capacity

pytestmark = pytest.mark.django_db


@pytest.fixture
def bots():
    return [make_bot(f"bot{number}") for number in range(6)]


def league(bots, **changes) -> Tournament:
    """A running round robin."""
    return start(make_tournament(bots, format="round_robin", **changes))


def in_flight(tournament: Tournament) -> int:
    return tournament.matches.filter(state__in=["queued", "running"]).count()


def test_dispatch_within_half_a_second_does_nothing_unless_rung(bots, monkeypatch):
    monkeypatch.setattr(dispatching, "MIN_SECONDS_BETWEEN", 600.0)  # half a second passes by itself
    league(bots[:2])
    assert dispatch().blocks
    Match.objects.update(state=MatchState.PENDING)
    assert dispatch() == services.Due()
    assert dispatch(rung=True).blocks


def test_due_is_published_once(bots):
    version = submit(make_player(), "late")
    tournament = league(bots[:2])
    due = dispatch(rung=True)
    assert due.versions == (version.pk,)
    assert due.blocks == ((tournament.matches.get().pk,),)
    assert dispatch(rung=True) == services.Due()


def test_tournament_moves_through_its_times_by_itself(bots):
    now = read_clock()
    tournament = services.create_tournament(
        organiser=make_player(),
        plan=make_plan(
            opens_at=now + timedelta(hours=1),
            closes_at=now + timedelta(hours=2),
            starts_at=now + timedelta(hours=3),
        ),
    )

    def state_at(hours: float) -> str:
        move_due_tournaments(now=now + timedelta(hours=hours))
        tournament.refresh_from_db()
        return tournament.state

    assert state_at(0.9) == TournamentState.DRAFT
    assert state_at(1.1) == TournamentState.OPEN
    for bot in bots[:2]:
        services.enter(tournament=tournament, bots=[bot], by=bot.owner)
    assert state_at(1.9) == TournamentState.OPEN
    assert state_at(2.1) == TournamentState.CLOSED
    assert tournament.pub
    assert state_at(2.9) == TournamentState.CLOSED
    assert state_at(3.1) == TournamentState.RUNNING


def test_after_an_outage_all_its_times_are_made_up_for_at_once(bots):
    tournament = make_tournament(bots[:2])
    assert move_due_tournaments(now=tournament.starts_at + timedelta(days=1)) == 1
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.RUNNING


def test_paused_tournament_does_not_start_by_itself(bots):
    tournament = make_tournament(bots[:2])
    services.pause_tournament(tournament=tournament, reason="wait")
    move_due_tournaments(now=tournament.starts_at)
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.CLOSED


def test_one_tournament_that_cannot_go_on_is_paused_and_the_others_go_on(bots, monkeypatch, caplog):
    caplog.set_level(logging.ERROR)
    broken = make_tournament(bots[:2], name="Broken")
    sound = make_tournament(bots[2:4], name="Sound")
    close = dispatching.close_tournament

    def fail(*, tournament, now):
        if tournament.pk == broken.pk:
            raise ZeroDivisionError("a bug of ours")
        return close(tournament=tournament, now=now)

    monkeypatch.setattr(dispatching, "close_tournament", fail)
    move_due_tournaments(now=broken.starts_at + timedelta(seconds=5))
    broken.refresh_from_db()
    sound.refresh_from_db()
    assert broken.paused_reason == "it cannot go on: an error of the site, see its log"
    assert "a bug of ours" in caplog.text
    assert sound.state == TournamentState.RUNNING


def test_tournament_that_cannot_go_on_is_not_tried_again_before_it_is_resumed(bots, monkeypatch):
    broken = make_tournament(bots[:2])
    tries = []

    def fail(*, tournament, now):
        tries.append(tournament.pk)
        raise FormatError("there is no format 'gone'")

    monkeypatch.setattr(dispatching, "close_tournament", fail)
    for _ in range(2):
        move_due_tournaments(now=broken.starts_at)
    broken.refresh_from_db()
    assert tries == [broken.pk]
    assert broken.paused_reason == "it cannot go on: there is no format 'gone'"


def test_tournament_that_even_a_pause_cannot_hold_does_not_stop_the_others(
    bots, monkeypatch, caplog
):
    caplog.set_level(logging.CRITICAL)
    broken = make_tournament(bots[:2], name="Broken")
    sound = make_tournament(bots[2:4], name="Sound")
    close = dispatching.close_tournament

    def fail(*, tournament, **_):
        if tournament.pk == broken.pk:
            raise ZeroDivisionError
        return close(tournament=tournament, now=sound.starts_at)

    monkeypatch.setattr(dispatching, "close_tournament", fail)
    monkeypatch.setattr(dispatching, "pause_tournament", fail)
    move_due_tournaments(now=sound.starts_at)
    sound.refresh_from_db()
    assert sound.state == TournamentState.RUNNING


def test_match_that_cannot_be_given_back_does_not_stop_the_others(bots, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL)
    tournament = league(bots[:3])
    from tournament.competitions.services.playing import _claim

    first, second = tournament.matches.order_by("pk")[:2]
    for match in (first, second):
        assert _claim(match.pk, "a worker that dies") is not None
    Match.objects.filter(pk__in=[first.pk, second.pk]).update(lease_until=in_seconds(-1))
    count_failure = dispatching.count_failure

    def fail(lease, *args, **kwargs):
        if lease.pk == first.pk:
            raise ZeroDivisionError
        return count_failure(lease, *args, **kwargs)

    monkeypatch.setattr(dispatching, "count_failure", fail)
    assert dispatching.return_expired_matches() == 1
    second.refresh_from_db()
    assert second.state == MatchState.PENDING


def test_lost_claim_is_given_back_with_its_attempt(bots):
    tournament = league(bots[:2])
    match = tournament.matches.get()
    from tournament.competitions.services.playing import _claim

    assert _claim(match.pk, "a worker that dies") is not None
    dispatch(rung=True)
    match.refresh_from_db()
    assert match.state == MatchState.RUNNING
    Match.objects.update(lease_until=in_seconds(-1))
    dispatch(rung=True)
    match.refresh_from_db()
    assert (match.state, match.attempts) == (MatchState.PENDING, 1)
    assert match.tries.get().ending == AttemptEnding.LOST


def test_match_that_kills_its_worker_each_time_is_stuck_and_the_others_go_on(bots):
    tournament = league(bots[:2], name="Deadly")
    other = league(bots[2:4], name="Other")
    match = tournament.matches.get()
    from tournament.competitions.services.playing import _claim

    for _ in range(5):
        Match.objects.filter(pk=match.pk).update(run_after=in_seconds(-1))
        assert _claim(match.pk, "worker") is not None
        Match.objects.filter(pk=match.pk).update(lease_until=in_seconds(-1))
        dispatch(rung=True)
    match.refresh_from_db()
    tournament.refresh_from_db()
    assert match.state == MatchState.STUCK
    assert "no sign of life" in tournament.paused_reason
    assert services.play_match(match_id=other.matches.get().pk, trusted=True) is Play.RECORDED


def test_what_is_in_flight_is_bounded_by_the_worker_slots(bots, settings):
    settings.ARENA_WORKER_SLOTS = 1
    tournament = league(bots)
    blocks = queue_matches()
    assert [len(block) for block in blocks] == [1] * BLOCKS_PER_SLOT  # nothing measured yet
    assert in_flight(tournament) == BLOCKS_PER_SLOT
    assert queue_matches() == ()


@pytest.mark.parametrize(
    ("wall_ms", "size"),
    [
        (100, 10),  # ten make a second
        (2000, 1),  # one is more than enough
        (0, 14),  # too fast to measure: all that is left of 15
    ],
)
def test_blocks_are_sized_by_the_measured_durations(bots, settings, monkeypatch, wall_ms, size):
    settings.ARENA_WORKER_SLOTS = 1
    monkeypatch.setattr(dispatching, "BLOCKS_PER_SLOT", 1)
    measured_league(bots, wall_ms)
    assert list(map(len, queue_matches())) == [size]


def measured_league(bots, wall_ms: int, **changes) -> Tournament:
    """A running round robin whose first match has been played, in so many milliseconds."""
    tournament = league(bots, **changes)
    first = tournament.matches.order_by("pk").first()
    assert services.play_match(match_id=first.pk, trusted=True) is Play.RECORDED
    Match.objects.filter(pk=first.pk).update(wall_ms=wall_ms)
    return tournament


@pytest.mark.parametrize(
    ("slots", "wall_ms", "sizes"),
    [
        pytest.param(1, 100, [4, 4, 2, 4], id="four messages are in flight for the only slot"),
        pytest.param(
            2, 300, [2, 1, 2, 1, 2, 1, 3, 2], id="the largest are cut while there is room"
        ),
        pytest.param(8, 100, [1] * 14, id="a message for each match, if so many may be in flight"),
        pytest.param(8, 30, [4, 4, 4, 2], id="a piece is not less than a tenth of a second"),
    ],
)
def test_where_there_is_room_for_all_that_waits_blocks_are_cut_for_the_slots(
    bots, settings, slots, wall_ms, sizes
):
    settings.ARENA_WORKER_SLOTS = slots
    tournament = measured_league(bots, wall_ms)
    blocks = queue_matches()
    assert list(map(len, blocks)) == sizes
    waiting = tournament.matches.exclude(state="finished").order_by("pk")
    assert [pk for block in blocks for pk in block] == [match.pk for match in waiting]
    assert {match.state for match in waiting} == {MatchState.QUEUED}


def test_durations_are_measured_now_and_then(bots, settings, monkeypatch):
    settings.ARENA_WORKER_SLOTS = 1
    monkeypatch.setattr(dispatching, "BLOCKS_PER_SLOT", 1)
    tournament = measured_league(bots, 500)
    assert [len(block) for block in queue_matches()] == [2]
    Match.objects.filter(state="finished").update(wall_ms=250)
    tournament.matches.exclude(state="finished").update(state=MatchState.PENDING)
    assert [len(block) for block in queue_matches(measure=False)] == [2], "as it was a moment ago"
    tournament.matches.exclude(state="finished").update(state=MatchState.PENDING)
    assert [len(block) for block in queue_matches()] == [4]
    assert QueueClock.objects.get().match_seconds == {str(tournament.pk): 0.25}


def test_what_can_wait_is_done_every_few_seconds_and_when_rung(bots, monkeypatch):
    monkeypatch.setattr(dispatching, "MIN_SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(dispatching, "SELDOM_SECONDS", 600.0)
    monkeypatch.setattr(dispatching.settings, "ARENA_LEASE_SECONDS", 3600)
    done = []
    monkeypatch.setattr(dispatching, "return_expired_versions", lambda: done.append("returned"))
    monkeypatch.setattr(dispatching, "publish_due_results", lambda now: done.append("published"))
    league(bots[:2])
    assert dispatch().blocks
    dispatch()
    assert done == ["returned", "published"]
    dispatch(rung=True)
    assert done == ["returned", "published"] * 2
    monkeypatch.setattr(dispatching.settings, "ARENA_LEASE_SECONDS", 0)
    dispatch()
    assert done == ["returned", "published"] * 3, "a short lease makes it more often"


def test_tournaments_share_by_their_weight(bots, settings):
    settings.ARENA_WORKER_SLOTS = 3
    heavy = league(bots, name="Heavy", weight=3)
    light = league(bots, name="Light", weight=1)
    queue_matches()
    assert (in_flight(heavy), in_flight(light)) == (9, 3)


def test_more_tournaments_than_there_is_room_for_take_turns_by_their_weight(
    bots, settings, monkeypatch
):
    """What is in flight says nothing here: all but one have nothing in flight, and the first would always win."""
    settings.ARENA_WORKER_SLOTS = 1
    monkeypatch.setattr(dispatching, "BLOCKS_PER_SLOT", 1)
    cups = [league(bots[:4], name=f"Cup {n}", weight=weight) for n, weight in enumerate((1, 2, 1))]
    served = []
    for _ in range(8):
        ((pk,),) = queue_matches()
        served.append(Match.objects.get(pk=pk).tournament_id)
        Match.objects.filter(pk=pk).update(state=MatchState.CANCELLED)
    assert [served.count(cup.pk) for cup in cups] == [2, 4, 2]


def test_who_comes_late_has_no_credit_for_the_time_before():
    clock = QueueClock()
    for _ in range(10):
        clock.serve(1, 0.5)
    assert clock.turn_of(2) == clock.now == 4.5
    clock.serve(2, 0.5)
    assert clock.turn_of(1) == clock.turn_of(2) == 5.0  # from now on in turns
    clock.serve(1, 0.5)
    assert clock.ahead == {"1": 5.5}  # who is not ahead needs no line


def test_tournament_never_has_more_in_flight_than_its_cap(bots, settings):
    settings.ARENA_WORKER_SLOTS = 3
    capped = league(bots, name="Capped", cap=2)
    free = league(bots, name="Free")
    queue_matches()
    assert in_flight(capped) == 2
    assert in_flight(free) == 10


def test_queued_match_is_published_again_only_when_its_message_may_be_lost(bots):
    tournament = league(bots[:2])
    (block,) = queue_matches()
    assert queue_matches() == ()
    Match.objects.update(queued_at=in_seconds(-14))
    assert queue_matches() == ()
    Match.objects.update(queued_at=in_seconds(-16))
    assert queue_matches() == (block,)
    assert queue_matches() == ()
    assert in_flight(tournament) == 1


def at(**slots: int) -> Capacity:
    """So many slots for matches with each time control, each on a worker of its own."""
    return Capacity(
        {f"matches.{name}": count for name, count in slots.items()}, sum(slots.values())
    )


def test_what_no_worker_takes_is_not_published(bots):
    version = submit(make_player(), "late")
    slow = league(bots[:2], name="Slow", time_control="long")
    fast = league(bots[2:4], name="Fast", time_control="fast")
    due = dispatch(rung=True, capacity=at(fast=1))
    assert due == services.Due(blocks=((fast.matches.get().pk,),))
    due = dispatch(rung=True, capacity=Capacity({"validation": 1, "matches.long": 1}, 2))
    assert (due.versions, due.blocks) == ((version.pk,), ((slow.matches.get().pk,),))


def test_each_time_control_fills_the_slots_that_play_it_and_no_more(bots):
    slow = league(bots, name="Slow", time_control="long")
    assert len(queue_matches(capacity=at(fast=3, long=1))) == BLOCKS_PER_SLOT
    fast = league(bots, name="Fast", time_control="fast")
    queue_matches(capacity=at(fast=3, long=1))
    assert (in_flight(slow), in_flight(fast)) == (BLOCKS_PER_SLOT, 3 * BLOCKS_PER_SLOT)
    assert queue_matches(capacity=at(fast=3, long=1)) == ()


def test_block_is_of_one_time_control_though_its_tournament_has_two(bots, settings):
    settings.ARENA_WORKER_SLOTS = 1
    stages = (
        StageWish(format="round_robin", qualifiers=2, time_control="fast"),
        StageWish(format="single_elimination", time_control="long"),
    )
    tournament = start(make_tournament(bots[:4], format="", stages=stages))
    first, *others = tournament.matches.order_by("pk")
    final = Round.objects.create(stage=tournament.stages.get(index=1), index=1)
    Pairing.objects.filter(match=first).update(round=final)
    controls = {first.pk: "long", **{match.pk: "fast" for match in others}}
    assert time_controls_of_matches(list(controls)) == controls
    (only,) = queue_matches(capacity=at(long=1))
    assert only == (first.pk,)
    Match.objects.update(queued_at=in_seconds(-60))
    assert queue_matches(capacity=at(long=1)) == ((first.pk,),), "its message may be lost"
    rest = queue_matches(capacity=at(fast=3))
    assert {pk for block in rest for pk in block} == {match.pk for match in others}


def test_nothing_is_published_again_as_long_as_no_worker_is_heard_of(bots):
    league(bots[:2])
    unheard = Capacity.by_settings(is_known=False)
    (block,) = queue_matches(capacity=unheard)
    Match.objects.update(queued_at=in_seconds(-16))
    assert queue_matches(capacity=unheard) == ()
    assert queue_matches() == (block,)


def test_match_that_was_queued_just_as_it_was_paused_is_queued_anew_when_it_is_resumed(bots):
    """Its message came to nothing, and nobody would send another for `STALE_SECONDS`."""
    tournament = league(bots[:2])
    services.pause_tournament(tournament=tournament, reason="a look")
    Match.objects.update(state=MatchState.QUEUED, queued_at=in_seconds(0))
    services.resume_tournament(tournament=tournament)
    assert queue_matches() == ((tournament.matches.get().pk,),)


def test_match_waits_for_its_time(bots):
    league(bots[:2])
    Match.objects.update(run_after=in_seconds(60))
    assert queue_matches() == ()


def test_round_is_empty_when_its_last_match_is_decided(bots):
    tournament = start(make_tournament(bots[:4]))
    matches = list(tournament.matches.order_by("pk").values_list("pk", flat=True))
    services.play_match(match_id=matches[0], trusted=True)
    assert not round_is_empty(match_ids=matches[:1])
    services.play_match(match_id=matches[1], trusted=True)
    assert round_is_empty(match_ids=matches[1:])
    services.advance_round(tournament=tournament)
    assert not round_is_empty(match_ids=matches)


def test_round_does_not_ring_for_the_next_while_others_of_its_tournament_wait(bots):
    tournament = league(bots[:4])  # all three rounds are published at once
    first, *later = (
        list(tournament.matches.filter(pairing__round__index=number).values_list("pk", flat=True))
        for number in (1, 2, 3)
    )
    for match in first:
        services.play_match(match_id=match, trusted=True)
    assert not round_is_empty(match_ids=first)
    for match in itertools.chain(*later):
        services.play_match(match_id=match, trusted=True)
    assert round_is_empty(match_ids=later[-1])


def test_version_whose_checker_died_is_given_back():
    from tests.unit.tournament.store.test_leases import claim, let_expire

    version = submit(make_player(), "alpha")
    claim(version)
    let_expire(version)
    dispatch(rung=True)
    assert BotVersion.objects.get().attempts == 1
