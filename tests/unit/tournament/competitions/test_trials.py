"""Trials at entry: what is tried, what comes of it, and that no close runs ahead of them."""

from __future__ import annotations

import json
from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.conf import settings
from django.db.models.functions import Now

from engine.checking import CheckReport
from tests.tournament_factories import (
    accept,
    make_bot,
    make_player,
    make_tournament,
    make_wheel,
    soon,
    start,
    submit,
)
from tournament.competitions import services as competitions
from tournament.competitions.errors import EntryError, TournamentStateError
from tournament.competitions.models import (
    Entrant,
    EntrantState,
    EntryTrial,
    Notice,
    PauseCause,
    Tournament,
    TournamentState,
    TrialState,
)
from tournament.competitions.selectors import (
    remarks_on_entries,
    trial_log,
    versions_that_would_play,
)
from tournament.competitions.services import trials
from tournament.competitions.services.sweeping import sweep_blobs
from tournament.competitions.services.trials import (
    request_due_trials,
    request_trials,
    retry_trial,
    return_expired_trials,
    run_trial,
)
from tournament.players import services as players
from tournament.players.models import Bot, BotVersion
from tournament.scrimmages.selectors import site_is_busy
from tournament.store.errors import StoreUnavailableError
from tournament.store.leases import MAX_ATTEMPTS

pytestmark = pytest.mark.django_db

HASTY = """
from engine.sdk import Strategy, hookimpl


class Hasty(Strategy):
    def begin_game(self, info):
        self.info = info

    def act(self, observation):
        assert self.info.time_control.name != "fast", "no plan for so little time"
        return observation.legal[0]


@hookimpl
def make_strategy(game, ruleset, players):
    return Hasty()
"""
FAST = {"time_control": "fast"}


@pytest.fixture
def hasty(tmp_path) -> Bot:
    """A bot that its check accepts and that cannot play in the time control fast."""
    wheel = make_wheel("hasty", "1.0", HASTY, tmp_path)
    return accept(players.submit_wheel(owner=make_player("hugo"), data=wheel)).bot


def newer(bot: Bot, version: str) -> BotVersion:
    """A version that can play."""
    return accept(submit(bot.owner, bot.name, version))


def try_all() -> list[EntryTrial]:
    """Ask for and play all that is due, as dispatch and workers do; the trials that were played."""
    played = []
    for _ in range(20):
        request_due_trials()
        waiting = EntryTrial.objects.filter(state=TrialState.PENDING, version__state="accepted")
        found = list(waiting.order_by("pk"))
        if not found:
            return EntryTrial.objects.filter(pk__in=played).order_by("pk")
        for trial in found:
            assert run_trial(trial_id=trial.pk, trusted=True)
            played.append(trial.pk)
    raise AssertionError("ever more trials are asked for")


def close(tournament: Tournament) -> Tournament:
    return competitions.close_tournament(tournament=tournament, now=tournament.closes_at)


def test_entry_is_tried_once_for_each_kind_of_table_under_the_own_rules(tmp_path):
    bots = [make_bot("alpha"), make_bot("beta")]
    make_tournament(bots, game="podkidnoe", format="round_robin", **FAST)
    played = try_all()
    assert [trial.version.bot.name for trial in played] == ["alpha", "beta"]
    assert {trial.state for trial in played} == {TrialState.PASSED}
    assert played[0].conditions["time_control"]["name"] == "fast"
    assert played[0].conditions["seats"] == 2


def test_equal_conditions_are_tried_once_for_all_tournaments():
    bot = make_bot("alpha")
    for name in ("First", "Second"):
        make_tournament([bot], name=name, **FAST)
    make_tournament([bot], name="Third", ruleset={"target": 300}, **FAST)
    assert len(try_all()) == 2
    assert not list(try_all())


def test_what_every_check_plays_is_not_tried_again():
    make_tournament([make_bot("alpha")], time_control="standard")
    assert request_due_trials() == 0
    assert not EntryTrial.objects.exists()


