"""Well-behaved bots in the sandbox, and what the agent promises the referee."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from engine.agents import Declined, Failure, Limits, Reply
from engine.errors import InfrastructureError, SandboxUnavailableError
from engine.games import get_game
from engine.sandbox import launcher, policy, probe, runtime
from engine.sandbox.processes import parent_of, pid_namespace, stat_fields
from engine.shuffle import Stream
from tests.hostile.stage import (
    GENEROUS,
    HERE,
    LAUNCHERS,
    first_question,
    game_info,
    make_agent,
    nothing_left_behind,
    perform,
    source_in,
)

pytestmark = pytest.mark.sandbox


@pytest.mark.parametrize(
    ("game", "players"),
    [("eighty", 4), ("podkidnoe", 2), ("podkidnoe", 3), ("podkidnoe", 4)],
)
def test_bots_play_a_whole_deal(tmp_path, game, players):
    rules = get_game(game)
    ruleset = rules.make_ruleset()
    state = rules.start(ruleset, rules.deal(Stream(b"deal" * 8), ruleset, players))
    agents = [
        make_agent(source_in(tmp_path, "well_behaved"), game, players) for _ in range(players)
    ]
    asked = 0
    with nothing_left_behind():
        try:
            for agent in agents:
                agent.start()
            assert all(isinstance(agent.wait_ready(GENEROUS), int) for agent in agents)
            for seat, agent in enumerate(agents):
                agent.begin_game(game_info(seat, game=game, players=players))
            while not state.is_over:
                codes = state.legal()
                index = 0
                if len(codes) > 1:
                    observation = state.observe(1000)
                    answer = agents[state.seat].ask(
                        observation, observation.legal, GENEROUS, deal=0, turn=asked, move=1
                    )
                    assert isinstance(answer, Reply)
                    assert answer.index == 0
                    assert answer.cpu_us >= 0
                    asked += 1
                state.apply(codes[index])
        finally:
            logs = [agent.close() for agent in agents]
    assert asked > 3
    assert [log.traceback for log in logs] == [""] * players


def write_bot(folder: Path, act: str, *, begin: str = "pass", make: str = "return Tested()"):
    (folder / "tested.py").write_text(
        textwrap.dedent(
            """
            import os, sys, random
            from engine.sdk import Strategy, hookimpl

            class Tested(Strategy):
                def begin_game(self, info):
                    {begin}
                def act(self, observation):
                    {act}

            @hookimpl
            def make_strategy(game, ruleset, players):
                {make}
            """
        ).format(begin=begin, act=act, make=make)
    )
    source = source_in(folder, "well_behaved")
    return make_agent(
        type(source)(bot="t", version=None, wheel=None, folder=str(folder), entry_point="tested")
    )


def test_strategy_learns_what_a_game_is_about(tmp_path):
    agent = write_bot(tmp_path, "return observation.legal[0]", begin="print(info)")
    show = perform(agent, questions=1)
    assert show.fault is None
    assert show.log.text == f"--- game 0 begins\n{game_info()}\n"


def test_observation_arrives_whole(tmp_path):
    agent = write_bot(tmp_path, "print(observation); return observation.legal[-1]")
    show = perform(agent, questions=1)
    question = first_question()
    assert show.log.text == f"--- game 0, deal 0, action 0, move 1\n{question}\n"
    assert show.answers[0].index == len(question.legal) - 1


def test_bot_that_does_not_play_declines(tmp_path):
    with nothing_left_behind():
        show = perform(write_bot(tmp_path, "return None", make="return None"))
    assert isinstance(show.ready, Declined)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        ("return object()", "make_strategy answered with object: it must be a Strategy or None"),
        ("return 1/0", "ZeroDivisionError: division by zero"),
    ],
    ids=["no strategy", "an error"],
)
def test_author_is_told_why_a_bot_does_not_start(tmp_path, make, words):
    show = perform(write_bot(tmp_path, "return None", make=make))
    assert isinstance(show.ready, Failure)
    assert words in show.log.traceback


def test_traceback_names_the_bots_files_and_no_place_of_this_machine(tmp_path):
    show = perform(write_bot(tmp_path, "import json; json.loads('x')"), questions=1)
    files = re.findall(r'File "([^"]+)"', show.log.traceback)
    assert {"/bot/tested.py", "<sandbox>/decoder.py"} <= set(files)
    assert [file for file in files if not file.startswith(("/bot/", "<sandbox>/"))] == []


def test_plugin_without_the_hook_is_told_what_is_missing(tmp_path):
    (tmp_path / "tested.py").write_text("def make_strategy(game, ruleset, players): return None\n")
    source = source_in(tmp_path, "well_behaved")
    agent = make_agent(
        type(source)(bot="t", version=None, wheel=None, folder=str(tmp_path), entry_point="tested")
    )
    assert "put @hookimpl above it" in perform(agent).log.traceback


def test_entry_point_may_name_an_object_in_its_module(tmp_path):
    (tmp_path / "tested.py").write_text(
        textwrap.dedent(
            """
            from engine.sdk import hookimpl
            import well_behaved

            class Plugin:
                @hookimpl
                def make_strategy(self, game, ruleset, players):
                    return well_behaved.Attacker()

            plugin = Plugin()
            """
        )
    )
    source = source_in(tmp_path, "well_behaved")
    agent = make_agent(
        type(source)(
            bot="t", version=None, wheel=None, folder=str(tmp_path), entry_point="tested:plugin"
        )
    )
    assert perform(agent).fault is None


def test_text_hashes_are_the_same_in_every_process(tmp_path):
    agents = [write_bot(tmp_path, "print(hash('6-6')); return observation.legal[0]") for _ in "ab"]
    first, second = (perform(agent, questions=1).log.text for agent in agents)
    assert first == second != ""


def test_random_module_differs_between_processes(tmp_path):
    agents = [
        write_bot(tmp_path, "print(random.random()); return observation.legal[0]") for _ in "ab"
    ]
    first, second = (perform(agent, questions=1).log.text for agent in agents)
    assert first != second


def test_bot_may_not_even_list_what_lies_beside_its_folder(tmp_path):
    agent = write_bot(tmp_path, "os.listdir('/')")
    assert perform(agent).fault.detail == "raised PermissionError while choosing an action"


def test_bot_sees_no_more_than_it_is_shown_even_without_landlock(tmp_path, monkeypatch):
    monkeypatch.setattr(policy, "landlock_abi", lambda: 0)
    look = (
        "print(sorted(os.listdir('/')), sorted(os.listdir('/arena')), sorted(os.environ), "
        "[fd for fd in range(200) if not _closed(fd)]); return observation.legal[0]"
    )
    agent = write_bot(tmp_path, look)
    bot = tmp_path / "tested.py"
    bot.write_text(
        bot.read_text()
        + "\ndef _closed(fd):\n    try:\n        os.fstat(fd)\n    except OSError:\n        return True\n"
    )
    with Path(tmp_path / "secret").open("wb", buffering=0) as secret:
        os.set_inheritable(secret.fileno(), True)
        show = perform(agent, questions=1)
    line = show.log.text.splitlines()[1]
    provided = {"engine.zip", "msgspec", "pluggy", "numpy"}
    variables = ["LC_CTYPE", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PWD", "PYTHONHASHSEED"]  # fmt: skip
    assert f" {variables} " in line
    shown = set(re.findall(r"\[(.*?)\]", line)[1].replace("'", "").split(", "))
    assert provided <= shown <= {*provided, "numpy.libs"}
    assert "[0, 1, 2, 3, 4]" in show.log.text
    top_folders = show.log.text.splitlines()[1].split("]")[0]
    assert not [
        name for name in ("proc", "dev", "sys", "var", "boot") if f"'{name}'" in top_folders
    ]


def test_bot_cannot_see_other_packages_or_files_of_the_machine(tmp_path):
    look = (
        "print([name for name in ('django', 'packaging', 'engine.referee', 'pip') if _found(name)], "
        f"os.path.exists({str(HERE)!r}), os.path.exists({str(tmp_path)!r})); "
        "return observation.legal[0]"
    )
    agent = write_bot(tmp_path, look)
    bot = tmp_path / "tested.py"
    bot.write_text(
        bot.read_text()
        + "\ndef _found(name):\n    import importlib.util\n    return importlib.util.find_spec(name)\n"
    )
    show = perform(agent, questions=1)
    assert show.log.text.endswith("\n[] False False\n")


def test_every_system_call_that_is_not_listed_fails(tmp_path):
    from seccompy import syscalls

    limited = {
        *policy.CLOCK_CALLS,
        *policy.SELF_CALLS,
        "open",
        "openat",
        "fcntl",
        "ioctl",
        "prlimit64",
    }
    listed = {*policy.ALLOWED, *limited}
    # The kernel lets these two past every filter: they are traps for its own tracing.
    others = syscalls._native()[2].keys() - listed - {"uretprobe", "uprobe"}
    numbers = {name: syscalls.syscall_nr(name) for name in others}
    (tmp_path / "tested.py").write_text(
        textwrap.dedent(
            f"""
            import ctypes, errno
            from engine.sdk import hookimpl

            libc = ctypes.CDLL(None, use_errno=True)
            went_through = []
            for name, number in {numbers!r}.items():
                ctypes.set_errno(0)
                result = libc.syscall(number, 0, 0, 0, 0, 0, 0)
                if result != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
                    went_through.append(name)
            print("went through:", went_through)

            @hookimpl
            def make_strategy(game, ruleset, players):
                return None
            """
        )
    )
    source = source_in(tmp_path, "well_behaved")
    show = perform(make_agent(type(source)(**{**as_dict(source), "entry_point": "tested"})))
    assert len(numbers) > 200
    assert isinstance(show.ready, Declined)
    assert show.log.text == "--- start\nwent through: []\n"


LIMITED = [
    ("write", "os.open(__file__, os.O_WRONLY)"),
    ("write and read", "os.open(__file__, os.O_RDWR)"),
    ("create", "os.open('/bot/new', os.O_RDONLY | os.O_CREAT)"),
    ("cut", "os.open(__file__, os.O_RDONLY | os.O_TRUNC)"),
    ("temporary file", "os.open('/bot', os.O_RDONLY | os.O_TMPFILE)"),
    ("lock", "fcntl.lockf(0, fcntl.LOCK_SH)"),
    ("flock", "fcntl.flock(0, fcntl.LOCK_SH)"),
    ("notify", "fcntl.fcntl(0, fcntl.F_NOTIFY, 1)"),
    ("pipe size", "fcntl.fcntl(0, 1031, 1 << 20)"),
    ("own limits", "resource.prlimit(0, resource.RLIMIT_CORE, (0, 0))"),
    ("limits of another", "resource.prlimit(1, resource.RLIMIT_AS, (0, 0))"),
    ("type into a terminal", "fcntl.ioctl(0, termios.TIOCSTI, b'x')"),
    ("process group", "os.killpg(0, 0)"),
    ("pipe", "os.pipe()"),
    ("rename", "os.rename(__file__, '/bot/other')"),
    ("delete", "os.unlink(__file__)"),
    ("folder", "os.mkdir('/bot/folder')"),
    ("link", "os.symlink('/', '/bot/root')"),
    ("change the log's size", "os.ftruncate(2, 0)"),
]


@pytest.mark.parametrize("attempt", [row[1] for row in LIMITED], ids=[row[0] for row in LIMITED])
def test_use_that_a_call_is_not_allowed_for_fails(tmp_path, attempt):
    agent = write_bot(
        tmp_path, f"import fcntl, resource, termios; {attempt}; return observation.legal[0]"
    )
    show = perform(agent, questions=1)
    assert show.fault is not None
    assert show.fault.detail == "raised PermissionError while choosing an action"


def test_bot_reads_its_own_data_by_importlib(tmp_path):
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "table.txt").write_text("6-6 is worth keeping")
    agent = write_bot(
        tmp_path,
        "from importlib import resources; "
        "print(resources.files('pack').joinpath('table.txt').read_text()); "
        "return observation.legal[0]",
    )
    assert "6-6 is worth keeping" in perform(agent, questions=1).log.text


def test_stopped_bot_does_not_think_in_its_opponents_time(tmp_path):
    agent = make_agent(source_in(tmp_path, "think_on"))
    try:
        agent.start()
        agent.wait_ready(GENEROUS)
        question = first_question()
        assert isinstance(
            agent.ask(question, question.legal, GENEROUS, deal=0, turn=0, move=1), Reply
        )
        bot = agent._bot
        while state_of(launcher._children(agent._launched.process.parent_pid)[0]) != "T":
            time.sleep(0.001)
        stopped_at = bot.cpu_us()
        time.sleep(0.05)
        assert bot.cpu_us() == stopped_at
    finally:
        agent.close()


def state_of(pid: int) -> str:
    return stat_fields(pid)[0]


def test_lease_is_kept_alive_while_a_bot_sleeps(tmp_path):
    calls = []
    agent = make_agent(source_in(tmp_path, "sleep"), keep_alive=lambda: calls.append(1))
    show = perform(agent, limits=Limits(cpu_us=100_000, wall_ms=2500))
    assert show.fault.detail == "gave no answer within 2500 ms while choosing an action"
    assert len(calls) >= 2


def test_closing_twice_gives_the_same_log(tmp_path):
    agent = make_agent(source_in(tmp_path, "act_crash"))
    log = perform(agent).log
    assert agent.close() == log


def test_closing_before_the_walls_stand_leaves_nothing(tmp_path):
    with nothing_left_behind():
        agent = make_agent(source_in(tmp_path, "well_behaved"))
        agent.start()
        agent.close()


def test_agent_that_was_never_started_can_be_closed(tmp_path):
    with nothing_left_behind():
        make_agent(source_in(tmp_path, "well_behaved")).close()


@pytest.mark.parametrize("launcher", LAUNCHERS.values(), ids=LAUNCHERS)
@pytest.mark.parametrize("pause", [0, 0.3], ids=["at once", "when it has ended"])
def test_missing_folder_is_our_own_failure(tmp_path, launcher, pause):
    source = source_in(tmp_path, "well_behaved")
    missing = type(source)(**{**as_dict(source), "folder": str(tmp_path / "missing")})
    agent = make_agent(missing, launcher=launcher)
    with nothing_left_behind():
        try:
            with pytest.raises(InfrastructureError, match=r"No such file|Can't find source path"):
                start_and_pause(agent, pause)
        finally:
            agent.close()


def start_and_pause(agent, pause):
    agent.start()
    time.sleep(pause)
    agent.wait_ready(GENEROUS)


def test_bot_folder_may_be_named_from_here(tmp_path, monkeypatch):
    source = source_in(tmp_path / "bot", "well_behaved")
    monkeypatch.chdir(tmp_path)
    agent = make_agent(type(source)(**{**as_dict(source), "folder": "bot"}))
    assert perform(agent).fault is None


def as_dict(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def test_bots_die_with_the_process_that_plays(tmp_path):
    program = f"""
