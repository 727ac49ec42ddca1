"""Clocks: only the database's counts, however wrong a worker's is; and a slot is run once, whatever clocks do."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connections

from tests.faults.cups import make_event
from tests.faults.databases import Database
from tests.faults.harness import Site, Tally
from tests.processes import at_once
from tests.tournament_factories import make_player
from tournament.competitions.models import Attempt, Match, Series, SeriesSlot, Tournament
from tournament.competitions.services import Course, create_series
from tournament.competitions.services.series import run_due_series
from tournament.store.clock import read_clock

pytestmark = [pytest.mark.faults, pytest.mark.exhaustive]


@pytest.fixture
def wrong_clock(monkeypatch) -> Iterator[Callable[[int], None]]:
    """Let the processes that are started from now on go by a clock that is wrong by so many hours.

    Ask for it before the site, whose processes must have ended when it clears up.
    """
    package = importlib.util.find_spec("libfaketime")
    assert package is not None
    assert package.origin is not None
    library = Path(package.origin).parent / "vendor/libfaketime/src/libfaketime.so.1"

    def set_clock(hours: int) -> None:
        monkeypatch.setenv("LD_PRELOAD", str(library))
        monkeypatch.setenv("DONT_FAKE_MONOTONIC", "1")
        monkeypatch.setenv("FAKETIME", f"{hours:+d}h")
        command = [sys.executable, "-c", "import time; print(time.time())"]
        shown = float(subprocess.run(command, check=True, capture_output=True).stdout)
        assert abs(shown - time.time() - hours * 3600) < 600, "the clock is not wrong"

    yield set_clock
    for path in Path("/dev/shm").glob("*faketime_s*m_*"):
        if not Path("/proc", path.name.rpartition("_")[2]).exists():
            path.unlink(missing_ok=True)  # who is killed leaves it


def test_workers_whose_clocks_are_two_hours_off_neither_lose_nor_steal_a_claim(
    wrong_clock, site: Site
):
    event = make_event(site, pause=0.02)
    began = read_clock()
    site.slots = 2
    site.start_broker()
    site.start_beat()
    for hours, name in ((+2, "fast"), (-2, "slow")):
        wrong_clock(hours)
        site.tally.fault("clock two hours off")
        site.start_worker(name)
    site.start_control()  # two hours behind, too: it decides what has expired
    site.play_out(event.tournaments)
    event.judge(site)
    assert Attempt.objects.count() == Match.objects.count()
    times = Attempt.objects.values_list("started_at", "ended_at")
    assert all(began <= start <= end <= read_clock() for start, end in times)


@pytest.mark.parametrize(
    ("zone", "at", "first_day", "starts"),
    [
        ("Europe/Paris", "02:30", "2026-03-28", ["28T01:30", "29T01:00", "30T00:30"]),  # a gap
        (
            "Europe/Paris",
            "02:30",
            "2026-10-24",
            ["24T00:30", "25T00:30", "26T01:30"],
        ),  # twice half past two
        (
            "America/New_York",
            "01:30",
            "2026-11-01",
            ["31T05:30", "01T05:30", "02T06:30"],
        ),  # west of UTC
        (
            "Australia/Lord_Howe",
            "02:10",
            "2026-10-03",
            ["02T15:40", "03T15:30", "04T15:10"],
        ),  # half an hour
        (
            "UTC",
            "00:00",
            "2026-03-28",
            ["28T00:00", "29T00:00", "30T00:00"],
        ),  # clocks that never change
    ],
)
def test_each_slot_is_run_once_by_four_that_dispatch_while_the_clocks_change(
    database: Database, tally: Tally, zone: str, at: str, first_day: str, starts: list[str]
):
    begin = datetime.fromisoformat(first_day).replace(tzinfo=UTC) - timedelta(hours=20)
    moments = [begin + timedelta(minutes=20 * step) for step in range(3 * 72)]
    with database.entered():
        create_series(
            organiser=make_player(),
            now=begin,
            name="Night Cup",
            course=Course(
                rule={"weekdays": list(range(7)), "at": at, "open_minutes": 60, "pause_minutes": 5},
                template={
                    "game": "eighty",
                    "format": "single_elimination",
                    "time_control": "standard",
                },
                time_zone=zone,
            ),
        )
        Series.objects.update(created_at=begin)
        made = at_once(lambda _: sum(len(run_due_series(now=now)) for now in moments), 4)
        tally.fault("dispatch doubled", 3 * len(moments))
        slots = list(SeriesSlot.objects.order_by("slot_utc").values_list("slot_utc", flat=True))
        assert [f"{slot:%dT%H:%M}" for slot in slots[:3]] == starts
        assert sum(made) == len(slots) == Tournament.objects.count()
        connections.close_all()
