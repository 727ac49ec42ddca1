"""The supervisor keeps its children, and leaves none behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tournament.operations.errors import ChildFailedError
from tournament.operations.home import Home
from tournament.operations.stack import Address, children
from tournament.operations.supervisor import (
    LOG_BYTES_KEPT,
    ChildSpec,
    Supervisor,
    restart_delay,
    turn_over,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a site needs Linux")


FOR_EVER = "while :; do sleep 0.02; done"


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_for(condition: Callable[[], bool], *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)


class Scene:
    """A supervisor with shell scripts for children, each of which writes down its process id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.supervisor = Supervisor(self.lines.append)

    def start(self, name: str, script: str, *, trap: str = "", **more) -> None:
        """Unless told otherwise it is ready once it writes its process id, and has set its trap before."""
        pids = self.folder / f"{name}.pids"
        command = ["sh", "-c", f"{trap or ':'}; echo $$ >> {pids}; {script}"]
        spec = ChildSpec(
            name=name,
            command=command,
            environ=dict(os.environ),
            log=self.folder / f"{name}.log",
            **{"is_ready": pids.exists, **more},
        )
        self.supervisor.start(spec)

    def pids(self, name: str) -> list[int]:
        return [int(line) for line in (self.folder / f"{name}.pids").read_text().split()]


@pytest.fixture
def scene(tmp_path: Path):
    scene = Scene(tmp_path)
    yield scene
    scene.supervisor.stop(lambda: True)


def test_dead_child_is_started_again_and_that_is_said(scene: Scene):
    scene.start("worker", "exec sleep 60")
    os.kill(scene.pids("worker")[0], signal.SIGKILL)

    def started_again() -> bool:
        scene.supervisor.check()
        return len(scene.pids("worker")) == 2

    wait_for(started_again)
    assert is_alive(scene.pids("worker")[1])
    assert [line.startswith("worker ended with status -9") for line in scene.lines] == [True]


def test_child_that_keeps_dying_is_started_ever_more_seldom():
    delays = [restart_delay(failures) for failures in range(10)]
    assert delays[0] == 0
    assert delays == sorted(delays)
    assert delays[1] < 1
    assert delays[-1] == 30


def test_child_that_ends_while_starting_is_an_error_with_its_log(scene: Scene):
    with pytest.raises(ChildFailedError, match="no such thing") as caught:
        scene.start("web", "echo no such thing; exit 3", is_ready=lambda: False)
    assert caught.value.status == 3


def test_children_are_stopped_stage_by_stage(scene: Scene):
    order = scene.folder / "order"
    for name, stage in (("broker", 3), ("beat", 0), ("web", 2), ("worker", 1)):
        trap = f"trap 'sleep 0.1; echo {name} >> {order}; exit' TERM"
        scene.start(name, FOR_EVER, trap=trap, stop_stage=stage)
    scene.supervisor.stop()
    assert order.read_text().split() == ["beat", "worker", "web", "broker"]


@pytest.mark.stack
def test_parts_of_a_site_stop_at_once_and_its_broker_last(tmp_path: Path):
    with Address("127.0.0.1", 0).bind() as listener:
        specs = children(Home.open(tmp_path / "home"), tmp_path / "socket", listener, 1)
    stages = {spec.name: spec.stop_stage for spec in specs}
    last = stages.pop("broker")
    assert set(stages) == {"web", "control", "matches", "beat"}
    assert [stage < last for stage in set(stages.values())] == [True]


def test_signal_goes_to_the_main_process_alone(scene: Scene):
    told = scene.folder / "told"
    inner = f"trap 'echo inner >> {told}' TERM; echo up > {told}; {FOR_EVER}"
    trap = f"trap 'echo main >> {told}; exit' TERM"
    scene.start("worker", f'sh -c "{inner}" & {FOR_EVER}', trap=trap)
    wait_for(lambda: told.exists() and told.read_text() == "up\n")
    scene.supervisor.stop()
    assert told.read_text().split() == ["up", "main"]


def test_nothing_of_a_stopped_child_is_left(scene: Scene):
    left = scene.folder / "left"
    scene.start("worker", f"sleep 60 & echo $! > {left}; exec sleep 60", is_ready=left.exists)
    wait_for(lambda: left.read_text().strip() != "")
    scene.supervisor.stop()
    assert not is_alive(scene.pids("worker")[0])
    wait_for(lambda: not is_alive(int(left.read_text())))


def test_child_that_ignores_every_signal_is_killed(scene: Scene):
    scene.start(
        "worker",
        FOR_EVER,
        trap="trap '' TERM QUIT",
        stop=((signal.SIGTERM, 0.1), (signal.SIGQUIT, 0.1)),
    )
    scene.supervisor.stop()
    assert not is_alive(scene.pids("worker")[0])


def test_hurry_kills_at_once_what_would_take_long(scene: Scene):
    scene.start("worker", FOR_EVER, trap="trap '' TERM", stop=((signal.SIGTERM, 9e9),))
    scene.supervisor.stop(lambda: True)
    assert not is_alive(scene.pids("worker")[0])


def test_children_end_when_the_supervisor_is_killed(tmp_path: Path):
    program = f"""
import os, time
from pathlib import Path
from tournament.operations.supervisor import ChildSpec, Supervisor
spec = ChildSpec(name="worker", command=["sh", "-c", "echo $$ > {tmp_path}/pid; exec sleep 60"],
                 environ=dict(os.environ), log=Path("{tmp_path}/log"))
Supervisor(print).start(spec)
time.sleep(60)
"""
    supervisor = subprocess.Popen([sys.executable, "-c", program])
    pid = tmp_path / "pid"
    wait_for(lambda: pid.exists() and pid.read_text().strip() != "")
    supervisor.kill()
    supervisor.wait()
    wait_for(lambda: not is_alive(int(pid.read_text())))


def test_large_log_is_begun_anew_and_the_older_one_kept(tmp_path: Path):
    log = tmp_path / "web.log"
    log.write_bytes(b"x" * (LOG_BYTES_KEPT + 1))
    turn_over(log)
    assert not log.exists()
    assert (tmp_path / "web.old.log").stat().st_size == LOG_BYTES_KEPT + 1
