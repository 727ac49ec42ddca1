"""Forks of a zygote: fast, and as far from each other as processes of their own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from engine import wire
from engine.agents import BotSource, Failure, Reply
from engine.errors import InfrastructureError
from engine.sandbox import launcher, zygote_launcher
from engine.sandbox.memory import wheel_in_memory
from engine.sandbox.processes import parent_of, stat_fields
from engine.sandbox.zygote_launcher import ZygoteLauncher
from engine.wheels import pack_module, wheel_source
from tests.hostile.aftermath import living, zygotes_of
from tests.hostile.stage import (
    GENEROUS,
    HERE,
    first_question,
    game_info,
    make_agent,
    nothing_left_behind,
    perform,
    source_in,
)
from tests.hostile.weaken import ALLOW_ALL, Weakened

pytestmark = pytest.mark.sandbox


@pytest.fixture(params=["bubblewrap", "landlock"])
def forks(request):
    """A launcher with zygotes of its own, at either level."""
    with nothing_left_behind():
        made = ZygoteLauncher(request.param)
        yield made
        made.close()


def unpacked(cache: Path, bot: str, act: str = "return observation.legal[0]") -> BotSource:
    """A bot as a tournament has it: a wheel, unpacked beside all others."""
    module = cache.parent / f"{bot}.py"
    module.write_text(
        textwrap.dedent(
            f"""
            import gc, os, random, sys
            from engine.sdk import Strategy, hookimpl

            class Tested(Strategy):
                def act(self, observation):
                    {act}

            @hookimpl
            def make_strategy(game, ruleset, players):
                return Tested()
            """
        )
    )
    return wheel_source(pack_module(module, bot=bot, version="1.0"), cache)


def play_one(forks, source):
    return perform(make_agent(source, launcher=forks), questions=1)


def test_bots_of_unpacked_wheels_are_forked_from_one_zygote(tmp_path, forks):
    sources = [unpacked(tmp_path / "cache", name) for name in ("one", "two")]
    agents = [make_agent(source, launcher=forks) for source in sources]
    try:
        for agent in agents:
            agent.start()
        assert all(isinstance(agent.wait_ready(GENEROUS), int) for agent in agents)
        parents = {agent._launched.process.parent_pid for agent in agents}
        assert len(parents) == 1
        assert len(launcher._children(*parents)) == 2
    finally:
        for agent in agents:
            agent.close()


def test_wheel_that_is_unpacked_later_is_seen(tmp_path, forks):
    assert play_one(forks, unpacked(tmp_path / "cache", "early")).fault is None
    assert play_one(forks, unpacked(tmp_path / "cache", "late")).fault is None
    assert len(forks._zygotes()) == 1


@pytest.mark.parametrize(
    "look",
    [
        "open(path + '/victim.py').read()",
        "os.listdir(path)",
        "os.listdir(os.path.dirname(path))",
        "sys.path.append(path); import victim",
    ],
    ids=["read", "list", "list all", "import"],
)
def test_bot_cannot_look_into_the_bot_that_lies_beside_its_own(tmp_path, forks, look):
    victim = unpacked(tmp_path / "cache", "victim")
    name = name_inside(forks, victim)
    spy = unpacked(
        tmp_path / "cache",
        "spy",
        f"path = os.path.dirname(__file__)[:-64] + {name!r}; {look}; return observation.legal[0]",
    )
    assert play_one(forks, victim).fault is None
    show = play_one(forks, spy)
    assert show.fault is not None
    assert re.search("PermissionError|No module named 'victim'", show.log.traceback)


def name_inside(forks, source) -> str:
    """How the folder of an unpacked wheel is called where bots see it."""
    folder = Path(source.folder)
    return (wheel_in_memory(folder) if forks._level == "bubblewrap" else folder).name


def test_name_of_a_wheel_where_it_lies_with_others_cannot_be_known(tmp_path):
    """A bot may look up any name: so nobody's is made of what is known, and one's own tells nothing of others'."""
    forks = ZygoteLauncher("bubblewrap")
    victim = unpacked(tmp_path / "cache", "victim")
    look = f"""print(__file__)
                    os.stat(os.path.dirname(os.path.dirname(__file__)) + "/{Path(victim.folder).name}")"""
    spy = unpacked(tmp_path / "cache", "spy", look)
    try:
        assert play_one(forks, victim).fault is None
        show = play_one(forks, spy)
    finally:
        forks.close()
    assert "FileNotFoundError" in show.log.traceback
    assert Path(spy.folder).name not in show.log.text