def test_bot_that_fails_is_withdrawn_at_the_close_with_the_reason(hasty):
    tournament = make_tournament([hasty, make_bot("alpha"), make_bot("beta")], **FAST)
    try_all()
    close(tournament)
    entrant = Entrant.objects.get(tournament=tournament, name="hasty")
    assert entrant.state == EntrantState.WITHDRAWN
    assert entrant.reason == "hasty: 1.0 did not pass the trial under the rules of this tournament"
    assert (
        "no plan for so little time" not in entrant.reason
    )  # that is for its owner and the organiser
    tournament.refresh_from_db()
    assert tournament.pub


def test_owner_is_told_at_once_why_a_version_would_not_play(hasty):
    tournament = make_tournament([hasty], **FAST)
    other = make_tournament([hasty], name="Unhurried", time_control="standard")
    (trial,) = try_all()
    assert trial.state == TrialState.FAILED
    assert "in the time control fast" in trial.reason
    assert "no plan for so little time" in trial_log(trial)
    (notice,) = Notice.objects.filter(player=hasty.owner)
    assert notice.tournament == tournament
    assert "hasty 1.0 would not play in Autumn Cup" in notice.text
    (remark,) = remarks_on_entries(tournament, [hasty.pk]).values()
    assert remark.startswith("1.0 would not play: Eighty by the default rules at 4 seats")
    assert remarks_on_entries(other, [hasty.pk]) == {}


def test_version_that_fails_is_replaced_by_the_newest_that_passed(hasty, tmp_path):
    good = newer(hasty, "2.0")
    tournament = make_tournament([hasty, make_bot("alpha")], **FAST)
    try_all()
    assert versions_that_would_play(tournament)[hasty.pk] == good
    wheel = make_wheel("hasty", "3.0", HASTY + "\n# again\n", tmp_path)
    accept(players.submit_wheel(owner=hasty.owner, data=wheel))
    assert [trial.state for trial in try_all()] == [TrialState.FAILED]
    close(tournament)
    assert Entrant.objects.get(name="hasty").bots.get().version == good
    (remark,) = remarks_on_entries(tournament, [hasty.pk]).values()
    assert remark.endswith("; 2.0 plays")


def test_older_version_is_tried_when_the_newer_ones_have_failed(tmp_path):
    bot = make_bot("hasty")
    wheel = make_wheel("hasty", "2.0", HASTY, tmp_path)
    accept(players.submit_wheel(owner=bot.owner, data=wheel))
    make_tournament([bot], **FAST)
    assert [(trial.version.version, trial.state) for trial in try_all()] == [
        ("2.0", TrialState.FAILED),
        ("1.0", TrialState.PASSED),
    ]


def test_bot_of_which_no_version_passed_cannot_enter_the_next_tournament_of_this_kind(hasty):
    make_tournament([hasty], **FAST)
    try_all()
    with pytest.raises(EntryError, match=r"1\.0 would not play: Eighty"):
        make_tournament([hasty], name="Next", **FAST)


def test_close_waits_for_a_trial_that_was_never_asked_for_and_asks():
    tournament = close(make_tournament([make_bot("alpha"), make_bot("beta")], **FAST))
    assert (tournament.state, tournament.pub) == (TournamentState.CLOSED, "")
    assert EntryTrial.objects.count() == 2
    with pytest.raises(TournamentStateError, match=r"alpha 1\.0 .tried under these rules: waiting"):
        competitions.start_tournament(tournament=tournament, now=tournament.starts_at)
    try_all()
    assert close(tournament).pub


def test_close_during_a_trial_waits_for_its_verdict(monkeypatch):
    tournament = make_tournament([make_bot("alpha"), make_bot("beta")], **FAST)
    seals = []

    def check_wheel(data, cache, **options):
        seals.append(close(Tournament.objects.get(pk=tournament.pk)).pub)
        return CheckReport(verdict="rejected", reasons=("it crashed",))

    monkeypatch.setattr(trials, "check_wheel", check_wheel)
    try_all()
    assert seals == ["", ""]
    sealed = close(Tournament.objects.get(pk=tournament.pk))
    assert json.loads(sealed.pub)["entrants"] == []


def test_verdict_after_the_seal_changes_nothing_that_is_frozen(hasty):
    tournament = make_tournament([hasty, make_bot("alpha"), make_bot("beta")], **FAST)
    try_all()
    tournament = start(tournament)
    trial = EntryTrial.objects.get(version__bot=hasty)
    retry_trial(trial=trial)
    try_all()
    assert Entrant.objects.get(name="hasty").state == EntrantState.WITHDRAWN
    assert Notice.objects.count() == 1  # of the first trial


