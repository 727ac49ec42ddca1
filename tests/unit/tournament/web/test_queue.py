"""The queue: what staff see and do about it, and the place in it that everybody else is told."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from tests.site_factory import make_staff
from tests.tournament_factories import make_tournament, start, submit
from tournament.competitions import services as competitions
from tournament.competitions.errors import TournamentStateError
from tournament.competitions.models import (
    MATCH_TRANSITIONS,
    Attempt,
    AttemptEnding,
    Match,
    MatchState,
    Notice,
    Tournament,
    TrialState,
)
from tournament.competitions.selectors import backlog_of, place_of_match
from tournament.competitions.services.playing import count_failure
from tournament.operations import queue_page
from tournament.operations.selectors import KINDS, open_work, queue_of
from tournament.players import services as players
from tournament.players.models import Bot, BotVersion, VersionState
from tournament.players.selectors import place_of_check
from tournament.scrimmages import services as scrimmages
from tournament.scrimmages.models import Scrimmage, ScrimmageState
from tournament.store import leases
from tournament.store.clock import read_clock
from tournament.store.leases import MAX_ATTEMPTS
from tournament.store.models import Pulse
from tournament.store.pulses import MEMORY, spell_seconds
from tournament.store.waiting import QueueState, spell_ordinal

QUEUE = "/admin/queue/"


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    plain = re.sub(r"<[^>]+>", " ", answer.content.decode().partition("<body")[2])
    return " ".join(unescape(plain).split())


def claim(match: Match, owner: str = "far-host:7"):
    lease = leases.claim(
        Match.objects.all(),
        match.pk,
        transitions=MATCH_TRANSITIONS,
        running=MatchState.RUNNING,
        seconds=30,
        owner=owner,
    )
    assert lease is not None
    Attempt.objects.create(match_id=match.pk, fence=lease.fence, worker=owner)
    return lease


def fail(match: Match, times: int) -> None:
    for _ in range(times):
        count_failure(claim(match), AttemptEnding.FAILED, "OSError: no space left on device")
    match.refresh_from_db()


def fail_lately(match: Match) -> None:
    """It failed once, and is not tried again while the test lasts."""
    fail(match, 1)
    Match.objects.filter(pk=match.pk).update(run_after=read_clock() + timedelta(hours=1))


@pytest.fixture
def waiting(site) -> list[Match]:
    """The matches of a running league of which none has been handed out."""
    league = start(make_tournament(site.bots, name="League", format="round_robin"))
    return list(league.matches.select_related("tournament", "pairing").order_by("pk"))


def requeue_url(match: Match) -> str:
    return f"{reverse('admin:competitions_match_operate', args=['requeue'])}?ids={match.pk}"


def test_each_row_that_is_not_over_is_counted_once_and_shown(site, olga, waiting):
    claim(waiting[0])
    fail(waiting[1], 1)
    fail(
        waiting[2], MAX_ATTEMPTS
    )  # it is stuck, and its league paused, so that all others are held
    submit(site.ann, "alpha", "3.0")
    for kind in KINDS:
        queue = queue_of(kind)
        rows = list(open_work(kind))
        assert queue.total == len(rows)
        for state in QueueState:
            assert queue.counts[state] == sum(row.standing == state for row in rows)
            page = text_of(olga, f"{QUEUE}?kind={kind}&state={state}")
            if queue.counts[state]:
                assert f"1–{queue.counts[state]} of {queue.counts[state]}" in page
    assert queue_of("check").counts[QueueState.WAITING] == 1


@pytest.mark.parametrize(
    ("bring", "state", "words"),
    [
        (lambda match: None, "waiting", "waits for its turn"),
        (lambda match: competitions.dispatch(rung=True), "handed out", "waits for a free worker"),
        (claim, "running", "by far-host:7"),
        (fail_lately, "to be tried again", "attempt 1 of 5 failed by our fault"),
        (lambda match: fail(match, 5), "stuck", "The last: OSError: no space left on device"),
        (
            lambda match: competitions.pause_tournament(
                tournament=match.tournament, reason="a doubt about the dice"
            ),
            "held",
            "the tournament is paused: a doubt about the dice",
        ),
    ],
    ids=["waiting", "queued", "running", "delayed", "stuck", "held"],
)
def test_page_says_why_a_match_stands_as_it_does(olga, waiting, bring, state, words):
    bring(waiting[0])
    page = text_of(olga, f"{QUEUE}?kind=match&tournament=league")
    assert re.search(rf"{waiting[0].pairing.key} League {state} for [\w ]+? .*?{words}", page)


def test_what_is_stuck_comes_before_what_it_holds_however_much_that_is(olga, waiting, monkeypatch):
    monkeypatch.setattr(queue_page, "ROWS_A_PAGE", 2)
    fail(waiting[3], MAX_ATTEMPTS)  # its league is paused, so that all the others are held
    Match.objects.filter(pk=waiting[3].pk).update(run_after=read_clock() + timedelta(hours=1))
    oldest = waiting[4]
    Match.objects.filter(pk=oldest.pk).update(run_after=read_clock() - timedelta(hours=1))
    path = f"{QUEUE}?kind=match&tournament=league"
    pages = -(-len(waiting) // 2)
    shown = [
        re.findall(r"(RR/R\d/M\d) League (\w+)", text_of(olga, f"{path}&page={number + 1}"))
        for number in range(pages)
    ]
    assert shown[0] == [(waiting[3].pairing.key, "stuck"), (oldest.pairing.key, "held")]
    keys = [key for page in shown for key, _ in page]
    assert sorted(keys) == sorted(match.pairing.key for match in waiting)


def test_oldest_comes_first_and_a_filter_leaves_out_the_others(olga, waiting):
    Match.objects.filter(pk=waiting[3].pk).update(run_after=read_clock() - timedelta(hours=2))
    page = text_of(olga, f"{QUEUE}?kind=match&tournament=league")
    keys = re.findall(r"(RR/R\d/M\d) League", page)
    assert keys[0] == waiting[3].pairing.key
    assert len(keys) == len(waiting)
    assert "Nothing that is stuck" in text_of(olga, f"{QUEUE}?kind=match&state=stuck")
    assert text_of(olga, f"{QUEUE}?kind=nonsense&state=nonsense&tournament=\x01&page=99")


def test_match_whose_worker_hangs_is_put_back_and_its_late_result_discarded(olga, waiting):
    lease = claim(waiting[0])
    answer = olga.post(requeue_url(waiting[0]) + f"&back={QUEUE}", {"confirmed": "on"})
    assert (answer.status_code, answer["Location"]) == (302, QUEUE)
    match = Match.objects.get(pk=waiting[0].pk)
    assert (match.state, match.attempts, match.lease_owner) == (MatchState.PENDING, 0, "")
    assert not leases.held(Match.objects.all(), lease).exists()
    assert [(each.ending, each.detail) for each in match.tries.all()] == [
        (AttemptEnding.CANCELLED, "put back into the queue by staff")
    ]
    assert LogEntry.objects.get().change_message == "Put back into the queue"


def test_several_that_are_chosen_are_put_back_at_once(olga, waiting):
    for match in waiting[:3]:
        claim(match)
    ids = "&".join(f"ids={match.pk}" for match in waiting[:3])
    url = reverse("admin:competitions_match_operate", args=["requeue"])
    assert olga.post(f"{url}?{ids}", {"confirmed": "on"}).status_code == 302
    assert Match.objects.filter(pk__in=[m.pk for m in waiting[:3]], state="pending").count() == 3


def test_what_waits_or_is_over_is_not_put_back(site, waiting):
    done = site.cup.matches.first()
    for match in (waiting[0], done):
        with pytest.raises(TournamentStateError):
            competitions.requeue_match(match=match)


def test_held_rows_lead_to_what_lifts_the_pause(olga, waiting, site):
    competitions.pause_tournament(tournament=waiting[0].tournament, reason="a doubt")
    submit(site.ann, "alpha", "3.0")
    players.pause_bot(bot=Bot.objects.get(name="alpha"), reason="it floods")
    page = olga.get(f"{QUEUE}?kind=match&tournament=league").content.decode()
    assert f"/tournament/operate/resume/?ids={waiting[0].tournament_id}" in page
    page = olga.get(f"{QUEUE}?kind=check").content.decode()
    assert f"/bot/operate/lift/?ids={site.bots[0].pk}" in page


def test_who_may_only_look_is_offered_nothing(site, waiting):
    from django.contrib.auth.models import Permission

    site.bob.is_staff = True
    site.bob.save()
    site.bob.user_permissions.add(Permission.objects.get(codename="view_match"))
    client = Client()
    client.force_login(site.bob)
    page = client.get(QUEUE).content.decode()
    assert "RR/R1/M1" in page
    assert "/operate/" not in page
    assert "Checks" not in page, "and sees only what he may see"


def test_another_organiser_sees_the_rows_and_is_offered_nothing(waiting):
    fail(waiting[0], MAX_ATTEMPTS)
    otto = Client()
    otto.force_login(make_staff("otto"))
    page = otto.get(QUEUE).content.decode()
    assert "League" in page
    assert 'name="ids"' not in page
    assert not re.findall(r"/admin/competitions/(?:match|tournament)/(?:\d|operate)", page)


def test_admin_leads_to_the_queue(olga, bob):
    assert 'href="/admin/queue/"' in olga.get("/admin/").content.decode()
    assert bob.get(QUEUE).status_code == 302


def test_check_that_hangs_is_taken_from_its_worker(site):
    version = submit(site.ann, "alpha", "3.0")
    from tournament.players.models import VERSION_TRANSITIONS

    lease = leases.claim(
        BotVersion.objects.all(),
        version.pk,
        transitions=VERSION_TRANSITIONS,
        running=VersionState.RUNNING,
        seconds=30,
        owner="far-host:7",
    )
    assert lease is not None
    version.refresh_from_db()
    players.retry_version(version=version)
    assert version.state == VersionState.SUBMITTED
    assert not leases.held(BotVersion.objects.all(), lease).exists()


def test_cancelled_trial_counts_as_failed_and_its_owner_is_told(site):
    tournament = make_tournament([site.bots[0]], name="Fast One", time_control="fast")
    competitions.dispatch(rung=True)
    trial = site.bots[0].versions.get(version="1.0").trials.get()
    with pytest.raises(TournamentStateError, match="reason"):
        competitions.cancel_trial(trial=trial, reason=" ")
    competitions.cancel_trial(trial=trial, reason="it hangs on every machine")
    assert (trial.state, trial.reason) == (
        TrialState.FAILED,
        "cancelled by staff: it hangs on every machine",
    )
    assert "it hangs on every machine" in Notice.objects.get(tournament=tournament).text
    with pytest.raises(TournamentStateError, match="failed already"):
        competitions.cancel_trial(trial=trial, reason="again")


def test_batch_that_hangs_is_taken_from_its_worker(site):
    rows = Scrimmage.objects.filter(pk=site.scrimmage.pk)
    from tournament.scrimmages.models import SCRIMMAGE_TRANSITIONS

    lease = leases.claim(
        rows,
        site.scrimmage.pk,
        transitions=SCRIMMAGE_TRANSITIONS,
        running=ScrimmageState.RUNNING,
        seconds=30,
        owner="far-host:7",
    )
    assert lease is not None
    scrimmages.retry_scrimmage(scrimmage=rows.get())
    assert rows.get().state == ScrimmageState.WAITING
    assert not leases.held(Scrimmage.objects.all(), lease).exists()


# What everybody else is told


def measured(rows, seconds: float) -> None:
    """Let checks have taken so long."""
    now = read_clock()
    rows.update(claimed_at=now - timedelta(seconds=seconds), decided_at=now)


def test_author_sees_place_and_time_of_a_check(site, ann, token, settings):
    settings.ARENA_WORKER_SLOTS = 2
    measured(BotVersion.objects.filter(state=VersionState.ACCEPTED), 60)
    others = [submit(site.bob, "beta", f"{number}.0") for number in (2, 3, 4)]
    own = submit(site.ann, "alpha", "3.0")
    assert place_of_check(others[0]).text == "1st of 4 in the queue, begins in a few seconds"
    words = "4th of 4 in the queue, begins in about 2 minutes"
    assert words in text_of(ann, f"/account/versions/{own.pk}/")
    headers = {"Authorization": f"Bearer {token}"}
    told = ann.get(f"/api/versions/{own.pk}", headers=headers).json()["queue"]
    assert told == {"place": 4, "waiting": 4, "expected_seconds": 90.0, "text": words}
    assert ann.get(f"/api/versions/{site.rejected.pk}", headers=headers).json()["queue"] is None


def test_match_waits_by_its_tournaments_share_of_the_slots(waiting, settings, client):
    settings.ARENA_WORKER_SLOTS = 4
    league = waiting[0].tournament
    Tournament.objects.exclude(pk=league.pk).update(paused_reason="x", pause_cause="organiser")
    Match.objects.filter(pk=waiting[0].pk).delete()
    Match.objects.filter(tournament__slug="cup").update(wall_ms=8000)
    assert place_of_match(waiting[1]).place == 1
    last = waiting[-1]
    alone = place_of_match(last)
    assert (alone.place, alone.waiting) == (len(waiting) - 1, len(waiting) - 1)
    assert alone.seconds == pytest.approx((len(waiting) - 2) * 1.0 / 4)
    rival = Tournament.objects.get(slug="table")
    Tournament.objects.filter(pk=rival.pk).update(paused_reason="", pause_cause="", weight=3)
    assert place_of_match(last).seconds == pytest.approx((len(waiting) - 2) * 1.0)
    league.cap = 1
    league.weight = 3
    assert place_of_match(last).seconds == pytest.approx((len(waiting) - 2) * 1.0)
    page = text_of(client, f"/tournaments/league/matches/{last.pairing.key}/")
    assert "in the queue, begins in" in page.lower()
    told = client.get(f"/api/matches/league/{last.pairing.key}").json()["queue"]
    assert (told["place"], told["waiting"]) == (len(waiting) - 1, len(waiting) - 1)


def test_tournament_tells_what_is_still_to_play(waiting, client):
    league = waiting[0].tournament
    backlog = backlog_of(league)
    assert backlog.matches == len(waiting)
    page = text_of(client, "/tournaments/league/")
    assert f"Still to play {len(waiting)} matches, played in" in page
    assert client.get("/api/tournaments/league").json()["backlog"]["matches"] == len(waiting)
    competitions.pause_tournament(tournament=league, reason="a doubt")
    assert "6 matches; the tournament is paused: a doubt" in text_of(client, "/tournaments/league/")
    assert client.get("/api/tournaments/cup").json()["backlog"] is None


def test_no_time_is_told_while_nothing_is_handed_out(site, ann):
    own = submit(site.ann, "alpha", "3.0")
    Pulse.objects.update(at=read_clock() - timedelta(hours=5))
    MEMORY.forget()
    place = place_of_check(own)
    assert (place.place, place.seconds) == (1, None)
    assert place.text == (
        "1st of 1 in the queue; nothing has been handed out for 5 hours, and no worker has been heard of "
        "for 5 hours"
    )
    assert place.text in text_of(ann, f"/account/versions/{own.pk}/")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (112, "112th"),
    ],
)
def test_places_are_spelled(number, words):
    assert spell_ordinal(number) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "a few seconds"),
        (12, "10 seconds"),
        (54, "55 seconds"),
        (56, "1 minute"),
        (100, "2 minutes"),
        (54 * 60, "54 minutes"),
        (56 * 60, "1 hour"),
        (22 * 3600, "22 hours"),
        (40 * 3600, "2 days"),
    ],
)
def test_times_are_spelled_roughly(seconds, words):
    assert spell_seconds(seconds) == words