import sys, time
sys.path[:0] = {sys.path!r}
from pathlib import Path
from tests.hostile.stage import make_agent, source_in, GENEROUS
agent = make_agent(source_in(Path({str(tmp_path)!r}), "well_behaved"))
agent.start()
agent.wait_ready(GENEROUS)
from engine.sandbox.launcher import _children
outer = agent._launched.process.parent_pid
print(outer, *_children(outer), flush=True)
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as host:
        pids = [int(pid) for pid in host.stdout.readline().split()]
        assert len(pids) == 2
        assert all(parent_of(pid) for pid in pids)
        host.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "the bots live on"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    fields = stat_fields(pid)
    return fields is not None and fields[0] != "Z"


@contextlib.contextmanager
def left_behind(mark):
    """A process that is called as a bubblewrap whose worker has that mark."""
    with subprocess.Popen(
        [f"{launcher._NAME}:{mark}", "-c", "import time; time.sleep(600)"],
        executable=sys.executable,
    ) as orphan:
        try:
            while launcher._NAME not in Path(f"/proc/{orphan.pid}/cmdline").read_text():
                time.sleep(0.001)
            yield orphan
        finally:
            orphan.kill()


@pytest.fixture
def own_name(monkeypatch):
    """Bots of this test are called otherwise: whoever else starts a sandbox on this machine sweeps, too."""
    monkeypatch.setattr(launcher, "_NAME", f"arena-test-{os.getpid()}")


