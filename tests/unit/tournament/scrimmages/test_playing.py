"""Playing scrimmages: batch by batch, each once, to the answer that `arena compare` gives."""

from __future__ import annotations

import json
import logging
import shlex

import msgspec
import pytest
from typer.testing import CliRunner

from engine.cli.app import make_app
from engine.errors import InfrastructureError, StarvedError
from engine.outcome import Fault, Termination
from engine.record import decode_record
from engine.runner import run_match
from engine.wheels import pack_module
from tests.scrimmage_factories import make_scrimmage, play_out, version_like
from tests.tournament_factories import accept, make_player
from tournament.players.selectors import wheel_of
from tournament.players.services import submit_wheel
from tournament.scrimmages import services
from tournament.scrimmages.models import Answer, Scrimmage, ScrimmageState
from tournament.scrimmages.selectors import (
    batch_record,
    compare_command,
    scrimmage_findings,
    spell_scrimmage,
)
from tournament.scrimmages.services import BatchPlay, playing
from tournament.scrimmages.services.dispatching import return_expired_scrimmages
from tournament.store.clock import in_seconds
from tournament.store.errors import StoreUnavailableError
from tournament.store.leases import MAX_ATTEMPTS, StoppedError

pytestmark = pytest.mark.django_db


@pytest.fixture
def scrimmage() -> Scrimmage:
    """Of two batches: 20 sets and 5."""
    return make_scrimmage(most_sets=25)


@pytest.fixture
def plays(monkeypatch):
    """What happens when a batch is played; by default it is played, in this process."""

    def use(act):
        def fake(spec, sources, *, trusted, keep_alive):
            if isinstance(act, Exception):
                raise act
            return act(lambda: run_match(spec, sources, trusted=True, keep_alive=keep_alive))

        monkeypatch.setattr(playing, "run_match", fake)

    use(lambda play: play())
    return use


def play(scrimmage: Scrimmage) -> BatchPlay:
    came = services.play_batch(scrimmage_id=scrimmage.pk)
    scrimmage.refresh_from_db()
    return came


def test_each_claim_plays_the_next_batch_until_all_sets_are_played(scrimmage, plays):
    assert play(scrimmage) is BatchPlay.RECORDED
    assert (scrimmage.state, scrimmage.sets) == (ScrimmageState.WAITING, 20)
    assert play(scrimmage) is BatchPlay.RECORDED
    assert (scrimmage.state, scrimmage.sets) == (ScrimmageState.FINISHED, 25)
    assert [len(batch.scores) for batch in scrimmage.batches.order_by("number")] == [20, 5]
    assert play(scrimmage) is BatchPlay.NOT_OURS


def test_a_recorded_batch_holds_its_record_and_digest(scrimmage, plays):
    play(scrimmage)
    batch = scrimmage.batches.get()
    record = batch_record(batch)
    assert (record.match_key, record.digest) == ("M1", batch.digest)
    assert [entrant.name for entrant in record.entrants] == ["alpha", "beta"]


@pytest.mark.parametrize(
    ("ours", "theirs", "game", "most_sets", "answer"),
    [
        pytest.param(
            "cautious", "chance", "eighty", 60, Answer.BETTER, id="decided within a batch"
        ),
        pytest.param(
            *("chance", "cautious", "eighty", 60, Answer.NOT_BETTER),
            id="the worse one",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            "chance", "chance", "podkidnoe", 30, Answer.UNDECIDED, id="all sets, undecided"
        ),
    ],
)
def test_counts_and_answer_are_those_of_arena_compare(
    tmp_path, monkeypatch, ours, theirs, game, most_sets, answer
):
    """Played by the very command that the page shows, from the wheels that the site stored."""
    ann, bob = make_player("ann"), make_player("bob")
    scrimmage = play_out(
        make_scrimmage(
            first=version_like(ours, "my-bot", "1.0", ann),
            other=version_like(theirs, "their-bot", "2.0", bob),
            game=game,
            most_sets=most_sets,
        )
    )
    command = shlex.split(compare_command(scrimmage))
    for path, version in zip(command[2:4], (scrimmage.first, scrimmage.other), strict=True):
        (tmp_path / path).write_bytes(wheel_of(version))
    monkeypatch.chdir(tmp_path)
    arguments = [*command[1:], "--trusted", "--jobs", "1", "--json", "--records", "."]
    (told,) = json.loads(CliRunner().invoke(make_app(), arguments).stdout)["games"]
    findings = scrimmage_findings(scrimmage)
    assert scrimmage.answer == answer == told["verdict"]
    assert scrimmage.counts == told["counts"]
    records = [decode_record((tmp_path / name).read_bytes()) for name in told["records"]]
    digests = scrimmage.batches.order_by("number").values_list("digest", flat=True)
    assert [record.digest for record in records] == list(digests)
    assert scrimmage.likelihood_ratio == told["likelihood_ratio"] == findings.ratio
    assert findings.compared.entrants[0].points.mean == told["points"]["mean"]
    answered = told["answer"].replace("my-bot", "my-bot 1.0").replace("their-bot", "their-bot 2.0")
    assert spell_scrimmage(scrimmage, findings) == answered


def test_only_one_of_two_plays_a_batch(scrimmage, plays):
    came = []

    def meanwhile(play):
        came.append(services.play_batch(scrimmage_id=scrimmage.pk))
        return play()

    plays(meanwhile)
    assert play(scrimmage) is BatchPlay.RECORDED
    assert came == [BatchPlay.NOT_OURS]
    assert scrimmage.batches.count() == 1


