"""A bot that remembers gains nothing: what it sees lies in memory, where the kernel's caches tell nothing."""

from __future__ import annotations

import os
import shutil
import stat
import time
from pathlib import Path

import pytest

from engine.errors import InfrastructureError
from engine.record import BoardsContest, BotRef, DealSource, EntrantRef, make_spec
from engine.runner import run_match
from engine.sandbox import findings, memory
from engine.sandbox.processes import own_mark, pid_namespace
from engine.sandbox.runtime import find_runtime
from engine.sdk.timecontrol import time_control
from engine.shuffle import local_prk
from engine.wheels import pack_module, pack_project, wheel_source
from tests.hostile.stage import HERE, make_agent, perform

pytestmark = pytest.mark.sandbox

PROJECT = """
[project]
name = "{bot}"
version = "1.0"
[project.entry-points."domino_arena.bots"]
{bot} = "{bot}"
"""


def with_marks(tmp_path: Path, bot: str, *, looks: bool):
    """The bot as a wheel, with files that can be marks; one that does not look is its own control."""
    project = tmp_path / f"{bot}-{looks}"
    package = project / bot
    package.mkdir(parents=True)
    (project / "pyproject.toml").write_text(PROJECT.format(bot=bot))
    source = (HERE / f"{bot}.py").read_text().replace("LOOKS = True", f"LOOKS = {looks}")
    (package / "__init__.py").write_text(source)
    for number in range(3 * 16):
        (package / f"mark-{number // 16}-{number % 16}.txt").write_bytes(os.urandom(4096))
    unpacked = wheel_source(pack_project(project), tmp_path / "cache")
    os.sync()  # what has not been written yet cannot be dropped
    return unpacked


def actions_of(source):
    """Every action of a match of the bot with itself, played from both sides."""
    entrants = [EntrantRef(name, (BotRef(source.bot, None, None),)) for name in "ab"]
    spec = make_spec(
        game="eighty",
        entrants=entrants,
        contest=BoardsContest(boards=3),
        time_control=time_control("standard"),
        deals=DealSource(prk=local_prk("memory"), tournament_id="local", reveal=True),
    )
    record = run_match(spec, [(source,), (source,)]).record
    assert record.outcome.faults == ()
    return [deal.actions for game in record.games for deal in game.deals]


@pytest.mark.parametrize("bot", ["remember_by_names", "remember_by_pages"])
def test_bot_that_looks_for_marks_plays_as_one_that_does_not(tmp_path, bot):
    looking = actions_of(with_marks(tmp_path, bot, looks=True))
    assert looking == actions_of(with_marks(tmp_path, bot, looks=False))


def test_nothing_that_a_bot_sees_lies_on_a_disk(tmp_path):
    module = tmp_path / "seer.py"
    module.write_text(
        "import os\n"
        "from engine.sdk import Strategy, hookimpl\n"
        "class Seer(Strategy):\n"
        "    def act(self, observation):\n"
        "        places = ['/', '/usr/lib', '/arena', os.__file__, __file__, '/etc/ld.so.cache']\n"
        "        print(*[os.stat(place).st_dev for place in places])\n"
        "        return observation.legal[0]\n"
        "@hookimpl\n"
        "def make_strategy(game, ruleset, players):\n"
        "    return Seer()\n"
    )
    source = wheel_source(pack_module(module, bot="seer", version="1.0"), tmp_path / "cache")
    log = perform(make_agent(source), questions=1).log
    devices = {int(word) for word in log.text.split("\n")[1].split()}
    disks = {Path(path).stat().st_dev for path in ("/usr/lib", os.__file__, source.folder)}
    assert len(devices) > 1
    assert not devices & disks


def test_copied_runtime_has_what_bots_import_and_no_more_than_is_needed():
    runtime = find_runtime()
    copy = memory._copied_runtime(memory.memory_folder())
    library = Path(f"{copy}{runtime.import_path[2]}")
    assert (library / "json" / "__init__.py").is_file()
    assert not (library / "site-packages").exists()
    assert not (library / "test").exists()
    assert all(Path(outside).is_relative_to(copy) for outside, _ in memory.shown_files(runtime))
    assert all(Path(outside).exists() for outside, _ in memory.shown_files(runtime))


