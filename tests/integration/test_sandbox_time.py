"""Clocks are fair: a busy machine, another core or a slow processor is nobody's fault."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from engine.agents import BotSource, Failure, Limits, Reply
from engine.cli.app import make_app
from engine.cli.exits import ExitCode
from engine.errors import StarvedError
from engine.outcome import Termination
from engine.record import BoardsContest
from engine.runner import MOST_ATTEMPTS, run_match
from engine.sandbox import core, launcher, speed
from engine.sandbox.agent import SandboxAgent
from engine.sandbox.core import one_core
from engine.sandbox.starvation import OwnPace, Schedule, Starvation, read_schedule
from engine.sdk.timecontrol import TimeControl
from engine.wheels import pack_module
from tests.hostile.stage import GENEROUS, HERE, first_question, game_info, make_agent, source_in
from tests.integration.test_sandbox_match import BOTS, house_bots, spec_of

SHORT = Limits(cpu_us=1_000_000, wall_ms=2000)


def looks(*rows: tuple[float, float, bool]) -> Starvation:
    """What a second a row shows: what it ran and waited in all, and whether it is ready to run."""
    starvation = Starvation()
    for second, (ran, waited, is_ready) in enumerate(rows):
        starvation.look(Schedule(at=second, ran=ran, waited=waited, is_ready=is_ready))
    return starvation


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([(0, 0, False)] * 5, id="it sleeps"),
        pytest.param([(n, 0.01 * n, True) for n in range(5)], id="it runs"),
        pytest.param([(0.6 * n, 0.4 * n, True) for n in range(5)], id="it gets the larger part"),
        pytest.param([(0, 0, True), (0, 0, False), (0, 0, True)], id="it only looks ready"),
        pytest.param([(0, 0, True)], id="looked at once"),
        pytest.param([], id="never looked at"),
    ],
)
def test_bot_that_could_have_run_is_not_excused(rows):
    looks(*rows).check(5000)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([(0.1 * n, 0.9 * n, True) for n in range(5)], id="it hardly runs"),
        pytest.param([(0, 0, True)] * 5, id="it never gets to run, so its wait is not counted yet"),
        pytest.param([(0, 0, True)] * 3 + [(0.1, 2.5, False)], id="its wait is counted late"),
    ],
)
def test_bot_that_could_not_run_makes_the_attempt_void(rows):
    with pytest.raises(StarvedError, match="this machine is too busy"):
        looks(*rows).check(5000)


def test_time_in_which_nobody_looked_says_nothing_against_the_bot():
    starvation = looks(*[(0.1 * n, 0.9 * n, True) for n in range(4)])
    starvation.look(Schedule(at=100, ran=0.4, waited=3.6, is_ready=True))
    with pytest.raises(StarvedError):
        starvation.check(5000)


def test_bot_that_waits_for_memory_that_was_taken_from_it_is_starved():
    starvation = Starvation()
    for second in range(5):
        starvation.look(
            Schedule(at=second, ran=0.1 * second, waited=0, is_ready=False, lacks_memory=True)
        )
    with pytest.raises(StarvedError):
        starvation.check(5000)


def test_what_the_kernel_does_not_tell_excuses_nobody():
    starvation = Starvation()
    starvation.look(read_schedule(2**22 + 1))
    starvation.check(5000)


@pytest.mark.parametrize(
    ("began", "now", "slowdown"),
    [
        ((5, 7), (15, 7), 1.0),  # it never waited
        ((5, 7), (15, 27), 3.0),  # twice as long as it ran
        ((5, 7), (5, 7), 1.0),  # no time has passed
        ((0, 0), (0, 0), 1.0),  # the kernel does not tell
    ],
)
def test_own_pace_is_what_passed_by_what_was_run(monkeypatch, began, now, slowdown):
    monkeypatch.setattr("engine.sandbox.starvation._own_times", lambda: now)
    assert OwnPace(began).slowdown() == slowdown


@contextlib.contextmanager
def busy_core(number: int):
    """Another program that leaves a core no rest."""
    program = (
        f"import os\nos.sched_setaffinity(0, {{{number}}})\nprint(flush=True)\nwhile True: pass"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        try:
            yield
        finally:
            other.kill()


def crowd_out(pid: int) -> None:
    """Let a process run only when nobody else wants its core."""
    os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(FileNotFoundError):  # a kernel that does not group by session
        Path(f"/proc/{pid}/autogroup").write_text("19")


@pytest.fixture
def ask_on_a_busy_core(tmp_path):
    """Asks a bot that shares its core with another program, or is crowded out by it."""

    def ask(bot: str, *, is_crowded_out: bool, limits: Limits = SHORT) -> object:
        agent = make_agent(source_in(tmp_path, bot))
        number = min(os.sched_getaffinity(0))
        question = first_question()
        try:
            agent.start()
            assert isinstance(agent.wait_ready(GENEROUS), int)
            agent.begin_game(game_info())
            (pid,) = launcher._children(agent._launched.process.parent_pid)
            os.sched_setaffinity(pid, {number})
            if is_crowded_out:
                crowd_out(pid)
            with busy_core(number):
                return agent.ask(question, question.legal, limits, deal=0, turn=0, move=1)
        finally:
            agent.close()

    return ask


@pytest.mark.sandbox
def test_bot_that_is_crowded_out_makes_the_attempt_void(ask_on_a_busy_core, monkeypatch):
    monkeypatch.setattr("engine.sandbox.agent._MOST_WALLS", 1.5)
    with pytest.raises(StarvedError, match="this machine is too busy"):
        ask_on_a_busy_core("spin", is_crowded_out=True)


@pytest.mark.sandbox
def test_bot_that_spins_on_a_busy_core_uses_up_its_cpu_time_however_long_that_takes(
    ask_on_a_busy_core, monkeypatch
):
    """Half of the core is its own, so it needs twice as long as it may sleep."""
    monkeypatch.setattr("engine.sandbox.agent._MOST_WALLS", 30)
    limits = Limits(cpu_us=1_000_000, wall_ms=1100)
    answer = ask_on_a_busy_core("spin", is_crowded_out=False, limits=limits)
    assert answer.kind is Termination.TIME
    assert "CPU time" in answer.detail


@pytest.mark.sandbox
def test_bot_that_sleeps_on_a_busy_core_is_not_excused(ask_on_a_busy_core):
    answer = ask_on_a_busy_core("sleep", is_crowded_out=False)
    assert isinstance(answer, Failure)
    assert answer.kind is Termination.TIME


@pytest.mark.sandbox
def test_time_in_which_the_referee_did_not_run_is_not_the_bots(tmp_path):
    """It is away longer than a bot may be, as a worker that was stopped; the answer has come meanwhile."""
    (tmp_path / "dozes.py").write_text(
        (HERE / "sleep.py").read_text().replace("time.sleep(3600)", "time.sleep(0.3)")
    )
    away = iter(())
    agent = make_agent(
        BotSource(bot="dozes", version=None, wheel=None, folder=str(tmp_path), entry_point="dozes"),
        keep_alive=lambda: time.sleep(next(away, 0)),
    )
    question = first_question()
    try:
        agent.start()
        assert isinstance(agent.wait_ready(GENEROUS), int)
        agent.begin_game(game_info())
        away = iter([1.5])
        limits = Limits(cpu_us=1_000_000, wall_ms=1000)
        answer = agent.ask(question, question.legal, limits, deal=0, turn=0, move=1)
    finally:
        agent.close()
    assert isinstance(answer, Reply)


def dozing(folder: Path, seconds: float) -> BotSource:
    """A bot that sleeps for so long before each answer."""
    (folder / "dozes.py").write_text(
        (HERE / "sleep.py").read_text().replace("time.sleep(3600)", f"time.sleep({seconds})")
    )
    return BotSource(bot="dozes", version=None, wheel=None, folder=str(folder), entry_point="dozes")


@pytest.mark.sandbox
def test_bot_that_sleeps_a_little_before_each_answer_loses_when_it_was_too_much_in_all(tmp_path):
    agent = make_agent(dozing(tmp_path, 0.4))
    question, answers = first_question(), []
    try:
        agent.start()
        assert isinstance(agent.wait_ready(GENEROUS), int)
        agent.begin_game(game_info())
        for turn in range(60):  # a busy machine is to blame for a part of it
            answers.append(agent.ask(question, question.legal, SHORT, deal=0, turn=turn, move=1))
            if isinstance(answers[-1], Failure):
                break
    finally:
        agent.close()
    *replies, failure = answers
    assert replies
    assert all(isinstance(reply, Reply) for reply in replies)
    assert failure.kind is Termination.TIME
    assert failure.detail == "was idle for 2000 ms in all, at last while choosing an action"


@pytest.mark.sandbox
def test_match_against_a_sleeper_ends_as_soon_as_its_allowance(tmp_path):
    (tmp_path / "bot").mkdir()
    sources = [*house_bots(tmp_path, "greedy"), dozing(tmp_path / "bot", 0.3)]
    spec = spec_of("podkidnoe", sources, BoardsContest(20))
    spec = msgspec.structs.replace(spec, time_control=TimeControl("own", 2000, 5000, 50, 2000))
    record = run_match(spec, [(source,) for source in sources]).record
    assert [(fault.entrant, fault.kind) for fault in record.outcome.faults] == [
        (1, Termination.TIME)
    ]
    assert sum(len(deal.actions) for game in record.games for deal in game.deals) < 100


@pytest.fixture
def starve(monkeypatch):
    """Starves the first so many questions, as if the kernel had shown that the bot could not run."""

    def starve_first(many: int) -> None:
        left = iter(range(many))
        ask = SandboxAgent.ask

        def starved(*arguments, **named):
            if next(left, None) is not None:
                raise StarvedError("this machine is too busy")
            return ask(*arguments, **named)

        monkeypatch.setattr(SandboxAgent, "ask", starved)

    return starve_first


@pytest.mark.sandbox
def test_command_plays_a_starved_match_again_and_says_so(starve):
    arguments = ["play", "greedy", "random", "--game", "podkidnoe", "--boards", "1", "--seed", "x"]
    undisturbed = CliRunner().invoke(make_app(), [*arguments, "--json"])
    starve(2)
    done = CliRunner().invoke(make_app(), [*arguments, "--json"])
    assert done.exit_code == 0
    assert "attempt 2 of 5 is void and made again: this machine is too busy" in done.stderr
    assert json.loads(done.stdout)["digest"] == json.loads(undisturbed.stdout)["digest"]


@pytest.mark.sandbox
def test_command_gives_up_on_a_match_that_is_always_starved(starve):
    starve(10**6)
    arguments = ["play", "greedy", "random", "--game", "podkidnoe", "--boards", "1", "--seed", "x"]
    done = CliRunner().invoke(make_app(), arguments)
    assert done.exit_code == ExitCode.FAILURE
    assert done.stderr.count("is void and made again") == MOST_ATTEMPTS - 1


@pytest.mark.sandbox
def test_command_checks_a_bot_again_where_it_was_starved(tmp_path, starve):
    wheel = tmp_path / "greedy.whl"
    wheel.write_bytes(pack_module(BOTS / "greedy.py", bot="greedy", version="1.0"))
    starve(2)
    done = CliRunner().invoke(make_app(), ["check", str(wheel), "--json"])
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (0, "accepted")
    assert done.stderr.count("is void and made again") == 2


@pytest.mark.skipif(sys.platform != "linux", reason="cores are claimed on Linux")
def test_match_has_one_core_and_gives_it_back():
    allowed = os.sched_getaffinity(0)
    with one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == allowed


@pytest.mark.skipif(sys.platform != "linux", reason="cores are claimed on Linux")
def test_processes_that_play_claim_different_cores_while_there_are_some(monkeypatch):
    monkeypatch.setattr(core, "_MARK", f"domino-arena-test-core-{os.getpid()}")
    first, mark = core._find_free([0, 1])
    second, other_mark = core._find_free([0, 1])
    assert (first, second) == (0, 1)
    assert core._find_free([0, 1])[1] is None
    os.close(mark)
    again, mark = core._find_free([0, 1])
    assert again == 0
    os.close(mark)
    os.close(other_mark)


@pytest.mark.sandbox
def test_bots_play_on_the_core_of_their_referee(tmp_path):
    with one_core():
        agent = make_agent(source_in(tmp_path, "well_behaved"))
        try:
            agent.start()
            agent.wait_ready(GENEROUS)
            (pid,) = launcher._children(agent._launched.process.parent_pid)
            assert os.sched_getaffinity(pid) == os.sched_getaffinity(0)
        finally:
            agent.close()


@pytest.mark.sandbox
def test_record_tells_what_budgets_the_machine_granted(tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "_measure_us", lambda: 3 * speed.REFERENCE_US)
    monkeypatch.setattr(speed, "_here", speed.Speedometer())
    sources = house_bots(tmp_path, "lowest", "highest")
    spec = spec_of("podkidnoe", sources, BoardsContest(1))
    record = run_match(spec, [(source,) for source in sources]).record
    assert record.timing.budget_percent == 300


@pytest.mark.parametrize(
    ("times", "percent"),
    [
        ([1.4, 1.0, 1.2], 100),  # the best counts: other load makes it only slower
        ([2.0], 200),
        ([0.5], 50),
        ([1000.0], 400),  # a machine that cannot be measured
        ([0.0], 25),
    ],
)
def test_budgets_follow_the_best_measurement_within_bounds(monkeypatch, times, percent):
    measured = [time * speed.REFERENCE_US for time in times]
    monkeypatch.setattr(speed, "_FIRST_REPEATS", len(times))
    monkeypatch.setattr(speed, "_measure_us", iter(measured).__next__)
    assert speed.Speedometer().budget_percent(0.0) == percent


def test_machine_that_was_busy_when_it_was_measured_is_measured_again_and_its_best_is_kept(
    monkeypatch,
):
    now, slowness = 100.0, 1.64
    monkeypatch.setattr(speed, "_measure_us", lambda: slowness * speed.REFERENCE_US)
    found = speed.Speedometer()
    assert found.budget_percent(now) == 164
    slowness = 0.91
    assert found.budget_percent(now + 1) == 164, "not before each match"
    assert found.budget_percent(now + 60) == 91
    slowness = 1.64
    assert found.budget_percent(now + 120) == 91


def test_work_that_is_measured_is_the_same_each_time():
    assert speed._work() == speed._work() > 0