def test_batch_that_was_taken_over_writes_nothing_and_is_played_again_alike(scrimmage, plays):
    found = []

    def taken_over(play):
        played = play()
        found.append(played.record.digest)
        if len(found) == 1:
            Scrimmage.objects.update(lease_until=in_seconds(-1))
            return_expired_scrimmages()
        return played

    plays(taken_over)
    assert play(scrimmage) is BatchPlay.DISCARDED
    assert (scrimmage.state, scrimmage.attempts, scrimmage.sets) == (ScrimmageState.WAITING, 1, 0)
    assert play(scrimmage) is BatchPlay.RECORDED
    assert found[0] == found[1] == scrimmage.batches.get().digest
    assert scrimmage.attempts == 0


def test_cancelled_while_a_batch_is_played_it_stays_cancelled(scrimmage, plays):
    def cancelled(play):
        services.cancel_scrimmage(scrimmage=Scrimmage.objects.get(), reason="no more")
        return play()

    plays(cancelled)
    assert play(scrimmage) is BatchPlay.DISCARDED
    assert (scrimmage.state, scrimmage.reason) == (ScrimmageState.CANCELLED, "no more")
    assert not scrimmage.batches.exists()


def test_worker_that_has_to_stop_gives_it_back_without_counting_a_failure(scrimmage, plays):
    plays(StoppedError("the worker was told to stop"))
    assert play(scrimmage) is BatchPlay.RELEASED
    assert (scrimmage.state, scrimmage.attempts) == (ScrimmageState.WAITING, 0)


def test_store_that_is_away_is_no_failure_however_long(scrimmage, plays):
    plays(StoreUnavailableError("the folder is not there"))
    for _ in range(MAX_ATTEMPTS + 1):
        assert play(scrimmage) is BatchPlay.PUT_OFF
        assert (scrimmage.state, scrimmage.attempts) == (ScrimmageState.WAITING, 0)
    plays(lambda play: play())
    assert play(scrimmage) is BatchPlay.RECORDED


@pytest.mark.parametrize(
    "error",
    [
        StarvedError("the machine is too busy"),  # void, as everywhere
        InfrastructureError("the sandbox did not start"),  # foreseen
        ZeroDivisionError("a bug of ours"),  # not foreseen at all
    ],
)
def test_own_failures_count_nothing_and_the_fifth_in_a_row_waits_for_an_operator(
    scrimmage, plays, error, caplog
):
    caplog.set_level(logging.CRITICAL)
    plays(error)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        assert scrimmage.state == ScrimmageState.WAITING
        assert play(scrimmage) is BatchPlay.FAILED
        assert scrimmage.attempts == attempt
    assert (scrimmage.state, scrimmage.sets) == (ScrimmageState.STUCK, 0)
    assert str(error) in scrimmage.failure
    assert play(scrimmage) is BatchPlay.NOT_OURS
    services.retry_scrimmage(scrimmage=scrimmage)
    plays(lambda play: play())
    assert play(scrimmage) is BatchPlay.RECORDED


def test_failures_of_earlier_batches_do_not_add_up(scrimmage, plays, caplog):
    caplog.set_level(logging.CRITICAL)
    for _ in range(MAX_ATTEMPTS - 1):
        plays(InfrastructureError("not now"))
        play(scrimmage)
    plays(lambda play: play())
    assert play(scrimmage) is BatchPlay.RECORDED
    assert (scrimmage.attempts, scrimmage.failure) == (0, "")


CRASHER = """
from engine.sdk import Strategy, hookimpl

class Crasher(Strategy):
    questions = 0

    def act(self, observation):
        self.questions += 1
        if self.questions > 60:
            print("about to break")
            raise ValueError("broken")
        return observation.legal[0]

@hookimpl
def make_strategy(game, ruleset, players):
    return Crasher()
"""


def test_fault_ends_it_with_the_reason_and_its_batch_counts_nothing(tmp_path):
    (tmp_path / "crasher.py").write_text(CRASHER)
    ann = make_player("ann")
    data = pack_module(tmp_path / "crasher.py", bot="crasher", version="1.0")
    scrimmage = make_scrimmage(first=accept(submit_wheel(owner=ann, data=data)), most_sets=40)
    play_out(scrimmage)
    assert (scrimmage.state, scrimmage.answer) == (ScrimmageState.FINISHED, Answer.FAULT)
    assert scrimmage.sets == 0
    assert "crasher" in scrimmage.reason
    assert "raised ValueError" in scrimmage.reason
    batch = scrimmage.batches.get()
    assert (batch.scores, batch.termination) == ([], Termination.CRASH)
    assert "No answer" in spell_scrimmage(scrimmage, scrimmage_findings(scrimmage))
    scrimmage.first.refresh_from_db()
    assert scrimmage.first.crashes == 0  # nothing here counts


def test_fault_in_a_later_batch_leaves_the_sets_before_it(scrimmage, plays):
    play(scrimmage)

    def faulty(play):
        played = play()
        fault = Fault(entrant=1, seat=1, kind=Termination.TIME, detail="it took too long")
        outcome = msgspec.structs.replace(
            played.record.outcome, termination=Termination.TIME, faults=(fault,)
        )
        record = msgspec.structs.replace(played.record, outcome=outcome)
        return msgspec.structs.replace(played, record=record)

    plays(faulty)
    assert play(scrimmage) is BatchPlay.RECORDED
    assert (scrimmage.answer, scrimmage.sets) == (Answer.FAULT, 20)
    assert scrimmage.reason == "beta on seat 1: used up its time. it took too long"
