"""Checking versions: claimed once, recorded once, our own failures never held against a bot."""

from __future__ import annotations

import logging

import pytest

from engine.checking import AcceptedGame, CheckReport
from engine.errors import InfrastructureError
from tests.tournament_factories import make_player, submit
from tournament.players import services
from tournament.players.models import BotVersion, VersionState
from tournament.players.selectors import version_log, version_status
from tournament.players.services import validation
from tournament.store.clock import in_seconds
from tournament.store.errors import StoreUnavailableError
from tournament.store.leases import MAX_ATTEMPTS, StoppedError

pytestmark = pytest.mark.django_db

ACCEPTED = CheckReport(
    verdict="accepted",
    reasons=(),
    games=(AcceptedGame(game="eighty", options={"players": [4]}),),
    log="hello <b>",
)
REJECTED = CheckReport(
    verdict="rejected", reasons=("it crashed", "twice"), games=(), log="Traceback"
)


@pytest.fixture
def version() -> BotVersion:
    return submit(make_player(), "alpha")


@pytest.fixture
def checks(monkeypatch):
    """What the check does; a fake, since the real one is tried in the integration tests."""
    calls = []

    def use(result):
        def check_wheel(data, cache, *, keep_alive, trusted):
            calls.append(data)
            if callable(result):
                return result(keep_alive)
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(validation, "check_wheel", check_wheel)
        return calls

    return use


def run(version: BotVersion) -> bool:
    done = services.run_validation(version_id=version.pk)
    version.refresh_from_db()
    return done


def test_accepted_version_gets_its_games_and_log(version, checks):
    checks(ACCEPTED)
    assert run(version)
    assert version.state == VersionState.ACCEPTED
    assert version_status(version).games == {"eighty": {"players": [4]}}
    assert version_log(version) == "hello <b>"
    assert (version.lease_owner, version.lease_until) == ("", None)


def test_rejected_version_gets_every_reason(version, checks):
    checks(REJECTED)
    assert run(version)
    assert (version.state, version.reason) == (VersionState.REJECTED, "it crashed\ntwice")
    assert not version.games.exists()


def test_decided_version_is_not_checked_again(version, checks):
    calls = checks(ACCEPTED)
    run(version)
    assert not run(version)
    assert len(calls) == 1


def test_version_that_is_being_checked_is_not_checked_twice(version, checks):
    outcomes = []

    def meanwhile(keep_alive):
        outcomes.append(services.run_validation(version_id=version.pk))
        return ACCEPTED

    checks(meanwhile)
    assert run(version)
    assert outcomes == [False]


def test_verdict_after_a_takeover_writes_nothing(version, checks):
    def taken_over(keep_alive):
        BotVersion.objects.update(lease_until=in_seconds(-1))
        services.return_expired_versions()
        return ACCEPTED

    checks(taken_over)
    assert not run(version)
    assert (version.state, version.attempts) == (VersionState.SUBMITTED, 1)
    assert not version.games.exists()


def test_version_withdrawn_during_its_check_stays_withdrawn(version, checks):
    def withdrawn(keep_alive):
        services.withdraw_version(version=BotVersion.objects.get())
        return ACCEPTED

    checks(withdrawn)
    assert not run(version)
    assert version.state == VersionState.WITHDRAWN


@pytest.mark.parametrize(
    "error",
    [
        InfrastructureError("the sandbox did not start"),  # foreseen
        OSError(28, "No space left on device"),  # the machine's
        ZeroDivisionError("a bug of ours"),  # not foreseen at all
    ],
)
def test_own_failure_is_tried_again_later(version, checks, error, caplog):
    caplog.set_level(logging.CRITICAL)
    checks(error)
    assert not run(version)
    assert (version.state, version.attempts) == (VersionState.SUBMITTED, 1)
    assert services.queue_versions().ids == ()


def test_fifth_own_failure_waits_for_an_operator(version, checks, caplog):
    caplog.set_level(logging.CRITICAL)
    checks(InfrastructureError("no sandbox"))
    for _ in range(MAX_ATTEMPTS):
        assert version.state == VersionState.SUBMITTED
        run(version)
    assert version.state == VersionState.STUCK
    assert "no sandbox" in version.reason
    services.retry_version(version=version)
    checks(ACCEPTED)
    run(version)
    assert version.state == VersionState.ACCEPTED
    assert version.reason == ""


def test_worker_that_has_to_stop_gives_the_version_back_uncounted(version, checks):
    checks(StoppedError("told to stop"))
    assert not run(version)
    assert (version.state, version.attempts) == (VersionState.SUBMITTED, 0)
    checks(ACCEPTED)
    assert run(version)


def test_store_that_is_away_is_no_failure_however_long(version, checks):
    checks(StoreUnavailableError("the folder is not there"))
    for _ in range(MAX_ATTEMPTS + 1):
        assert not run(version)
        assert (version.state, version.attempts) == (VersionState.SUBMITTED, 0)
        assert services.queue_versions().ids == (), "not at once"
    checks(ACCEPTED)
    assert run(version)


def test_lease_that_runs_out_counts_as_a_failure(version):
    assert services.return_expired_versions() == 0
    from tests.unit.tournament.store.test_leases import claim, let_expire

    claim(version)
    let_expire(version)
    assert services.return_expired_versions() == 1
    version.refresh_from_db()
    assert (version.state, version.attempts) == (VersionState.SUBMITTED, 1)
