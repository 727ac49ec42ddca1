"""Workers that die, freeze, or are told to stop in the middle of a match."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta

import pytest

from tests.faults import oracle
from tests.faults.cups import Event, make_event
from tests.faults.harness import LEASE_SECONDS, Program, Site
from tournament.competitions.models import AttemptEnding, Match, MatchState
from tournament.competitions.services import resume_tournament
from tournament.store.clock import read_clock

pytestmark = [pytest.mark.faults, pytest.mark.stack, pytest.mark.sandbox, pytest.mark.slow]
SLOW = 0.06
"""Seconds that a bot thinks where a match has to be caught in the middle."""
MOST_KILLS = 3


def endings(match: Match) -> list[str]:
    return list(match.tries.order_by("fence").values_list("ending", flat=True))


@pytest.mark.parametrize(
    "killed",
    [
        # with its pool: the machine has lost power
        "worker",
        "pool child",  # out of memory; the main process replaces it
    ],
)
@pytest.mark.exhaustive
def test_match_of_a_killed_process_is_played_again_within_its_lease_and_five_seconds(
    site: Site, killed: str
):
    event = make_event(site, bots=2, pause=SLOW)  # one match, so that nobody is busy with another
    workers = site.start(workers=2)
    kills = 0
    is_soon = False
    while (
        not is_soon
    ):  # on a busy machine things take longer than by their rules: it gets a second chance
        assert kills < MOST_KILLS, "it took longer each time"
        kills += 1
        took = kill_a_player(site, workers, killed)
        is_soon = took < timedelta(seconds=LEASE_SECONDS + 2.5 + 1.25 * 2**kills)
    site.play_out(event.tournaments)
    assert endings(Match.objects.get()) == [AttemptEnding.LOST] * kills + [AttemptEnding.RECORDED]
    event.judge(site)


def kill_a_player(site: Site, workers: list[Program], killed: str) -> timedelta:
    """Kill who plays a match; after how long somebody plays it again."""
    match = site.running_match()
    player = site.player_of(match)
    worker = next(each for each in workers if player in each.children())
    began = read_clock()
    if killed == "worker":
        worker.kill()
        worker.start()
    else:
        os.kill(player, signal.SIGKILL)
        site.tally.fault("kill -9")
    again = site.wait_until(match.tries.filter(fence=match.fence + 1).first, what="another try")
    return again.started_at - began


@pytest.mark.exhaustive
def test_main_process_killed_alone_leaves_its_pool_what_it_plays(site: Site):
    """Whether the child that is left records its match or another takes it over: it counts once."""
    event = make_event(site, bots=3, pause=SLOW)
    (worker,) = site.start()
    match = site.running_match()
    worker.kill_main()
    site.wait_until(
        Match.objects.filter(pk=match.pk).exclude(state=MatchState.RUNNING).exists,
        what="the end of its play",
    )
    worker.start()
    site.play_out(event.tournaments)
    event.judge(site)


def freeze_over_a_lease(site: Site, event: Event, workers: list[Program]) -> Match:
    """Freeze who plays a match until another plays it, then let both go on."""
    match = site.running_match()
    worker = next(each for each in workers if site.player_of(match) in each.children())
    time.sleep(LEASE_SECONDS / 2)  # so far ahead that it would be the first to finish
    worker.freeze()
    site.running_match(pk=match.pk, beyond=match.fence)
    worker.thaw()
    site.play_out(event.tournaments)
    return match


@pytest.mark.exhaustive
def test_result_of_a_worker_frozen_for_longer_than_its_lease_writes_nothing(site: Site):
    event = make_event(site, bots=2, pause=2 * SLOW)
    match = freeze_over_a_lease(site, event, site.start(workers=2))
    assert endings(match) == [AttemptEnding.LOST, AttemptEnding.RECORDED]
    event.judge(site)


@pytest.mark.exhaustive
def test_match_that_lasts_longer_than_its_lease_is_played_once(site: Site):
    """Whoever plays keeps prolonging its lease, so nobody takes the match away."""
    event = make_event(site, bots=2, pause=4 * SLOW)
    site.start()
    (match,) = Match.objects.all()
    ended = match.tries.exclude(ending=AttemptEnding.RUNNING)
    assert site.wait_until(ended.first, what="the end of the first try").ending == "recorded"
    site.play_out(event.tournaments)
    match.refresh_from_db()
    assert match.wall_ms is not None
    assert match.wall_ms > 1000 * LEASE_SECONDS, "the match was too short to show anything"
    assert endings(match) == [AttemptEnding.RECORDED]
    event.judge(site)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("stop_seconds", "ending"),
    [
        (60, AttemptEnding.RECORDED),  # time enough to finish what is being played
        (1, AttemptEnding.RELEASED),  # not enough: given back, and no failure
    ],
)
def test_deploy_in_the_middle_of_matches_counts_as_no_failure(
    site: Site, stop_seconds: int, ending: AttemptEnding
):
    site.stop_seconds = stop_seconds
    event = make_event(site, bots=3, pause=2 * SLOW)
    (worker,) = site.start()
    match = site.running_match()
    for each in (worker, site.programs["control"], site.programs["beat"]):
        each.ask_to_stop()
    site.tally.fault("TERM", 3)
    for each in (worker, site.programs["control"], site.programs["beat"]):
        each.wait()
    assert endings(match)[0] == ending
    for each in (worker, site.programs["control"], site.programs["beat"]):
        each.start()
    site.play_out(event.tournaments)
    assert set(Match.objects.values_list("attempts", flat=True)) == {0}
    event.judge(site)


@pytest.mark.exhaustive
def test_match_that_kills_its_worker_each_time_is_stuck_after_five_and_the_others_go_on(
    site: Site,
):
    poisoned, healthy = (make_event(site, bots=2, pause=SLOW), make_event(site, bots=4))
    poison = Match.objects.get(tournament=poisoned.tournaments[0])
    site.start(workers=2)
    for attempt in range(1, 6):
        Match.objects.filter(pk=poison.pk).update(run_after=read_clock())  # no back-off
        running = site.running_match(pk=poison.pk, beyond=attempt - 1)
        os.kill(site.player_of(running), signal.SIGKILL)
        site.tally.fault("kill -9")
        site.wait_until(lambda: poison.tries.filter(ending="lost").count() == attempt)  # noqa: B023 waited for here
    site.play_out(healthy.tournaments)
    (tournament,) = poisoned.tournaments
    tournament.refresh_from_db()
    assert "could not be played in 5 attempts" in tournament.paused_reason
    site.tally.judged(oracle.judge([tournament], stuck=[poison.pk]))
    resume_tournament(tournament=tournament)  # the operator has found and mended what killed it
    site.play_out(poisoned.tournaments)
    poisoned.judge(site)
    healthy.judge(site)
