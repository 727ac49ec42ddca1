"""Many at once: processes of their own, each with its own connection to the same database."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter

import pytest
from django.db import transaction
from django.test import Client

from tests.processes import PROCESSES, at_once
from tests.scrimmage_factories import make_scrimmage, make_wish
from tests.tournament_factories import (
    make_bot,
    make_player,
    make_tournament,
    make_wheel,
    start,
    submit,
)
from tournament.competitions import services
from tournament.competitions.errors import EntryError, TournamentStateError
from tournament.competitions.models import (
    UNFINISHED,
    AttemptEnding,
    Match,
    MatchState,
    Pairing,
    Round,
    Tournament,
    TournamentState,
)
from tournament.competitions.selectors import versions_awaited
from tournament.competitions.services import Play, close_tournament, dispatching
from tournament.competitions.services.playing import _claim as claim_match
from tournament.competitions.services.playing import count_failure
from tournament.leaderboards.models import RatingEvent, RatingPool
from tournament.leaderboards.services import (
    RatedResult,
    RatedTeam,
    append_results,
    verify_ratings,
)
from tournament.players.models import VERSION_TRANSITIONS, BotVersion, VersionState
from tournament.players.services import create_token, submit_wheel
from tournament.scrimmages.errors import ScrimmageQuotaError
from tournament.scrimmages.models import Scrimmage, ScrimmageState
from tournament.scrimmages.services import BatchPlay, ask, play_batch, scrimmages_to_play
from tournament.store import leases
from tournament.store.leases import FREE_FIELDS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def league(size: int, **changes) -> Tournament:
    owner = make_player()
    bots = [make_bot(f"bot{number}", owner) for number in range(size)]
    return start(make_tournament(bots, **changes))


def test_one_of_eight_claims_a_row():
    version = submit(make_player(), "alpha")

    def claim(number: int) -> bool:
        return (
            leases.claim(
                BotVersion.objects.all(),
                version.pk,
                transitions=VERSION_TRANSITIONS,
                running=VersionState.RUNNING,
                seconds=600,
                owner=f"worker {number}",
            )
            is not None
        )

    assert Counter(at_once(claim)) == {True: 1, False: PROCESSES - 1}
    assert BotVersion.objects.get().fence == 1


def test_no_locked_error_reaches_anyone_in_a_thousand_claims():
    version = submit(make_player(), "alpha")
    rows = BotVersion.objects.filter(pk=version.pk)

    def claim_and_release(number: int) -> int:
        won = 0
        for _ in range(125):
            lease = leases.claim(
                BotVersion.objects.all(),
                version.pk,
                transitions=VERSION_TRANSITIONS,
                running=VersionState.RUNNING,
                seconds=600,
                owner=f"worker {number}",
            )
            if lease is not None:
                won += 1
                assert VERSION_TRANSITIONS.move(
                    leases.held(rows, lease), VersionState.SUBMITTED, **FREE_FIELDS
                )
        return won

    assert sum(at_once(claim_and_release)) == BotVersion.objects.get().fence


def test_same_message_in_eight_processes_plays_a_match_once():
    match = league(2).matches.get()
    came = at_once(lambda _: services.play_match(match_id=match.pk, trusted=True))
    assert Counter(came) == {Play.RECORDED: 1, Play.NOT_OURS: PROCESSES - 1}
    match.refresh_from_db()
    assert (match.fence, match.tries.count()) == (1, 1)


def test_eight_that_finish_a_round_at_once_make_one_next_round():
    tournament = league(16)
    matches = list(tournament.matches.order_by("pk").values_list("pk", flat=True))

    def finish(number: int) -> bool:
        assert services.play_match(match_id=matches[number], trusted=True) is Play.RECORDED
        return services.advance_round(tournament=tournament)

    assert sum(at_once(finish)) == 1
    assert list(Round.objects.order_by("index").values_list("index", "state")) == [
        (1, "complete"),
        (2, "open"),
    ]
    assert Pairing.objects.count() == 8 + 4
    assert Match.objects.count() == 8 + 4


def test_eight_dispatches_at_once_publish_each_match_once():
    tournament = league(12)
    dues = at_once(lambda _: services.dispatch(rung=True))
    published = [pk for due in dues for block in due.blocks for pk in block]
    assert sorted(published) == sorted(set(published))
    assert set(published) <= set(tournament.matches.values_list("pk", flat=True))
    assert tournament.matches.filter(state=MatchState.QUEUED).count() == len(published) > 0


def test_only_one_of_eight_dispatches_within_half_a_second_runs(monkeypatch):
    monkeypatch.setattr(dispatching, "MIN_SECONDS_BETWEEN", 600.0)  # half a second passes by itself
    ran = []
    monkeypatch.setattr(dispatching, "return_expired_versions", lambda: ran.append(1))

    def dispatch(_: int) -> int:
        services.dispatch()
        return len(ran)  # each process has its own list

    assert sum(at_once(dispatch)) == 1


def test_of_eight_who_enter_at_once_just_those_for_whom_there_is_a_place_get_in():
    bots = [make_bot(f"bot{number}") for number in range(PROCESSES)]
    tournament = make_tournament(max_entrants=3)

    def enter(number: int) -> str:
        try:
            services.enter(tournament=tournament, bots=[bots[number]], by=bots[number].owner)
        except EntryError as error:
            return str(error)
        return "in"

    found = Counter(at_once(enter))
    assert found.pop("in") == tournament.entrants.count() == 3
    assert all("full" in reason for reason in found)


def test_whole_cup_is_played_by_eight_workers_that_all_get_every_message():
    tournament = league(9, contest={"kind": "boards", "boards": 1})

    def work(number: int) -> int:
        recorded = 0
        for _ in range(200):
            tournament.refresh_from_db()
            if tournament.state == TournamentState.FINISHED:
                return recorded
            services.dispatch(rung=True)
            for pk in list(Match.objects.filter(state__in=UNFINISHED).values_list("pk", flat=True)):
                came = services.play_match(match_id=pk, trusted=True)
                recorded += came is Play.RECORDED
        return recorded

    assert sum(at_once(work)) == 8
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.FINISHED
    assert Match.objects.filter(state=MatchState.FINISHED).count() == 8
    assert all(match.tries.filter(ending="recorded").count() == 1 for match in Match.objects.all())
    assert set(tournament.entrants.values_list("place", flat=True)) >= {1, 2}


def test_upload_that_began_before_the_close_and_is_committed_after_it_is_awaited():
    owner = make_player()
    bots = [make_bot(name, owner) for name in ("alpha", "beta")]
    tournament = make_tournament(bots)
    data = make_wheel("alpha", "2.0")
    uploaded = multiprocessing.get_context("fork").Event()

    def act(number: int) -> str:
        if number:
            assert uploaded.wait(timeout=60)
            return close_tournament(tournament=tournament, now=tournament.closes_at).pub
        with transaction.atomic():
            submit_wheel(owner=owner, data=data)
            uploaded.set()
            time.sleep(0.5)  # as long as the close would need without waiting
        return ""

    assert at_once(act, processes=2) == ["", ""]
    (awaited,) = versions_awaited(tournament)
    assert str(awaited) == "alpha 2.0"


def test_failures_and_a_cancellation_at_once_do_not_wait_for_each_other_for_ever():
    tournament = league(8, format="round_robin")
    matches = list(tournament.matches.values_list("pk", flat=True)[: PROCESSES - 1])
    held = [claim_match(pk, "worker") for pk in matches]
    assert all(held)
    Match.objects.update(attempts=leases.MAX_ATTEMPTS - 1)

    def act(number: int) -> bool:
        if number:
            return count_failure(held[number - 1], AttemptEnding.FAILED, "the disk is full")
        services.cancel_tournament(tournament=tournament, reason="power cut")
        return True

    assert at_once(act)[0]
    assert set(tournament.matches.values_list("state", flat=True)) == {MatchState.CANCELLED}


def test_match_cancelled_while_it_is_played_has_one_end():
    tournament = league(2)
    match = tournament.matches.get()

    def act(number: int) -> str:
        if number:
            return str(services.play_match(match_id=match.pk, trusted=True))
        try:
            services.cancel_tournament(tournament=tournament, reason="power cut")
        except TournamentStateError:
            return "too late"
        return "cancelled"

    came = set(at_once(act, processes=2))
    match.refresh_from_db()
    if match.state == MatchState.FINISHED:
        assert Play.RECORDED in came
        assert match.termination
    else:
        assert match.state == MatchState.CANCELLED
        assert came <= {"cancelled", Play.DISCARDED, Play.NOT_OURS}
        assert match.termination == ""


def test_log_has_no_gap_whoever_appends():
    owner = make_player()
    for number in range(PROCESSES):
        make_bot(f"bot{number}", owner)

    def append(number: int) -> int:
        others = [i for i in range(PROCESSES) if i != number]
        return sum(
            append_results(
                game="eighty",
                kind="mono",
                results=[
                    RatedResult(
                        f"cup{number}/M{other}",
                        (
                            RatedTeam(((f"bot{number}", "1.0"),), 1),
                            RatedTeam(((f"bot{other}", "1.0"),), 2),
                        ),
                    )
                ],
            )
            for other in others
        )

    total = PROCESSES * (PROCESSES - 1)
    assert sum(at_once(append)) == total
    seqs = list(RatingEvent.objects.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, total + 1))
    assert RatingPool.objects.get().last_seq == total
    assert verify_ratings(game="eighty", kind="mono") == ()


def test_same_wheel_submitted_eight_times_at_once_is_one_version():
    owner, data = make_player(), make_wheel("alpha")
    token = create_token(player=owner, scope="submit")[1]

    def send(_: int) -> tuple[int, int]:
        headers = {"Authorization": f"Bearer {token}"}
        kind = "application/octet-stream"
        answer = Client(headers=headers).post("/api/versions", data, content_type=kind)
        return answer.status_code, answer.json()["id"]

    found = at_once(send)
    assert sorted(status for status, _ in found) == [200] * (PROCESSES - 1) + [201]
    assert len({pk for _, pk in found}) == 1
    assert BotVersion.objects.count() == 1


def test_each_batch_of_a_scrimmage_is_played_by_one_of_eight():
    """Whoever comes while it is played finds it taken, whoever comes after plays the next one."""
    scrimmage = make_scrimmage(most_sets=60)

    def play(number: int) -> list[BatchPlay]:
        came = []
        while Scrimmage.objects.get(pk=scrimmage.pk).is_open:
            name = f"worker {number}"
            came.append(play_batch(scrimmage_id=scrimmage.pk, owner=name, trusted=True))
        return came

    came = Counter(play for plays in at_once(play) for play in plays)
    assert came[BatchPlay.RECORDED] == 3
    assert set(came) <= {BatchPlay.RECORDED, BatchPlay.NOT_OURS}
    scrimmage.refresh_from_db()
    batches = list(scrimmage.batches.order_by("number"))
    assert [(batch.number, len(batch.scores)) for batch in batches] == [(1, 20), (2, 20), (3, 20)]
    assert len({batch.fence for batch in batches}) == 3
    assert (scrimmage.state, scrimmage.sets) == (ScrimmageState.FINISHED, 60)


def test_of_eight_that_ask_for_the_last_one_allowed_one_gets_it(settings):
    settings.ARENA_SCRIMMAGES_OPEN = 1
    wish = make_wish()

    def ask_for_it(_: int) -> bool:
        try:
            ask(wish=wish, by=wish.first.bot.owner)
        except ScrimmageQuotaError:
            return False
        return True

    assert Counter(at_once(ask_for_it)) == {True: 1, False: PROCESSES - 1}
    assert Scrimmage.objects.count() == 1


def test_of_eight_dispatches_at_once_each_scrimmage_is_queued_by_one(settings):
    settings.ARENA_SCRIMMAGE_SLOTS = settings.ARENA_SCRIMMAGES_OPEN = 4
    wish = make_wish()
    asked = {ask(wish=wish, by=wish.first.bot.owner).pk for _ in range(4)}
    queued = [pk for ids in at_once(lambda _: scrimmages_to_play()) for pk in ids]
    assert sorted(queued) == sorted(asked)
