"""A broker that forgets, freezes or is gone, and beats that tick twice."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from datetime import timedelta
from random import Random

import psycopg
import pytest

from tests.faults.cups import make_event
from tests.faults.harness import ROOT, Site, wait_until
from tournament import tasks
from tournament.competitions.models import Attempt, Match, MatchState
from tournament.store.clock import read_clock

pytestmark = [pytest.mark.faults, pytest.mark.stack, pytest.mark.sandbox, pytest.mark.slow]
PAGES = ("/", "/tournaments/", "/bots/", "/leaderboards/", "/healthz")


def test_message_is_sent_only_when_its_row_is_committed(site: Site, monkeypatch):
    """Else a worker could be told of what does not come to be, or is not there yet."""
    make_event(site, bots=4)
    told: list[str] = []

    def look_from_outside(_task: object, match_ids: list[int], **_options: object) -> bool:
        with psycopg.connect(site.server.address(site.database)) as another:
            states = "SELECT state FROM competitions_match WHERE id = ANY(%s)"
            told.extend(state for (state,) in another.execute(states, [match_ids]))
        return True

    monkeypatch.setattr(tasks, "publish", look_from_outside)
    tasks.dispatch(rung=True)
    assert set(told) == {MatchState.QUEUED}


@pytest.mark.exhaustive
def test_broker_that_is_away_for_a_minute_and_comes_back_empty_costs_ten_seconds(site: Site):
    event = make_event(site, bots=9, pause=0.02)
    site.start(workers=2)
    site.running_match()
    site.programs["broker"].kill()
    time.sleep(60)
    site.tally.fault("minute without Redis")
    assert Match.objects.exclude(state=MatchState.FINISHED).exists(), "nothing was left to play"
    site.programs["broker"].start()
    back = read_clock()
    again = site.wait_until(
        Attempt.objects.filter(started_at__gt=back).order_by("started_at").first
    )
    assert again.started_at - back < timedelta(seconds=10)
    site.play_out(event.tournaments)
    event.judge(site)


@pytest.mark.exhaustive
def test_broker_that_forgets_everything_twenty_times_loses_no_match(site: Site):
    event = make_event(site, bots=8, pause=0.02)
    site.start(workers=2)
    dice = Random(5)
    site.running_match()
    for _ in range(20):
        site.flush_broker()
        time.sleep(dice.uniform(0.1, 2))
    site.play_out(event.tournaments)
    event.judge(site)


PUBLISH = """
import json, time, django
django.setup()
from tournament.tasks import dispatch, publish
took = []
for _ in range(2):
    began = time.monotonic()
    sent = publish(dispatch)
    took.append((sent, time.monotonic() - began))
print(json.dumps(took))
"""


@pytest.mark.exhaustive
def test_site_answers_while_its_broker_is_frozen_and_publishing_gives_up_after_two_seconds(
    site: Site,
):
    event = make_event(site, bots=4, pause=0.02)
    site.start()
    address = site.start_web()
    wait_until(lambda: _get(address, "/healthz") == 200, what="the web server")
    site.running_match()
    site.programs["broker"].freeze()
    assert {page: _get(address, page) for page in PAGES} == dict.fromkeys(PAGES, 200)
    done = subprocess.run(
        [sys.executable, "-c", PUBLISH],
        cwd=ROOT,
        env=site.environ(),
        capture_output=True,
        text=True,
        check=True,
    )
    for sent, seconds in json.loads(done.stdout):
        assert not sent
        assert 1.5 < seconds < 4  # the 2 s, and what a busy machine adds
    site.programs["broker"].thaw()
    site.play_out(event.tournaments)
    event.judge(site)


def _get(address: str, path: str) -> int | None:
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


@pytest.mark.exhaustive
def test_two_beats_and_two_dispatchers_publish_no_match_twice(site: Site):
    event = make_event(site, bots=6)
    site.start(workers=2)
    site.start_control(name="control2")
    site.start_beat(name="beat2")
    site.tally.fault("second beat and dispatcher")
    site.play_out(event.tournaments)
    assert set(Match.objects.values_list("fence", flat=True)) == {1}
    event.judge(site)