@pytest.fixture
def wheels(tmp_path):
    """Room for wheels of a process, in a folder of ours."""
    folder = tmp_path / "room"
    folder.mkdir()
    return memory._Wheels(folder)


def make_folder(tmp_path, name, size=10):
    folder = tmp_path / "unpacked" / name
    folder.mkdir(parents=True)
    (folder / "bot.py").write_bytes(b"#" * size)
    return folder


def test_wheel_made_anew_is_copied_anew(tmp_path, wheels):
    folder = make_folder(tmp_path, "w", 10)
    copy = wheels.hold(folder)
    shutil.rmtree(folder)
    make_folder(tmp_path, "w", 20)
    assert wheels.hold(folder) == copy
    assert (copy / "bot.py").stat().st_size == 20


def test_wheels_used_longest_ago_leave_first_and_those_of_a_match_stay(tmp_path, wheels):
    wheels._most = 100
    folders = [make_folder(tmp_path, f"w{number}", 50) for number in range(20)]
    for folder in folders:
        wheels.hold(folder)
        wheels.hold(folders[0])
    kept = [f"w{number}" for number in range(20) if wheels.place_of(f"w{number}").exists()]
    assert kept == ["w0", *(f"w{number}" for number in range(13, 20))]


def test_file_that_was_changed_deep_in_a_wheel_is_copied_anew(tmp_path, wheels):
    folder = make_folder(tmp_path, "w/pkg").parent
    copy = wheels.hold(folder)
    (folder / "pkg/bot.py").write_bytes(b"other")
    wheels.hold(folder)
    assert (copy / "pkg/bot.py").read_bytes() == b"other"


def test_copy_of_which_somebody_deleted_a_part_is_made_anew(tmp_path, wheels):
    folder = make_folder(tmp_path, "w/pkg").parent
    copy = wheels.hold(folder)
    (copy / "pkg/bot.py").unlink()
    wheels.hold(folder)
    assert (copy / "pkg/bot.py").is_file()


def test_copy_for_which_there_is_no_room_is_our_failure_and_leaves_nothing(
    tmp_path, wheels, monkeypatch
):
    held = wheels.hold(make_folder(tmp_path, "w"))
    monkeypatch.setattr(memory.shutil, "copytree", _stops_half_way)
    for _ in range(2):
        with pytest.raises(InfrastructureError, match="No space left"):
            wheels.hold(make_folder(tmp_path, f"x{_}"))
    assert list(wheels.folder.iterdir()) == [held]


def test_wheels_that_no_match_plays_make_room_where_there_is_none(tmp_path, wheels, monkeypatch):
    for number in range(12):
        wheels.hold(make_folder(tmp_path, f"w{number}"))
    whole = shutil.copytree

    def full_until_some_left(unpacked, target, **named):
        if len(list(wheels.folder.iterdir())) >= 9:
            _stops_half_way(unpacked, target)
        return whole(unpacked, target, **named)

    monkeypatch.setattr(memory.shutil, "copytree", full_until_some_left)
    assert (wheels.hold(make_folder(tmp_path, "new")) / "bot.py").is_file()


def _stops_half_way(unpacked, target, **named):
    target.mkdir()
    (target / "half.py").write_bytes(b"x")
    raise shutil.Error([(str(unpacked), str(target), "[Errno 28] No space left on device")])


