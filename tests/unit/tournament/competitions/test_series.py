"""Series: slots at local times, each made once, an outage made up for by the latest alone."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tournament_factories import make_bot, make_player, play_all, start
from tournament.competitions.errors import EntryError, InvalidTournamentError
from tournament.competitions.models import (
    EntrantBot,
    Notice,
    Series,
    SeriesSlot,
    Tournament,
)
from tournament.competitions.selectors import season_page, season_table
from tournament.competitions.services import (
    Course,
    change_series,
    create_series,
    enter_series,
    leave_series,
    open_tournament,
    restart_series,
    seal_results,
    starts_to_come,
)
from tournament.competitions.services.cron import parse_cron
from tournament.competitions.services.series import (
    Rule,
    check_course,
    first_starts,
    latest_slot,
    next_slots,
    run_due_series,
    slot_on,
)
from tournament.players.services import pause_bot
from tournament.store.clock import read_clock

WEEKLY = {"weekdays": [4], "at": "18:00", "open_minutes": 60, "pause_minutes": 5}
TEMPLATE = {"game": "eighty", "format": "single_elimination", "time_control": "standard"}
FRIDAY = datetime(2099, 12, 4, 18, tzinfo=UTC)  # ahead of every clock that a test is run by


def make_series(name: str = "Friday Cup", **changes) -> Series:
    series = create_series(
        organiser=make_player(),
        name=name,
        course=Course(**{"rule": WEEKLY, "template": TEMPLATE, **changes}),
        now=FRIDAY - timedelta(days=3),
    )
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
    rule = Rule(weekdays=tuple(sorted(weekdays)), at=at.isoformat("minutes"), open_minutes=60)
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
        assert (made.name, made.slug) == ("Friday Cup 2099-12-04", "friday-cup-2099-12-04")
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
            ("rule", {**WEEKLY, "at": "25:00"}, "time of day"),  # no time
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
            ({"rule": {**WEEKLY, "cron": "0 18 * * 5"}}, "rule"),  # two rules at once
            ({"rule": {"cron": "0 18 * *", "open_minutes": 60}}, "rule"),  # four fields
            ({"rule": {"cron": "0 18 30 2 *", "open_minutes": 60}}, "rule"),  # no such day
            ({"points_table": [25, -1]}, "points_table"),  # takes away
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


class TestCron:
    @pytest.mark.parametrize(
        ("rule", "day", "times"),
        [
            ("30 18 * * *", (2026, 12, 4), ["18:30"]),  # every day
            ("30 18 * * 5", (2026, 12, 4), ["18:30"]),  # a Friday
            ("30 18 * * 1-4", (2026, 12, 4), []),  # no Friday
            ("0 12 * * 0", (2026, 12, 6), ["12:00"]),  # Sunday
            ("0 12 * * 7", (2026, 12, 6), ["12:00"]),  # the same one
            ("0 12 1 * *", (2026, 12, 1), ["12:00"]),  # the first of a month
            ("0 12 1 1,7 *", (2026, 12, 1), []),  # of others
            ("0 12 1 * 5", (2026, 12, 4), ["12:00"]),  # the first or a Friday, as cron has it
            (
                "0,30 9-17/4 * * *",
                (2026, 12, 4),
                ["09:00", "09:30", "13:00", "13:30", "17:00", "17:30"],
            ),
            ("*/20 7 * * *", (2026, 12, 4), ["07:00", "07:20", "07:40"]),  # steps
        ],
    )
    def test_rule_means_these_times(self, rule, day, times):
        assert [at.isoformat("minutes") for at in parse_cron(rule).times_on(date(*day))] == times

    @pytest.mark.parametrize(
        "rule",
        [
            "",
            "* * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "5-1 * * * *",
            "*/0 * * * *",
            "a * * * *",
            "1- * * * *",
            "-1 * * * *",
            "1,,2 * * * *",
            "¹ * * * *",
        ],
    )  # each breaks another part of the notation
    def test_what_is_no_rule_is_refused(self, rule):
        with pytest.raises(ValueError, match=r"field|minute|hour|day|month"):
            parse_cron(rule)

    def test_next_slots_follow_the_clocks_of_the_zone(self):
        rule = Rule(cron="30 2 28-30 3 *", open_minutes=60)
        found = next_slots(rule, "Europe/Paris", datetime(2026, 3, 1, tzinfo=UTC), count=4)
        assert [slot.isoformat() for slot in found] == [
            "2026-03-28T01:30:00+00:00",
            "2026-03-29T01:00:00+00:00",  # the clocks skip half past two
            "2026-03-30T00:30:00+00:00",
            "2027-03-28T01:00:00+00:00",
        ]

    def test_leap_day_is_found_across_the_longest_gap(self):
        rule = Rule(cron="0 0 29 2 *", open_minutes=60)
        assert next_slots(rule, "UTC", datetime(2096, 3, 1, tzinfo=UTC), count=1) == (
            datetime(2104, 2, 29, tzinfo=UTC),
        )
        assert latest_slot(rule, "UTC", datetime(2104, 2, 28, tzinfo=UTC)) == datetime(
            2096, 2, 29, tzinfo=UTC
        )

    @given(
        st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"]),
        st.sampled_from(["*/45 1-3 * * *", "30 2 * * 0", "15 0,23 1,15 * *"]),
        st.integers(0, 5 * 365 * 24 * 60),
    )
    def test_latest_and_next_slot_agree(self, zone, cron, minutes):
        rule = Rule(cron=cron, open_minutes=60)
        moment = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
        following = next_slots(rule, zone, moment)
        assert list(following) == sorted(set(following))
        for before, after in itertools.pairwise(following):
            assert latest_slot(rule, zone, after) == after
            assert latest_slot(rule, zone, after - timedelta(seconds=1)) == before


@pytest.mark.django_db
class TestSeason:
    def event(self, series: Series, week: int) -> Tournament:
        (made,) = run_due_series(now=FRIDAY + timedelta(days=7 * week, minutes=-60))
        return made

    def test_who_is_entered_once_is_in_every_tournament_with_the_version_of_its_close(self):
        series, bot = make_series(), make_bot("alpha")
        enter_series(series=series, bots=[bot], by=bot.owner)
        for week in range(2):
            made = open_tournament(tournament=self.event(series, week))
            assert EntrantBot.objects.get(tournament=made).version is None  # frozen at the close
        assert EntrantBot.objects.filter(bot=bot).count() == 2

    def test_who_cannot_enter_is_told_and_the_others_enter(self):
        series, alpha, beta = make_series(), make_bot("alpha"), make_bot("beta")
        for bot in (alpha, beta):
            enter_series(series=series, bots=[bot], by=bot.owner)
        pause_bot(bot=alpha, reason="too loud")
        made = open_tournament(tournament=self.event(series, 0))
        assert list(made.entrants.values_list("name", flat=True)) == ["beta"]
        notice = Notice.objects.get()
        assert notice.player == alpha.owner
        assert "too loud" in notice.text

    def test_who_leaves_the_series_stays_in_what_has_opened(self):
        series, bot = make_series(), make_bot("alpha")
        entry = enter_series(series=series, bots=[bot], by=bot.owner)
        open_tournament(tournament=self.event(series, 0))
        leave_series(entry=entry, by=bot.owner)
        open_tournament(tournament=self.event(series, 1))
        assert EntrantBot.objects.filter(bot=bot).count() == 1

    def test_entry_for_a_series_is_the_owners_and_made_once(self):
        series, bot, other = make_series(), make_bot("alpha"), make_player()
        with pytest.raises(EntryError, match="not yours"):
            enter_series(series=series, bots=[bot], by=other)
        entry = enter_series(series=series, bots=[bot], by=bot.owner)
        with pytest.raises(EntryError, match="already"):
            enter_series(series=series, bots=[bot], by=bot.owner)
        with pytest.raises(EntryError, match="not yours"):
            leave_series(entry=entry, by=other)
        pairs = make_series(name="Pairs", template={**TEMPLATE, "kind": "pair"})
        with pytest.raises(EntryError, match="two different bots"):
            enter_series(series=pairs, bots=[bot, bot], by=bot.owner)

    def test_points_of_the_places_add_up(self):
        series = make_series(points_table=[10, 6, 3])
        bots = [make_bot(name) for name in ("alpha", "beta", "gamma", "delta")]
        for bot in bots:
            enter_series(series=series, bots=[bot], by=bot.owner)
        events = []
        for week in range(2):
            made = self.event(series, week)
            Tournament.objects.filter(pk=made.pk).update(
                opens_at=datetime.now(UTC),
                closes_at=datetime.now(UTC) + timedelta(hours=1),
                starts_at=datetime.now(UTC) + timedelta(hours=2 + week),
            )
            events.append(
                play_all(start(open_tournament(tournament=Tournament.objects.get(pk=made.pk))))
            )
        worth = {1: 10, 2: 6, 3: 3}
        expected = {
            bot.name: sum(worth[event.entrants.get(name=bot.name).place] for event in events)
            for bot in bots
        }
        page = season_page(series)
        assert {row.name: row.points for row in page.table} == expected
        assert [row.points for row in page.table] == sorted(expected.values(), reverse=True)
        assert [event.counts for event in page.events] == [True, True]
        assert {row.events for row in page.table} == {2}
        assert season_table([10], events[:1])[0].points == 10

    def test_tournament_with_sealed_results_does_not_count_yet(self):
        series = make_series(points_table=[10, 6])
        made = open_tournament(tournament=self.event(series, 0))
        Tournament.objects.filter(pk=made.pk).update(
            opens_at=datetime.now(UTC),
            closes_at=datetime.now(UTC) + timedelta(hours=1),
            starts_at=datetime.now(UTC) + timedelta(hours=2),
        )
        from tournament.competitions.services import enter, publish_results

        for bot in (make_bot("alpha"), make_bot("beta")):
            enter(tournament=made, bots=[bot], by=bot.owner)
        seal_results(tournament=made, until=datetime.now(UTC) + timedelta(days=1))
        made = play_all(start(Tournament.objects.get(pk=made.pk)))
        assert (made.state, season_page(series).table) == ("finished", ())
        publish_results(tournament=made)
        assert [row.points for row in season_page(series).table] == [10, 6]


@pytest.mark.django_db
class TestChange:
    """A series that goes on by another rule."""

    def test_start_that_the_new_rule_would_have_had_is_not_made_up_for(self):
        series = make_series()
        saturday = FRIDAY + timedelta(days=1)
        changed = change_series(
            series=series,
            course=Course(
                rule={**WEEKLY, "at": "12:00", "weekdays": [4, 5]},
                template={**TEMPLATE, "format": "round_robin"},
                points_table=[3],
            ),
            now=FRIDAY - timedelta(hours=1),  # that Friday's 12:00 is over
        )
        assert changed.points_table == [3]
        assert run_due_series(now=FRIDAY) == ()
        [made] = run_due_series(now=saturday - timedelta(hours=6, minutes=30))
        assert made.starts_at == saturday.replace(hour=12)
        assert made.stages.get().format == "round_robin"

    def test_what_no_series_could_be_changes_nothing(self):
        series = make_series()
        with pytest.raises(InvalidTournamentError) as error:
            change_series(
                series=series,
                course=Course(
                    rule=WEEKLY,
                    template={**TEMPLATE, "format": "lottery"},
                    time_zone="Mars/Olympus",
                ),
                now=FRIDAY,
            )
        assert set(error.value.fields) == {"time_zone", "format"}
        series.refresh_from_db()
        assert (series.template, series.time_zone) == (TEMPLATE, "UTC")


WEEK = 7 * 1440
MONTH = 30 * 1440


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"cron": "*/5 * * * *", "open_minutes": WEEK}, "for 150 minutes at most"),
        ({"cron": "*/5 * * * *", "open_minutes": 150}, None),
        ({"cron": "*/5 * * * *", "open_minutes": 151}, "for 150 minutes at most"),
        ({"cron": "* * * * *", "open_minutes": 1, "pause_minutes": 40}, "start more seldom"),
        ({"cron": "0 0 * * *", "open_minutes": MONTH}, None),  # each day, open for a month
        ({"cron": "0 0,12 * * *", "open_minutes": MONTH}, "for 22315 minutes at most"),
        ({"cron": "0 */4 * * 6", "open_minutes": MONTH}, None),  # six each Saturday: 30 in a month
        ({"cron": "0 */3 * * 6", "open_minutes": MONTH}, "start more seldom"),  # eight: 40
        ({"cron": "* 0 29 2 *", "open_minutes": WEEK}, "for 26 minutes"),  # in years to come
        ({"cron": "0 0 29 2 *", "open_minutes": MONTH}, None),
        ({**WEEKLY, "weekdays": list(range(7)), "open_minutes": MONTH}, None),
    ],
)
def test_series_whose_tournaments_would_crowd_each_other_says_what_to_change(rule, says):
    course = Course(rule={"pause_minutes": 5, **rule}, template=TEMPLATE)
    found = check_course(course, now=FRIDAY)
    assert set(found) == (set() if says is None else {"rule"})
    assert says is None or says in found["rule"]
    assert says is None or "more than 31 tournaments" in found["rule"]


@pytest.mark.parametrize(
    ("now", "first"),
    [
        ("2026-12-04T15:00", "2026-12-04T18:00"),  # before entries open
        ("2026-12-04T17:30", "2026-12-04T18:00"),  # while they are open: it is made at once
        ("2026-12-04T17:58", "2026-12-11T18:00"),  # after their close
    ],
)
def test_first_starts_are_those_that_will_be_made(now, first):
    rule = Rule(weekdays=(4,), at="18:00", open_minutes=60)
    found = first_starts(rule, "UTC", datetime.fromisoformat(now).replace(tzinfo=UTC), count=2)
    assert found[0] == datetime.fromisoformat(first).replace(tzinfo=UTC)
    assert found[1] - found[0] == timedelta(days=7)


def test_of_starts_closer_than_entries_are_open_only_the_last_is_made():
    hourly = Rule(cron="0 * * * *", open_minutes=175)
    found = first_starts(hourly, "UTC", FRIDAY + timedelta(minutes=1), count=2)
    assert found == (FRIDAY + timedelta(hours=3), FRIDAY + timedelta(hours=4))


@pytest.mark.django_db
def test_starts_to_come_are_those_of_tournaments_that_are_there_and_those_by_the_rule():
    series = make_series()
    now = read_clock()
    there = now + timedelta(days=30)
    SeriesSlot.objects.create(series=series, slot_utc=there)  # made by an earlier rule
    found = starts_to_come(series, count=10)
    assert there in found
    by_rule = [slot for slot in found if slot != there]
    assert by_rule == list(first_starts(Rule(**WEEKLY), "UTC", now, count=9))
    assert found == tuple(sorted(found))
