"""numpy in the sandbox: loaded before the bot is near, on one thread, and each process with chance of its own."""

from __future__ import annotations

import textwrap

import pytest

from engine.agents import Reply
from engine.checking import check_wheel
from engine.record import BoardsContest, BotRef, DealSource, EntrantRef, make_spec, replay
from engine.referee import play_match
from engine.sandbox import policy
from engine.sandbox.agent import sandbox_factory
from engine.sdk.timecontrol import time_control
from engine.shuffle import local_prk
from engine.wheels import pack_project, provided_versions, wheel_source
from tests.hostile.stage import LAUNCHERS, close_zygotes, make_agent, perform

pytestmark = pytest.mark.sandbox

PROJECT = """
[project]
name = "{bot}"
version = "1.0"
dependencies = [{requires}]
[project.entry-points."domino_arena.bots"]
{bot} = "{bot}"
"""
MODULE = """
import os, sys
was_loaded = "num" "py" in sys.modules
{imports}
from engine.sdk import Strategy, hookimpl

class Tested(Strategy):
    def act(self, observation):
{act}
        return observation.legal[0]

@hookimpl
def make_strategy(game, ruleset, players):
    return Tested()
"""
CALCULATE = """
square = np.arange(100.0).reshape(10, 10) + np.eye(10)
assert np.allclose(np.linalg.solve(square, square @ np.ones(10)), 1)
assert int(np.argmax(np.linspace(0, 1, len(observation.legal)))) == len(observation.legal) - 1
"""
CALCULATE_LARGE = """
large = np.ones(1 << 20)  # of a size for which numpy asks for huge pages
assert np.fft.fft(large).shape == large.shape
square = large[:90_000].reshape(300, 300)
assert (square @ square).sum() == 300**3
print("it can")
"""


@pytest.fixture(autouse=True)
def fresh_zygotes():
    """Each test starts and ends with none."""
    close_zygotes()
    yield
    close_zygotes()


@pytest.fixture(params=LAUNCHERS)
def launcher(request):
    """Every way to start a bot's process."""
    return LAUNCHERS[request.param]


def wheel_of(folder, act, imports="import numpy as np", requires='"numpy>=2"', bot="calculator"):
    """A bot's wheel that does `act` on each question."""
    project = folder / bot
    project.mkdir()
    (project / "pyproject.toml").write_text(PROJECT.format(bot=bot, requires=requires))
    code = MODULE.format(imports=imports, act=textwrap.indent(act, " " * 8))
    (project / f"{bot}.py").write_text(code)
    return pack_project(project)


def bot_of(folder, act, **named):
    """The same as a tournament has it: unpacked beside all others."""
    return wheel_source(wheel_of(folder, act, **named), folder / "cache")


def words_of(source, launcher, questions=1):
    """What the bot printed, by questions."""
    show = perform(make_agent(source, launcher=launcher), questions=questions)
    assert [type(answer) for answer in show.answers] == [Reply] * questions, show
    return [line for line in show.log.text.splitlines() if not line.startswith("---")]


def test_bot_that_calculates_plays_a_whole_match(tmp_path, launcher):
    source = bot_of(tmp_path, CALCULATE)
    bot = BotRef(source.bot, source.version, source.wheel)
    spec = make_spec(
        game="podkidnoe",
        entrants=[EntrantRef(name, (bot,)) for name in "ab"],
        contest=BoardsContest(1),
        time_control=time_control("standard"),
        deals=DealSource(local_prk("numpy"), "local", reveal=True),
    )
    record = play_match(spec, [(source,), (source,)], sandbox_factory(launcher)).record
    assert record.outcome.faults == ()
    replay(record)


def test_it_is_loaded_beforehand_in_the_version_that_is_told_and_on_one_thread(tmp_path, launcher):
    act = "print(was_loaded, np.__version__, os.environ['OPENBLAS_NUM_THREADS'])"
    version = provided_versions()["numpy"]
    assert words_of(bot_of(tmp_path, act), launcher) == [f"True {version} 1"]


def test_large_arrays_can_be_calculated_with(tmp_path, launcher):
    assert words_of(bot_of(tmp_path, CALCULATE_LARGE), launcher) == ["it can"]


def test_two_processes_share_no_chance(tmp_path, launcher):
    act = "print(np.random.random(), np.random.get_state()[1][:3].tolist())"
    source = bot_of(tmp_path, act)
    first, second = (words_of(source, launcher) for _ in "ab")
    assert first != second
    assert first[0].split()[1:] != second[0].split()[1:]


def test_bot_that_does_not_name_it_gets_a_process_without(tmp_path):
    launcher = LAUNCHERS["bubblewrap"]
    plain = bot_of(tmp_path, "print(was_loaded)", imports="", requires="", bot="plain")
    calculator = bot_of(tmp_path, "print(was_loaded)")
    assert words_of(plain, launcher) == ["False"]
    assert words_of(calculator, launcher) == ["True"]
    assert len(launcher._zygotes()) == 2


@pytest.mark.parametrize("imports", ["import numpy as np", ""], ids=["with numpy", "without"])
def test_its_own_room_is_not_taken_from_the_bot(tmp_path, launcher, imports):
    act = f"bytearray({policy.MEMORY_BYTES} - (48 << 20)); print('enough')"
    requires = '"numpy"' if imports else ""
    assert words_of(bot_of(tmp_path, act, imports=imports, requires=requires), launcher) == [
        "enough"
    ]
    (tmp_path / "more").mkdir()
    act = f"bytearray({policy.MEMORY_BYTES}); print('too much')"
    greedy = bot_of(tmp_path / "more", act, imports=imports, requires=requires)
    show = perform(make_agent(greedy, launcher=launcher), questions=1)
    assert show.fault.detail == "ran out of memory while choosing an action"


@pytest.mark.slow
def test_wheel_that_requires_it_is_accepted(tmp_path):
    report = check_wheel(wheel_of(tmp_path, CALCULATE), tmp_path / "cache")
    assert report.reasons == ()
    assert report.verdict == "accepted"