def test_scratch_of_a_process_that_was_killed_is_swept_and_work_in_progress_is_not(tmp_path):
    for name, age in (("making-old", 7200), ("making-new", 60)):
        (tmp_path / name / "tree").mkdir(parents=True)
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    memory._sweep_scratch(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["making-new"]


def test_lost_folder_is_our_failure(tmp_path, wheels):
    with pytest.raises(InfrastructureError, match="cannot be copied to memory"):
        wheels.hold(tmp_path / "nowhere")


def test_folders_of_ended_processes_are_swept(tmp_path):
    own = pid_namespace()
    ended = f"wheels-{own}-{os.getpid()}-0"  # whose pid is another's now: ours
    kept = {f"wheels-{own_mark()}", f"wheels-{own + 1}-{os.getpid()}-0", "wheels-of-somebody"}
    for name in (ended, *kept):
        (tmp_path / name).mkdir()
    memory._sweep(tmp_path.glob("wheels-*"))
    assert {path.name for path in tmp_path.iterdir()} == kept


@pytest.mark.parametrize(
    ("mount", "complaint"),
    [
        ("tmpfs {} tmpfs rw 0 0", None),
        ("tmpfs {} tmpfs rw,noexec 0 0", "mounted noexec"),  # no program could run from there
        ("disk {} ext4 rw 0 0", "of type ext4, not tmpfs"),
    ],
)
def test_memory_is_a_tmpfs_from_which_programs_run(tmp_path, monkeypatch, mount, complaint):
    real = Path.read_text
    monkeypatch.setattr(
        Path,
        "read_text",
        lambda path, *args, **named: (
            f"disk / ext4 rw 0 0\n{mount.format(tmp_path)}\n"
            if str(path) == "/proc/self/mounts"
            else real(path, *args, **named)
        ),
    )
    found = memory.complaint_of(tmp_path)
    assert found is None if complaint is None else complaint in found


def test_place_in_which_anybody_may_rename_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_mount_of", lambda place: ("tmpfs", "rw"))
    for mode, complaint in ((0o777, "mode 1777"), (0o1777, None), (0o755, None)):
        tmp_path.chmod(mode)
        found = memory.complaint_of(tmp_path)
        assert found is None if complaint is None else complaint in found


def test_own_folder_is_closed_to_others(tmp_path):
    folder = memory._own_folder(tmp_path)
    folder.chmod(0o755)
    assert memory._own_folder(tmp_path) == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("taken", ["a link", "a file", "another user's folder"])
def test_name_that_somebody_took_is_not_used_and_workers_share_another(
    tmp_path, monkeypatch, taken
):
    uid = os.getuid() + (taken == "another user's folder")
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    place.mkdir()
    elsewhere.mkdir(mode=0o755)
    name = place / f"domino-arena-{uid}"
    if taken == "a link":
        name.symlink_to(elsewhere)
    elif taken == "a file":
        name.touch()
    else:
        name.mkdir()
        real = os.lstat
        monkeypatch.setattr(os, "getuid", lambda: uid)
        monkeypatch.setattr(Path, "lstat", lambda path: _owned(real(path), uid - (path == name)))
    folder = memory._own_folder(place)
    assert folder.parent == place
    assert folder != name
    assert memory._own_folder(place) == folder
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755


def _owned(found: os.stat_result, uid: int) -> os.stat_result:
    return os.stat_result((*found[:4], uid, *found[5:]))


def test_doctor_is_told_where_there_is_no_memory_to_show(monkeypatch):
    monkeypatch.setattr(memory, "memory_folder", lambda: None)
    (finding,) = findings._look_at_memory()
    assert finding.grade == "weak"
    assert "ARENA_MEMORY" in finding.advice[0]


def test_doctor_is_told_why_the_place_that_is_named_cannot_be_used(tmp_path, monkeypatch):
    memory.memory_folder.cache_clear()
    try:
        for place, why in ((tmp_path / "nowhere", "no such file"), (Path("/proc"), "type proc")):
            monkeypatch.setenv("ARENA_MEMORY", str(place))
            (finding,) = findings._look_at_memory()
            assert finding.grade == "weak"
            assert finding.advice[0].startswith(f"ARENA_MEMORY names {place}, which cannot be used")
            assert why in finding.advice[0]
            memory.memory_folder.cache_clear()
    finally:
        memory.memory_folder.cache_clear()