def test_reading_leaves_no_mark_that_the_next_process_finds(tmp_path, forks):
    """The kernel notes when a file, folder or link was last read, but only where that is later than its last change."""
    source = unpacked(
        tmp_path / "cache",
        "reader",
        """here = os.path.dirname(__file__)
                    found = [here]
                    for place, folders, files in os.walk(here):
                        found += [os.path.join(place, name) for name in sorted(folders + files)]
                    print(*(os.stat(path).st_atime_ns for path in found))
                    print(*(len(open(path, "rb").read()) for path in found if os.path.isfile(path)))
                    return observation.legal[0]""",
    )
    first, second = (play_one(forks, source) for _ in range(2))
    assert first.fault is None
    assert len(first.log.text.splitlines()[-2].split()) > 4
    assert first.log.text == second.log.text


def test_channel_of_a_zygote_is_heard_from_the_zygote_alone(tmp_path, forks, monkeypatch):
    stolen = []

    def open_channel(kept, passed_on):
        ours, theirs = launcher.open_channel(kept, passed_on)
        stolen.append(theirs.dup())
        return ours, theirs

    monkeypatch.setattr(zygote_launcher, "open_channel", open_channel)
    agent = make_agent(source_in(tmp_path, "well_behaved"), launcher=forks)
    try:
        agent.start()
        stolen[-1].close()  # the bot's own: only the bot's end may keep it open
        assert isinstance(agent.wait_ready(GENEROUS), int)
        (bot,) = launcher._children(agent._launched.process.parent_pid)
        for number in range(10):
            stolen[0].send(wire.encode(wire.Ended(number, 0)))
        stolen[0].send(b"no news at all")
        assert agent._launched.process.wait_status(0.2) is None
    finally:
        agent.close()
        stolen[0].close()
    assert not parent_of(bot)


GREET = """
import socket, sys, time
socket.socket(fileno=int(sys.argv[1])).send(bytes.fromhex(sys.argv[2]))
time.sleep(600)
"""


def test_greeting_of_another_process_is_not_believed(tmp_path, forks, monkeypatch):
    impostors = []

    def open_channel(kept, passed_on):
        ours, theirs = launcher.open_channel(kept, passed_on)
        arguments = [str(theirs.fileno()), wire.encode(wire.Hello()).hex()]
        impostors.append(
            subprocess.Popen([sys.executable, "-c", GREET, *arguments], pass_fds=[theirs.fileno()])
        )
        ours.recv(1, socket.MSG_PEEK)
        return ours, theirs

    source = source_in(tmp_path, "well_behaved")
    assert play_one(forks, source).fault is None
    monkeypatch.setattr(zygote_launcher, "open_channel", open_channel)
    agent = make_agent(source, launcher=forks)
    try:
        agent.start()
        with pytest.raises(InfrastructureError, match="greeting came from another process"):
            agent.wait_ready(GENEROUS)
    finally:
        agent.close()
        for impostor in impostors:
            impostor.kill()
            impostor.wait()


def test_what_a_bot_managed_to_fork_does_not_outlive_it(tmp_path):
    """With neither a filter nor limits: the first process of the namespace ends all that is in there."""
    forks = ZygoteLauncher("bubblewrap")
    forking = unpacked(
        tmp_path / "cache",
        "forking",
        """if os.fork() == 0:
                        os.setsid()
                        if os.fork() == 0:
                            while True: os.sched_yield()
                        os._exit(0)
                    os.wait()
                    return observation.legal[0]""",
    )
    bare = Weakened(forks, seccomp=ALLOW_ALL, rlimits={})
    try:
        assert perform(make_agent(forking, launcher=bare), questions=1).fault is None
        assert living(zygotes_of(forks)) == set()
        assert play_one(forks, unpacked(tmp_path / "cache", "next")).fault is None
    finally:
        forks.close()


