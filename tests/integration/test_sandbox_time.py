"""Clocks are fair: a busy machine, another core or a slow processor is nobody's fault."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.agents import Failure, Limits
from engine.errors import InfrastructureError
from engine.outcome import Termination
from engine.record import BoardsContest
from engine.runner import run_match
from engine.sandbox import core, launcher, speed
from engine.sandbox.core import one_core
from engine.sandbox.starvation import Schedule, Starvation, read_schedule
from tests.hostile.stage import GENEROUS, first_question, game_info, make_agent, source_in
from tests.integration.test_sandbox_match import house_bots, spec_of

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
    with pytest.raises(InfrastructureError, match="this machine is too busy"):
        looks(*rows).check(5000)


def test_what_the_kernel_does_not_tell_excuses_nobody():
    starvation = Starvation()
    starvation.look(read_schedule(2**22 + 1))
    starvation.check(5000)


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

    def ask(bot: str, *, is_crowded_out: bool) -> object:
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
                return agent.ask(question, question.legal, SHORT, deal=0, turn=0)
        finally:
            agent.close()

    return ask


@pytest.mark.sandbox
def test_bot_that_is_crowded_out_makes_the_attempt_void(ask_on_a_busy_core):
    with pytest.raises(InfrastructureError, match="this machine is too busy"):
        ask_on_a_busy_core("spin", is_crowded_out=True)


@pytest.mark.sandbox
def test_bot_that_sleeps_on_a_busy_core_is_not_excused(ask_on_a_busy_core):
    answer = ask_on_a_busy_core("sleep", is_crowded_out=False)
    assert isinstance(answer, Failure)
    assert answer.kind is Termination.TIME


@pytest.mark.skipif(sys.platform != "linux", reason="cores are claimed on Linux")
def test_match_has_one_core_and_gives_it_back():
    allowed = os.sched_getaffinity(0)
    with one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == allowed


@pytest.mark.skipif(sys.platform != "linux", reason="cores are claimed on Linux")
def test_processes_that_play_claim_different_cores_while_there_are_some(monkeypatch):
    monkeypatch.setattr(core, "_MARK", "domino-arena-test-core")
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
    speed.budget_percent.cache_clear()
    sources = house_bots(tmp_path, "lowest", "highest")
    spec = spec_of("podkidnoe", sources, BoardsContest(1))
    try:
        record = run_match(spec, [(source,) for source in sources]).record
    finally:
        speed.budget_percent.cache_clear()
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
    monkeypatch.setattr(speed, "_REPEATS", len(times))
    monkeypatch.setattr(speed, "_measure_us", iter(measured).__next__)
    assert speed.budget_percent.__wrapped__() == percent


def test_work_that_is_measured_is_the_same_each_time():
    assert speed._work() == speed._work() > 0
