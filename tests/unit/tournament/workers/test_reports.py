"""Workers report what their machines are; the rows tell which are there, and need no broker."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from django.db import DatabaseError

from engine.errors import SandboxUnavailableError
from engine.sandbox.findings import Finding
from engine.sandbox.probe import Attempt, ProbeReport
from engine.sandbox.speed import budget_percent
from tournament import celery
from tournament.competitions.models import RULES_VERSION
from tournament.store.clock import in_seconds
from tournament.store.models import Pulse
from tournament.store.pulses import WORKERS, pulse_age
from tournament.store.waiting import slots_now
from tournament.workers import selectors, services
from tournament.workers.models import WorkerReport

pytestmark = pytest.mark.django_db

WEAK = Finding("Landlock", "weak", "version 4", ("use a newer kernel",))
WELL = ProbeReport(
    level="bubblewrap", attempts=(Attempt("fork", True, "no"),), landlock_abi=4, machine=(WEAK,)
)
ILL = ProbeReport(level=None, reasons=("there is no bwrap",))


@pytest.fixture
def found(monkeypatch):
    """What the walls come to here."""

    def find(report):
        def require():
            if not report.holds:
                raise SandboxUnavailableError(report.reasons)
            return report

        monkeypatch.setattr(services, "require_sandbox", require)
        monkeypatch.setattr(services, "probe_sandbox", lambda: report)

    find(WELL)
    return find


def silence(name: str, seconds: float) -> None:
    """Let so much time pass since the worker's last sign of life."""
    WorkerReport.objects.filter(name=name).update(seen_at=in_seconds(-seconds))


def test_report_tells_what_the_doctor_tells_on_that_machine(found):
    services.report_worker(name="matches@one")
    (worker,) = selectors.living_workers()
    assert (worker.level, worker.trusts_bots) == ("bubblewrap", False)
    assert tuple(selectors.findings_of(worker)) == WELL.findings
    assert worker.rules_version == RULES_VERSION
    assert worker.budget_percent == budget_percent()
    assert worker.packages == selectors.site_limits().packages


def test_second_report_takes_the_place_of_the_first(found):
    services.report_worker(name="matches@one")
    found(ILL)
    services.report_worker(name="matches@one")
    (worker,) = selectors.living_workers()
    assert worker.level == ""
    assert selectors.findings_of(worker)[0].advice == ILL.reasons


def test_worker_that_gives_no_sign_of_life_is_silent_until_it_gives_one(found):
    services.report_worker(name="matches@one")
    silence("matches@one", selectors.SILENT_SECONDS + 1)
    assert not selectors.living_workers()
    assert selectors.is_silent(WorkerReport.objects.get())
    assert selectors.count_workers() == {"there": 0, "silent": 1}
    services.give_sign_of_life(name="matches@one")
    assert not selectors.is_silent(WorkerReport.objects.get())
    assert selectors.living_workers().count() == 1


def test_sign_of_life_tells_the_speed_that_was_measured_since(found, monkeypatch):
    monkeypatch.setattr(services, "budget_percent", lambda: 164)
    services.report_worker(name="matches@one")
    monkeypatch.setattr(services, "budget_percent", lambda: 91)
    services.give_sign_of_life(name="matches@one")
    assert WorkerReport.objects.get().budget_percent == 91


def test_sign_of_life_of_a_worker_that_is_well_looks_at_nothing_again(found):
    services.report_worker(name="matches@one")
    before = WorkerReport.objects.get().started_at
    found(ILL)
    services.give_sign_of_life(name="matches@one")
    assert (WorkerReport.objects.get().level, WorkerReport.objects.get().started_at) == (
        "bubblewrap",
        before,
    )


def test_worker_whose_sandbox_was_mended_is_seen_to_be_well(found):
    found(ILL)
    services.report_worker(name="matches@one")
    found(WELL)
    services.give_sign_of_life(name="matches@one")
    assert WorkerReport.objects.get().level == "bubblewrap"


def test_sign_of_life_of_a_worker_that_nobody_knows_is_a_report(found):
    services.give_sign_of_life(name="matches@one")
    assert WorkerReport.objects.get().level == "bubblewrap"


def test_worker_that_stops_in_order_is_not_missed_and_old_silent_ones_are_forgotten(found):
    for name in ("matches@one", "matches@two", "matches@three"):
        services.report_worker(name=name)
    services.sign_off(name="matches@one")
    silence("matches@two", services._FORGET_SECONDS + 1)
    services.report_worker(name="matches@three")
    assert [worker.name for worker in WorkerReport.objects.all()] == ["matches@three"]