@pytest.fixture
def gone(own_name):
    """The pid of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_orphans_of_a_killed_worker_are_swept(gone):
    with left_behind(f"{pid_namespace()}-{gone}-1") as orphan:
        assert launcher.sweep_orphans() == 1
        assert orphan.wait() == -signal.SIGKILL


def test_bots_of_a_worker_whose_pids_are_others_are_not_swept(gone):
    with left_behind(f"{pid_namespace() + 1}-{gone}-1") as orphan:
        assert launcher.sweep_orphans() == 0
        assert orphan.poll() is None


def test_another_user_s_process_is_not_swept_whatever_it_is_called(gone, monkeypatch):
    with left_behind(f"{pid_namespace()}-{gone}-1") as orphan:
        uid = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: uid + 1)
        assert launcher.sweep_orphans() == 0
        assert orphan.poll() is None


def test_bots_of_a_living_worker_are_not_swept(tmp_path, own_name):
    agent = make_agent(source_in(tmp_path, "well_behaved"), launcher=LAUNCHERS["a bubblewrap each"])
    try:
        agent.start()
        assert launcher.sweep_orphans() == 0
        assert isinstance(agent.wait_ready(GENEROUS), int)
    finally:
        agent.close()


def test_probe_tries_every_wall_and_all_hold():
    with nothing_left_behind():
        report = probe.probe_sandbox()
    assert report.reasons == ()
    assert report.holds
    assert len(report.attempts) >= 10
    assert all(attempt.held for attempt in report.attempts)


def test_probe_of_a_root_advises_another_user(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(runtime, "closed_to_others", lambda _path: Path("/root"))
    interpreter, root = probe.probe_sandbox().notes
    assert "/root, where the interpreter lies, is closed to others" in interpreter
    assert "this runs as root" in root
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert probe.probe_sandbox().notes == ()


def test_closed_folder_above_a_file_is_found():
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        file = folder / "python"
        file.write_text("")
        folder.chmod(0o755)
        file.chmod(0o644)
        assert runtime.closed_to_others(file) is None
        file.chmod(0o600)
        assert runtime.closed_to_others(file) == file
        folder.chmod(0o700)
        assert runtime.closed_to_others(file) == folder


def test_probe_names_the_wall_that_does_not_hold(monkeypatch):
    from engine.wire import Walls

    allow_all = b"\x06\0\0\0\0\0\xff\x7f"  # one instruction
    weak = Walls(seccomp=allow_all, rlimits={}, landlock_abi=0, readable=())
    monkeypatch.setattr(policy, "walls", lambda _readable, *, has_numpy: weak)
    report = probe.probe_sandbox()
    assert not report.holds
    assert any("a bot could make a socket" in reason for reason in report.reasons)
    assert any("a bot could take 1 GiB of memory" in reason for reason in report.reasons)
    assert any("a bot could read another bot's file" in reason for reason in report.reasons)


@pytest.fixture
def no_bubblewrap(monkeypatch):
    monkeypatch.setattr(launcher, "_bubblewraps", list)
    launcher.find_bubblewrap.cache_clear()
    yield
    launcher.find_bubblewrap.cache_clear()


def test_without_bubblewrap_bots_are_held_by_landlock_and_that_is_told(no_bubblewrap):
    report = probe.probe_sandbox()
    assert report.level == "landlock"
    assert all(attempt.held for attempt in report.attempts)
    assert "no namespaces of their own" in report.notes[0]
    assert "install the package bubblewrap" in report.notes[1]
    told = {finding.name: finding for finding in report.findings}
    assert told["level"].grade == "weak"
    assert told["bubblewrap"].text == "does not work here"
    assert "files of bots" not in told


def test_without_landlock_each_bot_gets_a_bubblewrap_and_that_is_told(monkeypatch):
    monkeypatch.setattr(probe, "landlock_abi", lambda: 0)
    monkeypatch.setattr(policy, "landlock_abi", lambda: 0)
    report = probe.probe_sandbox()
    assert report.level == "bubblewrap"
    assert not report.is_forking
    assert "this kernel has no Landlock" in report.notes[0]


def test_old_landlock_holds_and_what_it_lacks_is_told(monkeypatch):
    monkeypatch.setattr(probe, "landlock_abi", lambda: 1)
    monkeypatch.setattr(policy, "landlock_abi", lambda: 1)
    report = probe.probe_sandbox()
    assert report.level == "bubblewrap"
    assert "Landlock is version 1" in report.notes[0]


def test_sandbox_without_bubblewrap_and_landlock_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(launcher, "_bubblewraps", list)
    monkeypatch.setattr(probe, "landlock_abi", lambda: 0)
    launcher.find_bubblewrap.cache_clear()
    probe.require_sandbox.cache_clear()
    try:
        with pytest.raises(SandboxUnavailableError, match="install the package bubblewrap"):
            probe.require_sandbox()
    finally:
        launcher.find_bubblewrap.cache_clear()
        probe.require_sandbox.cache_clear()


def test_broken_bubblewrap_is_passed_over_for_one_that_works(monkeypatch):
    working = launcher.find_bubblewrap()
    monkeypatch.setattr(launcher, "_bubblewraps", lambda: ["/bin/false", working])
    launcher.find_bubblewrap.cache_clear()
    try:
        assert launcher.find_bubblewrap() == working
    finally:
        launcher.find_bubblewrap.cache_clear()