def test_version_accepted_after_the_close_is_tried_before_the_seal():
    bot = make_bot("alpha")
    tournament = make_tournament([bot, make_bot("beta")], **FAST)
    try_all()
    late_check = submit(bot.owner, "alpha", "2.0")
    assert not close(tournament).pub
    accept(late_check)
    assert not close(tournament).pub
    try_all()
    assert close(tournament).pub
    assert Entrant.objects.get(name="alpha").bots.get().version == late_check


def break_down(*args, **options):
    raise OSError("no space left")


def test_store_that_is_away_is_no_failure_of_a_trial_however_long(monkeypatch):
    make_tournament([make_bot("alpha")], **FAST)
    request_due_trials()
    trial = EntryTrial.objects.get()
    with monkeypatch.context() as away:
        away.setattr(trials, "read_often", Mock(side_effect=StoreUnavailableError("no mount")))
        for _ in range(MAX_ATTEMPTS + 1):
            assert not run_trial(trial_id=trial.pk)
            trial.refresh_from_db()
            assert (trial.state, trial.attempts) == (TrialState.PENDING, 0)
            assert competitions.dispatch(rung=True).trials == (), "not at once"
    assert run_trial(trial_id=trial.pk)


def test_trial_that_we_cannot_play_is_stuck_and_pauses_until_it_is_played_again(monkeypatch):
    tournament = make_tournament([make_bot("alpha"), make_bot("beta")], **FAST)
    request_due_trials()
    trial = EntryTrial.objects.get(version__bot__name="alpha")
    with monkeypatch.context() as patch:
        patch.setattr(trials, "check_wheel", break_down)
        for _ in range(5):
            assert not run_trial(trial_id=trial.pk)
    trial.refresh_from_db()
    assert trial.state == TrialState.STUCK
    assert "no space left" in trial.reason
    held = close(tournament)
    assert held.pause_cause == PauseCause.STUCK_VERSION
    assert "alpha 1.0, which the site could not try under these rules" in held.paused_reason
    retry_trial(trial=trial)
    try_all()
    held = close(held)
    assert (held.paused_reason, bool(held.pub)) == ("", True)


def test_withdrawn_version_is_no_longer_waited_for():
    bot = make_bot("alpha")
    tournament = close(make_tournament([bot, make_bot("beta"), make_bot("gamma")], **FAST))
    players.withdraw_version(version=bot.versions.get())
    try_all()
    assert close(tournament).pub
    assert EntryTrial.objects.get(version__bot=bot).state == TrialState.PENDING


def test_trial_that_nobody_plays_any_more_holds_up_no_scrimmage():
    bot = make_bot("alpha")
    make_tournament([bot], **FAST)
    request_due_trials()
    assert site_is_busy()
    players.withdraw_version(version=bot.versions.get())
    assert not site_is_busy()


@pytest.mark.parametrize("state", [TrialState.PENDING, TrialState.PASSED])
def test_only_what_is_over_and_not_passed_is_played_again(state):
    make_tournament([make_bot("alpha")], **FAST)
    request_due_trials()
    trial = EntryTrial.objects.get()
    if state == TrialState.PASSED:
        assert run_trial(trial_id=trial.pk, trusted=True)
        trial.refresh_from_db()
    with pytest.raises(TournamentStateError, match="only one that is stuck or has failed"):
        retry_trial(trial=trial)


def test_late_verdict_of_a_lost_claim_is_discarded(monkeypatch):
    make_tournament([make_bot("alpha")], **FAST)
    request_due_trials()
    trial = EntryTrial.objects.get()

    def lose(data, cache, **options):
        EntryTrial.objects.update(lease_until=Now() - timedelta(seconds=1))
        assert return_expired_trials() == 1
        return CheckReport(verdict="rejected", reasons=("it crashed",))

    monkeypatch.setattr(trials, "check_wheel", lose)
    assert not run_trial(trial_id=trial.pk)
    trial.refresh_from_db()
    assert (trial.state, trial.attempts, trial.reason) == (TrialState.PENDING, 1, "")
    assert not Notice.objects.exists()


