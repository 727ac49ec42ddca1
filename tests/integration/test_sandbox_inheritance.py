"""What a bot's process finds in itself: nothing of another seat, in no file, variable, memory or random state."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import resource
import secrets
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from engine.agents import BotSource
from engine.games import GAMES, get_game
from engine.record import BoardsContest
from engine.referee import play_match
from engine.sandbox import agent as sandbox_agent
from engine.sandbox import launcher, runtime
from engine.sandbox.agent import sandbox_factory
from engine.shuffle import Stream
from tests.hostile.aftermath import zygotes_of
from tests.hostile.knowledge import Table, choose_kind_first
from tests.hostile.puppets import sleeping_process
from tests.hostile.stage import (
    GENEROUS,
    LAUNCHERS,
    close_zygotes,
    game_info,
    make_agent,
    perform,
    source_in,
)

pytestmark = pytest.mark.sandbox

FORKING = ["bubblewrap", pytest.param("landlock", marks=pytest.mark.exhaustive)]


# The bytes that really arrive


def script_of(table, record):
    """By rotation and game, all actions: what a bot finds out by the names at the table."""
    names = [entrant.name for entrant in table.spec.entrants]
    return {
        f"{names[game.seating[0]]}, game 0": [text.split(" ", 1)[1] for text in deal.actions]
        for game in record.games
        for deal in game.deals
    }


def logs_of(table, boards, sources, level):
    with (
        table.given(boards),
        mock.patch.object(sandbox_agent._BotProcess, "cpu_us", return_value=0),
    ):
        played = play_match(table.spec, sources, sandbox_factory(LAUNCHERS[level]))
    assert played.record.outcome.faults == ()
    return {(log.sitting, log.seat): log.log.text for log in played.logs}


def up_to(text, hashes):
    """A log until so many hashes have been printed."""
    found = list(re.finditer(r"^[0-9a-f]{64}\n", text, re.MULTILINE))
    return text[: found[hashes - 1].end()]


@pytest.mark.parametrize("level", FORKING)
@pytest.mark.parametrize("game", sorted(GAMES))
def test_what_arrives_in_a_process_depends_on_nothing_that_it_may_not_know(tmp_path, game, level):
    rng = random.Random(11)
    with sleeping_process() as pid:
        table = Table(pid, game, {}, 2, BoardsContest(1))
        boards = table.boards(rng)
        played, puppets = table.play(boards, choose_kind_first(rng))
        questions = [each for each in table.questions(puppets) if each.action > 2]
        asked = rng.choice(questions)
        others = table.find_alike(played.record, boards, asked, rng)
    assert others[0] != boards[0]
    source = source_in(tmp_path / "bot", "scripted")
    (tmp_path / "bot" / "script.json").write_text(json.dumps(script_of(table, played.record)))
    sources = [
        (msgspec.structs.replace(source, bot=bot.bot),)
        for entrant in table.spec.entrants
        for bot in entrant.bots
    ]
    told = [logs_of(table, these, sources, level) for these in (boards, others)]
    heads = [up_to(logs[asked.sitting, asked.seat], asked.number - 1) for logs in told]
    assert heads[0] == heads[1]
    assert told[0] != told[1]
    puppet = puppets[asked.sitting * table.seats + asked.seat]
    last = hashlib.sha256(puppet.heard[asked.number]).hexdigest()
    assert heads[0].endswith(f"{last}\n")  # a real process is sent what a puppet is


# What a fork finds


FINDER = """
import os, random, stat, sys
from engine.sdk import hookimpl

@hookimpl
def make_strategy(game, ruleset, players):
    {code}
    return None
