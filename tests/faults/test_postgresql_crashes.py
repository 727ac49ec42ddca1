"""A database that crashes in the middle of everything, and commits of which nobody knows whether they were."""

from __future__ import annotations

from random import Random
from unittest import mock

import pytest
from django.db import OperationalError, connections

from tests.faults.cups import make_event
from tests.faults.harness import Site
from tests.tournament_factories import play_all
from tournament.competitions.models import AttemptEnding, Match, MatchState
from tournament.competitions.services import Play, play_match, playing
from tournament.store.clock import read_clock

pytestmark = [pytest.mark.faults, pytest.mark.sandbox, pytest.mark.slow]


@pytest.mark.stack
@pytest.mark.exhaustive
def test_crashes_of_the_database_lose_no_match(site: Site):
    event = make_event(site, bots=5, pause=0.03)
    site.start(workers=2)
    dice = Random(7)
    for crash in range(3):
        played = Match.objects.filter(state=MatchState.FINISHED)
        wanted = dice.randint(2 * crash, 2 * crash + 1)
        site.wait_until(lambda: played.count() >= wanted)  # noqa: B023 waited for here
        site.running_match()
        site.restart_database()
    site.play_out(event.tournaments)
    event.judge(site)


@pytest.mark.parametrize(
    ("came_through", "state", "ending"),
    [
        (True, MatchState.FINISHED, AttemptEnding.RECORDED),  # only the answer was lost
        (False, MatchState.PENDING, AttemptEnding.FAILED),  # the commit itself was
    ],
)
def test_commit_whose_fate_is_unknown_is_resolved_by_reading(
    site: Site, came_through: bool, state: str, ending: str
):
    event = make_event(site, bots=2)
    (match,) = Match.objects.all()
    record, wrapper = playing._record, connections["default"]
    commit = wrapper._commit

    def commit_on_a_line_that_breaks() -> None:
        if came_through:
            commit()
        wrapper.connection.close()
        site.tally.fault("line cut at the commit")
        raise OperationalError("server closed the connection unexpectedly")

    def record_on_it(*arguments, **options):
        with mock.patch.object(wrapper, "_commit", commit_on_a_line_that_breaks):
            return record(*arguments, **options)

    with mock.patch.object(playing, "_record", record_on_it):
        assert play_match(match_id=match.pk) is Play.FAILED
    match.refresh_from_db()
    assert (match.state, match.tries.get().ending) == (state, ending)
    Match.objects.filter(pk=match.pk).update(run_after=read_clock())  # no back-off
    play_all(*event.tournaments, trusted=False)
    event.judge(site)
