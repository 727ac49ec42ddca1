"""Series: slots at local times, each made once, an outage made up for by the latest alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tournament_factories import make_player
from tournament.competitions.errors import InvalidTournamentError
from tournament.competitions.models import Series, SeriesSlot, Tournament
from tournament.competitions.services import create_series, restart_series
from tournament.competitions.services.series import Rule, latest_slot, run_due_series, slot_on

WEEKLY = {"weekdays": [4], "at": "18:00", "open_minutes": 60, "pause_minutes": 5}
TEMPLATE = {"game": "eighty", "format": "single_elimination", "time_control": "fast"}
FRIDAY = datetime(2026, 12, 4, 18, tzinfo=UTC)


def make_series(**changes) -> Series:
    values = {"name": "Friday Cup", "rule": WEEKLY, "template": TEMPLATE, **changes}
    series = create_series(organiser=make_player(), now=FRIDAY - timedelta(days=3), **values)
    Series.objects.filter(pk=series.pk).update(created_at=FRIDAY - timedelta(days=3))
    return series


@pytest.mark.parametrize(
    ("zone", "day", "at", "utc"),
    [
        ("UTC", (2026, 12, 4), (18, 0), "2026-12-04T18:00"),  # no shift
        ("Europe/Paris", (2026, 7, 3), (18, 0), "2026-07-03T16:00"),  # summer time
        ("Europe/Paris", (2026, 12, 4), (18, 0), "2026-12-04T17:00"),  # winter time
        ("Europe/Paris", (2026, 3, 29), (2, 30), "2026-03-29T01:00"),  # in the gap: its end
        ("Europe/Paris", (2026, 3, 29), (2, 0), "2026-03-29T01:00"),  # the gap's first instant
        ("Europe/Paris", (2026, 3, 29), (3, 0), "2026-03-29T01:00"),  # the first one after it
        ("Europe/Paris", (2026, 10, 25), (2, 30), "2026-10-25T00:30"),  # repeated: the first
        ("America/New_York", (2026, 3, 8), (2, 15), "2026-03-08T07:00"),  # west of UTC
        (
            "Australia/Lord_Howe",
            (2026, 10, 4),
            (2, 10),
            "2026-10-03T15:30",
        ),  # a gap of half an hour
        ("Pacific/Apia", (2011, 12, 30), (12, 0), "2011-12-30T10:00"),  # a day that was skipped
        ("Asia/Kathmandu", (2026, 1, 1), (0, 0), "2025-12-31T18:15"),  # odd offset, day before
    ],
)
def test_slot_is_the_instant_at_which_clocks_show_it(zone, day, at, utc):
    slot = slot_on(date(*day), time(*at), ZoneInfo(zone))
    assert slot == datetime.fromisoformat(utc).replace(tzinfo=UTC)


@given(
    st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"]),
    st.integers(0, 15 * 365 * 24 * 60),
    st.sets(st.integers(0, 6), min_size=1),
    st.times(),
)
def test_latest_slot_is_on_a_chosen_day_and_not_after_the_moment(zone, minutes, weekdays, at):
    until = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    rule = Rule(tuple(sorted(weekdays)), at.isoformat("minutes"), 60)
    slot = latest_slot(rule, zone, until)
    assert slot is not None
    assert until - timedelta(days=8) < slot <= until
    assert slot.astimezone(ZoneInfo(zone)).weekday() in weekdays
    assert latest_slot(rule, zone, slot) == slot


@pytest.mark.django_db
class TestRunning:
    def test_tournament_is_made_when_its_entries_open(self):
        make_series()
        assert run_due_series(now=FRIDAY - timedelta(minutes=66)) == ()
        (made,) = run_due_series(now=FRIDAY - timedelta(minutes=65))
        assert (made.name, made.slug) == ("Friday Cup 2026-12-04", "friday-cup-2026-12-04")
        assert (made.starts_at, made.closes_at, made.opens_at) == (
            FRIDAY,
            FRIDAY - timedelta(minutes=5),
            FRIDAY - timedelta(minutes=65),
        )

    def test_slot_is_run_once(self):
        make_series()
        run_due_series(now=FRIDAY - timedelta(minutes=60))
        assert run_due_series(now=FRIDAY - timedelta(minutes=59)) == ()
        assert run_due_series(now=FRIDAY + timedelta(days=1)) == ()
        assert (Tournament.objects.count(), SeriesSlot.objects.count()) == (1, 1)

    def test_next_week_gets_the_next(self):
        make_series()
        run_due_series(now=FRIDAY)
        (made,) = run_due_series(now=FRIDAY + timedelta(days=7, minutes=-60))
        assert made.starts_at == FRIDAY + timedelta(days=7)

    def test_after_an_outage_only_the_latest_slot_is_run_and_its_entries_stay_open_as_long(self):
        make_series()
        now = FRIDAY + timedelta(days=15)  # two slots missed
        (made,) = run_due_series(now=now)
        assert SeriesSlot.objects.get().slot_utc == FRIDAY + timedelta(days=14)
        assert made.opens_at == now
        assert made.closes_at == now + timedelta(minutes=60)
        assert made.starts_at == now + timedelta(minutes=65)

    def test_slots_before_the_series_was_made_are_not_its_own(self):
        series = make_series()
        Series.objects.filter(pk=series.pk).update(created_at=FRIDAY + timedelta(minutes=1))
        assert run_due_series(now=FRIDAY + timedelta(minutes=2)) == ()

    def test_series_that_can_make_nothing_any_more_is_switched_off(self, caplog):
        caplog.set_level("CRITICAL")
        series = make_series()
        Series.objects.filter(pk=series.pk).update(template={**TEMPLATE, "format": "gone"})
        good = make_series(name="Other")
        (made,) = run_due_series(now=FRIDAY)
        assert made.slot.series == good
        series.refresh_from_db()
        assert not series.is_active
        assert "gone" in series.stopped_reason

    @pytest.mark.parametrize(
        ("field", "value", "reason"),
        [
            ("template", {**TEMPLATE, "color": "red"}, "no 'color'"),  # of an older version
            ("template", {"game": "eighty"}, "needs 'format'"),  # a field that came later
            ("rule", {**WEEKLY, "every": 2}, "every"),  # a rule of another version
            ("rule", {**WEEKLY, "at": "25:00"}, "hour"),  # no time
            ("rule", [], "rule"),  # not even a rule
            ("time_zone", "Mars/Olympus", "see its log"),  # a zone that the machine has lost
        ],
    )
    def test_one_series_that_no_longer_fits_stops_no_other(self, field, value, reason, caplog):
        caplog.set_level("CRITICAL")
        series = make_series()
        Series.objects.filter(pk=series.pk).update(**{field: value})
        good = make_series(name="Other")
        (made,) = run_due_series(now=FRIDAY)
        assert made.slot.series == good
        series.refresh_from_db()
        assert not series.is_active
        assert reason in series.stopped_reason

    def test_series_is_switched_on_again_once_it_fits(self, caplog):
        caplog.set_level("CRITICAL")
        series = make_series()
        Series.objects.filter(pk=series.pk).update(template={**TEMPLATE, "color": "red"})
        run_due_series(now=FRIDAY)
        series.refresh_from_db()
        with pytest.raises(InvalidTournamentError, match="no 'color'"):
            restart_series(series=series, now=FRIDAY)
        Series.objects.filter(pk=series.pk).update(template=TEMPLATE)
        series.refresh_from_db()
        restart_series(series=series, now=FRIDAY)
        assert len(run_due_series(now=FRIDAY)) == 1
        series.refresh_from_db()
        assert (series.is_active, series.stopped_reason) == (True, "")

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"name": "§"}, "name"),  # no address
            ({"time_zone": "Moon"}, "time_zone"),  # no zone
            ({"rule": {**WEEKLY, "at": "25:00"}}, "rule"),  # no time
            ({"rule": {**WEEKLY, "at": "18:00:30"}}, "rule"),  # seconds
            ({"rule": {**WEEKLY, "weekdays": []}}, "rule"),  # never
            ({"rule": {**WEEKLY, "weekdays": [7]}}, "rule"),  # no day
            ({"rule": {**WEEKLY, "open_minutes": 0}}, "rule"),  # nobody could enter
            ({"rule": {**WEEKLY, "every": 2}}, "rule"),  # no such field
            ({"template": {**TEMPLATE, "slug": "x"}}, "template"),  # each has its own
            ({"template": {**TEMPLATE, "color": "red"}}, "template"),  # no such field
            ({"template": {**TEMPLATE, "game": "chess"}}, "game"),  # no such game
        ],
    )
    def test_series_that_cannot_be_says_what_to_change(self, changes, field):
        with pytest.raises(InvalidTournamentError) as caught:
            make_series(**changes)
        assert field in caught.value.fields
        assert not Series.objects.exists()