"""


def finds(tmp_path, code, level, name="finder"):
    """What a bot prints that looks around."""
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    (folder / "finder.py").write_text(FINDER.format(code=code))
    source = BotSource(bot=name, version=None, wheel=None, folder=str(folder), entry_point="finder")
    show = perform(make_agent(source, launcher=LAUNCHERS[level]))
    assert show.log.traceback == ""
    return show.log.text.removeprefix("--- start\n")


@pytest.mark.parametrize("level", list(LAUNCHERS))
def test_environment_is_the_same_for_all_and_has_nothing_of_the_worker_s(
    tmp_path, monkeypatch, level
):
    close_zygotes()
    monkeypatch.setenv("ARENA_PLANTED", "the worker's own")
    names = set(finds(tmp_path, "print(*os.environ)", level).split())
    assert names <= {
        "PYTHONHASHSEED",
        "PWD",
        "LC_CTYPE",
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
    }
    assert "PYTHONHASHSEED" in names


OWN = """
    import time
    clocks = [getattr(time, name) for name in dir(time) if name.startswith("CLOCK_")]
    for clock in clocks:
        if 0 <= clock < 8:
            time.clock_gettime(clock), time.clock_gettime_ns(clock), time.clock_getres(clock)
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        getattr(time, name)(), getattr(time, name + "_ns")(), time.get_clock_info(name)
    time.sleep(0), time.sleep(0.001), time.localtime(), time.strftime("%c"), os.times(), time.tzname
    import threading, resource, subprocess, uuid, datetime, timeit, decimal, statistics
    lock = threading.Lock()
    lock.acquire(), lock.acquire(timeout=0.001), lock.release(), threading.Event().wait(0.001)
    timeit.timeit(int, number=1), datetime.datetime.now(), uuid.uuid4(), random.seed(), random.random()
    print(os.getsid(0) >= 0, os.getpgid(0) >= 0, len(os.sched_getaffinity(0)), os.cpu_count() > 0, resource.getrusage(0) != 0)
"""
"""All of Python's clocks, locks and questions about oneself."""


@pytest.mark.parametrize("level", list(LAUNCHERS))
def test_clocks_locks_and_what_is_one_s_own_can_be_asked(tmp_path, level):
    words = finds(tmp_path, OWN.strip(), level).split()
    assert [*words[:2], *words[3:]] == ["True"] * 4


OPEN = """
    for fd in range(2048):
        try:
            mode = os.fstat(fd).st_mode
        except OSError:
            continue
        print(fd, {stat.S_IFCHR: "device", stat.S_IFREG: "file", stat.S_IFSOCK: "socket"}[stat.S_IFMT(mode)])
"""


@pytest.mark.parametrize("level", list(LAUNCHERS))
def test_open_are_its_own_channel_and_logs_and_no_more(tmp_path, level):
    found = finds(tmp_path, OPEN.strip(), level).splitlines()
    assert found == ["0 device", "1 device", "2 file", "3 socket", "4 file"]


@pytest.fixture
def many_open_files():
    """So many that what a zygote or a bot is given has numbers beyond every limit of theirs."""
    close_zygotes()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(400)]
    yield
    for file in files:
        os.close(file)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    close_zygotes()


@pytest.mark.parametrize("kernel", ["new", "before 5.9"])
@pytest.mark.parametrize("level", list(LAUNCHERS))
def test_neither_are_more_where_the_worker_has_many(
    tmp_path, many_open_files, monkeypatch, level, kernel
):
    if kernel != "new":
        archive = _archive_without_close_range(tmp_path)
        monkeypatch.setattr(launcher, "engine_archive", lambda: archive)
    found = finds(tmp_path, OPEN.strip(), level).splitlines()
    assert found == ["0 device", "1 device", "2 file", "3 socket", "4 file"]
    if level == "bubblewrap":
        (zygote,) = zygotes_of(LAUNCHERS[level])
        assert {path.name for path in Path(f"/proc/{zygote}/fd").iterdir()} == {"0", "1", "2", "3"}


def _archive_without_close_range(folder: Path) -> bytes:
    """The engine as bots have it, with a number that no kernel has for the call that closes many files."""
    whole = runtime._compile
    copy, number = folder / "bot_host.py", b"_CLOSE_RANGE, _HIGHEST = 436,"

    def compile_for_an_old_kernel(path: Path, name: str) -> bytes:
        if path.name != copy.name:
            return whole(path, name)
        assert number in path.read_bytes()
        copy.write_bytes(path.read_bytes().replace(number, number.replace(b"436", b"5000")))
        return whole(copy, name)

    with mock.patch.object(runtime, "_compile", compile_for_an_old_kernel):
        return runtime.engine_archive.__wrapped__()


@pytest.mark.parametrize("level", FORKING)
def test_logs_of_a_process_are_empty_when_it_begins(tmp_path, level):
    code = "print(os.pread(2, 100, 0), os.pread(4, 100, 0))"
    for _ in range(2):
        assert finds(tmp_path, code, level) == "b'' b''\n"