def test_dispatch_hands_out_trials_and_again_those_whose_message_is_lost():
    make_tournament([make_bot("alpha")], **FAST)
    (pk,) = competitions.dispatch(rung=True).trials
    assert competitions.dispatch(rung=True).trials == ()
    EntryTrial.objects.update(queued_at=Now() - timedelta(seconds=61))
    assert competitions.dispatch(rung=True).trials == (pk,)


def test_trials_stand_back_behind_matches_until_a_close_is_near(monkeypatch):
    monkeypatch.setattr(settings, "ARENA_WORKER_SLOTS", 2)
    start(make_tournament([make_bot("alpha"), make_bot("beta")], name="Played"))
    bots = [make_bot(name) for name in ("gamma", "delta", "zeta")]
    tournament = make_tournament(bots, name="Coming", **FAST)
    request_due_trials()
    first = trials.queue_trials()
    assert len(first) == 1
    assert trials.queue_trials() == ()
    EntryTrial.objects.update(due_at=soon() + timedelta(seconds=30))
    assert len(trials.queue_trials()) == 2
    assert tournament.state == TournamentState.OPEN


def test_trial_is_due_at_the_earliest_close_that_wants_it():
    bot = make_bot("alpha")
    later = make_tournament([bot], name="Later", **FAST)
    request_trials(tournament=later)
    sooner_close = later.closes_at - timedelta(minutes=30)
    make_tournament([bot], name="Sooner", closes_at=sooner_close, **FAST)
    request_due_trials()
    assert EntryTrial.objects.get().due_at == sooner_close


def test_log_of_a_trial_is_not_swept(hasty):
    make_tournament([hasty], **FAST)
    (trial,) = try_all()
    sweep_blobs()
    assert trial_log(trial)


class TestLate:
    """Who enters a running tournament."""

    def swiss(self, **changes):
        bots = [make_bot(name) for name in ("alpha", "beta", "chi", "delta")]
        plan = {"format": "swiss", "late_until_round": 2, "format_options": {"rounds": 3}}
        tournament = make_tournament(bots, **plan, **FAST, **changes)
        try_all()
        return start(tournament)

    def enter(self, tournament, bot):
        return competitions.enter(tournament=tournament, bots=[bot], by=bot.owner)

    def join(self):
        return competitions.dispatch(rung=True)

    def test_joins_once_it_has_passed(self):
        tournament = self.swiss()
        entrant = self.enter(tournament, make_bot("gamma"))
        assert (entrant.seed, entrant.addendum) == (None, "")
        self.join()
        entrant.refresh_from_db()
        assert entrant.seed is None
        assert len(try_all() or EntryTrial.objects.filter(state="queued")) == 1
        for trial in EntryTrial.objects.filter(state=TrialState.QUEUED):
            assert run_trial(trial_id=trial.pk, trusted=True)
        self.join()
        entrant.refresh_from_db()
        assert entrant.seed == 5
        assert '"round":2' in entrant.addendum

    def test_joins_at_once_if_it_has_passed_before(self):
        tournament, bot = self.swiss(), make_bot("gamma")
        make_tournament([bot], name="Other", **FAST)
        try_all()
        assert self.enter(tournament, bot).seed == 5

    def test_is_turned_away_if_it_fails_and_may_come_again(self, hasty):
        tournament = self.swiss()
        entrant = self.enter(tournament, hasty)
        try_all()
        self.join()
        entrant.refresh_from_db()
        assert entrant.state == EntrantState.WITHDRAWN
        assert "no version of it would play here" in entrant.reason
        assert any("hasty does not play" in notice.text for notice in Notice.objects.all())
        newer(hasty, "2.0")
        again = self.enter(tournament, hasty)
        try_all()
        self.join()
        again.refresh_from_db()
        assert again.seed == 5

    def test_is_turned_away_if_the_last_round_has_begun_meanwhile(self):
        tournament = self.swiss()
        entrant = self.enter(tournament, make_bot("gamma"))
        Tournament.objects.update(late_until_round=1)
        self.join()
        entrant.refresh_from_db()
        assert entrant.state == EntrantState.WITHDRAWN
        assert "the last round that takes somebody in had begun" in entrant.reason
