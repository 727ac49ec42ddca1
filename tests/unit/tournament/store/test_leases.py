"""Claims: one holder at a time, and a holder that has lost its claim writes nothing."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.db.models.functions import Now

from tests.tournament_factories import make_player, submit
from tournament.players.models import VERSION_TRANSITIONS, BotVersion, VersionState
from tournament.store import leases
from tournament.store.clock import in_seconds, read_clock
from tournament.store.leases import Heartbeat, Lease, LeaseLostError, StoppedError

pytestmark = pytest.mark.django_db


@pytest.fixture
def version() -> BotVersion:
    return submit(make_player(), "alpha")


def claim(version: BotVersion, owner: str = "one", seconds: float = 30) -> Lease | None:
    return leases.claim(
        BotVersion.objects.all(),
        version.pk,
        transitions=VERSION_TRANSITIONS,
        running=VersionState.RUNNING,
        seconds=seconds,
        owner=owner,
    )


def let_expire(version: BotVersion) -> None:
    BotVersion.objects.filter(pk=version.pk).update(lease_until=in_seconds(-1))


def test_claim_sets_owner_lease_and_next_fence(version):
    lease = claim(version)
    version.refresh_from_db()
    assert lease == Lease(version.pk, 1, "one")
    assert (version.state, version.lease_owner, version.fence) == (VersionState.RUNNING, "one", 1)
    assert version.lease_until > read_clock()


def test_what_is_claimed_cannot_be_claimed(version):
    claim(version)
    assert claim(version, "two") is None


def test_row_that_is_not_there_cannot_be_claimed(version):
    version.delete()
    assert claim(version) is None


def test_row_outside_of_what_may_be_claimed_is_left_alone(version):
    lease = leases.claim(
        BotVersion.objects.exclude(pk=version.pk),
        version.pk,
        transitions=VERSION_TRANSITIONS,
        running=VersionState.RUNNING,
        seconds=30,
        owner="one",
    )
    version.refresh_from_db()
    assert lease is None
    assert version.state == VersionState.SUBMITTED


def test_prolonged_lease_holds_longer(version):
    lease = claim(version, seconds=500)
    version.refresh_from_db()
    before = version.lease_until
    assert leases.prolong(BotVersion.objects.all(), lease, 6000)
    version.refresh_from_db()
    assert (version.lease_until - before).total_seconds() > 5000


def test_expired_lease_cannot_be_prolonged(version):
    lease = claim(version)
    let_expire(version)
    assert not leases.prolong(BotVersion.objects.all(), lease, 60)


def test_lease_of_an_older_fence_holds_nothing(version):
    old = claim(version)
    VERSION_TRANSITIONS.move(BotVersion.objects.all(), VersionState.SUBMITTED, **leases.FREE_FIELDS)
    new = claim(version)
    assert not leases.held(BotVersion.objects.all(), old).exists()
    assert leases.held(BotVersion.objects.all(), new).exists()


def test_only_expired_rows_are_expired(version):
    claim(version)
    assert not BotVersion.objects.filter(leases.expired()).exists()
    let_expire(version)
    assert BotVersion.objects.filter(leases.expired()).get() == version


def test_heartbeat_prolongs_only_when_a_third_has_passed(version, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(leases.time, "monotonic", lambda: clock[0])
    beat = Heartbeat(BotVersion.objects.all(), claim(version, seconds=3000), 3000)
    BotVersion.objects.update(lease_until=in_seconds(500))
    clock[0] += 999
    beat()
    version.refresh_from_db()
    assert (version.lease_until - read_clock()).total_seconds() <= 500
    clock[0] += 2
    beat()
    version.refresh_from_db()
    assert (version.lease_until - read_clock()).total_seconds() > 2500


def test_heartbeat_of_a_lost_lease_ends_the_work(version):
    beat = Heartbeat(BotVersion.objects.all(), claim(version), 0)
    let_expire(version)
    with pytest.raises(LeaseLostError):
        beat()


def test_heartbeat_ends_the_work_when_the_grace_of_a_stop_is_over(version):
    told = [0.0]
    beat = Heartbeat(BotVersion.objects.all(), claim(version), 30, lambda: told[0])
    told[0] = settings.ARENA_STOP_SECONDS
    beat()
    told[0] += 0.1
    with pytest.raises(StoppedError):
        beat()


@pytest.mark.parametrize(
    ("attempts", "least"),
    [
        (1, 2),  # the first failure
        (4, 16),  # doubled each time
        (9, 300),  # 2⁹ is above the cap
        (30, 300),  # no overflow
    ],
)
def test_backoff_doubles_up_to_five_minutes(attempts, least):
    assert least <= leases.backoff_seconds(attempts) <= least * 1.25


def test_database_clock_moves_by_the_seconds_given(version):
    BotVersion.objects.filter(pk=version.pk).update(run_after=in_seconds(90), queued_at=Now())
    version.refresh_from_db()
    assert (version.run_after - version.queued_at).total_seconds() == pytest.approx(90, abs=0.01)