RANDOM_STATES = {
    "random": "print(random.getrandbits(64))",
    "secrets": "import secrets; print(secrets.token_hex())",
    "numpy": "import numpy; print(numpy.random.bytes(16).hex())",
}


@pytest.mark.parametrize("level", FORKING)
@pytest.mark.parametrize("kind", RANDOM_STATES)
def test_random_states_of_forks_tell_nothing_of_each_other(tmp_path, level, kind):
    """Else a bot that takes its dice from there could be foreseen by who inherits the same."""
    rolls = [finds(tmp_path, RANDOM_STATES[kind], level) for _ in range(3)]
    assert len(set(rolls)) == 3


# Memory


KEEPS = """
import os
PLAN, KEPT, read = {plan!r}, [], os.read

def keep(descriptor, size):
    KEPT.append(read(descriptor, size))
    return KEPT[-1]

os.read = keep
"""
"""What is added to a bot, so that it remembers all that it is sent."""


def memory_of(pid):
    """All that a process could read of itself, but for files that are mapped as they are."""
    with (
        Path(f"/proc/{pid}/maps").open() as maps,
        Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory,
    ):
        parts = []
        for line in maps:
            place, rights, *_ = line.split()
            start, end = (int(edge, 16) for edge in place.split("-"))
            is_plain_file = "w" not in rights and "/" in line
            if not rights.startswith("r") or "[v" in line or is_plain_file:
                continue
            memory.seek(start)
            try:
                parts.append(memory.read(end - start))
            except OSError:
                continue  # a hole in it
    return b"\n".join(parts)


def may_read_memory(pid):
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0):
            return True
    except PermissionError:
        return False


@pytest.mark.parametrize("level", FORKING)
def test_memory_of_a_process_has_nothing_of_another_seat_and_the_zygote_s_nothing_of_any(
    tmp_path, monkeypatch, level
):
    close_zygotes()
    secret = f"planted-{secrets.token_hex(8)}"
    monkeypatch.setenv("ARENA_PLANTED", secret)
    game = get_game("eighty")
    ruleset = game.make_ruleset()
    state = game.start(ruleset, game.deal(Stream(secrets.token_bytes(32)), ruleset, 4))
    agents, marks = [], []
    try:
        for seat in range(4):
            plan, folder = f"plan-{secrets.token_hex(8)}", secrets.token_hex(32)
            source = source_in(tmp_path / folder, "well_behaved")
            with (tmp_path / folder / "well_behaved.py").open("a") as file:
                file.write(KEEPS.replace("{plan!r}", repr(plan)))
            agents.append(make_agent(source, launcher=LAUNCHERS[level]))
            agents[-1].start()
            assert isinstance(agents[-1].wait_ready(GENEROUS), int)
            seed = secrets.randbits(256)
            agents[-1].begin_game(msgspec.structs.replace(game_info(seat), random_seed=seed))
            marks.append({"plan": plan.encode(), "seed": seed.to_bytes(32, "big")})
            marks[-1]["folder"] = Path(agents[-1]._launched.folder).name.encode()
        for _ in range(4):
            seat, observation = state.seat, state.observe(1000)
            marks[seat]["hand"] = msgspec.msgpack.encode(observation.hand)
            agents[seat].ask(observation, observation.legal, GENEROUS, deal=0, turn=0, move=1)
            state.apply(state.legal()[-1])
        pids = [agent._bot._pid for agent in agents]
        if not may_read_memory(pids[0]):
            pytest.skip("this kernel lets us not read our bots' memory: run it as root")
        memories = [memory_of(pid) for pid in pids]
        parents = {agent._launched.process.parent_pid for agent in agents}
        zygotes = [memory_of(pid) for pid in parents]
    finally:
        for agent in agents:
            agent.close()
    for seat, memory in enumerate(memories):
        assert [kind for kind, mark in marks[seat].items() if mark not in memory] == []
        others = [(other, kind) for other in range(4) if other != seat for kind in marks[other]]
        assert [(o, kind) for o, kind in others if marks[o][kind] in memory] == []
        assert secret.encode() not in memory
    for memory in zygotes:
        assert b"engine.sandbox.zygote" in memory
        assert [kind for own in marks for kind, mark in own.items() if mark in memory] == []
        assert secret.encode() not in memory