def test_memory_of_a_fork_holds_nothing_of_the_bot_before(tmp_path, forks):
    first, second = (unpacked(tmp_path / "cache", name) for name in ("unmistakable", "other"))
    assert play_one(forks, first).fault is None
    agent = make_agent(second, launcher=forks)
    try:
        agent.start()
        assert isinstance(agent.wait_ready(GENEROUS), int)
        (pid,) = launcher._children(agent._launched.process.parent_pid)
        memory = memory_of(pid)
    finally:
        agent.close()
    assert name_inside(forks, second).encode() in memory  # so we looked where it would be
    assert name_inside(forks, first).encode() not in memory
    assert b"unmistakable" not in memory


def memory_of(pid: int) -> bytes:
    """All that the process could read of itself and wrote since it began."""
    regions = re.findall(
        r"^([0-9a-f]+)-([0-9a-f]+) rw.. \S+ \S+ \S+ +(?!\[v)",
        Path(f"/proc/{pid}/maps").read_text(),
        re.MULTILINE,
    )
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        parts = []
        for begin, end in regions:
            memory.seek(int(begin, 16))
            parts.append(memory.read(int(end, 16) - int(begin, 16)))
    return b"".join(parts)


def test_forks_share_no_open_file(tmp_path, forks):
    count = "print([fd for fd in range(300) if is_open(fd)]); return observation.legal[0]"
    source = unpacked(tmp_path / "cache", "counting", count)
    with (Path(source.folder) / "counting.py").open("a") as module:
        module.write(
            "\ndef is_open(fd):\n    try:\n        return os.fstat(fd)\n    except OSError:\n        return None\n"
        )
    neighbour = make_agent(unpacked(tmp_path / "cache", "neighbour"), launcher=forks)
    try:
        neighbour.start()
        assert isinstance(neighbour.wait_ready(GENEROUS), int)
        show = play_one(forks, source)
    finally:
        neighbour.close()
    assert show.log.text.endswith("\n[0, 1, 2, 3, 4]\n")


def test_forks_differ_in_chance_and_agree_in_hashes(tmp_path, forks):
    look = "print(hash('6-6'), random.random()); return observation.legal[0]"
    source = unpacked(tmp_path / "cache", "dice", look)
    first, second = (play_one(forks, source).log.text.split()[-2:] for _ in "ab")
    assert first[0] == second[0]
    assert first[1] != second[1]


def test_folder_of_its_own_gets_a_zygote_of_its_own_and_they_stay_few(tmp_path, forks):
    for number in range(zygote_launcher._MOST_ZYGOTES + 3):
        assert play_one(forks, source_in(tmp_path / str(number), "well_behaved")).fault is None
    assert len(forks._zygotes()) == zygote_launcher._MOST_ZYGOTES


def test_folder_that_was_made_anew_is_seen(tmp_path, forks):
    source = source_in(tmp_path / "bot", "well_behaved")
    assert play_one(forks, source).fault is None
    (tmp_path / "bot").rename(tmp_path / "old")
    source_in(tmp_path / "bot", "act_crash")
    renewed = BotSource(
        bot="act_crash", version=None, wheel=None, folder=source.folder, entry_point="act_crash"
    )
    assert play_one(forks, renewed).fault.detail == "raised KeyError while choosing an action"


def test_zygote_that_breaks_is_our_own_failure_and_is_replaced(tmp_path, forks):
    source = unpacked(tmp_path / "cache", "player")
    agent = make_agent(source, launcher=forks)
    try:
        agent.start()
        assert isinstance(agent.wait_ready(GENEROUS), int)
        agent.begin_game(game_info())
        zygote = agent._launched.process.parent_pid
        (bot,) = launcher._children(zygote)
        os.kill(zygote, signal.SIGKILL)
        # Its bots end a moment after it, and might answer until then.
        while (fields := stat_fields(bot)) and fields[0] != "Z":
            time.sleep(0.001)
        with pytest.raises(InfrastructureError, match="the sandbox has ended"):
            ask_on(agent)
    finally:
        agent.close()
    assert play_one(forks, source).fault is None


def ask_on(agent):
    question = first_question()
    for turn in range(100):
        answer = agent.ask(question, question.legal, GENEROUS, deal=0, turn=turn, move=1)
        assert isinstance(answer, Reply), "no fault of the bot"


def test_zygote_that_is_gone_before_a_match_is_replaced(tmp_path, forks):
    source = unpacked(tmp_path / "cache", "player")
    assert play_one(forks, source).fault is None
    (zygote,) = forks._zygotes().values()
    os.kill(zygote.pid, signal.SIGKILL)
    while not zygote.is_broken:
        zygote._read_news()
        time.sleep(0.001)
    assert play_one(forks, source).fault is None