@pytest.mark.parametrize(
    ("change", "slots"),
    [
        ({}, {"matches.fast": 6, "matches.long": 2, "validation": 2}),  # both are well
        ({"seen_at": in_seconds(-601)}, {"matches.fast": 4}),  # given up
        ({"seen_at": in_seconds(-300)}, {"matches.fast": 6, "matches.long": 2, "validation": 2}),  # it may come back
        ({"rules_version": "arena-rules/0"}, {"matches.fast": 4}),  # it would not play our tournaments
        ({"level": ""}, {"matches.fast": 4}),  # it can hold no bot
        ({"level": "", "trusts_bots": True}, {"matches.fast": 6, "matches.long": 2, "validation": 2}),  # and need not
    ],
)  # fmt: skip
def test_capacity_counts_the_workers_that_can_play(found, change, slots):
    services.report_worker(name="fast@one", queues=["matches.fast"], slots=4)
    services.report_worker(
        name="matches@two", queues=["matches.fast", "matches.long", "validation"], slots=2
    )
    WorkerReport.objects.filter(name="matches@two").update(**change)
    capacity = selectors.capacity()
    assert (dict(capacity.slots), capacity.is_known) == (slots, True)
    assert capacity.total == slots["matches.fast"]
    assert capacity.time_controls == tuple(
        name for name in ("fast", "long") if f"matches.{name}" in slots
    )


def test_until_a_worker_is_heard_of_the_settings_say_how_much_is_sent_once(settings):
    settings.ARENA_WORKER_SLOTS = 5
    capacity = selectors.capacity()
    assert (capacity.total, capacity.of("matches.long"), capacity.is_known) == (5, 5, False)


# How Celery's worker gets there


class Timer:
    def __init__(self):
        self.calls = []

    def call_repeatedly(self, seconds, call):
        self.calls.append((seconds, call))


def worker_of(*queues, slots=3):
    """A worker of Celery, which is its own consumer too."""
    taken = dict.fromkeys(queues)
    consumer = SimpleNamespace(
        consume_from=taken, select_add=lambda queue: taken.setdefault(queue, None)
    )
    worker = SimpleNamespace(
        app=SimpleNamespace(amqp=SimpleNamespace(queues=consumer)),
        hostname="matches@here",
        timer=Timer(),
        concurrency=slots,
    )
    worker.controller = worker
    return worker


@pytest.fixture
def kept_open(monkeypatch):
    """The test's own connection stays open."""
    monkeypatch.setattr("django.db.connections.close_all", lambda: None)


def test_worker_reports_when_it_starts_gives_signs_of_life_and_signs_off(found, kept_open):
    worker = worker_of("validation", "matches")
    celery._report(sender=worker)
    report = WorkerReport.objects.get()
    assert (report.name, report.slots) == ("matches@here", 3)
    assert set(report.queues) == {
        "validation", "matches", "matches.fast", "matches.standard", "matches.long",
    }  # fmt: skip
    celery._go_on_reporting(sender=worker)
    silence("matches@here", 1000)
    celery._go_on_reporting(sender=worker)  # after a lost broker it is ready once more
    assert selectors.living_workers().count() == 1
    ((seconds, call),) = worker.timer.calls
    assert seconds == services.REPORT_SECONDS
    silence("matches@here", 1000)
    call()
    assert selectors.living_workers().count() == 1
    celery._sign_off(sender=worker)
    assert not WorkerReport.objects.exists()
    assert celery._reporting == []


def test_worker_that_plays_no_bots_reports_nothing(found, kept_open):
    worker = worker_of("control")
    celery._report(sender=worker)
    celery._go_on_reporting(sender=worker)
    assert not WorkerReport.objects.exists()
    assert worker.timer.calls == []


def test_database_that_is_away_stops_no_worker(found, kept_open, monkeypatch, caplog):
    def fail(**_):
        raise DatabaseError("it is away")

    fail.__name__ = "report_worker"
    monkeypatch.setattr(services, "report_worker", fail)
    with caplog.at_level(logging.WARNING, "tournament.celery"):
        celery._report(sender=worker_of("matches"))
    assert "report_worker could not be written down: it is away" in caplog.text


def test_signs_of_life_tell_the_pages_that_workers_are_there_and_how_much_they_do(found, settings):
    settings.ARENA_WORKER_SLOTS = 2
    assert (slots_now(), pulse_age(WORKERS)) == (2, None)
    services.report_worker(name="matches@one", slots=4)
    services.report_worker(name="matches@two", slots=8)
    assert slots_now() == 12
    Pulse.objects.update(at=in_seconds(-60))
    services.give_sign_of_life(name="matches@two", slots=8)
    assert pulse_age(WORKERS) < 30
    services.sign_off(name="matches@two")
    assert slots_now() == 4
