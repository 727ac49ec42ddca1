"""Whose batch comes next: after tournaments and checks, in turns, never too many, never none for ever."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.scrimmage_factories import make_scrimmage, version_of
from tests.tournament_factories import make_bot, make_player, make_tournament, start, submit
from tournament import tasks
from tournament.competitions import services as competitions
from tournament.competitions.models import EntryTrial
from tournament.scrimmages import services
from tournament.scrimmages.models import SCRIMMAGE_TRANSITIONS, Scrimmage, ScrimmageState
from tournament.scrimmages.selectors import (
    batch_record,
    blobs_in_use,
    place_in_queue,
    places_in_queue,
    site_is_busy,
)
from tournament.store.clock import in_seconds, read_clock
from tournament.store.errors import BlobMissingError
from tournament.store.models import Pulse
from tournament.store.services import read_blob

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def one_slot(settings):
    settings.ARENA_SCRIMMAGE_SLOTS = 1
    settings.ARENA_SCRIMMAGES_OPEN = 100
    settings.ARENA_TRUST_BOTS = True


@pytest.fixture
def sent(monkeypatch):
    """The messages that would be published."""
    messages = []
    monkeypatch.setattr(
        tasks, "publish", lambda task, *args, **_: messages.append((task.name, *args)) or True
    )
    return messages


def several(count: int) -> list[Scrimmage]:
    ann, bob = make_player(), make_player()
    first, other = (version_of(make_bot(name, owner)) for name, owner in (("a1", ann), ("b1", bob)))
    return [make_scrimmage(first=first, other=other, most_sets=60) for _ in range(count)]


def play(scrimmage: Scrimmage) -> None:
    assert services.play_batch(scrimmage_id=scrimmage.pk) is services.BatchPlay.RECORDED


def test_no_more_are_in_flight_than_there_are_slots(settings):
    asked = several(3)
    assert services.scrimmages_to_play() == (asked[0].pk,)
    assert services.scrimmages_to_play() == ()
    settings.ARENA_SCRIMMAGE_SLOTS = 3
    assert services.scrimmages_to_play() == (asked[1].pk, asked[2].pk)


def test_they_take_turns_a_batch_each():
    first, second = several(2)
    assert [place_in_queue(each).place for each in (first, second)] == [1, 2]
    assert services.scrimmages_to_play() == (first.pk,)
    play(first)
    places = places_in_queue(list(Scrimmage.objects.all()))
    assert {pk: each.place for pk, each in places.items()} == {second.pk: 1, first.pk: 2}
    assert services.scrimmages_to_play() == (second.pk,)
    play(second)
    assert services.scrimmages_to_play() == (first.pk,)


def test_what_is_over_has_no_place_in_the_queue():
    (scrimmage,) = several(1)
    services.cancel_scrimmage(scrimmage=scrimmage, reason="")
    assert place_in_queue(scrimmage) is None


def waiting_match():
    start(make_tournament([make_bot("x1"), make_bot("x2")]))


def queued_match():
    waiting_match()
    competitions.dispatch(rung=True)


def waiting_version():
    submit(make_player(), "unchecked")


def waiting_trial():
    version = version_of(make_bot("entrant"))
    EntryTrial.objects.create(version=version, key="k", conditions={}, due_at=read_clock())


@pytest.mark.parametrize(
    "make_busy",
    [
        waiting_match,  # of a tournament, not handed out yet
        queued_match,  # with the broker, no worker free for it
        waiting_version,  # a check is a promise, too
        waiting_trial,  # whether it plays under a tournament's conditions
    ],
)
def test_busy_site_begins_one_batch_now_and_then(make_busy, settings):
    settings.ARENA_SCRIMMAGE_SLOTS = 5
    first, second, _ = several(3)
    make_busy()
    assert site_is_busy()
    assert services.scrimmages_to_play() == (first.pk,)
    assert services.scrimmages_to_play() == ()
    play(first)
    assert services.scrimmages_to_play() == (), "the last one was begun a moment ago"
    Pulse.objects.filter(name="scrimmages").update(at=in_seconds(-60))
    assert services.scrimmages_to_play() == (second.pk,)


def test_tournament_that_is_paused_or_has_all_its_matches_running_keeps_nobody_waiting():
    tournament = start(make_tournament([make_bot("x1"), make_bot("x2")]))
    competitions.pause_tournament(tournament=tournament, reason="lunch")
    assert not site_is_busy()


def test_message_that_was_lost_is_sent_again():
    (scrimmage,) = several(1)
    services.scrimmages_to_play()
    Scrimmage.objects.update(queued_at=in_seconds(-61))
    assert services.scrimmages_to_play() == (scrimmage.pk,)
    assert services.scrimmages_to_play() == ()


def test_dead_worker_gives_its_batch_back():
    (scrimmage,) = several(1)
    SCRIMMAGE_TRANSITIONS.move(
        Scrimmage.objects.all(),
        ScrimmageState.RUNNING,
        lease_owner="dead",
        lease_until=in_seconds(-1),
    )
    assert services.scrimmages_to_play() == (), "not at once: it may be what killed the worker"
    scrimmage.refresh_from_db()
    assert (scrimmage.state, scrimmage.attempts) == (ScrimmageState.WAITING, 1)
    assert scrimmage.failure == "its worker showed no sign of life"


def test_dispatch_publishes_a_batch_and_a_batch_the_next_one(sent):
    (scrimmage,) = several(1)
    tasks.dispatch(rung=True)
    assert sent == [("tournament.play_batch", scrimmage.pk)]
    tasks.play_batch(scrimmage.pk)
    assert sent == [("tournament.play_batch", scrimmage.pk)] * 2
    tasks.play_batch(scrimmage.pk)
    tasks.play_batch(scrimmage.pk)
    assert len(sent) == 3, "60 sets are three batches"
    scrimmage.refresh_from_db()
    assert scrimmage.state == ScrimmageState.FINISHED


def test_worker_that_was_told_to_stop_begins_no_batch(sent, monkeypatch):
    (scrimmage,) = several(1)
    monkeypatch.setattr(tasks, "stop_seconds", lambda: 0.1)
    tasks.play_batch(scrimmage.pk)
    scrimmage.refresh_from_db()
    assert scrimmage.fence == 0


def test_message_about_a_scrimmage_that_is_gone_does_no_harm(sent):
    tasks.play_batch(10**9)
    assert sent == []


def test_old_records_go_and_what_they_said_stays(settings, monkeypatch):
    (scrimmage,) = several(1)
    play(scrimmage)
    batch = scrimmage.batches.get()
    hashes = blobs_in_use()
    assert batch.record_sha256 in hashes
    monkeypatch.setattr(
        "tournament.competitions.services.sweeping.KEPT_FOR", timedelta(seconds=-60)
    )
    tasks.sweep()
    assert read_blob(batch.record_sha256), "it is not old enough"
    scrimmage.batches.update(played_at=in_seconds(-15 * 86_400))
    tasks.sweep()
    with pytest.raises(BlobMissingError):
        read_blob(batch.record_sha256)
    scores, digest = batch.scores, batch.digest
    batch.refresh_from_db()
    assert (batch.scores, batch.digest, batch_record(batch)) == (scores, digest, None)