def test_fork_of_ours_starts_zygotes_of_its_own(tmp_path, forks):
    source = unpacked(tmp_path / "cache", "player")
    assert play_one(forks, source).fault is None
    (ours,) = forks._zygotes().values()
    pid = os.fork()
    if pid == 0:
        try:
            is_well = play_one(forks, source).fault is None
            (theirs,) = forks._zygotes().values()
            is_another = theirs.pid != ours._pid
            forks.close()
            os._exit(0 if is_well and is_another else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert play_one(forks, source).fault is None
    assert [zygote.pid for zygote in forks._zygotes().values()] == [ours.pid]


def test_bot_that_is_ended_is_dead_at_once_with_its_neighbours_alive(tmp_path, forks):
    source = source_in(tmp_path / "bot", "well_behaved")
    first, second = (make_agent(source, launcher=forks) for _ in "ab")
    try:
        for agent in (first, second):
            agent.start()
            assert isinstance(agent.wait_ready(GENEROUS), int)
        zygote = first._launched.process.parent_pid
        assert len(launcher._children(zygote)) == 2
        first.close()
        assert len(launcher._children(zygote)) == 1
        second.begin_game(game_info())
        question = first_question()
        assert isinstance(
            second.ask(question, question.legal, GENEROUS, deal=0, turn=0, move=1), Reply
        )
    finally:
        first.close()
        second.close()
    assert launcher._children(zygote) == []


def test_fork_that_will_not_stand_tells_why_and_the_zygote_lives(tmp_path, forks):
    source = unpacked(tmp_path / "cache", "player")
    assert play_one(forks, source).fault is None
    gone = BotSource(
        bot="gone",
        version=None,
        wheel=None,
        folder=str(tmp_path / "cache" / ("0" * 64)),
        entry_point="gone",
    )
    agent = make_agent(gone, launcher=forks)
    try:
        with pytest.raises(InfrastructureError, match="No such file or directory"):  # noqa: PT012 - one of both
            agent.start()
            agent.wait_ready(GENEROUS)
    finally:
        agent.close()
    assert play_one(forks, source).fault is None
    assert len(forks._zygotes()) == 1


def test_failing_bot_names_its_folder_the_same_wherever_it_lies(tmp_path, forks):
    show = play_one(forks, unpacked(tmp_path / "cache", "failing", "print(__file__); 1 / 0"))
    assert isinstance(show.fault, Failure)
    assert '"/bot/failing.py"' in show.log.traceback
    assert show.log.text.endswith("/bot/failing.py\n")
    assert str(HERE.parent) not in show.log.traceback


class RecordedGroup:
    """Stands for a cgroup: what is put into it, and whether it was ended."""

    def __init__(self):
        self.pids = []
        self.is_ended = False

    def add(self, pid):
        self.pids.append(pid)

    def end(self):
        self.is_ended = True


def test_zygote_is_put_into_its_cgroup_before_it_forks_and_the_group_ends_with_it(
    forks, tmp_path, monkeypatch
):
    group = RecordedGroup()
    monkeypatch.setattr(zygote_launcher, "make_group", lambda: group)
    bot = make_agent(unpacked(tmp_path / "wheels", "grouped"), launcher=forks)
    try:
        bot.start()
        assert group.pids == [bot._launched.process.parent_pid]
        assert isinstance(bot.wait_ready(GENEROUS), int)
        assert not group.is_ended
    finally:
        bot.close()
        forks.close()
    assert group.is_ended
    assert len(group.pids) == 1


def test_cgroup_that_takes_no_zygote_is_our_failure(forks, tmp_path, monkeypatch):
    class Closed(RecordedGroup):
        def add(self, pid):
            raise InfrastructureError(f"{pid} does not get in")

    group = Closed()
    monkeypatch.setattr(zygote_launcher, "make_group", lambda: group)
    bot = make_agent(unpacked(tmp_path / "wheels", "grouped"), launcher=forks)
    try:
        with pytest.raises(InfrastructureError, match="does not get in"):
            bot.start()
    finally:
        bot.close()
        forks.close()
    assert group.is_ended
